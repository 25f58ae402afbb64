"""Chain of a mixture of von Mises-Fisher distributions: draws labels, weights, concentrations and means in turn."""

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
    """Draw labels, weights and concentrations for each of ``batches``, and update the means by ``treatment``.

    ``treatment`` is MOVE, DRAW or LEAVE of `sk_sgmcmc.kernels.models.von_mises_fisher`. Returns the status of the
    kernel, 0 if all went well.
    """
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
    """Move the means by a sampler, in the same compiled loop as the labels."""

    steps_ahead = True  # whether several steps of the chain can be made in one call

    def with_labels(self, chain, batches):
        """Draw labels, weights and concentrations for each of ``batches``, and move the means; return a status."""
        return sweep(chain, batches, von_mises_fisher.MOVE, chain.sampler, chain.n_inner * len(batches))

    def after_labels(self, chain):
        """Do nothing, since the means have moved already; return status 0."""
        return 0


class ExactMeans(SamplerSteps):
    """Draw the means from their conditional distribution given the labels."""

    def with_labels(self, chain, batches):
        """As `SamplerSteps.with_labels`. The loop requires the kernels of a sampler, but does not call them."""
        return sweep(chain, batches, von_mises_fisher.DRAW, SGGMC(), 0)


class Trajectories(SamplerSteps):
    """Move the means by Metropolis trajectories, after the labels are drawn."""

    steps_ahead = False

    def with_labels(self, chain, batches):
        """As `ExactMeans.with_labels`, but leave the means unchanged."""
        return sweep(chain, batches, von_mises_fisher.LEAVE, SGGMC(), 0)

    def after_labels(self, chain):
        """Move the means given the labels; return a status."""
        none = np.zeros((1, 0)), np.zeros((1, 0)), np.ones(1)
        flow, project = chain.state.kernels()
        signal, start = von_mises_fisher.linear_pull.compiled, chain.step * chain.n_inner
        return runners.run_metropolis(
            *chain.state.arrays, *none, chain.pull().ravel(), chain.sampler._hyper(start, start + chain.n_inner),
            np.full(chain.n_inner, -1), np.empty((0, *chain.means.shape)), flow, signal, project, chain.rng,
        )[0]  # fmt: skip


# How the means move, by the name of the loop that a sampler declares.
MOVES = {"dense": SamplerSteps(), "gibbs": ExactMeans(), "metropolis": Trajectories()}


_STEP_SHARE = 0.2  # automatic step size, relative to the shortest time scale of the means
_ADAPT_EVERY = 10
_STIFF = 1.0  # largest step size, relative to the shortest time scale; the integrator is stable below 2
_START_ROWS = 5000
_N_STARTS, _N_HARD, _N_SOFT = 3, 8, 12


@dataclass(frozen=True, eq=False)
class MixturePrior:
    """Constants of the priors.

    Parameters
    ----------
    pull : ndarray of shape (n_features,)
        Concentration times mean direction of the prior of the means; 0 for the uniform distribution.
    concentration : float
        Parameter a of the prior of the weights.
    is_process : bool
        Whether weights follow a stick-breaking prior instead of a Dirichlet distribution.
    kappas : ndarray of shape (n_components,) or None
        Fixed concentrations. None: they are learnt.
    log_kappa : tuple of two float
        Mean and standard deviation of the prior of the logarithm of each learnt concentration.
    """

    pull: np.ndarray
    concentration: float
    is_process: bool
    kappas: object
    log_kappa: tuple


