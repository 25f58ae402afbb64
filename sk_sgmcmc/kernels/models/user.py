"""Signals and metrics that call a user's functions."""

import numba
import numpy as np

from .._failures import explained_by, report
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


@numba.njit
def _tell(key, theta, rows, params, scale):
    """Report that a jitted function raised."""
    with numba.objmode():
        report(key, theta, rows, params, scale)


def _signal(jitted):
    key = explained_by(lambda theta, X, params, scale: jitted(theta.ravel(), X, scale, np.zeros(theta.size)))

    def signal(theta, X, y, weight, params, scale, signal, extra):
        at, gradient, raised = theta.reshape(theta.size), signal.reshape(signal.size), False
        try:
            extra[0] = jitted(at, X, scale, gradient)
        except Exception:
            raised = True
        if raised:
            _tell(key, theta, X, params, scale)
            extra[0] = -np.inf
        return OK if np.isfinite(extra[0]) else NOT_FINITE

    return signal


def _controlled_signal(jitted):
    """With ``params`` = (mode (D), gradient at the mode (D), log density at the mode), on all the data."""
    key = explained_by(lambda theta, X, params, scale: jitted(theta.ravel(), X, scale, np.zeros(theta.size)))

    def signal(theta, X, y, weight, params, scale, signal, extra):
        D, raised = theta.size, False
        at, mode, gradient, at_mode = theta.reshape(D), params[:D].copy(), signal.reshape(D), np.zeros(D)
        try:
            extra[0] = jitted(at, X, scale, gradient)
            if scale != 1.0:
                extra[0] += params[2 * D] - jitted(mode, X, scale, at_mode)
        except Exception:
            raised = True
        if raised:
            _tell(key, theta, X, params, scale)
            extra[0] = -np.inf
        elif scale != 1.0:
            for i in range(D):
                gradient[i] += params[D + i] - at_mode[i]
        return OK if np.isfinite(extra[0]) else NOT_FINITE

    return signal


def _signal_of_constants(jitted):
    """With ``params`` = constants, which the function receives together with the rows."""

    def explain(theta, X, params, scale):
        jitted(theta.ravel(), (X, params), scale, np.zeros(theta.size))

    key = explained_by(explain)

    def signal(theta, X, y, weight, params, scale, signal, extra):
        at, gradient, raised = theta.reshape(theta.size), signal.reshape(signal.size), False
        try:
            extra[0] = jitted(at, (X, params), scale, gradient)
        except Exception:
            raised = True
        if raised:
            _tell(key, theta, X, params, scale)
            extra[0] = -np.inf
        return OK if np.isfinite(extra[0]) else NOT_FINITE

    return signal


def _controlled_signal_of_constants(jitted):
    """With ``params`` = (mode, gradient at the mode, log density at the mode, constants)."""

    def explain(theta, X, params, scale):
        jitted(theta.ravel(), (X, params[2 * theta.size + 1 :]), scale, np.zeros(theta.size))

    key = explained_by(explain)

    def signal(theta, X, y, weight, params, scale, signal, extra):
        D, raised = theta.size, False
        at, mode, gradient, at_mode = theta.reshape(D), params[:D].copy(), signal.reshape(D), np.zeros(D)
        constants = params[2 * D + 1 :]
        try:
            extra[0] = jitted(at, (X, constants), scale, gradient)
            if scale != 1.0:
                extra[0] += params[2 * D] - jitted(mode, (X, constants), scale, at_mode)
        except Exception:
            raised = True
        if raised:
            _tell(key, theta, X, params, scale)
            extra[0] = -np.inf
        elif scale != 1.0:
            for i in range(D):
                gradient[i] += params[D + i] - at_mode[i]
        return OK if np.isfinite(extra[0]) else NOT_FINITE

    return signal


def _full_metric(jitted):
    def explain(theta, X, params, scale):
        jitted(theta.ravel(), X, scale, np.zeros((theta.size, theta.size)), np.zeros((theta.size,) * 3))

    key = explained_by(explain)

    def metric(theta, X, y, weight, params, scale, out, extra):
        D, raised = theta.size, False
        rates = np.empty((D * D, D)) if out.shape[0] == D else out[D:]
        try:
            jitted(theta.reshape(D), X, scale, out[:D], rates.reshape((D, D, D)))
        except Exception:
            raised = True
        if raised:
            _tell(key, theta, X, params, scale)
        return NOT_FINITE if raised else OK

    return metric


def _diagonal_metric(jitted):
    key = explained_by(
        lambda theta, X, params, scale: jitted(
            theta.ravel(), X, scale, np.zeros(theta.size), np.zeros((theta.size,) * 2)
        )
    )

    def metric(theta, X, y, weight, params, scale, out, extra):
        D, raised = theta.size, False
        rates = np.empty((D, D)) if out.shape[0] == 1 else out[1:]
        try:
            jitted(theta.reshape(D), X, scale, out[0], rates)
        except Exception:
            raised = True
        if raised:
            _tell(key, theta, X, params, scale)
        return NOT_FINITE if raised else OK

    return metric


_SIGNALS = {
    (False, False): _signal,
    (True, False): _controlled_signal,
    (False, True): _signal_of_constants,
    (True, True): _controlled_signal_of_constants,
}


def user_signal(function, controlled=False, constants=False):
    """The compiled signal kernel of a user's function; raises TypeError or ValueError if the function is not valid.

    With ``constants``, the function receives a pair of rows and constants instead of the rows.
    """
    lack = "the samplers need the gradient besides the log density"
    function = checked_function(function, "log_density_and_gradient", 4, lack, HOW)
    signal = kernel_of(_SIGNALS[bool(controlled), bool(constants)], function, DENSE_SIGNAL)
    return _compiled(signal, "log_density_and_gradient", "a number scale and gradient (dim,)")


def user_metric(function, diagonal):
    """The compiled metric kernel of a user's function; raises TypeError or ValueError if the function is not valid."""
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
