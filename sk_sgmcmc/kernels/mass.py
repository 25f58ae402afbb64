"""Masses of Hamiltonian samplers, fixed or learnt online by Monte Carlo EM.

The state vector ``scalars`` of such a sampler is a head of `HEAD` numbers, named below, then with m = 0, D or D^2
numbers for a mass that is the identity, diagonal or full: the inverse mass W (m), a root R of the mass, R R^T = M (m),
and the sum of p p^T over the momenta of the present E-step (m). D is the number of entries of the state.
"""

import numpy as np

from ._jit import helper

(
    STARTED, XI, Q, Q_MASS, H0, KIND, LEARNING, COUNT, WANTED, N_UPDATES, STEP, FREEZE_AT, SHRINKAGE, LOWEST, HIGHEST,
    DECAY, GROWTH, SPACING, SPACING_POWER, NEXT_TEST, N_TESTS, TEST_SUM, TEST_SQUARES, WIDTH, Q_SQUARES, N_ACCEPTED,
    LOG_FACTOR, LAST_ENERGY,
) = range(28)  # fmt: skip
HEAD = 32
IDENTITY, DIAGONAL, FULL = 0, 1, 2


@helper
def block(scalars, kind, D, which):
    """Where block ``which`` begins (0: inverse mass, 1: root of the mass, 2: E-step sums), and how long it is."""
    m = D if kind == 1 else D * D if kind == 2 else 0
    return HEAD + which * m, m


@helper
def kind_of(scalars):
    """0 for the identity (also of samplers whose state has no mass), 1 diagonal, 2 full."""
    return int(scalars[KIND]) if scalars.shape[0] >= HEAD else 0


