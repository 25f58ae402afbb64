"""Dynamics of a state z = (theta, auxiliaries), defined by the matrices D and Q of a user's function.

The function is ``f(z, slope, D, Q, div_D, div_Q)``. ``slope`` is the gradient of the energy H = -log density + energy
of the auxiliaries. The function receives z (m,) and the first part of ``slope``, and writes the rest of ``slope``. It
also writes D and Q (m, m) and their divergences div_i = sum_j dD_ij / dz_j, for Q likewise. Zeros need not be written.
"""

import numpy as np

from .._jit import NOT_FINITE, OK, TRANSITION, helper
from .._user import kernel_of
from ..math.arrays import set_to
from .particles import BLOB, MOMENTA, N_SCALARS, POSITIONS, STARTED, interact

# hyper: step size, number of auxiliaries, last stage; for particles also whether the score acts along Q, the
# bandwidth rule, and the standard deviation of the auxiliaries at the start. scalars: as in `particles`, then the stage
# at which each entry of z moves.
STEP, N_AUXILIARY, LAST_STAGE, FIBRE, RULE, SPREAD = 0, 1, 2, 3, 4, 5


@helper
def root(D):
    """Lower triangular L with L L^T = D, for positive semi-definite D; columns with zero pivots are 0."""
    m = D.shape[0]
    L = np.zeros((m, m))
    for j in range(m):
        pivot = D[j, j]
        for k in range(j):
            pivot -= L[j, k] ** 2
        if pivot <= 1e-12 * max(D[j, j], 1e-300):
            continue
        L[j, j] = np.sqrt(pivot)
        for i in range(j + 1, m):
            total = D[i, j]
            for k in range(j):
                total -= L[i, k] * L[j, k]
            L[i, j] = total / L[j, j]
    return L


@helper
def noise_of(D, h, rng):
    """Draw of N(0, 2 h D), from one standard normal number for each nonzero pivot, in order."""
    m = D.shape[0]
    L = root(D)
    out = np.zeros(m)
    for j in range(m):
        if L[j, j] > 0.0:
            number = np.sqrt(2.0 * h) * rng.standard_normal()
            for i in range(j, m):
                out[i] += L[i, j] * number
    return out


@helper
def product(A, x, i):
    """Entry i of A x."""
    total = 0.0
    for j in range(x.shape[0]):
        total += A[i, j] * x[j]
    return total


def _stochastic(matrices):
    def step(theta, aux, scalars, signal, extra, hyper, rows, rng):
        h, n_theta = hyper[STEP], theta.size
        m = n_theta + int(hyper[N_AUXILIARY])
        flat, others, gradient = theta.reshape(n_theta), aux.reshape(aux.size), signal.reshape(n_theta)
        z, slope, moved, noise = np.empty(m), np.zeros(m), np.zeros(m), np.zeros(m)
        set_to(z[:n_theta], flat)
        set_to(z[n_theta:], others[: m - n_theta])
        for stage in range(int(hyper[LAST_STAGE]) + 1):
            D, Q, div_D, div_Q = np.zeros((m, m)), np.zeros((m, m)), np.zeros(m), np.zeros(m)
            slope[:] = 0.0
            for i in range(n_theta):
                slope[i] = -gradient[i]
            matrices(z, slope, D, Q, div_D, div_Q)
            if stage == 0:
                noise = noise_of(D, h, rng)
            for i in range(m):
                moved[i] = z[i] + noise[i] + h * (div_D[i] + div_Q[i] - product(D, slope, i) - product(Q, slope, i))
            if not take(z, moved, scalars, stage):
                return NOT_FINITE
        for i in range(n_theta):
            flat[i] = z[i]
        for i in range(m - n_theta):
            others[i] = z[n_theta + i]
        return OK

    return step


def _deterministic(matrices):
    def flow(theta, aux, scalars, signal, extra, hyper, rows, rng):
        h, (M, n_theta) = hyper[STEP], theta.shape
        n_aux = int(hyper[N_AUXILIARY])
        m, others, rule = n_theta + n_aux, aux[0], int(hyper[RULE])
        z, slope, moved, score = np.empty(m), np.zeros(m), np.zeros(m), np.zeros((M, m))
        if scalars[STARTED] == 0.0:
            scalars[STARTED] = 1.0
            for p in range(M):
                for j in range(n_aux):
                    others[p, j] += hyper[SPREAD] * rng.standard_normal()
        for stage in range(int(hyper[LAST_STAGE]) + 1):
            pushed, _ = interact(theta, BLOB, rule, 0.0, scalars, POSITIONS)
            set_to(score[:, :n_theta], pushed)
            if n_aux > 0:
                pushed, _ = interact(others, BLOB, rule, 0.0, scalars, MOMENTA)
                set_to(score[:, n_theta:], pushed)
            for p in range(M):
                set_to(z[:n_theta], theta[p])
                set_to(z[n_theta:], others[p])
                D, Q, div_D, div_Q = np.zeros((m, m)), np.zeros((m, m)), np.zeros(m), np.zeros(m)
                slope[:] = 0.0
                for i in range(n_theta):
                    slope[i] = -signal[p, i]
                matrices(z, slope, D, Q, div_D, div_Q)
                for i in range(m):
                    drift = (1.0 - hyper[FIBRE]) * div_Q[i]
                    for j in range(m):
                        drift += D[i, j] * (score[p, j] - slope[j])
                        drift += Q[i, j] * (hyper[FIBRE] * score[p, j] - slope[j])
                    moved[i] = z[i] + h * drift
                if not take(z, moved, scalars, stage):
                    return NOT_FINITE
                theta[p] = z[:n_theta]
                others[p] = z[n_theta:]
        return OK

    return flow


@helper
def take(z, moved, scalars, stage):
    """Move the entries of this stage; returns whether all entries are finite."""
    for i in range(z.shape[0]):
        if int(scalars[N_SCALARS + i]) == stage:
            z[i] = moved[i]
        if not np.isfinite(z[i]):
            return False
    return True


def recipe_kernel(function, deterministic):
    """The transition defined by a user's function, or its flow of particles if ``deterministic``."""
    return kernel_of(_deterministic if deterministic else _stochastic, function, TRANSITION)
