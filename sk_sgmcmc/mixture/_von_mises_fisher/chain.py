"""Chain of a mixture of von Mises-Fisher distributions: labels, weights, concentrations and means, in turn."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from ...chains.chain import Chain
from ...chains.minibatches import Minibatches, whole
from ...directions import has_content
from ...kernels import runners
from ...kernels.math import concentration as concentration_kernels
from ...kernels.math import special
from ...kernels.models import von_mises_fisher
from ...samplers import SGGMC
from ...samplers.state import SamplerState


def sweep(chain, batches, treatment, sampler, n_inner):
    """Draw labels, weights and concentrations for each of ``batches``, and treat the means; returns a status."""
    prior = chain.prior
    first, second = (kernel.compiled for kernel in sampler._kernels("sphere"))
    start = chain.step * chain.n_inner
    numbers = prior.concentration, prior.is_process, prior.kappas is None, *prior.log_kappa
    return von_mises_fisher.run_mixture(
        *chain.state.arrays, chain.weights, chain.kappas, chain.labels, chain.counts, chain.sums,
        *chain.data.csr, batches, prior.pull, np.array(numbers, dtype=np.float64), treatment,
        chain.sampler._hyper(start, start + n_inner), first, second, chain.rng,
    )  # fmt: skip


class SamplerSteps:
    """Steps of a sampler, in the same compiled loop as the labels."""

    steps_ahead = True  # whether several steps of the chain can be made in one call

    def with_labels(self, chain, batches):
        """Draw labels, weights and concentrations for each of ``batches``, and move the means; returns a status."""
        return sweep(chain, batches, von_mises_fisher.MOVE, chain.sampler, chain.n_inner * len(batches))

    def after_labels(self, chain):
        """Nothing; returns a status."""
        return 0


class ExactMeans(SamplerSteps):
    """Draws from their distribution given the labels."""

    def with_labels(self, chain, batches):
        """As `SamplerSteps.with_labels`; the loop takes kernels of some sampler, and calls none."""
        return sweep(chain, batches, von_mises_fisher.DRAW, SGGMC(), 0)


class Trajectories(SamplerSteps):
    """Metropolis trajectories, once the labels are drawn."""

    steps_ahead = False

    def with_labels(self, chain, batches):
        """Leave the means; as `ExactMeans.with_labels` otherwise."""
        return sweep(chain, batches, von_mises_fisher.LEAVE, SGGMC(), 0)

    def after_labels(self, chain):
        """Move the means at fixed labels; returns a status."""
        none = np.zeros((1, 0)), np.zeros((1, 0)), np.ones(1)
        flow, project = chain.state.kernels()
        signal, start = von_mises_fisher.linear_pull.compiled, chain.step * chain.n_inner
        return runners.run_metropolis(
            *chain.state.arrays, *none, chain.pull().ravel(), chain.sampler._hyper(start, start + chain.n_inner),
            np.full(chain.n_inner, -1), np.empty((0, *chain.means.shape)), flow, signal, project, chain.rng,
        )[0]  # fmt: skip


# By the name of the sampler's loop.
MOVES = {"dense": SamplerSteps(), "gibbs": ExactMeans(), "metropolis": Trajectories()}


_STEP_SHARE = 0.2  # of the shortest time scale of the means
_ADAPT_EVERY = 10
_STIFF = 1.0  # step size over the shortest time scale beyond which the means' motion is not resolved (stable below 2)
_START_ROWS = 5000
_N_STARTS, _N_HARD, _N_SOFT = 3, 8, 12


@dataclass(frozen=True, eq=False)
class MixturePrior:
    """The model's constants.

    Parameters
    ----------
    pull : ndarray of shape (n_features,)
        Concentration times direction of the prior of the means; 0 for the uniform one.
    concentration : float
        Of the weights.
    is_process : bool
        Weights by stick breaking instead of a Dirichlet distribution.
    kappas : ndarray of shape (n_components,) or None
        Fixed concentrations; None learns them.
    log_kappa : tuple of two float
        Mean and standard deviation of the prior of the logarithm of each learnt concentration.
    """

    pull: np.ndarray
    concentration: float
    is_process: bool
    kappas: object
    log_kappa: tuple


class MixtureChain(Chain):
    """Labels of a minibatch of rows by Gibbs, weights and concentrations given them, means by a sampler on spheres.

    Every row keeps its label, and means, weights and concentrations are drawn given the labels of all rows; so
    minibatches shorten sweeps and approximate nothing. Rows of earlier blocks of a stream keep their labels for ever.

    Parameters
    ----------
    seed : SeedSequence
    plan : DrawPlan
    sampler : Sampler
        Resolved.
    prior : MixturePrior
    n_components : int
    n_inner : int
        Steps of the sampler of the means for each draw of the labels.
    auto : bool
        Find the step size from the curvature during burn-in.
    """

    def __init__(self, seed, plan, sampler, prior, n_components, *, n_inner, auto):
        super().__init__(seed, plan)
        self.sampler = sampler
        self.prior = prior
        self.n_components = n_components
        self.n_inner = n_inner
        self.auto = auto
        self.state = None
        self.batches = Minibatches(seed)
        self.forget_rows()

    @property
    def means(self):
        """Mean directions, unit rows, (n_components, n_features); None before the start."""
        return None if self.state is None else self.state.theta

    def forget_rows(self):
        """Prepare for other rows: the earlier ones stay in the sums only."""
        self.labels = None
        self.batches.forget()
        return self

    def take_sampler(self, sampler):
        """Continue with another step size or friction of the same sampler; "auto" starts from the present step size."""
        if sampler.get_params(deep=False) != self.sampler.get_params(deep=False):
            self.state.n_steps = self.step * self.n_inner
            self.state.continue_with(sampler)
            self.sampler, self.auto = self.state.sampler, sampler._picks_step

    # -- start -----------------------------------------------------------------------------------------------------

    def _start(self):
        data, K = self.data, self.n_components
        rows = data.as_csr()
        full = np.flatnonzero(has_content(rows))  # an empty row carries no information on where to start
        if not full.size:
            full = np.arange(data.n_docs)
        X = rows[np.sort(self.rng.choice(full, min(full.size, _START_ROWS), replace=False))]
        runs = [em_start(X, K, self.rng, self.prior.kappas) for _ in range(_N_STARTS)]
        _, means, self.weights, self.kappas = max(runs, key=lambda run: run[0])
        # Sticks are broken off in decreasing order; concentrations given one by one stay with their sticks.
        if self.prior.is_process and (self.prior.kappas is None or np.ptp(self.prior.kappas) == 0):
            order = np.argsort(-self.weights, kind="stable")
            means, self.weights, self.kappas = means[order].copy(), self.weights[order], self.kappas[order]
        self.counts, self.sums = np.zeros(K), np.zeros_like(means)
        n_burn = self.plan.n_burn * self.n_inner if np.isfinite(self.plan.n_burn) else 0
        self.state = SamplerState(self.sampler, means, "sphere", n_burn, name="The means")
        if not len(self.state.aux):
            self.state.aux = np.zeros((1, *means.shape))

    # -- steps -----------------------------------------------------------------------------------------------------

    def _n_ahead(self, until):
        """Steps up to the next one after which a draw is kept or a step size found again."""
        if self.labels is None or not self._move.steps_ahead or self._adapts():
            return 1
        step = self.step + 1
        while step < until and step % _ADAPT_EVERY and not self.plan.wants(step):
            step += 1
        return step - self.step

    def _advance(self, until):
        if self.means is None:
            self._start()
        n = self._n_ahead(until)
        if self.labels is None:
            self.labels = np.full(self.data.n_docs, -1, dtype=np.int64)
            batches = np.arange(self.data.n_docs)[None]
        else:
            batches = self.batches.ahead(n, self.data.n_docs, self.data.n_batch, whole)
        if self._adapts() and self.step % _ADAPT_EVERY == 0:
            self._adapt()
        self.state.n_steps = self.step * self.n_inner
        before = self.state.copy() if self._adapts() else None
        status = self._sweep(batches)
        if before is not None and self._is_too_stiff():
            # Concentrations learnt from nearly equal rows may grow manyfold in one step.
            self.state = before
            self._adapt()
            status = 0
        self.state.check(status or self._move.after_labels(self))
        self.step += n
        self.state.n_steps = self.step * self.n_inner
        if self.plan.wants(self.step):
            self.keep(self.current())

    @property
    def _move(self):
        return self.sampler._pick_loop(MOVES)

    def _sweep(self, batches):
        return self._move.with_labels(self, batches)

    def _adapts(self):
        """Whether step sizes are still being found."""
        return self.auto and self.step <= self.plan.n_burn

    def pull(self):
        """Gradient of the log density of the means given the present labels, (n_components, n_features)."""
        return self.kappas[:, None] * self.sums + self.prior.pull

    def _curvature(self):
        """The largest curvature of the means given the present labels."""
        return np.linalg.norm(self.pull(), axis=1).max()

    def _is_too_stiff(self):
        """Whether the step size, chosen for earlier labels and concentrations, has become too long for the means."""
        start = self.step * self.n_inner
        return self.sampler._hyper(start, start + 1)[0, 0] * np.sqrt(self._curvature() + 1.0) > _STIFF

    def _adapt(self):
        """Set the step size from the curvature of the means."""
        if self.step or self.counts.any():
            size = self._curvature()
        else:  # before the first labels: as many rows for every component as its weight predicts
            size = self.data.n_docs * np.max(self.kappas * self.weights)
        h = self.sampler._stable_step(size + 1.0, 0.0, reach=_STEP_SHARE)
        self.sampler._with_step(h, self.step, self.state.scalars)

    def current(self):
        """The present means, weights and concentrations, and how many components have rows."""
        if self.means is None:
            self._start()
        return {
            "means": self.means.astype(np.float32),
            "weights": self.weights.copy(),
            "kappas": self.kappas.copy(),
            "n_clusters": int(np.sum(self.counts > 0.5)),
        }


def log_densities(X, means, log_weights, kappas):
    """Log of weight times density of each row of CSR under each component, (n_rows, n_components).

    An empty row is not an observation: its log density is 0 under every component.
    """
    normalisers = np.empty(len(kappas))
    special.von_mises_fisher_normalisers(float(means.shape[1]), np.asarray(kappas, dtype=float), normalisers)
    out = np.asarray(X @ means.T) * kappas + (log_weights + normalisers)
    out[~has_content(X)] = log_weights
    return out


def em_start(X, n_components, rng, kappas=None):
    """Expectation-maximisation from seeds far apart; returns (log likelihood, means, weights, kappas)."""
    from sklearn.cluster import kmeans_plusplus  # at module level it would be half of the package's import time

    n, V = X.shape
    _, chosen = kmeans_plusplus(X, min(n, n_components), random_state=int(rng.integers(2**31)))
    chosen = np.resize(chosen, n_components)  # repeated if rows are fewer; noise separates them
    noise = rng.standard_normal((n_components, V)) / np.sqrt(V)
    means = X[chosen].toarray() + 0.1 * noise
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    weights, likelihood = np.full(n_components, 1.0 / n_components), -np.inf
    fitted = np.ones(n_components) if kappas is None else np.array(kappas, dtype=float)
    for i in range(_N_HARD + _N_SOFT):
        if i < _N_HARD:
            shares = np.zeros((n, n_components))
            shares[np.arange(n), np.asarray(X @ means.T).argmax(axis=1)] = 1.0
        else:
            log_density = log_densities(X, means, np.log(weights), fitted)
            each = logsumexp(log_density, axis=1)
            likelihood, shares = float(each.sum()), np.exp(log_density - each[:, None])
        total = shares.sum(axis=0)
        sums = (X.T @ shares).T + 1e-3 * noise
        length = np.linalg.norm(sums, axis=1)
        means = sums / length[:, None]
        weights = (total + 1.0) / (n + n_components)
        if kappas is None:
            # The mean length with one additional row of no direction, and the Bessel ratio inverted to about 1 %.
            r = np.clip(length / (total + 1.0), 1e-3, 1.0 - 1e-6)
            fitted = np.minimum(r * (V - r**2) / (1.0 - r**2), concentration_kernels.MAX_KAPPA)
    return likelihood, np.ascontiguousarray(means), weights, fitted
