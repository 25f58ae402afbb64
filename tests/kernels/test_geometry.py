"""Manifolds: flows keep to them, are reversible and equal their twins; gradients of the signals on them."""

import numpy as np
import pytest
from numba import types

from sk_sgmcmc.kernels._jit import F2, FLOW, I8, OK, kernel
from sk_sgmcmc.kernels.models import manifold
from sk_sgmcmc.kernels.samplers import geodesic, geometry
from tests.naive import geodesic as naive

NAMES = ("sphere", "simplex", "stiefel")
UNIT = np.ones((1, 1))


def start(name, rng, n_rows=3, width=6):
    x = rng.dirichlet(np.ones(width), n_rows) if name == "simplex" else rng.standard_normal((n_rows, width))
    if name == "sphere":
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    elif name == "stiefel":
        x = np.ascontiguousarray(np.linalg.qr(x.T)[0].T)
    return x, np.ascontiguousarray(naive.PROJECTIONS[name](x, rng.standard_normal(x.shape)))


def off(name, x, v):
    """How far a point is off its manifold, and its velocity off the tangent space."""
    if name == "simplex":
        return max(abs(x.sum(axis=1) - 1).max(), -x.min(), abs(v.sum(axis=1)).max())
    gram, across = x @ x.T - np.eye(len(x)), x @ v.T
    if name == "sphere":
        gram, across = np.diag(gram), np.diag(across)
    return max(abs(gram).max(), abs(across + across.T).max())


