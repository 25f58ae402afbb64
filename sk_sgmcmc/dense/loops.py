"""The compiled loops that make the steps of a chain over dense rows; a sampler names its own by ``_runner``."""

import numpy as np

from ..kernels import runners
from ..kernels.samplers import nuts, riemannian


class MinibatchLoop:
    """One minibatch, one step."""

    def kept_beside(self, state):
        """Shapes, by name, of what is kept of a draw beside theta."""
        if state.geometry == "euclidean" or not state.aux.shape[0]:
            return {}
        return {"aux": state.theta.shape}

    def run(self, chain, slots, hypers, draws):
        """Make one step for each of ``slots`` and keep those with a slot in ``draws``; returns (status, steps made)."""
        dense, state = chain.data[0], chain.state
        first, second = state.kernels()
        kept_aux = draws["aux"] if "aux" in draws else np.empty((0, *state.theta.shape))
        return runners.run_dense(
            *chain.read, chain.next_starts(len(slots)), dense.n_batch, dense.n_rows / dense.n_batch, hypers, slots,
            draws["theta"], kept_aux, first, dense.signal.compiled, second, chain.rng,
        )  # fmt: skip


class MetropolisLoop:
    """Trajectories on all the data, accepted or not."""

    def kept_beside(self, state):
        """Nothing."""
        return {}

    def run(self, chain, slots, hypers, draws):
        """As `MinibatchLoop.run`."""
        first, second = chain.state.kernels()
        signal = chain.data[0].signal.compiled
        return runners.run_metropolis(*chain.read, hypers, slots, draws["theta"], first, signal, second, chain.rng)


class NUTSLoop:
    """Trajectories that double until they turn."""

    def kept_beside(self, state):
        """Numbers of each trajectory, in the order of the kernel."""
        return {"statistics": (nuts.N_STATISTICS,)}

    def run(self, chain, slots, hypers, draws):
        """As `MinibatchLoop.run`."""
        signal = chain.data[0].signal.compiled
        return nuts.run_nuts(*chain.read, hypers, slots, draws["theta"], draws["statistics"], signal, chain.rng)


class RiemannianMetropolisLoop(MetropolisLoop):
    """Trajectories under a metric that depends on the state."""

    def run(self, chain, slots, hypers, draws):
        """As `MinibatchLoop.run`."""
        dense = chain.data[0]
        metric, kernels = dense.metric, (dense.signal.compiled, dense.metric.kernel.compiled)
        return riemannian.run_metropolis(
            *chain.read, metric.params, metric.diagonal, hypers, slots, draws["theta"], *kernels, chain.rng
        )


class RiemannianMinibatchLoop(MinibatchLoop):
    """One minibatch, one step, under a metric that depends on the state."""

    def run(self, chain, slots, hypers, draws):
        """As `MinibatchLoop.run`."""
        dense = chain.data[0]
        metric, scale = dense.metric, dense.n_rows / dense.n_batch
        metric_scale = dense.n_rows / len(chain.metric_rows[0])
        return riemannian.run_dense(
            *chain.read, chain.next_starts(len(slots)), dense.n_batch, scale, *chain.metric_rows, metric.params,
            metric_scale, metric.diagonal, hypers, slots, draws["theta"], dense.signal.compiled,
            metric.kernel.compiled, chain.rng,
        )  # fmt: skip


LOOPS = {
    "dense": MinibatchLoop(),
    "metropolis": MetropolisLoop(),
    "nuts": NUTSLoop(),
    "riemannian-dense": RiemannianMinibatchLoop(),
    "riemannian-metropolis": RiemannianMetropolisLoop(),
}
