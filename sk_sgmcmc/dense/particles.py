"""Chains of particle samplers, many states that move together; and the chains that each sampler needs."""

import numpy as np

from ..kernels.samplers import particles
from .chain import DenseChain
from .loops import LOOPS


class ParticleChain(DenseChain):
    """Particles over dense rows; parameters as for `DenseChain`.

    ``theta`` is (n_particles, n_rows, width). The start is that of all particles, or one point about which they are
    spread. The draws are the present particles: none are kept on the way.
    """

    @staticmethod
    def state_shape(sampler, shape):
        """The shape of all particles, each of the given shape."""
        return (sampler.n_particles, *shape)

    def _begin(self, theta, sampler):
        if np.ndim(theta) == 3:
            return super()._begin(theta, sampler)
        spread = sampler.start_scale
        return theta + spread * self.rng.standard_normal(self.state_shape(sampler, np.shape(theta)))

    def _make_steps(self, slots, hypers):
        dense = self.data[0]
        (step,) = self.state.kernels()
        return particles.run_particles(
            *self.read, self.next_starts(len(slots)), dense.n_batch, dense.n_rows / dense.n_batch, hypers,
            dense.signal.compiled, step, self.rng,
        )  # fmt: skip

    def current(self):
        """The particles, (n_particles, n_rows, width)."""
        return {"theta": self.theta.copy()}

    def draws(self):
        """The particles, (n_particles, n_rows, width)."""
        return self.current()


# By the sampler's ``_runner``.
CHAINS = {**dict.fromkeys(LOOPS, DenseChain), "particles": ParticleChain}


def make_chains(seeds, plan, sampler, geometry, starts, shuffle_seed, dense):
    """Chains for a sampler, one for each seed and start, which share one copy of the data."""
    rows = dense.in_reading_order(np.random.default_rng(shuffle_seed))
    make = CHAINS[sampler._runner]
    return [
        make(seed, plan, sampler, geometry, start, shuffle_seed).bind((dense, rows))
        for seed, start in zip(seeds, starts, strict=True)
    ]