@pytest.mark.parametrize("time", [1e-3, 0.3, 4.0])
@pytest.mark.parametrize("name", NAMES)
def test_flow_and_projection_equal_their_twins(name, time):
    rng = np.random.default_rng(0)
    x, v = start(name, rng)
    expected = naive.FLOWS[name](x, v, time)
    assert getattr(geometry, f"{name}_flow")(x, v, UNIT, time) == OK
    np.testing.assert_allclose(x, expected[0], atol=1e-11)
    np.testing.assert_allclose(v, expected[1], atol=1e-10)
    w = rng.standard_normal(x.shape)
    expected = naive.PROJECTIONS[name](x, w)
    assert getattr(geometry, f"{name}_project")(x, w, UNIT) == OK
    np.testing.assert_allclose(w, expected, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_flow_is_reversible_composes_and_keeps_its_speed(name):
    rng = np.random.default_rng(1)
    flow = getattr(geometry, f"{name}_flow")
    x, v = start(name, rng)
    a, b = x.copy(), v.copy()
    flow(a, b, UNIT, 0.7)
    c, d = x.copy(), v.copy()
    flow(c, d, UNIT, 0.3)
    flow(c, d, UNIT, 0.4)
    np.testing.assert_allclose(a, c, atol=1e-11)
    np.testing.assert_allclose(b, d, atol=1e-10)
    assert np.sum(b**2) == pytest.approx(np.sum(v**2), rel=1e-10)
    b *= -1
    flow(a, b, UNIT, 0.7)
    np.testing.assert_allclose(a, x, atol=1e-11)
    np.testing.assert_allclose(-b, v, atol=1e-10)


@kernel(I8(types.FunctionType(FLOW), F2, F2, F2, I8))
def many_flows(flow, theta, momentum, blocks, n):
    for _ in range(n):
        status = flow(theta, momentum, blocks, 0.05)
        if status != OK:
            return status
    return OK


@pytest.mark.parametrize("name, n", [("sphere", 1_000_000), ("simplex", 1_000_000), ("stiefel", 100_000)])
def test_no_drift_off_the_manifold(name, n):
    x, v = start(name, np.random.default_rng(2))
    speed = np.sum(v**2)
    assert many_flows(getattr(geometry, f"{name}_flow").compiled, x, v, UNIT, n) == OK
    assert off(name, x, v) < 1e-12
    assert np.sum(v**2) == pytest.approx(speed, rel=1e-6)


def test_a_velocity_of_zero_stays_where_it_is():
    for name in NAMES:
        x, v = start(name, np.random.default_rng(3))
        old = x.copy()
        v[:] = 0.0
        assert getattr(geometry, f"{name}_flow")(x, v, UNIT, 1.0) == OK
        np.testing.assert_allclose(x, old, atol=1e-14)


@pytest.mark.parametrize("mass", [np.inf, 0.3])
@pytest.mark.parametrize("name", NAMES)
def test_stochastic_step_equals_its_twin(name, mass):
    rng = np.random.default_rng(4)
    x, _ = start(name, rng)
    b, A = rng.standard_normal(x.shape), np.diag(np.arange(x.shape[1]) / 2.0)
    h, C, V, xi = 0.07, 2.0, 3.0, (0.5 if mass < 1 else 2.0)
    rng_twin = np.random.default_rng(5)
    expected = naive.chain(name, x, lambda y: b - y @ A, h, C, V, xi, mass, 12, rng_twin)
    rng = np.random.default_rng(5)
    aux, scalars, signal, extra = np.zeros((1, *x.shape)), np.zeros(2), np.empty_like(x), np.zeros(6)
    advance, step = (getattr(geodesic, f"{name}_{part}") for part in ("advance", "step"))
    params, hyper, rows = np.concatenate([b.ravel(), A.ravel()]), np.array([h, C, V, xi, 1 / mass]), np.arange(3)
    for _ in range(12):
        assert advance(x, aux, scalars, signal, extra, hyper, rows, rng) == OK
        manifold.restricted_gaussian(x, np.zeros((1, 0)), np.zeros((1, 0)), np.ones(1), params, 1.0, signal, extra)
        assert step(x, aux, scalars, signal, extra, hyper, rows, rng) == OK
    np.testing.assert_allclose(x, expected[0], atol=1e-9)
    np.testing.assert_allclose(aux[0], expected[1], atol=1e-8)
    assert scalars[1] == pytest.approx(expected[2], rel=1e-8)
    assert rng.random() == rng_twin.random()


def _cases():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((7, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    A = rng.standard_normal((4, 4))
    yield "restricted_gaussian", (3, 4), rng.standard_normal((7, 12)), np.r_[rng.standard_normal(12), (A + A.T).ravel()]
    yield "exponential_mixture", (2, 4), rng.standard_normal((7, 8)), rng.standard_normal(15)
    yield "chained_vmf_mixture", (2, 4), X, np.array([6.0, 2.0, 1.0, 0, 0, 0])


@pytest.mark.parametrize("name, shape, X, params", [pytest.param(*case, id=case[0]) for case in _cases()])
def test_gradient_is_the_slope_and_its_noise_is_estimated_without_bias(name, shape, X, params):
    rng = np.random.default_rng(7)
    signal_of = getattr(manifold, name)
    x = rng.standard_normal(shape)
    if name == "chained_vmf_mixture":
        x /= np.linalg.norm(x, axis=1, keepdims=True)

    def call(x, rows, scale):
        signal, extra = np.empty(shape), np.zeros(max(2, shape[1]))
        n = len(rows)
        status = signal_of(
            np.ascontiguousarray(x),
            np.ascontiguousarray(X[rows]),
            np.zeros((n, 0)),
            np.ones(n),
            params,
            scale,
            signal,
            extra,
        )
        assert status == OK
        return signal, extra

    full, extra = call(x, np.arange(7), 1.0)
    assert extra[1] == 0.0
    numeric = np.empty(shape)
    for i in np.ndindex(shape):
        step = np.zeros(shape)
        step[i] = 1e-6
        numeric[i] = (call(x + step, np.arange(7), 1.0)[1][0] - call(x - step, np.arange(7), 1.0)[1][0]) / 2e-6
    np.testing.assert_allclose(full, numeric, rtol=1e-6, atol=1e-6)
    # Over all pairs of rows: the mean of the minibatch gradients, and of their squared distances from the full one.
    pairs = [call(x, np.array([i, j]), 3.5) for i in range(7) for j in range(i)]
    gradients = np.array([gradient for gradient, _ in pairs])
    np.testing.assert_allclose(gradients.mean(axis=0), full, rtol=1e-9, atol=1e-9)
    noise = gradients - full
    exact = np.mean(noise**2)
    if name == "chained_vmf_mixture":  # of the tangential part
        along = np.sum(noise * x, axis=2, keepdims=True)
        exact = np.sum((noise - along * x) ** 2) / len(noise) / (shape[0] * (shape[1] - 1))
    assert np.mean([e[1] for _, e in pairs]) == pytest.approx(exact, rel=1e-9)
