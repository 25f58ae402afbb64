"""Linear models with many sparse columns: their mode, coordinates, Gaussian, and posterior, against dense algebra."""

import numpy as np
import pytest
from scipy import linalg, sparse, special
from sklearn.linear_model import LogisticRegression

from sk_sgmcmc import BayesianLogisticRegression
from sk_sgmcmc.dense.krylov import Krylov
from sk_sgmcmc.dense.tuning import DenseGradient
from sk_sgmcmc.linear_model import _base, _leading
from sk_sgmcmc.linear_model._design import CLASSES, Design, DiagonalDesign, independent_prior
from sk_sgmcmc.linear_model._leading import LeadingDirections, unit_coordinates
from sk_sgmcmc.linear_model._newton import conjugate_gradients, truncated_newton
from sk_sgmcmc.samplers import HMC, SGHMC


def documents(n=150, d=60, K=4, seed=0, scale=1.5):
    """Rows of unit length with few entries and a common direction, and classes drawn from the model."""
    rng = np.random.default_rng(seed)
    X = rng.gamma(0.3, size=(n, d)) * (rng.random((n, d)) < 0.15)
    X[:, 0] += 0.5
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    eta = 3.0 * X @ rng.normal(0.0, scale, (d, K))
    p = special.softmax(eta - eta.mean(axis=0), axis=1)
    y = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    y[:K] = np.arange(K)
    return sparse.csr_matrix(3.0 * X), np.minimum(y, K - 1)


def wide_design(X, y, K, scale=1.5, intercept=True):
    prior = independent_prior(K, X.shape[1], scale, 100.0 if intercept else None)
    return DiagonalDesign(X, y, np.ones(len(y)), K, prior, intercept, True)


def spd(D, seed=0, largest=100.0):
    rng = np.random.default_rng(seed)
    vectors = linalg.qr(rng.standard_normal((D, D)))[0]
    return (vectors * np.geomspace(1.0, largest, D)) @ vectors.T


def test_krylov_finds_the_largest_eigenvalues_and_the_inverse_root():
    A, v = spd(80), np.random.default_rng(1).standard_normal(80)
    krylov = Krylov(A.__matmul__, v, 60)
    np.testing.assert_allclose(krylov.basis @ krylov.basis.T, np.eye(60), atol=1e-12)
    np.testing.assert_allclose(krylov.values[-3:], np.linalg.eigvalsh(A)[-3:], rtol=1e-6)
    U = krylov.leading(2)
    np.testing.assert_allclose(A @ U, U * krylov.values[:-3:-1], atol=1e-3)
    exact = linalg.inv(linalg.sqrtm(A)) @ v
    assert np.linalg.norm(krylov.inverse_root() - exact) < 1e-3 * np.linalg.norm(exact)
    # Few steps suffice where the condition number is small, and the method stops where it is exact.
    near = Krylov(spd(80, largest=4.0).__matmul__, v, 24).inverse_root()
    exact = linalg.inv(linalg.sqrtm(spd(80, largest=4.0))) @ v
    assert np.linalg.norm(near - exact) < 1e-6 * np.linalg.norm(exact)
    assert Krylov(lambda x: 2.0 * x, v, 24).values == pytest.approx([2.0])


def test_conjugate_gradients_reach_the_residual():
    A, b = spd(50), np.random.default_rng(1).standard_normal(50)
    x = conjugate_gradients(A.__matmul__, b, 1e-8)
    assert np.linalg.norm(A @ x - b) <= 1e-8


