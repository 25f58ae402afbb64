"""Chain of particle samplers: many states that move together, whose draws are the states themselves."""

import numpy as np

from ..kernels.samplers import particles
from .chain import DenseChain


class ParticleChain(DenseChain):
    """Particles over dense rows; parameters as for `DenseChain`.

    ``theta`` is (n_particles, n_rows, width). The start is that of all particles, or one point about which they are
    spread. The draws are the present particles: none are kept on the way.
    """

    def _begin(self, theta, sampler):
        if np.ndim(theta) == 3:
            return super()._begin(theta, sampler)
        spread = sampler.start_scale
        return theta + spread * self.rng.standard_normal((sampler.n_particles, *np.shape(theta)))

    def _make_steps(self, slots, hypers):
        dense = self.data[0]
        (step,) = self.state.kernels()
        return particles.run_particles(
            *self.state.arrays, *self._rows, dense.params, self._next_starts(len(slots)), dense.n_batch,
            dense.n_rows / dense.n_batch, hypers, dense.signal.compiled, step, self.rng,
        )  # fmt: skip

    def draws(self):
        """The particles, (n_particles, n_rows, width)."""
        return self.current()


def make_chains(seeds, plan, sampler, geometry, starts, shuffle_seed, dense):
    """Chains for a sampler, one for each seed and start, which share one copy of the data."""
    rows = dense.in_reading_order(np.random.default_rng(shuffle_seed))
    make = ParticleChain if sampler._runner == "particles" else DenseChain
    return [
        make(seed, plan, sampler, geometry, start, shuffle_seed).bind((dense, rows))
        for seed, start in zip(seeds, starts, strict=True)
    ]
