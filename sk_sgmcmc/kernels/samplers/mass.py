"""Masses of Hamiltonian samplers, fixed or learnt online by Monte Carlo EM.

The state vector ``scalars`` of such a sampler begins with a head of `HEAD` numbers, named below. Three blocks of m
numbers follow, where m is 0, D or D^2 for a mass that is the identity, diagonal or full. D is the number of entries of
the state. The blocks are the inverse mass W, a root R of the mass (R R^T = M), and the sum of p p^T / T over the
momenta of the present E-step. For a mass learnt by Monte Carlo EM, a record of the sizes of its E-steps follows. For a
mass learnt in windows, the tail of `windows` follows.
"""

import numpy as np

from .._jit import helper

(
    STARTED, XI, Q, Q_MASS, H0, KIND, LEARNING, COUNT, WANTED, N_UPDATES, STEP, FREEZE_AT, SHRINKAGE, LOWEST, HIGHEST,
    DECAY, GROWTH, SPACING, SPACING_POWER, NEXT_TEST, N_TESTS, TEST_SUM, TEST_SQUARES, WIDTH, Q_SQUARES, N_ACCEPTED,
    LOG_FACTOR, LAST_ENERGY, ADAPTED, EVERY,
) = range(30)  # fmt: skip
HEAD = 32
IDENTITY, DIAGONAL, FULL = 0, 1, 2
WINDOWS = 2.0  # value of LEARNING for a mass learnt in windows, while a state is created


@helper
def block(kind, D, which):
    """Position of a block; 0: inverse mass, 1: root of the mass, 2: sums of the E-step, 3: record of the E-steps."""
    return HEAD + which * (D if kind == 1 else D * D)


@helper
def kind_of(scalars):
    """0: identity (also if the state has no mass), 1: diagonal, 2: full."""
    return int(scalars[KIND]) if scalars.shape[0] >= HEAD else 0


@helper
def times_inverse_mass(scalars, p, out):
    """out = W p; p and out (n_rows, width), read in memory order."""
    width = p.shape[1]
    D = p.size
    kind = kind_of(scalars)
    for r in range(p.shape[0]):
        for k in range(width):
            i = r * width + k
            if kind == 0:
                out[r, k] = p[r, k]
            elif kind == 1:
                out[r, k] = scalars[HEAD + i] * p[r, k]
            else:
                total = 0.0
                for a in range(p.shape[0]):
                    for b in range(width):
                        total += scalars[HEAD + i * D + a * width + b] * p[a, b]
                out[r, k] = total


@helper
def draw_momentum(scalars, out, rng):
    """out ~ N(0, M)."""
    width = out.shape[1]
    D = out.size
    kind = kind_of(scalars)
    for r in range(out.shape[0]):
        for k in range(width):
            root = scalars[HEAD + D + r * width + k] if kind == 1 else 1.0
            out[r, k] = root * rng.standard_normal()
    if kind == 2:
        lo = HEAD + D * D
        white = out.copy()
        for r in range(out.shape[0]):
            for k in range(width):
                total = 0.0
                for a in range(out.shape[0]):
                    for b in range(width):
                        total += scalars[lo + (r * width + k) * D + a * width + b] * white[a, b]
                out[r, k] = total


@helper
def kinetic(p, velocity):
    """p^T W p, with velocity = W p."""
    total = 0.0
    for r in range(p.shape[0]):
        for k in range(p.shape[1]):
            total += p[r, k] * velocity[r, k]
    return total


@helper(inline=True)
def maximise(scalars, D):
    """M-step: W <- (1 - kappa) W + kappa S^{-1}, S the shrunk second moment of the stored momenta."""
    kind = kind_of(scalars)
    n = scalars[COUNT]
    kappa = (1.0 + scalars[N_UPDATES]) ** (-scalars[DECAY])
    share = scalars[SHRINKAGE]
    low, high = scalars[LOWEST], scalars[HIGHEST]
    fitted = 0.0  # test function under the new mass: mean of p^T W p / D over the same momenta
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
        factor = max(n - D - 1.0, 1.0) / n
        W = np.empty((D, D))
        for i in range(D):
            for j in range(D):
                W[i, j] = (1.0 - kappa) * scalars[HEAD + i * D + j]
        if np.isfinite(S.sum()):  # Otherwise, the eigensolver would raise.
            values, vectors = np.linalg.eigh(S)
            for k in range(D):
                scale = kappa * factor / max(values[k], 1e-12 * values[D - 1])
                for i in range(D):
                    for j in range(D):
                        W[i, j] += scale * vectors[i, k] * vectors[j, k]
            values, vectors = np.linalg.eigh(W)
            scalars[HEAD : HEAD + m] = 0.0
            for k in range(D):
                value = min(max(values[k], low), high)
                for i in range(D):
                    scalars[HEAD + m + i * D + k] = vectors[i, k] / np.sqrt(value)
                    for j in range(D):
                        scalars[HEAD + i * D + j] += value * vectors[i, k] * vectors[j, k]
        for i in range(D):
            for j in range(D):
                fitted += scalars[HEAD + i * D + j] * scalars[HEAD + 2 * m + i * D + j] / (n * D)
                scalars[HEAD + 2 * m + i * D + j] = 0.0
    scalars[N_UPDATES] += 1.0
    return fitted


@helper
def learn_mass(scalars, p, velocity, temperature, rng):
    """Store every `EVERY`-th momentum; at the end of an E-step, make the M-step and choose the next E-step's size.

    The test function p^T W p / D is averaged over Poisson-spaced momenta. If its value under the new mass lies inside
    mean +- z sqrt(v / n), the M-step is indistinguishable from noise, and the E-step grows by the fraction 1 / growth.
    Momenta at temperature T are N(0, T M), so their squares are divided by T. ``velocity`` is scratch.
    """
    if scalars.shape[0] < HEAD or scalars[LEARNING] == 0.0:
        return
    scalars[STEP] += 1.0
    if scalars[STEP] > scalars[FREEZE_AT]:
        scalars[LEARNING] = 0.0
        return
    if scalars[STEP] % scalars[EVERY] != 0.0:
        return
    kind = kind_of(scalars)
    D = p.size
    width = p.shape[1]
    lo = block(kind, D, 2)
    for i in range(D):
        x = p[i // width, i % width]
        if kind == 1:
            scalars[lo + i] += x * x / temperature
        else:
            for j in range(D):
                scalars[lo + i * D + j] += x * p[j // width, j % width] / temperature
    scalars[COUNT] += 1.0
    if scalars[COUNT] >= scalars[NEXT_TEST]:
        times_inverse_mass(scalars, p, velocity)
        value = kinetic(p, velocity) / (D * temperature)
        scalars[N_TESTS] += 1.0
        scalars[TEST_SUM] += value
        scalars[TEST_SQUARES] += value * value
        gap = scalars[SPACING] * scalars[N_TESTS] ** scalars[SPACING_POWER]
        scalars[NEXT_TEST] = scalars[COUNT] + 1.0 + rng.poisson(gap)
    if scalars[COUNT] < scalars[WANTED]:
        return
    fitted = maximise(scalars, D)
    record = block(kind, D, 3) + int(scalars[N_UPDATES]) - 1
    if record < scalars.shape[0]:
        scalars[record] = scalars[WANTED]
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