def test_truncated_newton_finds_the_minimum_of_a_convex_function_from_far_away():
    A = spd(40)

    def at(u):
        e = np.exp(np.minimum(u, 500.0))
        return e.sum() + 0.5 * u @ A @ u - u.sum(), e + A @ u - 1.0, lambda v: e * v + A @ v

    u = truncated_newton(at, np.full(40, 20.0), 1e-12)
    np.testing.assert_allclose(at(u)[1], 0.0, atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("intercept", [True, False])
def test_mode_is_scikit_learns_estimate(n_classes, intercept):
    X, y = documents(K=n_classes)
    design = wide_design(X, y, 1 if n_classes == 2 else n_classes, intercept=intercept)
    other = LogisticRegression(C=1.5**2, tol=1e-12, max_iter=10_000, fit_intercept=intercept).fit(X, y)
    coef, offset = design.coefficients(np.zeros(design.mode.size))
    np.testing.assert_allclose(coef, other.coef_, atol=2e-3)
    if intercept:
        np.testing.assert_allclose(offset - offset.mean() * (n_classes > 2), other.intercept_, atol=5e-3)


def test_leading_directions_are_the_dense_matrix():
    rng = np.random.default_rng(0)
    U, gains = linalg.qr(rng.standard_normal((9, 3)), mode="economic")[0], rng.uniform(0.1, 1.0, (3, 2))
    leading, b = LeadingDirections(U, gains), rng.standard_normal((4, 9, 2))
    dense = [np.eye(9) + U @ np.diag(g - 1.0) @ U.T for g in gains.T]
    direct = np.stack([b[..., k] @ dense[k] for k in range(2)], axis=-1)
    moved = leading.apply(b.copy())
    np.testing.assert_allclose(moved, direct, atol=1e-12)
    np.testing.assert_allclose(leading.undo(moved.copy()), b, atol=1e-12)
    inverse = [np.eye(9) + U @ np.diag(1.0 / g - 1.0) @ U.T for g in gains.T]
    np.testing.assert_allclose(dense[0] @ inverse[0], np.eye(9), atol=1e-12)
    np.testing.assert_allclose(np.linalg.slogdet(dense[1])[1], np.log(gains[:, 1]).sum(), atol=1e-12)
    assert leading.apply(b.astype(np.float32)).dtype == np.float32


def stiff(monkeypatch, ranks=(4,)):
    """Always shrink this many directions, whatever they cost."""
    monkeypatch.setattr(_leading, "_RANKS", ranks)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_signal_with_leading_directions_is_the_gradient_in_their_coordinates(n_classes, intercept, monkeypatch):
    stiff(monkeypatch)
    X, y = documents(K=n_classes)
    K = 1 if n_classes == 2 else n_classes
    design = wide_design(X, y, K, intercept=intercept)
    assert design.leading.rank == 4
    assert design.leading.gains.min() < 0.9
    model = BayesianLogisticRegression()
    gradient = DenseGradient(model._data_maker(design, HMC(), X, y, np.ones(len(y)))[0](len(y)), (design.mode.size, 1))
    rng = np.random.default_rng(0)
    theta = rng.standard_normal(design.mode.size)
    value, slope = gradient(theta)

    def direct(theta):
        coef, offset = design.coefficients(theta)
        eta = X @ coef.T + offset
        centred = offset + coef @ design.reference
        return (
            CLASSES.value(y, np.ones(len(y)), eta)
            - 0.5 * (coef**2).sum() / 1.5**2
            - 0.5 * (centred**2).sum() / 100.0**2
        )

    for _ in range(5):
        way = rng.standard_normal(theta.size)
        seen = (direct(theta + 1e-5 * way) - direct(theta - 1e-5 * way)) / 2e-5
        assert slope @ way == pytest.approx(seen, rel=1e-5, abs=1e-4)
    assert value - gradient(np.zeros(theta.size))[0] == pytest.approx(direct(theta) - direct(0.0 * theta), abs=1e-6)
    np.testing.assert_allclose(design.theta_of(*design.coefficients(theta)), theta, atol=1e-8)


def condition(design, X, y):
    """Condition number of the Hessian at the mode in the coordinates of a design."""
    model = BayesianLogisticRegression()
    D = design.mode.size
    gradient = DenseGradient(model._data_maker(design, HMC(), X, y, np.ones(len(y)))[0](len(y)), (D, 1))
    base = gradient(np.zeros(D))[1]
    values = np.linalg.eigvalsh(-np.stack([(gradient(1e-5 * e)[1] - base) / 1e-5 for e in np.eye(D)]))
    return values[-1] / values[0]


def test_units_and_directions_lower_the_condition_number(monkeypatch):
    def found(n, ranks, shares):
        stiff(monkeypatch, ranks)
        monkeypatch.setattr(_leading, "_SHARES", shares)
        X, y = documents(n=n, K=2)
        return condition(wide_design(X, y, 1, 3.0, intercept=False), X, y)

    given = _leading._SHARES
    # Without an intercept, the rows' common direction is by far the stiffest.
    assert found(200, (4,), given) < 0.6 * found(200, (0,), (1.0,))
    # With fewer rows than columns, the Hessian's diagonal misses directions that have the prior's precision alone.
    assert found(50, (4,), given) < 0.7 * found(50, (4,), (1.0,))


def test_units_take_the_curvature_where_rows_are_many():
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix(rng.standard_normal((2000, 12)) * np.geomspace(0.1, 10.0, 12))
    curvature, ones = np.full((2000, 1), 0.2), np.ones((12, 1))
    square = (X.multiply(X).T @ curvature) - (X.T @ curvature) ** 2 / curvature.sum()
    units, _ = unit_coordinates(X, curvature, ones, square, True)
    spread = units[:, 0] * np.sqrt(1.0 + square[:, 0])
    assert spread.max() < 1.2 * spread.min()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_typical_points_have_the_moments_of_the_gaussian(n_classes):
    X, y = documents(n=80, d=12, K=n_classes)
    K = 1 if n_classes == 2 else n_classes
    design = wide_design(X, y, K)
    rng = np.random.default_rng(0)
    drawn = np.stack([design.typical_point(rng.standard_normal(design.mode.size)) for _ in range(400)])
    coef, offset = design.coefficients(drawn)
    both = np.concatenate([coef, (offset + coef @ design.reference)[..., None]], axis=-1).reshape(len(drawn), -1)
    posterior = design._posterior
    unit, D = posterior.unit, posterior.unit.size
    hessian = np.stack([posterior._product(e, posterior.sides) for e in np.eye(D)]) / unit / unit[:, None]
    by_class = np.arange(D).reshape(-1, K).T.ravel()
    covariance = np.linalg.inv(hessian)[np.ix_(by_class, by_class)]
    z = (both.mean(axis=0) - posterior.mean[by_class]) / np.sqrt(np.diag(covariance) / len(both))
    assert np.abs(z).max() < 6.0
    white = linalg.solve_triangular(linalg.cholesky(covariance, lower=True), (both - both.mean(axis=0)).T, lower=True)
    assert np.abs(white.var(axis=1) * np.sqrt(len(both) / 2.0) - np.sqrt(len(both) / 2.0)).max() < 6.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_wide_default_fit_has_the_posterior_of_long_hmc(n_classes, monkeypatch):
    X, y = documents(n=120, d=25, K=n_classes)
    exact = BayesianLogisticRegression(1.5, sampler=HMC(n_leapfrog=5), n_iter=2500, thin=1, random_state=1).fit(X, y)
    assert isinstance(exact._design, Design)
    monkeypatch.setattr(_base, "MAX_ENTRIES", 10)
    stiff(monkeypatch, (0, 4))
    model = BayesianLogisticRegression(1.5, random_state=0, n_iter=6000, sampler=SGHMC()).fit(X, y)
    assert isinstance(model._design, DiagonalDesign)
    for name in ("coef", "intercept"):
        ours, theirs = model._all_samples[name][0], exact._all_samples[name][0]
        sd = theirs.std(axis=0)
        assert np.all(np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 0.3 * sd)
        assert np.all(np.abs(np.log(ours.std(axis=0) / sd)) < 0.25)


def test_chains_of_a_wide_model_start_at_different_draws_and_resume(monkeypatch):
    monkeypatch.setattr(_base, "MAX_ENTRIES", 10)
    X, y = documents(K=3)
    one = BayesianLogisticRegression(n_iter=2, burn_in=0, thin=1, n_chains=2, random_state=0).fit(X, y)
    coef = one._all_samples["coef"][:, 0]
    assert np.abs(coef[0] - coef[1]).mean() > 0.5 * coef.std()
    two = BayesianLogisticRegression(n_iter=2, burn_in=0, thin=1, n_chains=2, n_jobs=2, random_state=0).fit(X, y)
    np.testing.assert_array_equal(one._all_samples["coef"], two._all_samples["coef"])
