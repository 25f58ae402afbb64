"""Kernel Stein discrepancy against a slow twin, and what it must see."""

import numpy as np
import pytest

from sk_sgmcmc.metrics import kernel_stein_discrepancy


def slow(x, g, c, b):
    def k(u, v):
        return (c**2 + np.sum((u - v) ** 2)) ** b

    total, n, e = 0.0, len(x), 1e-4 * np.eye(x.shape[1])
    for i in range(n):
        for j in range(n):
            u, v = x[i], x[j]
            by_u = np.array([(k(u + s, v) - k(u - s, v)) / 2e-4 for s in e])
            by_v = np.array([(k(u, v + s) - k(u, v - s)) / 2e-4 for s in e])
            mixed = sum((k(u + s, v + s) - k(u + s, v - s) - k(u - s, v + s) + k(u - s, v - s)) / 4e-8 for s in e)
            total += g[i] @ g[j] * k(u, v) + g[i] @ by_v + g[j] @ by_u + mixed
    return np.sqrt(total) / n


@pytest.mark.parametrize(("scale", "exponent"), [(1.0, -0.5), (0.7, -0.3)])
def test_equals_its_slow_twin(scale, exponent):
    rng = np.random.default_rng(0)
    x, g = rng.normal(size=(2, 8, 3))
    assert kernel_stein_discrepancy(x, g, scale, exponent) == pytest.approx(slow(x, g, scale, exponent), rel=1e-5)


def test_falls_with_draws_and_sees_bias():
    rng = np.random.default_rng(1)
    few, many = rng.normal(size=(100, 2)), rng.normal(size=(2500, 2))
    assert kernel_stein_discrepancy(many, -many) < 0.4 * kernel_stein_discrepancy(few, -few)
    for wrong in (1.2 * many, many + 0.2):
        assert kernel_stein_discrepancy(wrong, -wrong) > 2.0 * kernel_stein_discrepancy(many, -many)


def test_bad_arguments_are_named():
    x = np.zeros((5, 2))
    for name, args in {"gradients": (x, x[:4]), "scale": (x, x, 0.0), "exponent": (x, x, 1.0, 0.5)}.items():
        with pytest.raises(ValueError, match=name):
            kernel_stein_discrepancy(*args)