class MixtureChain(Chain):
    """Gibbs sampler of labels, weights and concentrations, with the means moved by a sampler on spheres.

    A step redraws the labels of a minibatch. Means, weights and concentrations are drawn given the labels of all rows,
    so minibatches do not introduce an approximation. In a stream, rows of earlier blocks keep their last labels.

    Parameters
    ----------
    seed : SeedSequence
    plan : DrawPlan
    sampler : Sampler
        Resolved.
    prior : MixturePrior
    n_components : int
    n_inner : int
        Number of steps of the sampler of the means between draws of the labels.
    auto : bool
        Whether to set the step size from the curvature during burn-in.
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
        """Mean directions, unit rows of shape (n_components, n_features); None before the start."""
        return None if self.state is None else self.state.theta

    def forget_rows(self):
        """Prepare for another block of rows; earlier rows remain in ``counts`` and ``sums`` only."""
        self.labels = None
        self.batches.forget()
        return self

    def take_sampler(self, sampler):
        """Continue with another step size or friction; "auto" starts from the current step size."""
        if sampler.get_params(deep=False) != self.sampler.get_params(deep=False):
            self.state.n_steps = self.step * self.n_inner
            self.state.continue_with(sampler)
            self.sampler, self.auto = self.state.sampler, sampler._picks_step

    # -- start -----------------------------------------------------------------------------------------------------

    def _start(self):
        data, K = self.data, self.n_components
        rows = data.as_csr()
        full = np.flatnonzero(has_content(rows))  # empty rows carry no information about directions
        if not full.size:
            full = np.arange(data.n_docs)
        X = rows[np.sort(self.rng.choice(full, min(full.size, _START_ROWS), replace=False))]
        runs = [em_start(X, K, self.rng, self.prior.kappas) for _ in range(_N_STARTS)]
        _, means, self.weights, self.kappas = max(runs, key=lambda run: run[0])
        # Stick breaking favours decreasing weights. Components with different fixed concentrations keep their order.
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
        """Number of steps until a draw is kept or ``until``, at most up to the next multiple of `_ADAPT_EVERY`."""
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
            # Undo the move: concentrations learnt from nearly equal rows can grow many times in one step.
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
        """Whether the step size is still adapted."""
        return self.auto and self.step <= self.plan.n_burn

    def pull(self):
        """Gradient of the log density of the means given the current labels, (n_components, n_features)."""
        return self.kappas[:, None] * self.sums + self.prior.pull

    def _curvature(self):
        """Largest curvature of the log density of the means given the current labels."""
        return np.linalg.norm(self.pull(), axis=1).max()

    def _is_too_stiff(self):
        """Whether the step size is too large for the current labels and concentrations."""
        start = self.step * self.n_inner
        return self.sampler._hyper(start, start + 1)[0, 0] * np.sqrt(self._curvature() + 1.0) > _STIFF

    def _adapt(self):
        """Set the step size from the largest curvature."""
        if self.step or self.counts.any():
            size = self._curvature()
        else:  # before the first labels, use the expected number of rows of each component
            size = self.data.n_docs * np.max(self.kappas * self.weights)
        h = self.sampler._stable_step(size + 1.0, 0.0, reach=_STEP_SHARE)
        self.sampler._with_step(h, self.step, self.state.scalars)

    def current(self):
        """Current means, weights and concentrations, and the number of components that have rows."""
        if self.means is None:
            self._start()
        return {
            "means": self.means.astype(np.float32),
            "weights": self.weights.copy(),
            "kappas": self.kappas.copy(),
            "n_clusters": int(np.sum(self.counts > 0.5)),
        }


def log_densities(X, means, log_weights, kappas):
    """Log of weight times density of each CSR row under each component, (n_rows, n_components).

    An empty row is not an observation: its log density is 0 under every component, and the result its log weights.
    """
    normalisers = np.empty(len(kappas))
    special.von_mises_fisher_normalisers(float(means.shape[1]), np.asarray(kappas, dtype=float), normalisers)
    out = np.asarray(X @ means.T) * kappas + (log_weights + normalisers)
    out[~has_content(X)] = log_weights
    return out


def em_start(X, n_components, rng, kappas=None):
    """Fit the mixture by EM from k-means++ seeds; return (log likelihood, means, weights, kappas)."""
    from sklearn.cluster import kmeans_plusplus  # slow: at module level it would double the import time of the package

    n, V = X.shape
    _, chosen = kmeans_plusplus(X, min(n, n_components), random_state=int(rng.integers(2**31)))
    chosen = np.resize(chosen, n_components)  # repeat seeds if rows are too few; noise separates them
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
            # Mean resultant length with one additional zero row, then the approximate inverse of the Bessel ratio by
            # Banerjee et al. (2005), accurate to about 1%.
            r = np.clip(length / (total + 1.0), 1e-3, 1.0 - 1e-6)
            fitted = np.minimum(r * (V - r**2) / (1.0 - r**2), concentration_kernels.MAX_KAPPA)
    return likelihood, np.ascontiguousarray(means), weights, fitted
