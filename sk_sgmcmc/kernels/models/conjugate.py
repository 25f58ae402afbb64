"""Signals of models with a known posterior, on which samplers are tested.

Each signal has the signature `DENSE_SIGNAL` of ``runners``. It reads the minibatch ``X`` (n_batch, n_inputs), ``y`` and
``weight``, the model's constants ``params``, and ``scale`` = N/n. It writes ``signal`` and ``extra``, and returns a
status.
"""

import numpy as np

from .._jit import NOT_FINITE, OK, kernel
from ..runners import DENSE_SIGNAL


@kernel(DENSE_SIGNAL)
def dirichlet_categorical(theta, X, y, weight, params, scale, signal, extra):
    """signal = shape, extra = estimated total count; ``X[:, 0]`` = category codes, ``params`` = prior concentration."""
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
    """signal = shape of each rate, in units of its scale; columns of ``X`` = counts, ``params`` = prior shape."""
    for r in range(theta.shape[0]):
        signal[r, 0] = params[0]
    for i in range(X.shape[0]):
        for r in range(theta.shape[0]):
            signal[r, 0] += scale * weight[i] * X[i, r]
    extra[0] = 0.0
    return OK


@kernel(DENSE_SIGNAL)
def log_normal_median(theta, X, y, weight, params, scale, signal, extra):
    """signal = estimated posterior mean of log theta, extra = its standard deviation; ``X`` = log observations.

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


@kernel(DENSE_SIGNAL)
def gaussian_mean(theta, X, y, weight, params, scale, signal, extra):
    """Mean of rows with known precision; ``params`` = (precision of the prior, precision matrix of a row)."""
    D = theta.shape[0]
    shift = np.zeros(D)
    total = 0.0
    squares = 0.0
    for i in range(X.shape[0]):
        total += scale * weight[i]
        for j in range(D):
            shift[j] += scale * weight[i] * (X[i, j] - theta[j, 0])
        for j in range(D):
            for k in range(D):
                a = params[1 + j * D + k] * (X[i, j] - theta[j, 0])
                squares += scale * weight[i] * a * (X[i, k] - theta[k, 0])
    extra[0] = -0.5 * squares
    for j in range(D):
        signal[j, 0] = -params[0] * theta[j, 0]
        extra[0] -= 0.5 * params[0] * theta[j, 0] * theta[j, 0]
        for k in range(D):
            signal[j, 0] += params[1 + j * D + k] * shift[k]
    return OK


@kernel(DENSE_SIGNAL)
def normal_wishart(theta, X, y, weight, params, scale, signal, extra):
    """Mean and precision L L^T of Gaussian rows, in the coordinates of `BayesianGaussian`.

    theta contains sqrt(kappa_n) mean, followed by the lower triangle of sqrt(nu_n) L, row by row. Diagonal entries are
    replaced by sqrt(2 m_i) log(L_ii / sqrt(m_i / nu_n)), m_i = nu_n - i. If the posterior has kappa_n, nu_n and the
    inverse scale nu_n I, these coordinates have about unit standard deviation around 0, for any prior.

    ``params`` = (kappa_n, nu_n, nu, kappa, prior mean (d), inverse scale of the Wishart prior (d, d)).
    """
    d = X.shape[1]
    mean_root, root = np.sqrt(params[0]), np.sqrt(params[1])
    nu, kappa = params[2], params[3]
    prior_mean = params[4 : 4 + d]
    mean = np.empty(d)
    L = np.zeros((d, d))
    at = d
    for i in range(d):
        mean[i] = theta[i, 0] / mean_root
        for j in range(i):
            L[i, j] = theta[at, 0] / root
            at += 1
        freedom = params[1] - i
        L[i, i] = np.sqrt(freedom) / root * np.exp(theta[at, 0] / np.sqrt(2.0 * freedom))
        at += 1
    Q = np.empty((d, d))
    shift = np.zeros(d)
    for i in range(d):
        for j in range(d):
            Q[i, j] = params[4 + d + i * d + j] + kappa * (mean[i] - prior_mean[i]) * (mean[j] - prior_mean[j])
    total = 0.0
    row = np.empty(d)
    for n in range(X.shape[0]):
        w = scale * weight[n]
        total += w
        for i in range(d):
            row[i] = X[n, i] - mean[i]
            shift[i] += w * row[i]
        for i in range(d):
            for j in range(i + 1):
                Q[i, j] += w * row[i] * row[j]
    for i in range(d):
        shift[i] += kappa * (prior_mean[i] - mean[i])
        for j in range(i):
            Q[j, i] = Q[i, j]
    across = np.zeros(d)  # L^T shift
    for k in range(d):
        for i in range(k, d):
            across[k] += L[i, k] * shift[i]
    logp = 0.0
    at = d
    for i in range(d):
        g = 0.0
        for k in range(i + 1):
            g += L[i, k] * across[k]
        signal[i, 0] = g / mean_root
        for j in range(i + 1):
            pull = 0.0
            for k in range(j, d):
                pull += Q[i, k] * L[k, j]
            logp -= 0.5 * L[i, j] * pull
            if j < i:
                signal[at, 0] = -pull / root
            else:
                # The power of L_ii comes from the likelihood, the priors, and the volume elements of L and log L_ii.
                power = total + nu - d - 1.0 + (1.0 if kappa > 0.0 else 0.0) + (d - i + 1.0)
                signal[at, 0] = (power - L[i, i] * pull) / np.sqrt(2.0 * (params[1] - i))
                logp += power * np.log(L[i, i])
            at += 1
    extra[0] = logp
    return OK if np.isfinite(logp) else NOT_FINITE
