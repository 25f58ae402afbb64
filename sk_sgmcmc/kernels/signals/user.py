"""A user's own log density as a signal."""

import inspect

import numba
import numpy as np
from numba.extending import is_jitted

from .._jit import NOT_FINITE, OK, Kernel
from ..runners import DENSE_SIGNAL

HOW = (
    "Give a function jitted by numba.njit that writes the gradient and returns the log density:\n\n"
    "    @numba.njit\n"
    "    def f(theta, rows, scale, gradient):\n"
    "        gradient[:] = ...   # of the log prior, plus scale times that of the log likelihood of these rows\n"
    "        return ...          # the log density likewise, up to a constant\n\n"
    "theta and gradient have shape (dim,), rows is the minibatch, and scale is N / n. There are no finite differences "
    "here: they cost dim evaluations a step, and their error would go into the law of the draws."
)


class _UserSignal(Kernel):
    """A signal that calls the user's function; compiled in each process, because numba keeps no closures on disk."""

    def __init__(self, function):
        self._function = function
        jitted = function if is_jitted(function) else numba.njit(function)

        def signal(theta, X, y, weight, params, scale, signal, extra):
            extra[0] = jitted(theta.reshape(theta.size), X, scale, signal.reshape(signal.size))
            return OK if np.isfinite(extra[0]) else NOT_FINITE

        super().__init__(signal, DENSE_SIGNAL)

    @property
    def compiled(self):
        if self._dispatcher is None:
            dispatcher = numba.njit(nogil=True, error_model="numpy")(self.py_func)
            dispatcher.compile(self.signature)
            dispatcher.disable_compile()
            self._dispatcher = dispatcher
        return self._dispatcher

    def __reduce__(self):
        return _UserSignal, (self._function,)


def user_signal(function):
    """The signal kernel of a user's function; raises TypeError or ValueError where it is not one."""
    if not callable(function):
        raise TypeError(f"log_density_and_gradient must be a function, got {function!r}. {HOW}")
    wanted = inspect.signature(getattr(function, "py_func", function)).parameters
    if len(wanted) != 4:
        raise ValueError(
            f"log_density_and_gradient={getattr(function, '__name__', function)} takes {len(wanted)} arguments "
            f"({', '.join(wanted)}), but the samplers need the gradient beside the log density. {HOW}"
        )
    return _UserSignal(function)
