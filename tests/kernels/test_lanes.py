"""Weights in vectors of 16: what is written for the compiler against the same in Python, bit for bit, and its draws."""

import numpy as np
import pytest
from numba import types
from scipy import stats

from sk_sgmcmc.kernels._jit import F2, I8, OK, kernel, writable
from sk_sgmcmc.kernels.math import lanes
from tests.naive import lanes as naive

F4 = types.float32
F4_1, I4_2, U2_2 = writable(F4, 1), writable(types.int32, 2), writable(types.uint16, 2)


@kernel(I8(U2_2, I8, F4_1, F4, I8, F4_1, F4_1, F4_1))
def weigh_short(counts, row, factor, beta, left_out, running, ends, total):
    lanes.prefetch_row(counts, row)
    total[0] = lanes.weigh(counts, row, factor, beta, left_out, running, ends)
    return OK


@kernel(I8(I4_2, I8, F4_1, F4, I8, F4_1, F4_1, F4_1))
def weigh_compiled(counts, row, factor, beta, left_out, running, ends, total):
    lanes.prefetch_row(counts, row)
    total[0] = lanes.weigh(counts, row, factor, beta, left_out, running, ends)
    return OK


@kernel(I8(F2, I8, F4_1, F4, I8, F4_1, F4_1, F4_1))
def weigh_float(counts, row, factor, beta, left_out, running, ends, total):
    lanes.prefetch_row(counts, row)
    total[0] = lanes.weigh(counts, row, factor, beta, left_out, running, ends)
    return OK


@kernel(I8(U2_2, I8, F4_1, writable(F4, 2), I8, I8, F4_1, F4_1, F4_1))
def weigh_under_compiled(counts, row, factor, prior, row_of_prior, left_out, running, ends, total):
    total[0] = lanes.weigh_under(counts, row, factor, prior, row_of_prior, left_out, running, ends)
    return OK


@kernel(I8(U2_2, I8, F4_1, writable(F4, 2), I8, writable(F4, 2), I8, F4_1, F4_1, F4_1))
def weigh_scaled_compiled(counts, row, factor, prior, row_of_prior, scale, left_out, running, ends, total):
    total[0] = lanes.weigh_scaled(counts, row, factor, prior, row_of_prior, scale, left_out, running, ends)
    return OK


@kernel(I8(F4_1, F4_1, I8, F4, F4))
def pick_compiled(running, ends, width, target, u):
    return lanes.pick(running, ends, width, target, u)


