"""A user's own log density as a signal."""

import numpy as np

from .._jit import NOT_FINITE, OK
from .._user import checked_function, kernel_of
from ..runners import DENSE_SIGNAL

HOW = (
    "Give a function jitted by numba.njit that writes the gradient and returns the log density:\n\n"
    "    @numba.njit\n"
    "    def f(theta, rows, scale, gradient):\n"
    "        gradient[:] = ...   # of the log prior, plus scale times that of the log likelihood of these rows\n"
    "        return ...          # the log density likewise, up to a constant\n\n"
    "theta and gradient have shape (dim,), rows is the minibatch, and scale is N / n. Finite differences are not used: "
    "they cost dim evaluations per step, and their error would enter the law of the draws."
)


METRIC_HOW = (
    "Give a function jitted by numba.njit that writes a positive definite matrix and its derivatives:\n\n"
    "    @numba.njit\n"
    "    def metric(theta, rows, scale, G, dG):\n"
    "        G[:] = ...      # (dim, dim), for example the Fisher information of the rows times scale, plus a prior's\n"
    "        dG[k] = ...     # (dim, dim), its derivative along theta[k], for each k"
)


def _signal(jitted):
    def signal(theta, X, y, weight, params, scale, signal, extra):
        extra[0] = jitted(theta.reshape(theta.size), X, scale, signal.reshape(signal.size))
        return OK if np.isfinite(extra[0]) else NOT_FINITE

    return signal


def _controlled_signal(jitted):
    """With ``params`` = (mode (D), gradient there (D), log density there), each on all the data."""

    def signal(theta, X, y, weight, params, scale, signal, extra):
        D = theta.size
        gradient = signal.reshape(D)
        extra[0] = jitted(theta.reshape(D), X, scale, gradient)
        if scale != 1.0:
            at_mode = np.zeros(D)
            extra[0] += params[2 * D] - jitted(params[:D].copy(), X, scale, at_mode)
            for i in range(D):
                gradient[i] += params[D + i] - at_mode[i]
        return OK if np.isfinite(extra[0]) else NOT_FINITE

    return signal


def _full_metric(jitted):
    def metric(theta, X, y, weight, params, scale, out, extra):
        D = theta.size
        rates = np.empty((D * D, D)) if out.shape[0] == D else out[D:]
        jitted(theta.reshape(D), X, scale, out[:D], rates.reshape((D, D, D)))
        return OK

    return metric


def _diagonal_metric(jitted):
    def metric(theta, X, y, weight, params, scale, out, extra):
        D = theta.size
        jitted(theta.reshape(D), X, scale, out[0], np.empty((D, D)) if out.shape[0] == 1 else out[1:])
        return OK

    return metric


def user_signal(function, controlled=False):
    """The signal kernel of a user's function, compiled; raises TypeError or ValueError if it is not one."""
    lack = "the samplers need the gradient besides the log density"
    function = checked_function(function, "log_density_and_gradient", 4, lack, HOW)
    signal = kernel_of(_controlled_signal if controlled else _signal, function, DENSE_SIGNAL)
    return _compiled(signal, "log_density_and_gradient", "a number scale and gradient (dim,)")


def user_metric(function, diagonal):
    """The metric kernel of a user's function, compiled; raises TypeError or ValueError if it is not one."""
    if function is None:
        raise ValueError(f"This sampler moves under a metric, but the density has metric=None. {METRIC_HOW}")
    lack = "Riemannian samplers need the derivatives besides the metric"
    function = checked_function(function, "metric", 5, lack, METRIC_HOW)
    shapes = "G (dim,) and dG (dim, dim)" if diagonal else "G (dim, dim) and dG (dim, dim, dim)"
    metric = kernel_of(_diagonal_metric if diagonal else _full_metric, function, DENSE_SIGNAL)
    return _compiled(metric, "metric", f"a number scale, {shapes}")


def _compiled(kernel, name, rest):
    try:
        kernel.compiled  # noqa: B018
    except Exception as error:
        takes = f"float64 arrays theta (dim,), rows (n, columns), {rest}"
        raise ValueError(f"numba cannot compile {name} for {takes}: {error}") from error
    return kernel
