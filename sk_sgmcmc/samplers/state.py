"""The state of a chain: the arrays that a sampler's kernels change, and the number of steps made."""

import numpy as np

from ..exceptions import ChainDivergedError
from ..kernels.samplers import simplex


class SamplerState:
    """State that a sampler moves: theta, and the additional arrays and scalars that the sampler needs.

    Models that compute the signal in Python make steps one by one with `advance` and `step`. Other models pass
    ``arrays`` to a compiled loop, and its status to `check`.

    Parameters
    ----------
    sampler : Sampler
        A fitted copy, from `Sampler._resolved`.
    theta : ndarray of shape (n_rows, width), or (n_particles, n_rows, width)
        The start, in the sampler's coordinates. The state changes this array in place.
    geometry : str or Product
        The space on which theta lies.
    n_burn : float, default=0
        Step up to which a mass or a step size may be learnt, counted from step 0.
    n_steps : int, default=0
        Number of steps made before, from which schedules continue.
    name : str, default="The chain"
        Name of the state in the error of `check`.
    parameter : str, default="sampler"
        Name of the estimator's parameter that is the sampler, for the error of `check`.

    Attributes
    ----------
    aux : ndarray of shape (n_aux, *theta.shape)
        Arrays such as momenta.
    scalars : ndarray
        Scalars such as a thermostat, and the mass; see `sk_sgmcmc.kernels.samplers.mass`.
    """

    def __init__(self, sampler, theta, geometry, n_burn=0, *, n_steps=0, name="The chain", parameter="sampler"):
        self.sampler, self.theta, self.geometry, self.n_burn = sampler, theta, geometry, n_burn
        self.n_steps, self.name, self.parameter = n_steps, name, parameter
        self.begin()

    def begin(self):
        """Start again at theta: discard momenta and the learnt mass, and learn in the rest of burn-in."""
        left = max(self.n_burn - self.n_steps, 0)
        self.aux, self.scalars = self.sampler._state(self.theta, self.geometry, left)

    @property
    def arrays(self):
        """theta, aux and scalars, which compiled loops change in place."""
        return self.theta, self.aux, self.scalars

    def kernels(self):
        """The compiled kernels, as arguments of compiled loops."""
        return tuple(kernel.compiled for kernel in self.sampler._kernels(self.geometry))

    def hypers(self, n):
        """The numbers that kernels read at the next ``n`` steps, (n, n_hyper); the step size is the first column."""
        return self.sampler._hyper(self.n_steps, self.n_steps + n)

    def advance(self, shape, elapsed, rng, rows=None, hyper=None):
        """Make the part of a step before its signal is computed.

        Parameters
        ----------
        shape : ndarray of shape (n_moved, width)
            The constant signal of these rows since their last update, for samplers that update rows lazily; others
            ignore it.
        elapsed : ndarray of shape (n_moved,)
            Time since the last update of each row.
        rng : Generator
        rows : ndarray of int64, default=None
            Rows to move. None: all.
        hyper : ndarray, default=None
            A row of `hypers`. None: the row of the next step.
        """
        first, _ = self.sampler._kernels(self.geometry)
        if first is simplex.no_advance:  # The call alone would take longer than some steps.
            return
        first(*self.arrays, shape, elapsed, self._hyper(hyper), self._rows(rows), rng)

    def step(self, signal, extra, rng, rows=None, hyper=None):
        """Make a step given the signal, and count it.

        Parameters
        ----------
        signal : ndarray of shape (n_moved, width)
            The signal that the sampler declares in ``_fits``, such as a gradient or estimated shapes.
        extra : ndarray
            Numbers that accompany the signal, such as the log density.
        rng : Generator
        rows, hyper
            As for `advance`.

        Raises
        ------
        ChainDivergedError
            If the state becomes infinite or NaN.
        """
        *_, kernel = self.sampler._kernels(self.geometry)  # Particle samplers have one kernel, others two.
        hyper = self._hyper(hyper)
        status = kernel(*self.arrays, signal, extra, hyper, self._rows(rows), rng)
        self.check(status, step_size=hyper[0])
        self.n_steps += 1

    def _hyper(self, hyper):
        return self.hypers(1)[0] if hyper is None else hyper

    def _rows(self, rows):
        return np.arange(len(self.theta)) if rows is None else rows

    def check(self, status, n_made=0, step_size=None):
        """Raise if a loop stopped with a ``status`` other than 0 after ``n_made`` steps."""
        if status == 0:
            return
        at = self.n_steps + n_made
        h = self.sampler._hyper(at, at + 1)[0, 0] if step_size is None else step_size
        raise ChainDivergedError(
            f"{self.name} became infinite or NaN at step {at + 1}: {self.parameter}={self.sampler!r} with a step size "
            f"of {h:.3g} is too large here; try step_size={h / 10:.2g}."
        )

    def continue_with(self, sampler):
        """Continue with a sampler of the same class, whose step size, friction or temperature may differ.

        ``step_size="auto"`` keeps the present step size.
        """
        self.sampler = sampler._resumed_from(self.sampler, self.n_steps, self.scalars)

    def copy(self):
        """A copy that moves independently."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.theta, copy.aux, copy.scalars = (array.copy() for array in self.arrays)
        return copy