@helper
def times_inverse_mass(scalars, p, out):
    """out = W p; p and out (n_rows, width), read in memory order."""
    width = p.shape[1]
    D = p.size
    kind = kind_of(scalars)
    for i in range(D):
        if kind == 0:
            out[i // width, i % width] = p[i // width, i % width]
        elif kind == 1:
            out[i // width, i % width] = scalars[HEAD + i] * p[i // width, i % width]
        else:
            total = 0.0
            for j in range(D):
                total += scalars[HEAD + i * D + j] * p[j // width, j % width]
            out[i // width, i % width] = total


@helper
def draw_momentum(scalars, out, rng):
    """out ~ N(0, M)."""
    width = out.shape[1]
    D = out.size
    kind = kind_of(scalars)
    for i in range(D):
        out[i // width, i % width] = rng.standard_normal()
    if kind == 1:
        for i in range(D):
            out[i // width, i % width] *= scalars[HEAD + D + i]
    elif kind == 2:
        lo = HEAD + D * D
        for i in range(D - 1, -1, -1):  # from below, so that no entry is used after it was overwritten
            total = 0.0
            for j in range(i + 1):
                total += scalars[lo + i * D + j] * out[j // width, j % width]
            out[i // width, i % width] = total


@helper
def kinetic(p, velocity):
    """p^T W p, with velocity = W p."""
    total = 0.0
    for r in range(p.shape[0]):
        for k in range(p.shape[1]):
            total += p[r, k] * velocity[r, k]
    return total


@helper
def cholesky(a):
    """Lower root of a symmetric matrix, in place; False where it is not positive definite."""
    n = a.shape[0]
    for j in range(n):
        total = a[j, j]
        for k in range(j):
            total -= a[j, k] * a[j, k]
        if not total > 0.0:
            return False
        a[j, j] = np.sqrt(total)
        for i in range(j + 1, n):
            total = a[i, j]
            for k in range(j):
                total -= a[i, k] * a[j, k]
            a[i, j] = total / a[j, j]
        for i in range(j):
            a[i, j] = 0.0
    return True


@helper
def inverse_of(a):
    """Inverse of a positive definite matrix; zeros where it is not one."""
    n = a.shape[0]
    root = a.copy()
    out = np.zeros((n, n))
    if not cholesky(root):
        return out
    for c in range(n):
        column = np.zeros(n)
        for i in range(n):
            total = 1.0 if i == c else 0.0
            for k in range(i):
                total -= root[i, k] * column[k]
            column[i] = total / root[i, i]
        for i in range(n - 1, -1, -1):
            total = column[i]
            for k in range(i + 1, n):
                total -= root[k, i] * column[k]
            column[i] = total / root[i, i]
        out[:, c] = column
    return out


@helper
def spectral_bound(a, low, high):
    """Clip the eigenvalues of a symmetric matrix into [low, high], by cyclic Jacobi rotations; a new matrix."""
    n = a.shape[0]
    b = a.copy()
    v = np.eye(n)
    for _ in range(30):
        off = 0.0
        size = 0.0
        for i in range(n):
            size += b[i, i] * b[i, i]
            for j in range(i):
                off += b[i, j] * b[i, j]
        if off <= 1e-24 * size:
            break
        for i in range(n - 1):
            for j in range(i + 1, n):
                if b[i, j] == 0.0:
                    continue
                tau = (b[j, j] - b[i, i]) / (2.0 * b[i, j])
                t = (1.0 if tau >= 0.0 else -1.0) / (abs(tau) + np.sqrt(1.0 + tau * tau))
                c = 1.0 / np.sqrt(1.0 + t * t)
                s = t * c
                for k in range(n):
                    x, y = b[k, i], b[k, j]
                    b[k, i], b[k, j] = c * x - s * y, s * x + c * y
                for k in range(n):
                    x, y = b[i, k], b[j, k]
                    b[i, k], b[j, k] = c * x - s * y, s * x + c * y
                for k in range(n):
                    x, y = v[k, i], v[k, j]
                    v[k, i], v[k, j] = c * x - s * y, s * x + c * y
    out = np.zeros((n, n))
    for k in range(n):
        value = min(max(b[k, k], low), high)
        for i in range(n):
            for j in range(n):
                out[i, j] += value * v[i, k] * v[j, k]
    return out


@helper
def maximise(scalars, D):
    """M-step: W <- (1 - kappa) W + kappa S^{-1}, S the shrunken second moment of the stored momenta."""
    kind = kind_of(scalars)
    n = scalars[COUNT]
    kappa = (1.0 + scalars[N_UPDATES]) ** (-scalars[DECAY])
    share = scalars[SHRINKAGE]
    low, high = scalars[LOWEST], scalars[HIGHEST]
    fitted = 0.0  # the test function under the new mass: mean of p^T W p / D over the same momenta
    if kind == 1:
        mean = 0.0
        for i in range(D):
            mean += scalars[HEAD + 2 * D + i] / (n * D)
        for i in range(D):
            s = (1.0 - share) * scalars[HEAD + 2 * D + i] / n + share * mean
            # The inverse of a sample variance is too large by n / (n - 2) on average.
            w = max(n - 2.0, 1.0) / n / max(s, 1e-300)
            w = (1.0 - kappa) * scalars[HEAD + i] + kappa * w
            w = min(max(w, low), high)
            scalars[HEAD + i] = w
            scalars[HEAD + D + i] = 1.0 / np.sqrt(w)
            fitted += w * scalars[HEAD + 2 * D + i] / (n * D)
            scalars[HEAD + 2 * D + i] = 0.0
    else:
        m = D * D
        S = np.empty((D, D))
        mean = 0.0
        for i in range(D):
            mean += scalars[HEAD + 2 * m + i * D + i] / (n * D)
        for i in range(D):
            for j in range(D):
                S[i, j] = (1.0 - share) * scalars[HEAD + 2 * m + i * D + j] / n
            S[i, i] += share * mean
        inverse = inverse_of(S)
        factor = max(n - D - 1.0, 1.0) / n
        W = np.empty((D, D))
        for i in range(D):
            for j in range(D):
                W[i, j] = (1.0 - kappa) * scalars[HEAD + i * D + j] + kappa * factor * inverse[i, j]
        W = spectral_bound(W, low, high)
        M = inverse_of(W)
        if cholesky(M):
            for i in range(D):
                for j in range(D):
                    scalars[HEAD + i * D + j] = W[i, j]
                    scalars[HEAD + m + i * D + j] = M[i, j]
        for i in range(D):
            for j in range(D):
                fitted += scalars[HEAD + i * D + j] * scalars[HEAD + 2 * m + i * D + j] / (n * D)
                scalars[HEAD + 2 * m + i * D + j] = 0.0
    scalars[N_UPDATES] += 1.0
    return fitted


@helper
def learn_mass(scalars, p, velocity, rng):
    """Store one momentum; when the E-step is full, make the M-step and choose the size of the next E-step.

    The test function p^T W p / D is averaged over Poisson-spaced moments. If its value under the new mass lies inside
    mean +- z sqrt(v / n), the M-step cannot be told from noise, and the E-step grows by the share 1 / growth.
    """
    if scalars.shape[0] < HEAD or scalars[LEARNING] == 0.0:
        return
    scalars[STEP] += 1.0
    if scalars[STEP] > scalars[FREEZE_AT]:
        scalars[LEARNING] = 0.0
        return
    kind = kind_of(scalars)
    D = p.size
    width = p.shape[1]
    lo, m = block(scalars, kind, D, 2)
    for i in range(D):
        x = p[i // width, i % width]
        if kind == 1:
            scalars[lo + i] += x * x
        else:
            for j in range(D):
                scalars[lo + i * D + j] += x * p[j // width, j % width]
    scalars[COUNT] += 1.0
    if scalars[COUNT] >= scalars[NEXT_TEST]:
        value = kinetic(p, velocity) / D
        scalars[N_TESTS] += 1.0
        scalars[TEST_SUM] += value
        scalars[TEST_SQUARES] += value * value
        gap = scalars[SPACING] * scalars[N_TESTS] ** scalars[SPACING_POWER]
        scalars[NEXT_TEST] = scalars[COUNT] + 1.0 + rng.poisson(gap)
    if scalars[COUNT] < scalars[WANTED]:
        return
    fitted = maximise(scalars, D)
    n = scalars[N_TESTS]
    if n >= 2.0:
        mean = scalars[TEST_SUM] / n
        variance = max(scalars[TEST_SQUARES] / n - mean * mean, 0.0) * n / (n - 1.0)
        if abs(fitted - mean) <= scalars[WIDTH] * np.sqrt(variance / n):
            scalars[WANTED] += np.floor(scalars[WANTED] / scalars[GROWTH])
    scalars[COUNT] = 0.0
    scalars[N_TESTS] = 0.0
    scalars[TEST_SUM] = 0.0
    scalars[TEST_SQUARES] = 0.0
    scalars[NEXT_TEST] = 1.0
