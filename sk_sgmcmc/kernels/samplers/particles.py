"""Particles that move along a deterministic flow and repel each other; a row of the state is a particle.

``theta`` is (M, D), M particles of D entries, and ``signal`` contains the gradient at each. Every interaction has the
form b_i = (1/h) sum_j A_ij (x_i - x_j), with weights A computed from the kernel K_ij = exp(-|x_i - x_j|^2 / 2h). It
needs two matrix products, the Gram matrix of the particles and A times the particles: 4 M^2 D operations and memory for
M^2 + M D numbers. HE bandwidths add four products of M x M matrices.
"""

import numpy as np
from numba import types

from .._jit import F1, F1_IN, F2_IN, F3, F8, I1_IN, I8, NOT_FINITE, OK, RNG, TRANSITION, helper, kernel
from ..math.arrays import cholesky, set_to, solve_positive
from ..runners import DENSE_SIGNAL, gather

BLOB, GFSD, GFSF, SVGD = 0, 1, 2, 3
MEDIAN, HE = 0, 1
# scalars: whether momenta were drawn; the bandwidths of positions and of momenta, 0 before the first step
STARTED, POSITIONS, MOMENTA, N_SCALARS = 0, 1, 2, 3
# hyper: step size, interaction, bandwidth rule, ridge; for momenta: friction, mass, whether both scores drive (fGH)
STEP, INTERACTION, RULE, RIDGE, FRICTION, MASS, BOTH = 0, 1, 2, 3, 4, 5, 6

_REACH = 1.1  # factor by which one search may change the HE bandwidth
_FROM_MEDIAN = 4.0  # factor by which it may differ from `median_bandwidth`


@helper(inline=True)
def gram(X):
    """The particles minus their mean, their Gram matrix, and their squared distances."""
    M, D = X.shape
    Y = np.empty((M, D))
    for k in range(D):
        mean = 0.0
        for i in range(M):
            mean += X[i, k]
        mean /= M
        for i in range(M):
            Y[i, k] = X[i, k] - mean
    G = np.dot(Y, Y.T)
    squares = np.zeros((M, M))
    for i in range(M):
        for j in range(i):
            squares[i, j] = squares[j, i] = max(G[i, i] + G[j, j] - 2.0 * G[i, j], 0.0)
    return Y, G, squares


