"""Signals of models whose posterior is known exactly: test beds for the samplers.

Each has the signature `DENSE_SIGNAL` of ``runners``: it reads the minibatch ``X`` (n_batch, n_inputs), ``y``,
``weight``, the model's constants ``params`` and ``scale`` = N/n, writes ``signal`` and ``extra``, and returns a status.
"""

from .._jit import OK, kernel
from ..runners import DENSE_SIGNAL


@kernel(DENSE_SIGNAL)
def dirichlet_categorical(theta, X, y, weight, params, scale, signal, extra):
    """Category codes in ``X[:, 0]``, prior concentration in ``params``: signal = shape, extra = estimated total."""
    for r in range(theta.shape[0]):
        signal[r, 0] = params[r]
    total = 0.0
    for i in range(X.shape[0]):
        signal[int(X[i, 0]), 0] += scale * weight[i]
        total += scale * weight[i]
    extra[0] = total
    return OK


@kernel(DENSE_SIGNAL)
def gamma_poisson(theta, X, y, weight, params, scale, signal, extra):
    """Counts in the columns of ``X``, ``params`` = prior shape: signal = shape of each rate, in units of its scale."""
    for r in range(theta.shape[0]):
        signal[r, 0] = params[0]
    for i in range(X.shape[0]):
        for r in range(theta.shape[0]):
            signal[r, 0] += scale * weight[i] * X[i, r]
    extra[0] = 0.0
    return OK


@kernel(DENSE_SIGNAL)
def log_normal_median(theta, X, y, weight, params, scale, signal, extra):
    """Log observations in ``X``: signal = estimated posterior mean of log theta, extra = its standard deviation.

    ``params`` = (prior mean, prior precision, precision of an observation, posterior precision, posterior sd).
    """
    for r in range(theta.shape[0]):
        signal[r, 0] = params[0] * params[1]
    for i in range(X.shape[0]):
        for r in range(theta.shape[0]):
            signal[r, 0] += scale * weight[i] * params[2] * X[i, r]
    for r in range(theta.shape[0]):
        signal[r, 0] /= params[3]
    extra[0] = params[4]
    return OK
