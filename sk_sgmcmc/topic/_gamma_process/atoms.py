"""Weights of topics as atoms of a gamma process: their state, and the samplers that move it."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from ...exceptions import ChainDivergedError
from ...kernels.models import gamma_process
from ...kernels.samplers import blocks, riemannian
from ...kernels.samplers import mass as mass_kernels
from ...samplers.schedules import ConstantStep
from ...samplers.state import SamplerState
from ...utils._numbers import real_array

_STEP_SHARE = 0.4  # Automatic step size, relative to the inverse of the highest frequency.
_METRIC_STEP = 0.1  # Automatic step size under a metric, which makes all directions about equally stiff.
_NOISE = 0.05
_LONG = 10**9  # Number of steps during which a stream learns its masses.
_MOST_HALVINGS = 10  # Most halvings of an automatic step size in an update that diverges.
_LARGEST_LOG = 300.0  # Bound of log weights and other coordinates, so that squares do not overflow.
_NOTHING = np.empty((0, 0))


@dataclass(frozen=True, eq=False)
class ProcessPrior:
    """The priors of a gamma process, and its truncation; see the notes of `GammaProcessTopicModel`.

    Parameters
    ----------
    n_atoms, n_rounds : int
        Number of atoms K, and of the rounds R that they represent, with K/R atoms expected in each.
    concentration : tuple of float
        Shape and rate of the Gamma prior of the mass of the process.
    rate : tuple of float
        Shape and rate of the Gamma prior of the rate c of the process.
    scale : tuple of float
        Parameters of the Beta prior of each document's p.
    """

    n_atoms: int
    n_rounds: int
    concentration: tuple
    rate: tuple
    scale: tuple


class Atoms:
    """The state of a gamma process, updated by draws from conditionals.

    Atom k has the weight E_k exp(-T_k). The state ``theta``, (2 K + 2, 1), contains log E and log T of the K atoms, log
    alpha and log c.

    Parameters
    ----------
    prior : ProcessPrior
    weight : float
        Weight of each atom at the start.
    """

    def __init__(self, prior, weight):
        K = prior.n_atoms
        self.prior = prior
        T = max(-np.log(weight), 0.1)
        a = prior.n_rounds / T / 2.0
        self.theta = np.concatenate([np.full(K, np.log(weight) + T), np.full(K, np.log(T)), [np.log(a), 0.0]])[:, None]

    @property
    def weights(self):
        """The weights r_k, (n_topics,)."""
        return np.maximum(np.exp(self._log_weights()), gamma_process.SMALLEST)

    def _log_weights(self):
        K = self.prior.n_atoms
        with np.errstate(over="ignore"):  # Overflow means a weight of 0.
            return self.theta[:K, 0] - np.exp(self.theta[K : 2 * K, 0])

    @property
    def concentration(self):
        """Mass of the process."""
        return float(np.exp(self.theta[-2, 0])) * self.prior.n_atoms / self.prior.n_rounds

    @property
    def rate(self):
        """The rate c of the process."""
        return float(np.exp(self.theta[-1, 0]))

    def _params(self, total_log, typical):
        prior = self.prior
        shape, rate = prior.concentration
        per_round = prior.n_atoms / prior.n_rounds
        return np.array(
            [total_log, prior.n_rounds, shape, rate * per_round, *prior.rate, typical, 0.0], dtype=np.float64
        )

    def join(self, kept, left):
        """Add the weight of atom ``left`` to atom ``kept``, and move atom ``left`` to the last round."""
        K = self.prior.n_atoms
        weights = self.weights
        self.theta[kept] += np.log1p(weights[left] / weights[kept])
        self.theta[K + left] = np.log(self.prior.n_rounds) - self.theta[2 * K]

    def settle(self):
        """End burn-in, after which the sampler no longer adapts."""

    def use(self, sampler):
        """Continue a stream with another step size of the same sampler."""

    def permute(self, order):
        """Reorder the atoms."""
        K = self.prior.n_atoms
        self.theta[:K], self.theta[K : 2 * K] = self.theta[:K][order], self.theta[K : 2 * K][order]

    def redraw(self, cells, values, total_log, typical, rng, decay=0.0):
        """Draw from the conditionals given the statistics of documents.

        See `sk_sgmcmc.kernels.models.gamma_process`.

        Parameters
        ----------
        cells, values : ndarray of shape (n_runs, 3) and (n_runs,)
            Runs of equal numbers of documents with more than m tokens of a topic, as from ``cells_of``.
        total_log : float
            -sum_d log(1 - p_d).
        typical : float
            A constant of the magnitude of ``total_log``.
        rng : Generator
        decay : float
            Share of the state that a Cox-Ingersoll-Ross transition keeps; 0 for independent draws.
        """
        tables = np.empty(self.prior.n_atoms)
        gamma_process.draw_tables(cells, values, self.weights, tables, rng)
        gamma_process.draw_atoms(self.theta, tables, self._params(total_log, typical), decay, rng)
        if not np.all(np.isfinite(self.weights)):  # The steps of a sampler may have ended in an extreme state.
            raise ChainDivergedError(
                "The weights of the topics became infinite or NaN: the steps of their sampler are too large here. Set "
                'a smaller step_size, or step_size="auto".'
            )

    def move(self, cells, values, total_log, typical, rng, decay=0.0):
        """Make one update with the sampler, in this class by `redraw`, which has the same parameters."""
        self.redraw(cells, values, total_log, typical, rng, decay)

    @staticmethod
    def report(sampler, chains):
        """Set what the atoms of ``chains`` have adapted as attributes of the fitted sampler; here there is nothing."""


class MovingAtoms(Atoms):
    """The state of a gamma process, moved by a sampler on flat space.

    There are three blocks: log E, log T, and log alpha with log c. Each block has its own momentum, mass and
    thermostat. If masses are learnt, the mass of log E is the identity. A Riemannian sampler has one metric for all
    coordinates.

    Parameters
    ----------
    prior, weight
        As for `Atoms`.
    sampler : Sampler
        Resolved.
    n_inner : int
        Steps in one update.
    n_burn : float
        Number of updates during which masses are learnt. `settle` may end this sooner, together with the search for a
        step size.
    """

    def __init__(self, prior, weight, sampler, n_inner, n_burn):
        super().__init__(prior, weight)
        self.sampler, self.n_inner, self.n_moves, self.is_settled = sampler, n_inner, 0, False
        K = prior.n_atoms
        self.cuts = np.array([0, K, 2 * K, 2 * K + 2])
        n_steps = min(n_burn * n_inner, _LONG)
        name = "The weights of the topics"
        if sampler._uses_metric:
            self.states = [SamplerState(sampler, self.theta, "euclidean", n_steps, name=name)]
        else:
            self.states = [
                SamplerState(self._block(b), self.theta[lo:hi], "euclidean", n_steps, name=name)
                for b, lo, hi in self._blocks()
            ]
        self.step_size, self.longest = None, np.inf

    def settle(self):
        """Fix masses and an automatic step size at their present values."""
        if self.is_settled:
            return
        self.is_settled = True
        mass = getattr(self.sampler, "mass", None)
        for scalars in (state.scalars for state in self.states):
            if scalars.size > mass_kernels.LEARNING and getattr(mass, "freeze", True):
                scalars[mass_kernels.LEARNING] = 0.0

    def use(self, sampler):
        self.sampler, self.is_settled = sampler, False

    def _blocks(self):
        return zip(range(3), self.cuts[:-1], self.cuts[1:], strict=True)

    def _block(self, b):
        """The sampler of block ``b``, with the part of the mass that belongs to it."""
        mass = getattr(self.sampler, "mass", None)
        if mass is None or (hasattr(mass, "get_params") and b > 0):
            return self.sampler
        if hasattr(mass, "get_params"):
            return clone(self.sampler).set_params(mass=None)
        mass = real_array("mass", mass)
        if mass.shape != (self.cuts[-1],):
            raise ValueError(
                f"mass has shape {mass.shape}; for the weights of {self.prior.n_atoms} topics give "
                f"({self.cuts[-1]},), one entry for each log E, each log T, and the logs of concentration and rate; or "
                "None, or MonteCarloEM()."
            )
        return clone(self.sampler).set_params(mass=mass[self.cuts[b] : self.cuts[b + 1]])

    def inverse_masses(self):
        """Inverse masses of the three blocks, with one number per coordinate; for a matrix, its row sums."""
        inverse = []
        for (_, lo, hi), state in zip(self._blocks(), self.states, strict=True):
            scalars = state.scalars
            kind, n = (
                (scalars[mass_kernels.KIND] if scalars.size >= mass_kernels.HEAD else mass_kernels.IDENTITY),
                hi - lo,
            )
            W = scalars[mass_kernels.HEAD :]
            inverse.append(
                W[:n].copy()
                if kind == mass_kernels.DIAGONAL
                else W[: n * n].reshape(n, n).sum(axis=1)
                if kind
                else np.ones(n)
            )
        return inverse

    @staticmethod
    def report(sampler, chains):
        """Set the step size of the first chain, and all chains' masses, as attributes of the fitted sampler."""
        if sampler._picks_step and chains[0].step_size is not None:
            sampler.step_size_ = ConstantStep(float(chains[0].step_size))
        if getattr(sampler, "mass", None) is not None:
            sampler.inverse_mass_ = np.stack([np.concatenate(each.inverse_masses()) for each in chains])

    def _auto_step(self, total_log):
        """A step size that is stable for the stiffest coordinate under the present masses."""
        if len(self.states) == 1:
            return self.sampler._stable_step(1.0, 0.0, reach=_METRIC_STEP)
        K = self.prior.n_atoms
        info, T, inverse = self.weights * total_log, np.exp(self.theta[K : 2 * K, 0]), self.inverse_masses()
        end = (np.exp(self.theta[2 * K, 0]) * T) ** 2 / self.prior.n_rounds
        own = np.max(info * inverse[0] + (info * T * T + end) * inverse[1])
        stiffest = max(own, K * np.max(inverse[2]), 1.0)
        return self.sampler._stable_step(stiffest, 0.0, share=_NOISE, reach=_STEP_SHARE)

    def _hypers(self, total_log):
        start = self.n_moves * self.n_inner
        hypers = self.sampler._hyper(start, start + self.n_inner)
        if self.sampler._picks_step:
            if self.step_size is None or not self.is_settled:
                h = min(self._auto_step(total_log), self.longest)
                # Let the step size grow slowly: in burn-in a step that is too large does more harm than a small one.
                self.step_size = h if self.step_size is None else min(h, 1.1 * self.step_size)
            hypers[:, 0] = self.step_size
        return hypers

    def move(self, cells, values, total_log, typical, rng, decay=0.0):
        """Make one update of ``n_inner`` steps; parameters as for `Atoms.redraw`, but ``decay`` is ignored."""
        params = self._params(total_log, typical)
        theta, is_auto = self.theta.copy(), self.sampler._picks_step
        hypers = self._hypers(total_log)
        status = self._moved(hypers, cells, values, params, rng)
        for _ in range(_MOST_HALVINGS if is_auto else 0):
            if status == 0:
                break
            self.step_size = self.longest = hypers[0, 0] / 2.0
            hypers[:, 0] = self.step_size
            self.theta[:] = theta
            self._start_anew()
            status = self._moved(hypers, cells, values, params, rng)
        self.n_moves += 1
        self.states[0].check(status, step_size=hypers[0, 0])
        for state in self.states:
            state.n_steps = self.n_moves * self.n_inner

    def _moved(self, *args):
        """As `_run`, but the status is also an error if a weight, a time, the concentration or the rate overflows."""
        status = self._run(*args)
        largest = max(self._log_weights().max(), self.theta[self.prior.n_atoms :].max())
        return status or (0 if largest < _LARGEST_LOG else riemannian.NOT_FINITE)

    def _run(self, hypers, cells, values, params, rng):
        """Make ``n_inner`` steps; returns the status."""
        signal = gamma_process.gamma_process.compiled
        if len(self.states) == 1:
            metric = gamma_process.gamma_process_metric.compiled
            _, aux, scalars = self.states[0].arrays  # After copying, the state no longer shares `theta` with the atoms.
            status, _ = riemannian.run_dense(
                self.theta, aux, scalars, cells, _NOTHING, values, params, np.zeros(self.n_inner, np.int64),
                len(values), 1.0, _NOTHING, _NOTHING, np.empty(0), params, 1.0, True, hypers,
                np.full(self.n_inner, -1), np.empty((0, *self.theta.shape)), signal, metric, rng,
            )  # fmt: skip
            return status
        first, second = self.states[0].kernels()
        _, aux, scalars = zip(*(state.arrays for state in self.states), strict=True)
        return blocks.run_blocks(
            self.theta, aux, scalars, self.cuts, cells, _NOTHING, values, params, hypers[0], self.n_inner,
            first, signal, second, rng,
        )  # fmt: skip

    def _start_anew(self):
        """Restart the samplers from the present state, with new momenta; learnt masses are kept."""
        for state in self.states:
            left = max(state.n_burn - state.n_steps, 0)
            state.aux[:], scalars = state.sampler._state(state.theta, state.geometry, left)
            if scalars.size >= mass_kernels.HEAD:
                state.scalars[mass_kernels.STARTED] = 0.0
            else:  # The sampler has its own layout of numbers, without a mass.
                state.scalars[:] = scalars