@helper
def median_bandwidth(squares):
    """Half the median squared distance of two particles, divided by log(M + 1); 1 if this is 0."""
    M = squares.shape[0]
    pairs = np.empty(M * (M - 1) // 2)
    n = 0
    for i in range(M):
        for j in range(i):
            pairs[n] = squares[i, j]
            n += 1
    h = 0.5 * np.median(pairs) / np.log(M + 1.0) if n > 0 else 0.0
    return h if h > 0.0 else 1.0


@helper
def kernel_matrix(squares, h):
    """K = exp(-|x_i - x_j|^2 / 2h) and its row sums, from the squared distances."""
    M = squares.shape[0]
    K, sums = np.empty((M, M)), np.zeros(M)
    for i in range(M):
        for j in range(M):
            K[i, j] = np.exp(-0.5 / h * squares[i, j])
            sums[i] += K[i, j]
    return K, sums


@helper
def log_heat_error(G, squares, n_entries, h):
    """log of h^(D + 2) sum_k lambda_k^2, which measures how far the smoothed particles violate the heat equation.

    lambda_k = Laplacian of q at x_k + sum_j grad_{x_j} q(x_k) . grad log q(x_j), q the kernel density estimate. The
    powers h^(-D/2) of q and 1/h of the derivatives cancel and are not computed.
    """
    M = G.shape[0]
    K, sums = kernel_matrix(squares, h)
    P = np.empty((M, M))
    for j in range(M):
        for i in range(M):
            P[j, i] = K[j, i] / sums[j]
    H = np.dot(P, G)
    total = 0.0
    for k in range(M):
        error = 0.0
        for j in range(M):
            along = G[k, j] - H[j, k] - G[j, j] + H[j, j]  # (x_k - x_j) . (x_j - sum_l P_jl x_l)
            error += K[k, j] * ((squares[k, j] - along) / h - n_entries)
        total += error * error
    return np.log(total)


@helper(inline=True)
def he_bandwidth(G, squares, n_entries, previous):
    """One search step in log h: the best of the previous bandwidth, both neighbours and their parabola's minimum.

    In more than about ten dimensions, the error decreases down to h = 0, where isolated particles agree on one density
    that is wrong everywhere. The search is therefore limited to a range around `median_bandwidth`.
    """
    middle = median_bandwidth(squares)
    if squares.shape[0] < 2:
        return middle
    x = np.log(previous if previous > 0.0 else middle)
    reach = np.log(_REACH)
    here = log_heat_error(G, squares, n_entries, np.exp(x))
    up = log_heat_error(G, squares, n_entries, np.exp(x + reach))
    down = log_heat_error(G, squares, n_entries, np.exp(x - reach))
    best, lowest = x, here
    if up < lowest:
        best, lowest = x + reach, up
    if down < lowest:
        best, lowest = x - reach, down
    bend = up - 2.0 * here + down
    if bend > 0.0:
        vertex = x + reach * min(max(0.5 * (down - up) / bend, -2.0), 2.0)
        if log_heat_error(G, squares, n_entries, np.exp(vertex)) < lowest:
            best = vertex
    limit = np.log(_FROM_MEDIAN)
    return np.exp(min(max(best, np.log(middle) - limit), np.log(middle) + limit))


@helper
def interact(X, interaction, rule, ridge, scalars, at):
    """The interaction b (M, D), which estimates -grad log q at the particles, and the kernel matrix K.

    For SVGD, b is sum_j grad_{x_j} K_ij, which `langevin_flow` adds to the smoothed gradient. The bandwidth is stored
    in ``scalars[at]``.
    """
    M, D = X.shape
    Y, G, squares = gram(X)
    h = he_bandwidth(G, squares, D, scalars[at]) if rule == HE else median_bandwidth(squares)
    scalars[at] = h
    K, sums = kernel_matrix(squares, h)
    weight = np.ones(M)
    if interaction in (BLOB, GFSD):
        for i in range(M):
            weight[i] = 1.0 / sums[i]
    A, totals = np.empty((M, M)), np.zeros(M)
    for i in range(M):
        for j in range(M):
            A[i, j] = K[i, j] * (weight[i] + weight[j] if interaction == BLOB else weight[i])
            totals[i] += A[i, j]
    b = np.dot(A, Y)
    finite = True
    for i in range(M):
        finite = finite and np.isfinite(sums[i])
        for k in range(D):
            b[i, k] = (totals[i] * Y[i, k] - b[i, k]) / h
            finite = finite and np.isfinite(b[i, k])
    if interaction == GFSF:
        L = np.zeros((M, M))
        set_to(A, K)
        for i in range(M):
            A[i, i] += ridge
        if finite and cholesky(A, L):
            solve_positive(L, b)
        else:
            b[:] = np.nan  # The flows then return a status.
    return b, K


@kernel(TRANSITION)
def langevin_flow(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """theta += h (grad + b); for SVGD theta += h (K grad + b) / M."""
    b, K = interact(theta, int(hyper[INTERACTION]), int(hyper[RULE]), hyper[RIDGE], scalars, POSITIONS)
    M = theta.shape[0]
    smooth = hyper[INTERACTION] == SVGD
    force = np.dot(K, signal) if smooth else signal
    h = hyper[STEP] / M if smooth else hyper[STEP]
    for i in range(M):
        for k in range(theta.shape[1]):
            theta[i, k] += h * (force[i, k] + b[i, k])
            if not np.isfinite(theta[i, k]):
                return NOT_FINITE
    return OK


@kernel(TRANSITION)
def hamiltonian_flow(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """p += h (grad + f b(theta) - C W p + C b(p)); theta += h (W p - f b(p)) with the new p; f = 1 for fGH, else 0.

    ``aux`` = (p, b(p)), since the interaction of the momenta is the same at the end of a step as at the next start.
    """
    h, C, W = hyper[STEP], hyper[FRICTION], 1.0 / hyper[MASS]
    interaction, rule, ridge = int(hyper[INTERACTION]), int(hyper[RULE]), hyper[RIDGE]
    both = hyper[BOTH]
    p = aux[0]
    M, D = theta.shape
    if scalars[STARTED] == 0.0:
        scalars[STARTED] = 1.0
        for i in range(M):
            for k in range(D):
                p[i, k] = np.sqrt(hyper[MASS]) * rng.standard_normal()
        start, _ = interact(p, interaction, rule, ridge, scalars, MOMENTA)
        set_to(aux[1], start)
    push = aux[1]
    if both != 0.0:
        b, _ = interact(theta, interaction, rule, ridge, scalars, POSITIONS)
    else:
        b = push  # unused
    for i in range(M):
        for k in range(D):
            force = signal[i, k] + C * (push[i, k] - W * p[i, k])
            p[i, k] += h * (force + b[i, k] if both != 0.0 else force)
            if not np.isfinite(p[i, k]):
                return NOT_FINITE
    end, _ = interact(p, interaction, rule, ridge, scalars, MOMENTA)
    set_to(push, end)
    for i in range(M):
        for k in range(D):
            theta[i, k] += h * (W * p[i, k] - both * push[i, k])
    return OK


_RUN_PARTICLES = types.UniTuple(I8, 2)(
    F3, F3, F1, F2_IN, F2_IN, F1_IN, F1_IN, I1_IN, I8, F8, F2_IN,
    types.FunctionType(DENSE_SIGNAL), types.FunctionType(TRANSITION), RNG,
)  # fmt: skip


@kernel(_RUN_PARTICLES)
def run_particles(theta, aux, scalars, X, y, weight, params, starts, n_batch, scale, hypers, signal_of, step, rng):
    """Steps of all particles, each on one minibatch; returns (status, number of steps made).

    Parameters
    ----------
    theta : (n_particles, n_rows, width), changed in place
    aux : (n_aux, n_particles, n_rows * width), changed in place
    step : the flow, a transition whose rows are the particles
    others : as in `sk_sgmcmc.kernels.runners.run_dense`
    """
    M, n_rows, width = theta.shape
    n_data = int(scale * n_batch + 0.5)
    particles = np.arange(M)
    flat = theta.reshape((M, n_rows * width))
    signal = np.empty((M, n_rows, width))
    extra = np.zeros(max(1, width))
    replace = starts.shape[0] > 0 and starts[0] < 0
    if replace:
        X_batch = np.empty((n_batch, X.shape[1]))
        y_batch = np.empty((n_batch, y.shape[1]))
        w_batch = np.empty(n_batch)
    for t in range(starts.shape[0]):
        if replace:
            gather(X, y, weight, n_data, X_batch, y_batch, w_batch, rng)
        lo = starts[t]
        hi = lo + n_batch
        status = OK
        for i in range(M):
            if replace:
                status = signal_of(theta[i], X_batch, y_batch, w_batch, params, scale, signal[i], extra)
            else:
                status = signal_of(theta[i], X[lo:hi], y[lo:hi], weight[lo:hi], params, scale, signal[i], extra)
            if status != OK:
                return status, t
        gradients = signal.reshape((M, n_rows * width))
        status = step(flat, aux, scalars, gradients, extra, hypers[t], particles, rng)
        if status != OK:
            return status, t
    return OK, starts.shape[0]