class Row:
    """A table of counts, factors, and room for sums."""

    def __init__(self, n, seed=0, dtype=np.int32):
        rng = np.random.default_rng(seed)
        self.counts = np.zeros((3, lanes.padded(n)), dtype=dtype)
        self.counts[:, :n] = rng.integers(0, 40, (3, n)) ** 3
        self.width = self.counts.shape[1]
        self.factor = np.zeros(self.width, np.float32)
        self.factor[:n] = rng.gamma(0.3, 1.0, n)
        self.left_out = int(rng.integers(n))
        self.rng = rng

    def weigh(self, function):
        running = np.full(-(-self.width // lanes.GROUP) * lanes.GROUP, np.inf, np.float32)
        ends, total = np.zeros(lanes.LANES, np.float32), np.zeros(1, np.float32)
        args = self.counts, 2, self.factor, np.float32(0.01), self.left_out, running, ends
        if function is lanes._weigh_of_python:
            total[0] = function(*args)
        else:
            function(*args, total)
        return running, ends, total[0]


SIZES = [1, 2, 15, 16, 17, 100, 128, 129, 144, 255, 256, 500, 1100]


@pytest.mark.parametrize(
    ("function", "dtype"), [(weigh_compiled, np.int32), (weigh_short, np.uint16), (weigh_float, float)]
)
@pytest.mark.parametrize("n", SIZES)
def test_sums_equal_those_of_python_bit_for_bit(n, function, dtype):
    row = Row(n, dtype=dtype)
    running, ends, total = row.weigh(function)
    for ours, slow in zip((running, ends, total), row.weigh(lanes._weigh_of_python), strict=True):
        np.testing.assert_array_equal(ours, slow)
    weights = row.factor * (row.counts[2] + 0.01)
    weights[row.left_out] = 0.0
    np.testing.assert_allclose(total, weights.sum(), rtol=1e-6)


# Functions that take a table of priors, compiled and in Python, and whether they also take one of scales.
UNDER_PRIORS = [
    (weigh_under_compiled, lanes._weigh_under_of_python, False),
    (weigh_scaled_compiled, lanes._weigh_scaled_of_python, True),
]


@pytest.mark.parametrize("compiled, python, scales", UNDER_PRIORS, ids=["prior", "prior and scale"])
@pytest.mark.parametrize("n", SIZES)
def test_sums_under_a_prior_of_each_column_equal_those_of_python(n, compiled, python, scales):
    row = Row(n, dtype=np.uint16)
    prior, scale = (row.rng.random((4, row.width), dtype=np.float32) for _ in range(2))
    found = []
    for function in (compiled, python):
        running, ends, total = np.zeros(row.width, np.float32), np.zeros(lanes.LANES, np.float32), np.zeros(1, F4.name)
        args = row.counts, 2, row.factor, prior, 3, *([scale] if scales else []), row.left_out, running, ends
        if function is compiled:
            function(*args, total)
        else:
            total[0] = function(*args)
        found.append((running, ends, total))
    for ours, slow in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, slow)
    weights = row.factor * (row.counts[2] + prior[3]) * (scale[3] if scales else 1.0)
    weights[row.left_out] = 0.0
    np.testing.assert_allclose(total[0], weights.sum(), rtol=1e-6)


@kernel(I8(U2_2, I8, F4_1, F4, I8, F4_1, F4_1, F4_1))
def weigh_short_heated(counts, row, factor, beta, left_out, running, ends, total):
    power = np.float32(1 / 1.2)
    total[0] = lanes.weigh_heated(counts, row, factor, beta, left_out, running, ends, power, lanes.shift_of(power))
    return OK


@kernel(I8(I4_2, I8, F4_1, F4, I8, F4_1, F4_1, F4_1))
def weigh_heated(counts, row, factor, beta, left_out, running, ends, total):
    power = np.float32(1 / 1.2)
    total[0] = lanes.weigh_heated(counts, row, factor, beta, left_out, running, ends, power, lanes.shift_of(power))
    return OK


@kernel(I8(F4_1, F4))
def raise_all(x, power):
    for i in range(x.size):
        x[i] = lanes.raised(x[i], power, lanes.shift_of(power))
    return OK


@pytest.mark.parametrize(("function", "dtype"), [(weigh_heated, np.int32), (weigh_short_heated, np.uint16)])
@pytest.mark.parametrize("n", SIZES)
def test_heated_sums_are_those_of_powers(n, function, dtype):
    row = Row(n, dtype=dtype)
    total = row.weigh(function)[2]
    weights = (row.factor * (row.counts[2].astype(np.float32) + np.float32(0.01))).astype(float)
    weights[row.left_out] = 0.0
    used = weights > 0
    np.testing.assert_allclose(total, naive.raised(weights[used], 1 / 1.2).sum(), rtol=1e-4, atol=1e-25)


@pytest.mark.parametrize("power", [0.7, 1 / 1.2, 0.99])
def test_powers_are_off_by_some_percent(power):
    x = np.geomspace(1e-25, 1e8, 5001).astype(np.float32)
    expected, about = x.astype(float) ** power, x.copy()
    raise_all(about, np.float32(power))
    np.testing.assert_allclose(about, naive.raised(x.astype(float), power), rtol=1e-3)
    ratio = about / expected
    assert ratio.max() / ratio.min() < 1.13


@pytest.mark.parametrize("n", SIZES[1:])
def test_picks_equal_those_of_python(n):
    row = Row(n)
    running, ends, total = row.weigh(weigh_compiled)
    edge = np.float32(1.0 - 2.0**-24)
    pairs = [*row.rng.random((300, 2)).astype(np.float32), (0.0, 0.0), (edge, edge), (edge, 0.0), (0.0, edge)]
    for a, u in pairs:
        args = running, ends, row.width, np.float32(a) * total, np.float32(u)
        number = pick_compiled(*args)
        assert number == lanes._pick_of_python(*args)
        assert number < n and number != row.left_out
        assert row.factor[number] > 0.0


@pytest.mark.parametrize("n", [3, 20, 140, 300])
def test_picks_have_the_law_of_the_weights(n):
    row = Row(n, seed=1)
    running, ends, total = row.weigh(weigh_compiled)
    weights = (row.factor * (row.counts[2] + 0.01)).astype(float)
    weights[row.left_out] = 0.0
    n_draws = 40_000
    uniforms = row.rng.random((n_draws, 2)).astype(np.float32)
    drawn = [pick_compiled(running, ends, row.width, a * total, u) for a, u in uniforms]
    expected = n_draws * weights / weights.sum()
    seen, often = np.bincount(drawn, minlength=row.width), expected > 5
    rest = [[seen[~often].sum()], [expected[~often].sum()]]
    seen, expected = np.append(seen[often], rest[0]), np.append(expected[often], rest[1])
    kept = expected > 0
    assert stats.chi2.sf(np.sum((seen - expected)[kept] ** 2 / expected[kept]), kept.sum() - 1) > 1e-4


def test_nothing_to_pick_is_a_number_beyond_all_weights():
    running = np.full(lanes.GROUP, np.inf, np.float32)
    running[:48] = 0.0
    ends = np.zeros(lanes.LANES, np.float32)
    assert pick_compiled(running, ends, 48, np.float32(0.0), np.float32(0.5)) >= 48
