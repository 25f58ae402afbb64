"""State moved by a sampler: the arrays that its kernels change, and the steps that they take."""

import numpy as np

from ..exceptions import ChainDivergedError
from ..kernels.samplers import simplex


class SamplerState:
    """State that a sampler moves, with the sampler's own arrays and numbers.

    Models either make steps one by one (`advance`, `step`), where a step's signal comes from elsewhere, or lend
    ``arrays`` to a compiled loop and hand its status to `check`.

    Parameters
    ----------
    sampler : Sampler
        Resolved: with ``step_size_``.
    theta : ndarray of shape (n_rows, width), or (n_particles, n_rows, width)
        The start, in the sampler's coordinates; the state is this array, not a copy.
    geometry : str or Product
        The space that theta lies on.
    n_burn : float, default=0
        Steps during which a mass or a step size may be learnt, those made before included.
    n_steps : int, default=0
        Steps made before, from which schedules continue.
    name : str, default="The chain"
        Name of the state in the error of `check`.
    parameter : str, default="sampler"
        Parameter of the estimator that holds the sampler, for the error.

    Attributes
    ----------
    aux : ndarray of shape (n_aux, *theta.shape)
        Momenta and the like.
    scalars : ndarray
        Numbers such as a thermostat, and masses: see `sk_sgmcmc.kernels.samplers.mass`.
    """

    def __init__(self, sampler, theta, geometry, n_burn=0, *, n_steps=0, name="The chain", parameter="sampler"):
        self.sampler, self.theta, self.geometry, self.n_burn = sampler, theta, geometry, n_burn
        self.n_steps, self.name, self.parameter = n_steps, name, parameter
        self.begin()

    def begin(self):
        """Start again at theta: forget momenta and learnt masses, and learn in what is left of burn-in."""
        left = max(self.n_burn - self.n_steps, 0)
        self.aux, self.scalars = self.sampler._state(self.theta, self.geometry, left)

    @property
    def arrays(self):
        """theta, aux and scalars, as compiled loops change them in place."""
        return self.theta, self.aux, self.scalars

    def kernels(self):
        """The compiled transitions, as compiled loops take them."""
        return tuple(kernel.compiled for kernel in self.sampler._kernels(self.geometry))

    def hypers(self, n):
        """The sampler's numbers at the next ``n`` steps, (n, n_hyper), the step size first."""
        return self.sampler._hyper(self.n_steps, self.n_steps + n)

    def advance(self, shape, elapsed, rng, rows=None, hyper=None):
        """Advance the state before the next signal is known.

        Parameters
        ----------
        shape : ndarray of shape (n_moved, width)
            For samplers that update rows lazily: their constant signal since the last update. Others ignore it.
        elapsed : ndarray of shape (n_moved,)
            Time since the last update of each row.
        rng : Generator
        rows : ndarray of int64, default=None
            Rows to move; None is all of them.
        hyper : ndarray, default=None
            The sampler's numbers; None takes those of the next step.
        """
        first, _ = self.sampler._kernels(self.geometry)
        if first is simplex.no_advance:  # the call alone would take longer than many a step
            return
        first(*self.arrays, shape, elapsed, self._hyper(hyper), self._rows(rows), rng)

    def step(self, signal, extra, rng, rows=None, hyper=None):
        """Make a step given the signal, and count it.

        Parameters
        ----------
        signal : ndarray of shape (n_moved, width)
            The signal that the sampler declares, such as a gradient or estimated shapes.
        extra : ndarray
            What accompanies it, such as the log density.
        rng : Generator
        rows, hyper
            As for `advance`.

        Raises
        ------
        ChainDivergedError
            If the state becomes infinite or NaN.
        """
        *_, kernel = self.sampler._kernels(self.geometry)  # that of a particle sampler alone, or the second of two
        hyper = self._hyper(hyper)
        status = kernel(*self.arrays, signal, extra, hyper, self._rows(rows), rng)
        self.check(status, step_size=hyper[0])
        self.n_steps += 1

    def _hyper(self, hyper):
        return self.hypers(1)[0] if hyper is None else hyper

    def _rows(self, rows):
        return np.arange(len(self.theta)) if rows is None else rows

    def check(self, status, n_made=0, step_size=None):
        """Raise if a loop returned a status other than 0 after ``n_made`` of its steps."""
        if status == 0:
            return
        at = self.n_steps + n_made
        h = self.sampler._hyper(at, at + 1)[0, 0] if step_size is None else step_size
        raise ChainDivergedError(
            f"{self.name} became infinite or NaN at step {at + 1}: {self.parameter}={self.sampler!r} with a step size "
            f"of {h:.3g} is too large here; try step_size={h / 10:.2g}."
        )

    def continue_with(self, sampler):
        """Continue with a sampler of the same kind and another step size, friction or temperature.

        Its "auto" is the present step size.
        """
        self.sampler = sampler._resumed_from(self.sampler, self.n_steps, self.scalars)

    def copy(self):
        """A copy that moves independently."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        copy.theta, copy.aux, copy.scalars = (array.copy() for array in self.arrays)
        return copy
