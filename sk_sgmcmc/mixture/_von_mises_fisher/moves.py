"""How the means of a mixture move, given the labels; a sampler names its way by ``_runner``."""

import numpy as np

from ...kernels import runners
from ...kernels.models.von_mises_fisher import components
from ...kernels.models.von_mises_fisher import labels as mixture
from ...samplers import SGGMC


def sweep(chain, batches, treatment, sampler, n_inner):
    """Draw labels, weights and concentrations for each of ``batches``, and treat the means; returns a status."""
    prior = chain.prior
    first, second = (kernel.compiled for kernel in sampler._kernels("sphere"))
    start = chain.step * chain.n_inner
    numbers = prior.concentration, prior.is_process, prior.kappas is None, *prior.log_kappa
    return mixture.run_mixture(
        *chain.state.arrays, chain.weights, chain.kappas, chain.labels, chain.counts, chain.sums,
        *chain.data.csr, batches, prior.pull, np.array(numbers, dtype=np.float64), treatment,
        chain.sampler._hyper(start, start + n_inner), first, second, chain.rng,
    )  # fmt: skip


class SamplerSteps:
    """Steps of a sampler, in the same compiled loop as the labels."""

    steps_ahead = True  # whether several steps of the chain can be made in one call

    def with_labels(self, chain, batches):
        """Draw labels, weights and concentrations for each of ``batches``, and move the means; returns a status."""
        return sweep(chain, batches, mixture.MOVE, chain.sampler, chain.n_inner * len(batches))

    def after_labels(self, chain):
        """Nothing; returns a status."""
        return 0


class ExactMeans(SamplerSteps):
    """Draws from their law given the labels."""

    def with_labels(self, chain, batches):
        """As `SamplerSteps.with_labels`; the loop takes kernels of some sampler, and calls none."""
        return sweep(chain, batches, mixture.DRAW, SGGMC(), 0)


class Trajectories(SamplerSteps):
    """Metropolis trajectories, once the labels are drawn."""

    steps_ahead = False

    def with_labels(self, chain, batches):
        """Leave the means; as `ExactMeans.with_labels` otherwise."""
        return sweep(chain, batches, mixture.LEAVE, SGGMC(), 0)

    def after_labels(self, chain):
        """Move the means at fixed labels; returns a status."""
        none = np.zeros((1, 0)), np.zeros((1, 0)), np.ones(1)
        flow, project = chain.state.kernels()
        signal, start = components.linear_pull.compiled, chain.step * chain.n_inner
        return runners.run_metropolis(
            *chain.state.arrays, *none, chain.pull().ravel(), chain.sampler._hyper(start, start + chain.n_inner),
            np.full(chain.n_inner, -1), np.empty((0, *chain.means.shape)), flow, signal, project, chain.rng,
        )[0]  # fmt: skip


MOVES = {"dense": SamplerSteps(), "gibbs": ExactMeans(), "metropolis": Trajectories()}
