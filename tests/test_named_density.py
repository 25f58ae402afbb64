"""`sample` of a log density of named, constrained parameters: its law, its gradients, its result and its errors."""

import sys
import warnings

import numba
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import sample
from sk_sgmcmc.dense.chain import DenseData
from sk_sgmcmc.dense.tuning import DenseGradient, curvature, stiffness
from sk_sgmcmc.exceptions import ChainDivergedError
from sk_sgmcmc.inspection import to_arviz
from sk_sgmcmc.kernels._user import frozen_in
from sk_sgmcmc.samplers import HMC, NUTS, SGHMC
from sk_sgmcmc.targets import Density, GaussianMean, Ordered, Positive, Simplex
from sk_sgmcmc.targets._named import NamedDensity
from sk_sgmcmc.targets._parameters import Layout
from tests.cases import THRESHOLD
from tests.conftest import importorskip

SHAPE = np.array([2.0, 3.0, 5.0])
MOVES, BESIDE = np.zeros(1), 1.0  # changed by a test


@numba.njit
def gamma_and_dirichlet(m, x, p, gradient):
    """m ~ N(x[0], 1), x ~ Gamma((2, 3), 1), p ~ Dirichlet(2, 3, 5), with their gradients."""
    gradient.m[()] = x[0] - m
    gradient.x[0] = 1.0 / x[0] - 1.0 + m - x[0]
    gradient.x[1] = 2.0 / x[1] - 1.0
    gradient.p[:] = (SHAPE - 1.0) / p
    value = -0.5 * (m - x[0]) ** 2 + np.log(x[0]) - x[0] + 2.0 * np.log(x[1]) - x[1]
    return value + ((SHAPE - 1.0) * np.log(p)).sum()


PARAMETERS = {"m": (), "x": Positive(2), "p": Simplex(3)}


def scores(pieces, law):
    """z-scores of means over pieces (n_pieces, n)."""
    means = pieces.reshape(40, -1).mean(axis=1)
    return abs(means.mean() - law) / (means.std(ddof=1) / np.sqrt(len(means)))


def worst_score(x, p):
    """Of moments of Gamma((2, 3)) and of Dirichlet(2, 3, 5)."""
    found = [scores(x[..., 0], 2.0), scores(x[..., 1], 3.0), scores(x[..., 1] ** 2, 12.0)]
    found += [scores(p[..., k], SHAPE[k] / 10.0) for k in range(3)]
    return max(
        *found, scores(p[..., 0] * p[..., 2], 2.0 * 5.0 / 110.0), scores(np.log(x[..., 0]), 1.0 - np.euler_gamma)
    )


@pytest.mark.parametrize("sampler", [NUTS(), HMC()], ids=["nuts", "hmc"])
def test_constrained_parameters_have_their_law(sampler, global_random_seed):
    arguments = {"n_iter": 6000, "burn_in": 1000, "n_chains": 4, "random_state": global_random_seed}
    draws = sample(gamma_and_dirichlet, sampler, parameters=PARAMETERS, **arguments).samples_
    assert worst_score(draws["x"], draws["p"]) < THRESHOLD
    assert scores(draws["m"], 2.0) < THRESHOLD


def test_the_same_test_rejects_a_missing_volume_element(global_random_seed):
    layout = Layout(PARAMETERS)

    @numba.njit
    def without(m, z, y):  # the same density, of free coordinates as if they were the parameters
        x0, x1 = np.exp(z[0]), np.exp(z[1])
        a, b = y[0] / np.sqrt(2.0) + y[1] / np.sqrt(6.0), -y[0] / np.sqrt(2.0) + y[1] / np.sqrt(6.0)
        e = np.exp(np.array([a, b, -2.0 * y[1] / np.sqrt(6.0)]))
        value = -0.5 * (m - x0) ** 2 + np.log(x0) - x0 + 2.0 * np.log(x1) - x1
        return value + ((SHAPE - 1.0) * np.log(e / e.sum())).sum()

    arguments = {"n_iter": 6000, "burn_in": 1000, "n_chains": 4, "random_state": global_random_seed}
    draws = sample(without, parameters={"m": (), "z": (2,), "y": (2,)}, **arguments).samples_
    numbers = layout.constrained(np.concatenate([draws["m"][..., None], draws["z"], draws["y"]], axis=-1))
    assert worst_score(numbers["x"], numbers["p"]) > 1.3 * THRESHOLD


def test_coordinates_and_their_volume_element():
    layout = Layout({"a": (2, 2), "t": Positive(), "p": Simplex((2, 4))})
    rng = np.random.default_rng(0)
    theta = rng.normal(size=layout.n_free)
    values = layout.constrained(theta)
    assert {name: value.shape for name, value in values.items()} == {"a": (2, 2), "t": (), "p": (2, 4)}
    np.testing.assert_allclose(values["p"].sum(axis=-1), 1.0)
    np.testing.assert_allclose(layout.free(values), theta)
    assert len(layout.labels()) == layout.n_free

    def flat(theta):  # a chart of the set: all but the last cell of each simplex
        values = layout.constrained(theta)
        return np.concatenate([values["a"].ravel(), [values["t"]], values["p"][:, :-1].ravel()])

    step = 1e-6
    jacobian = np.stack([(flat(theta + step * e) - flat(theta - step * e)) / (2 * step) for e in np.eye(theta.size)])
    target = NamedDensity(lambda a, t, p: 0.0, {"a": (2, 2), "t": Positive(), "p": Simplex((2, 4))})
    gradient = np.empty(theta.size)
    value = target.log_density_and_gradient(theta, np.zeros((1, 1)), 1.0, gradient)
    np.testing.assert_allclose(value, np.linalg.slogdet(jacobian)[1], rtol=1e-6)


def increasing(x):
    return -0.5 * (x**2).sum()


def test_ordered_numbers_have_the_law_of_order_statistics(global_random_seed):
    arguments = {"n_iter": 4000, "burn_in": 1000, "n_chains": 4, "random_state": global_random_seed}
    draws = sample(increasing, parameters={"x": Ordered(3)}, **arguments).samples_["x"]
    assert np.all(np.diff(draws) > 0)
    largest = 1.5 / np.sqrt(np.pi)  # the mean of the largest of three normal numbers
    for k, (mean, square) in enumerate([(-largest, 1.2756644), (0.0, 0.4486711), (largest, 1.2756644)]):
        assert scores(draws[..., k], mean) < THRESHOLD
        assert scores(draws[..., k] ** 2, square) < THRESHOLD


def test_gradients_of_ordered_numbers_are_those_of_differences():
    parameters = {"x": Ordered((2, 3)), "t": Positive(), "m": ()}
    layout = Layout(parameters)
    assert layout.labels()[:3] == ["x[0, 0]", "log(x[0, 1] - x[0, 0])", "log(x[0, 2] - x[0, 1])"]

    def density(x, t, m):
        return -0.5 * (x**2).sum() - np.sin(x[0, 1] * x[1, 2]) - t * m**2

    def by_hand(x, t, m, gradient):
        gradient.x[:] = -x
        gradient.x[0, 1] -= np.cos(x[0, 1] * x[1, 2]) * x[1, 2]
        gradient.x[1, 2] -= np.cos(x[0, 1] * x[1, 2]) * x[0, 1]
        gradient.t[()], gradient.m[()] = -(m**2), -2.0 * t * m
        return -0.5 * (x**2).sum() - np.sin(x[0, 1] * x[1, 2]) - t * m**2

    theta, rows = np.random.default_rng(0).normal(size=layout.n_free), np.zeros((1, 1))
    np.testing.assert_allclose(layout.free(layout.constrained(theta)), theta)
    found = []
    for function in (density, by_hand):
        gradient = np.empty(theta.size)
        value = NamedDensity(function, parameters).log_density_and_gradient(theta, rows, 1.0, gradient)
        found.append([value, *gradient])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-7, atol=1e-8)
    x = layout.constrained(theta)["x"]
    volume = np.log(np.diff(x)).sum() + theta[6]
    assert found[0][0] == pytest.approx(density(x, np.exp(theta[6]), theta[7]) + volume)


# --------------------------------------------------------------------------------------------- constants among the data


def with_constants(b, X, y, tau, K, n, flag):
    value = -0.5 * (((y - X @ b) / tau) ** 2).sum() - 0.5 * (b * np.linalg.solve(K, b)).sum()
    for _ in range(n):  # a whole number
        value += 1.0
    return value if flag else 0.0


def scaled_with_constants(b, X, y, tau, K, scale):
    return -0.5 * scale * (((y - X @ b) / tau) ** 2).sum() - 0.5 * (b * np.linalg.solve(K, b)).sum()


CONSTANTS = {
    "X": np.random.default_rng(0).normal(size=(60, 2)), "y": np.random.default_rng(1).normal(size=60),
    "tau": 0.5, "K": np.array([[2.0, 0.3], [0.3, 1.0]]), "n": 3, "flag": True,
}  # fmt: skip


def law_with_constants():
    """Mean and standard deviations."""
    X, y, tau, K = (CONSTANTS[name] for name in ("X", "y", "tau", "K"))
    covariance = np.linalg.inv(X.T @ X / tau**2 + np.linalg.inv(K))
    return covariance @ X.T @ y / tau**2, np.sqrt(np.diag(covariance))


def test_numbers_and_arrays_of_any_shape_are_constants():
    result = sample(with_constants, parameters={"b": (2,)}, data=CONSTANTS, n_chains=4, random_state=0)
    mean, sd = law_with_constants()
    for k in range(2):
        assert scores(result.samples_["b"][..., k], mean[k]) < THRESHOLD
    np.testing.assert_allclose(result.samples_["b"].std(axis=(0, 1)) / sd, 1.0, atol=0.1)
    only = sample(lambda mu, tau: -0.5 * (mu / tau) ** 2, parameters={"mu": ()}, data={"tau": 2}, random_state=0)
    assert abs(only.samples_["mu"].std() - 2.0) < 0.3  # of 1000 draws, about 300 effective ones: 0.08


def test_minibatches_leave_constants_whole():
    arguments = {"parameters": {"b": (2,)}, "data": CONSTANTS, "batch_size": 20, "n_chains": 4, "random_state": 0}
    result = sample(scaled_with_constants, "sghmc", n_iter=4000, **arguments)
    mean, sd = law_with_constants()
    np.testing.assert_allclose((result.samples_["b"].mean(axis=(0, 1)) - mean) / sd, 0.0, atol=0.3)
    np.testing.assert_allclose(result.samples_["b"].std(axis=(0, 1)) / sd, 1.0, atol=0.15)


@pytest.mark.parametrize("library", ["jax", "autograd"])
def test_constants_reach_other_libraries(library):
    numpy = importorskip(f"{library}.numpy")

    def density(b, X, y, tau, K, n, flag):
        value = -0.5 * numpy.sum(((y - numpy.dot(X, b)) / tau) ** 2) - 0.5 * numpy.sum(b * numpy.linalg.solve(K, b))
        return value + n if flag else 0.0

    found, exact = (NamedDensity(each, {"b": (2,)}, CONSTANTS) for each in (density, with_constants))
    theta, slopes = np.array([0.3, -0.2]), np.zeros((2, 2))
    rows = found._rows()[:2]
    values = [each.free.jitted(theta, rows, 1.0, slope) for each, slope in zip((found, exact), slopes, strict=True)]
    assert found.free.described == library and values[0] == pytest.approx(values[1])
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-6)


def test_loo_of_arviz_reads_a_pointwise_log_likelihood():
    arviz = importorskip("arviz")

    def log_likelihood(b, X, y, tau):
        return -0.5 * ((y - X @ b) / tau) ** 2 - np.log(tau) - 0.5 * np.log(2.0 * np.pi)

    arguments = {"parameters": {"b": (2,)}, "data": CONSTANTS, "n_iter": 400, "n_chains": 2, "random_state": 0}
    result = sample(with_constants, log_likelihood=log_likelihood, **arguments)
    assert result.log_likelihood_.shape == (2, 200, 60)
    b = result.samples_["b"][1, 7]
    np.testing.assert_allclose(
        result.log_likelihood_[1, 7], log_likelihood(b, CONSTANTS["X"], CONSTANTS["y"], CONSTANTS["tau"])
    )
    assert 0.5 < float(arviz.loo(to_arviz(result)).p_loo) < 10.0
    with pytest.raises(ValueError, match="pass log_likelihood= to sample"):
        to_arviz(result, CONSTANTS["X"])


def horseshoe(b, local, tau, X, y):
    value = -0.5 * ((y - X @ (b * local * tau)) ** 2).sum() - 0.5 * (b**2).sum()
    return value - np.log1p(local**2).sum() - np.log1p(tau**2)


def test_many_coordinates_without_a_gradient_warn_of_the_cost():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 20))
    data = {"X": X, "y": 3.0 * X[:, 0] + rng.normal(size=40)}
    parameters = {"b": (20,), "local": Positive(20), "tau": Positive()}
    with pytest.warns(UserWarning, match=r"each of its 41 coordinates .* evaluates the function 83 times.*gradient="):
        result = sample(horseshoe, parameters=parameters, data=data, n_iter=300, random_state=0)
    effect = (result.samples_["b"] * result.samples_["local"] * result.samples_["tau"][..., None]).mean(axis=(0, 1))
    assert abs(effect[0] - 3.0) < 0.7 and np.abs(effect[1:]).max() < 0.7


Y = np.array([1.0, 2.0, 4.0])


def plain(mu, tau):
    return -0.5 * (((Y - mu) / tau) ** 2).sum() - 3 * np.log(tau) - 0.5 * mu**2 - tau


TWO = {"mu": (), "tau": Positive()}


def test_gradients_agree_whatever_their_source():
    def by_hand(mu, tau, gradient):
        gradient.mu[()] = ((Y - mu) / tau**2).sum() - mu
        gradient.tau[()] = (((Y - mu) ** 2) / tau**3).sum() - 3 / tau - 1.0
        return -0.5 * (((Y - mu) / tau) ** 2).sum() - 3 * np.log(tau) - 0.5 * mu**2 - tau

    def in_python(mu, tau, gradient):
        by_hand(mu, tau, gradient)
        return globals()["plain"](mu, tau)  # numba compiles no globals()

    theta, rows = np.array([0.3, -0.2]), np.zeros((1, 1))
    found = []
    for function, described in (
        (numba.njit(by_hand), "its own"),
        (by_hand, "its own"),
        (in_python, "its own, in Python"),
        (plain, "differences, 4 evaluations each"),
    ):
        target = NamedDensity(function, TWO)
        assert target.free.described == described
        gradient = np.empty(2)
        value = target.log_density_and_gradient(theta, rows, 1.0, gradient)
        found.append([value, *gradient])
    np.testing.assert_allclose(found, np.tile(found[0], (4, 1)), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("library", ["jax", "autograd"])
def test_gradients_of_other_libraries(library):
    numpy = importorskip({"jax": "jax.numpy", "autograd": "autograd.numpy"}[library])

    def density(mu, tau, rows):
        return -0.5 * (((rows - mu) / tau) ** 2).sum() - 3 * numpy.log(tau) - 0.5 * mu**2 - tau

    result = sample(density, parameters=TWO, data=Y[:, None], n_iter=60, random_state=0)
    assert result.gradient_.startswith(library)
    known = sample(plain, parameters=TWO, n_iter=60, random_state=0)
    np.testing.assert_allclose(result.samples_["mu"], known.samples_["mu"], rtol=1e-3)


def test_the_same_seed_gives_the_same_draws_whatever_the_jobs():
    arguments = {"parameters": TWO, "n_iter": 100, "n_chains": 3}
    one = sample(plain, **arguments, random_state=1).samples_
    two = sample(plain, **arguments, random_state=1, n_jobs=2).samples_
    for name in one:
        np.testing.assert_array_equal(one[name], two[name])
    assert not np.array_equal(one["mu"], sample(plain, **arguments, random_state=2).samples_["mu"])


def test_result_has_names_a_summary_and_a_short_repr():
    result = sample(gamma_and_dirichlet, parameters=PARAMETERS, n_iter=100, n_chains=2, random_state=0)
    assert {name: value.shape for name, value in result.samples_.items()} == {
        "m": (2, 50),
        "x": (2, 50, 2),
        "p": (2, 50, 3),
    }
    table = result.summary(quantiles=(0.1, 0.5))
    assert list(table) == ["quantity", "mean", "sd", "q10", "q50", "r_hat", "ess"]
    assert list(table["quantity"]) == ["m", "x[0]", "x[1]", "p[0]", "p[1]", "p[2]"]
    np.testing.assert_allclose(table["mean"][1], result.samples_["x"][..., 0].mean())
    assert repr(result).startswith(
        "<SampleResult: 2 chains of 50 draws of m (), x (2,), p (3,), by NUTS; gradient: its own"
    )
    assert "microseconds a call" in result.gradient_
    with pytest.raises(ValueError, match="quantiles"):
        result.summary(quantiles=2.0)
    with pytest.raises(ValueError, match=r"quantiles=\['mu'\]"):  # ArviZ names variables there
        result.summary(["mu"])


N = 12_000


@numba.njit
def regression(b, s, rows, scale, gradient):
    value = -0.5 * (b**2).sum() / 100.0 - s
    gradient.b[:] = -b / 100.0
    gradient.s[()] = -1.0
    for i in range(rows.shape[0]):
        error = rows[i, 0] - b[0] - b[1] * rows[i, 1]
        value += scale * (-0.5 * (error / s) ** 2 - np.log(s))
        gradient.b[0] += scale * error / s**2
        gradient.b[1] += scale * error * rows[i, 1] / s**2
        gradient.s[()] += scale * (error**2 / s**3 - 1.0 / s)
    return value


def test_many_rows_are_read_in_minibatches_and_give_the_same_spread():
    rng = np.random.default_rng(0)
    x = rng.normal(size=N)
    rows = np.column_stack([1.0 + 0.5 * x + 2.0 * rng.normal(size=N), x])
    result = sample(regression, parameters={"b": (2,), "s": Positive()}, data=rows, n_chains=4, random_state=0)
    assert isinstance(result.sampler_, SGHMC)
    assert len(np.unique(result.samples_["s"][:, 0])) == 4
    sd = 2.0 / np.sqrt(N)
    np.testing.assert_allclose(result.samples_["b"].std(axis=(0, 1)), sd, rtol=0.2)
    np.testing.assert_allclose(result.samples_["s"].std(), sd / np.sqrt(2.0), rtol=0.2)
    few = sample(regression, parameters={"b": (2,), "s": Positive()}, data=rows[:50], n_iter=20, random_state=0)
    assert isinstance(few.sampler_, NUTS)


def test_starts_by_name_for_all_chains_or_each():
    arguments = {"parameters": TWO, "n_iter": 1, "burn_in": 0, "n_chains": 3, "random_state": 0}
    still = NUTS(step_size=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = sample(plain, still, init={"mu": [0.0, 1.0, 2.0], "tau": 0.5}, **arguments)
    np.testing.assert_allclose(result.samples_["mu"][:, 0], [0.0, 1.0, 2.0], atol=1e-4)
    np.testing.assert_allclose(result.samples_["tau"][:, 0], 0.5, atol=1e-4)


def moved(mu):
    return -0.5 * ((MOVES - mu) ** 2).sum() + BESIDE * 0.0


def moved_beside(theta, rows, scale, gradient):
    gradient[0] = (MOVES - theta[0]).sum()
    return -0.5 * ((MOVES - theta[0]) ** 2).sum()


@pytest.mark.parametrize("of_name", [True, False], ids=["named", "density"])
def test_a_value_around_the_function_may_change_between_calls(of_name, monkeypatch):
    # numba compiles such values as constants; a notebook's user who loads other data expects them to be read again.
    def mean():
        target, given = (moved, {"parameters": {"mu": ()}}) if of_name else (Density(moved_beside, dim=1), {})
        draws = sample(target, "nuts", n_iter=300, random_state=0, **given).samples_
        return next(iter(draws.values())).mean()

    module = sys.modules[__name__]
    monkeypatch.setattr(module, "MOVES", np.array([2.0, 4.0] * 20))
    assert abs(mean() - 3.0) < 0.3
    monkeypatch.setattr(module, "MOVES", MOVES + 100.0)
    assert abs(mean() - 103.0) < 0.3
    MOVES[:] -= 50.0
    assert abs(mean() - 53.0) < 0.3


def test_values_around_a_function_have_a_key_that_follows_them():
    def make(inner, default):
        def reads(mu, of=default):
            return inner(mu) + np.pi + numpy.e

        return reads

    numpy = np
    about = 1.0

    def called(mu):
        return about * mu

    reads = make(called, 2)
    key = frozen_in(reads)
    assert key == frozen_in(reads) == frozen_in(make(called, 2)) != frozen_in(make(called, 3))
    about = 2.0
    assert key != frozen_in(reads)
    assert frozen_in(numba.njit(called)) == frozen_in(called)
    called.__defaults__ = (np.ones(2),)
    before = frozen_in(called)
    called.__defaults__[0][1] = 3.0
    assert before != frozen_in(called) and isinstance(frozen_in(np.sin), int)


def of_rows(mu, slope, rows, scale):
    value = -0.5 * mu @ mu - 0.5 * slope @ slope
    for i in range(rows.shape[0]):
        value -= 0.5 * scale * (rows[i, 0] - mu[int(rows[i, 1])] - rows[i, 3:] @ slope) ** 2 * rows[i, 2]
    return value


def of_names(mu, slope, y, group, used, x, scale):
    return -0.5 * mu @ mu - 0.5 * slope @ slope - 0.5 * scale * ((y - mu[group] - x @ slope) ** 2)[used].sum()


NAMED = {"mu": (3,), "slope": (2,)}


def named_data(n=50):
    rng = np.random.default_rng(0)
    group, x = np.arange(n) % 3, rng.standard_normal((n, 2))
    y = np.array([1.0, 2.0, 3.0])[group] + x @ [0.5, -0.5] + rng.standard_normal(n)
    return {"y": y, "group": group, "used": rng.random(n) < 0.8, "x": x}


def test_data_by_name_are_those_of_the_rows():
    data = named_data()
    by_name = NamedDensity(of_names, NAMED, {**data, "not read": ["a"]})
    by_rows = NamedDensity(of_rows, NAMED, np.column_stack(list(data.values())))
    assert by_name.free.python is None  # numba compiled it
    theta, slope, by_differences = np.linspace(-1.0, 1.0, 5), np.zeros(5), np.zeros(5)
    value = by_name.free.jitted(theta, by_name.data, 2.0, slope)
    assert value == pytest.approx(by_rows.free.jitted(theta, by_rows.data, 2.0, by_differences))
    np.testing.assert_allclose(slope, by_differences, rtol=1e-6)


def test_each_row_may_have_a_parameter():
    def density(eta, y):
        return -0.5 * ((y - eta) ** 2).sum()

    draws = sample(density, parameters={"eta": (8,)}, data={"y": np.arange(8)}, n_iter=300, random_state=0).samples_
    np.testing.assert_allclose(draws["eta"].mean(axis=(0, 1)), np.arange(8), atol=0.5)


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_columns_of_a_table_are_data_by_name(package):
    frames = importorskip(package)
    data = named_data()
    slopes = {"parameters": {"m": ()}, "n_iter": 200, "random_state": 0}
    frame = frames.DataFrame({"y": data["y"], "used": data["used"], "label": ["a"] * 50})
    found = sample(lambda m, y, used: -0.5 * ((y - m) ** 2)[used].sum(), data=frame, **slopes)
    assert abs(found.samples_["m"].mean() - data["y"][data["used"]].mean()) < 0.1


@pytest.mark.parametrize("library", ["jax", "autograd"])
def test_data_by_name_reach_other_libraries(library):
    numpy = importorskip(f"{library}.numpy")

    def density(mu, slope, y, group, used, x, scale):
        residual = y - mu[group] - numpy.dot(x, slope)
        return -0.5 * numpy.sum(mu**2) - 0.5 * numpy.sum(slope**2) - 0.5 * scale * numpy.sum(used * residual**2)

    found, exact = NamedDensity(density, NAMED, named_data()), NamedDensity(of_names, NAMED, named_data())
    assert found.free.described == library
    theta, slope, by_differences = np.linspace(-1.0, 1.0, 5), np.zeros(5), np.zeros(5)
    value = found.free.jitted(theta, found.data, 1.0, slope)
    assert value == pytest.approx(exact.free.jitted(theta, exact.data, 1.0, by_differences))
    np.testing.assert_allclose(slope, by_differences, rtol=1e-6)


def test_data_by_name_are_read_in_minibatches():
    data = named_data(12_000)
    found = sample(of_names, parameters=NAMED, data=data, n_chains=2, random_state=0)
    assert type(found.sampler_) is SGHMC
    design = np.column_stack([np.eye(3)[data["group"]], data["x"]])[data["used"]]
    precision = design.T @ design + np.eye(5)
    draws = np.concatenate([found.samples_["mu"], found.samples_["slope"]], axis=-1)
    exact, sd = (
        np.linalg.solve(precision, design.T @ data["y"][data["used"]]),
        np.sqrt(np.diag(np.linalg.inv(precision))),
    )
    np.testing.assert_allclose((draws.mean(axis=(0, 1)) - exact) / sd, 0.0, atol=0.3)
    np.testing.assert_allclose(draws.std(axis=(0, 1)) / sd, 1.0, atol=0.15)


def _of_data(**changes):
    return lambda: sample(of_names, parameters=NAMED, data={**named_data(), **changes})


def _likelihood(function):
    return lambda: sample(with_constants, parameters={"b": (2,)}, data=CONSTANTS, log_likelihood=function)


def _shape(mu, tau):
    return Y[:2] * Y


def _sign(mu, tau, gradient):
    gradient.mu[()] = mu
    gradient.tau[()] = -1.0
    return -0.5 * mu**2 - tau


def _kinked(mu, tau):
    return -((1e4 * mu // 1.0) ** 2) - tau


def _scaleless(mu, tau, rows):
    return -0.5 * ((rows - mu) ** 2).sum() - tau


def _nothing(mu, tau):
    pass


ROWS = np.ones((4, 1))


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: sample(plain), TypeError, "is a function: give its parameters by name"),
        (lambda: sample(3), TypeError, "must be a function for a log density"),
        (lambda: sample(plain, parameters={"mu": ()}), ValueError, "takes tau, not among the parameters mu"),
        (lambda: sample(plain, parameters={**TWO, "eta": 3}), ValueError, "does not take eta"),
        (lambda: sample(plain, parameters={"mu": "wide", "tau": ()}), ValueError, "shape must be a tuple"),
        (lambda: sample(plain, parameters={"mu": (0,), "tau": ()}), ValueError, "at least 1"),
        (lambda: sample(plain, parameters={"mu": (), "tau": Positive}), ValueError, "write Positive"),
        (lambda: sample(plain, parameters={"rows": ()}), ValueError, "other than rows"),
        (lambda: sample(plain, parameters=["mu", "tau"]), ValueError, "must be a dict of names"),
        (lambda: sample(plain, parameters=TWO, data=ROWS), ValueError, "no argument rows"),
        (lambda: sample(_scaleless, parameters=TWO), ValueError, "takes rows, but data=None"),
        (lambda: sample(_scaleless, "sghmc", parameters=TWO, data=ROWS, batch_size=2), ValueError, "an argument scale"),
        (lambda: sample(_nothing, parameters=TWO), ValueError, "returns None, not a number"),
        (lambda: sample(lambda mu, tau: Y, parameters=TWO), ValueError, r"array of shape \(3,\), not a number; sum"),
        (lambda: sample(lambda mu, tau: mu[0], parameters=TWO), ValueError, "was called with the shapes mu"),
        (lambda: sample(_shape, parameters=TWO), ValueError, "broadcast"),
        (lambda: sample(_sign, parameters=TWO), ValueError, "The gradient of mu does not fit"),
        (lambda: sample(_kinked, parameters=TWO, init={"mu": 0.1}), ValueError, "depend on their step"),
        (lambda: sample(plain, parameters=TWO, gradient="torch"), ValueError, "gradient='torch' must be None or one"),
        (lambda: sample(_sign, parameters=TWO, gradient="jax"), ValueError, "leave one of them out"),
        (lambda: sample(plain, parameters=TWO, init=[0.0, 1.0]), ValueError, "dict of arrays by the names"),
        (lambda: sample(plain, parameters=TWO, init={"nu": 0.0}), ValueError, "names of parameters: mu, tau"),
        (lambda: sample(plain, parameters=TWO, init={"mu": [0.0, 1.0]}), ValueError, r"init\['mu'\] has shape"),
        (lambda: sample(plain, parameters=TWO, init={"tau": -1.0}), ValueError, "give positive numbers"),
        (lambda: sample(plain, parameters=TWO, init={"mu": np.nan}), ValueError, r"init\['mu'\] holds NaN"),
        (lambda: sample(Density(numba.njit(plain), 2), parameters=TWO), ValueError, "belong to a function"),
        (lambda: sample(plain, parameters={"mu": np.zeros(3), "tau": ()}), ValueError, r"give its shape, \(3,\)"),
        (lambda: sample(lambda mu, tau: (mu, tau), parameters=TWO), ValueError, "returns a tuple"),
        (lambda: sample(lambda mu, tau: mu * 1j, parameters=TWO), ValueError, "take its real part"),
        (lambda: sample(_scaleless, parameters=TWO, data=Y), ValueError, "Name its parts, data="),
        (lambda: sample(_scaleless, parameters=TWO, data=(Y, Y)), ValueError, "tuple of 2 arrays"),
        (lambda: sample(_scaleless, parameters=TWO, data={"y": Y}), ValueError, "data is a dict"),
        (lambda: sample(_scaleless, parameters=TWO, data=np.ones((10_001, 1))), ValueError, "default above 10000 rows"),
        (lambda: sample(plain, parameters=TWO, data={"y": Y}), ValueError, "takes none of the data y"),
        (lambda: sample(lambda mu, rows, y: mu, parameters={"mu": ()}, data={"y": Y}), ValueError, "data, and y too"),
        (_of_data(x=Y), ValueError, r"was called with the shapes .*y \(5,\), .* x \(3,\)\. "),
        (_of_data(x=np.full((50, 2), np.nan)), ValueError, r"data\['x'\] holds NaN or infinity, first in row 0"),
        (_of_data(group=["a"] * 50), ValueError, "pandas.factorize"),
        (_of_data(group=np.full(50, 2**60)), ValueError, "beyond 2\\*\\*53"),
        (_of_data(y=np.nan), ValueError, r"data\['y'\] must be finite; got nan"),
        (_of_data(y=[]), ValueError, "is empty"),
        (_of_data(mu=Y), ValueError, "mu cannot be a name of data and of something else"),
        (lambda: Simplex(1), ValueError, "two probabilities or more"),
        (lambda: Positive(-1), ValueError, "whole numbers"),
        (lambda: Ordered(()), ValueError, "number of increasing numbers"),
        (lambda: sample(increasing, parameters={"x": Ordered}), ValueError, "write Ordered"),
        (lambda: sample(increasing, parameters={"x": Ordered(3)}, init={"x": [1, 3, 2]}), ValueError, "must increase"),
        (_likelihood(lambda b: 0.0), ValueError, "returns the number 0.0: do not sum"),
        (_likelihood(lambda b, z: z), ValueError, "takes z, not among the parameters b or the data"),
        (_likelihood(lambda b, X: X @ X), ValueError, "log_likelihood=<lambda> raises ValueError at the start"),
        (lambda: sample(Density(numba.njit(plain), 2), log_likelihood=plain), ValueError, "belong to a function"),
    ],
)
def test_mistakes_are_explained(call, error, words):
    with pytest.raises(error, match=words):
        call()


# ------------------------------------------------------------------------------------------ exceptions are rejections


def raising_above_1(mu):
    if mu > 1.0:
        raise ValueError("mu is too large")
    return -0.5 * mu**2


def raising_in_python(mu):
    if mu > 1.0:
        raise ZeroDivisionError(f"{len(globals()) > 0}")  # numba compiles no globals()
    return -0.5 * mu**2


def without_a_factor(mu):
    np.linalg.cholesky(np.array([[1.0, mu], [mu, 1.0]]))
    return -0.5 * mu**2


def not_a_number_above_1(mu):
    return -0.5 * mu**2 if mu < 1.0 else np.nan


TRUNCATED = -np.exp(-0.5) / np.sqrt(2.0 * np.pi) / 0.8413447460685429  # mean of a normal number below 1


@pytest.mark.parametrize(
    ("density", "sampler", "first"),
    [
        (raising_above_1, "nuts", "ValueError: mu is too large"),
        (raising_above_1, "hmc", "ValueError: mu is too large"),
        (raising_in_python, "nuts", "ZeroDivisionError: True"),
        (without_a_factor, "nuts", "LinAlgError: Matrix is not positive definite"),
        (not_a_number_above_1, "nuts", None),
    ],
    ids=["numba", "hmc", "python", "cholesky", "nan"],
)
def test_exceptions_after_the_start_are_rejections_and_counted(density, sampler, first):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = sample(density, sampler, parameters={"mu": ()}, n_iter=3000, n_chains=2, random_state=0, n_jobs=2)
    draws, said = result.samples_["mu"], [str(w.message) for w in caught if w.category is RuntimeWarning]
    law = 0.0 if density is without_a_factor else TRUNCATED
    assert scores(draws, law) < THRESHOLD and draws.max() < 1.0
    assert result.n_exceptions_.shape == (2,) and bool(said) == (first is not None) == bool(result.n_exceptions_.all())
    if first is not None:
        assert f"exception {result.n_exceptions_.sum()} times in 6000 trajectories, first {first}" in said[0]


def test_exceptions_at_the_start_are_raised_and_random_starts_avoid_them():
    for density in (raising_above_1, raising_in_python):
        with pytest.raises(ValueError, match=r"raised an exception at the start: \w+Error: "):
            sample(density, parameters={"mu": ()}, init={"mu": 1.5})
    with pytest.raises(ValueError, match="at the start: ValueError: never"):
        sample(Density(always_raising, 1), "nuts", n_iter=10)


@numba.njit
def always_raising(theta, rows, scale, gradient):
    if theta[0] < 1e9:
        raise ValueError("never")
    return 0.0


def test_exceptions_that_a_sampler_cannot_reject_stop_it_with_the_message():
    with pytest.raises(ChainDivergedError, match=r"ValueError: mu is too large at step \d+\. SGHMC has no"):
        sample(raising_above_1, "sghmc", parameters={"mu": ()}, init={"mu": 0.0}, random_state=0)


def calls_that_end_by(error):
    calls = []

    def fails(mu, tau):
        calls.append(globals())
        if len(calls) > 2000:
            raise error
        return -0.5 * mu**2 - tau

    return fails


def raising_off_0(mu):
    if abs(mu) > 0.05:
        raise RuntimeError("no more")
    return 0.0 * mu


def test_where_most_trajectories_raise_the_draws_cannot_be_trusted():
    with pytest.warns(ConvergenceWarning) as caught:
        sample(raising_off_0, NUTS(step_size=2.0), parameters={"mu": ()}, init={"mu": 0.0}, n_iter=300, random_state=0)
    said = [str(w.message) for w in caught]
    assert any("The log density raised" in each and "RuntimeError: no more" in each for each in said)
    assert any("The draws cannot be trusted." in each for each in said)


def test_an_exception_where_there_was_none_before_ends_the_run():
    with pytest.raises(ValueError, match=r"RuntimeError: no more at step .*depend on its arguments only"):
        sample(calls_that_end_by(RuntimeError("no more")), parameters=TWO, n_iter=1000, random_state=0)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, SystemExit])
def test_interrupts_pass_through(error):
    with pytest.raises(error, match="now"):
        sample(calls_that_end_by(error("now")), parameters=TWO, n_iter=200, random_state=0)


def test_a_function_in_python_may_hold_what_cannot_be_pickled(tmp_path):
    with open(tmp_path / "log", "w") as log:

        def reports(mu, tau):
            log.write(".")
            return -0.5 * mu**2 - tau

        sample(reports, parameters=TWO, n_iter=200, random_state=0)
    assert (tmp_path / "log").stat().st_size > 400


def test_constraints_compare_and_print():
    assert Positive() == Positive(()) and Positive(3) == Positive((3,)) != Simplex(3)
    assert repr([Positive(), Positive(3), Simplex((2, 3))]) == "[Positive(), Positive(3), Simplex((2, 3))]"
    assert len({Simplex(3), Simplex((3,))}) == 1


@numba.njit
def funnel(v, x, gradient):
    gradient.v[()] = -v / 9.0 + 0.5 * (x**2).sum() * np.exp(-v) - 0.5 * x.size
    gradient.x[:] = -x * np.exp(-v)
    return -(v**2) / 18.0 - 0.5 * (x**2).sum() * np.exp(-v) - 0.5 * x.size * v


def laplace(b):
    return -np.abs(b).sum()


def steep_laplace(b, gradient):
    gradient.b[:] = -1000.0 * np.sign(b)
    return -1000.0 * np.abs(b).sum()


def plateau(b):
    return -50.0 * (np.maximum(0.0, np.abs(b) - 5.0) ** 2).sum()


@pytest.mark.parametrize("sampler", ["sghmc", "sgld", "sgnht"])
def test_kinks_and_plateaus_have_steps_of_their_own_scale(sampler):
    args = {"parameters": {"b": (3,)}, "n_iter": 4000}
    for seed in range(3):  # of starts, on either side of the kinks
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # one chain of a slow sampler
            draws = sample(laplace, sampler, random_state=seed, **args).samples_["b"]
            flat = sample(plateau, sampler, random_state=seed, **args).samples_["b"]
        assert 0.7 < draws.std() < 2.1 and np.abs(draws.mean(axis=(0, 1))).max() < 1.2  # 1.41 and 0
        assert np.abs(flat).max() < 6.0
    steep = sample(steep_laplace, SGHMC(friction=100.0), init={"b": [0.001, 0.0, -0.002]}, random_state=0, **args)
    assert 0.7e-3 < steep.samples_["b"].std() < 2.1e-3


def test_curvatures_of_smooth_densities_are_those_of_the_short_distance():
    X, params, shape = GaussianMean(np.zeros((1, 2)), np.diag([1.0, 1e6]))._rows()
    dense = DenseData(X, np.zeros((1, 0)), np.ones(1), params, GaussianMean(X)._signal(), 1)
    for start in ([0.0, 0.0], [1.0, -2.0], [1e6, 0.0]):
        args = DenseGradient(dense, shape), np.array(start), None
        found = curvature(*args, np.random.default_rng(0))
        assert found == stiffness(*args, np.random.default_rng(0)) == pytest.approx(1e6, rel=1e-3)


def wrong_above_1(mu, gradient):
    gradient.mu[()] = -mu if mu < 1.0 else -mu + 0.8
    return -0.5 * mu**2


def test_a_gradient_by_name_that_is_wrong_away_from_the_start_warns():
    args = {"parameters": {"mu": ()}, "n_iter": 4000, "init": {"mu": 0.0}}
    for seed in range(3):
        with pytest.warns(
            ConvergenceWarning, match=r"at \d of 25 draws, .*Correct the gradient there, or leave it out\."
        ):
            sample(wrong_above_1, "sghmc", random_state=seed, **args)


def uniform(mu, nu):
    return -0.5 * nu**2 if 0.0 < mu < 1.0 else -np.inf


def exponential(mu, nu):
    return -mu - 0.5 * nu**2 if mu > 0.0 else -np.inf


def between_walls(mu, nu):
    return -500.0 * max(0.0, abs(mu) - 5.0) ** 2 - 0.5 * nu**2


def unused(mu, nu):
    return -0.5 * nu**2


@pytest.mark.parametrize(("density", "deviation"), [(uniform, 0.289), (exponential, 1.0), (between_walls, 2.9)])
def test_draws_up_to_a_bound_are_not_called_narrow(density, deviation):
    args = {"parameters": {"mu": (), "nu": ()}, "init": {"mu": 0.5}, "random_state": 0}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        draws = sample(density, n_iter=4000, **args).samples_["mu"]
    assert draws.std() == pytest.approx(deviation, rel=0.2)
    said = "".join(str(w.message) for w in caught)
    assert "too narrow" not in said
    if density is not between_walls:
        assert "Trajectories are lost at a bound of mu" in said and "Simplex(2)" in said and "diverged" not in said
    with pytest.warns(ConvergenceWarning, match="mu are too narrow"):  # far too short a chain
        sample(density, SGHMC(step_size=1e-4), **args)


def test_draws_of_a_number_on_which_nothing_depends_are_called_narrow():
    with pytest.warns(ConvergenceWarning, match="mu are too narrow"):
        sample(unused, parameters={"mu": (), "nu": ()}, random_state=0)


def test_no_larger_step_is_advised_where_the_sampler_finds_it():
    """Beside divergences, for which the remedy is a smaller one, it would contradict."""
    for sampler, advised in (("nuts", False), (NUTS(step_size=1e-4), True)):
        with pytest.warns(ConvergenceWarning, match="too narrow|not converged") as caught:
            sample(lambda mu: 0.0 * mu, sampler, parameters={"mu": ()}, n_iter=400, random_state=0)
        assert ("larger step_size" in str(caught[0].message)) == advised


def test_divergences_of_a_funnel_are_counted_and_warned_of():
    with pytest.warns(ConvergenceWarning, match=r"trajectories after burn-in diverged.*NUTS\(target_accept=0.9\)"):
        result = sample(funnel, parameters={"v": (), "x": (9,)}, n_iter=1500, n_chains=4, random_state=0)
    n = result.sampler_.n_divergences_
    assert n.shape == (4,) and n.sum() > 0
    stats = result.sample_stats_
    np.testing.assert_array_equal(stats["diverging"].sum(axis=1), n)
    assert f"by NUTS; {n.sum()} divergences; gradient" in repr(result)
    np.testing.assert_array_equal(stats["n_steps"].sum(axis=1), result.sampler_.n_leapfrog_)
    np.testing.assert_allclose(stats["acceptance_rate"].mean(axis=1), result.sampler_.acceptance_rate_)
    # Half a chi-squared number of 10 degrees of freedom, the kinetic energy, lies above the potential.
    kinetic = stats["energy"] + result.log_density_
    assert kinetic.min() > 0 and abs(kinetic.mean() - 5.0) < 0.5


def test_arviz_reads_the_result():
    importorskip("arviz")
    result = sample(gamma_and_dirichlet, parameters=PARAMETERS, n_iter=20, n_chains=2, random_state=0)
    data = to_arviz(result)
    assert data.posterior["m"].shape == (2, 10) and data.posterior["p"].shape == (2, 10, 3)
    assert set(data.sample_stats.data_vars) == {
        "lp", "energy", "acceptance_rate", "tree_depth", "n_steps", "diverging", "step_size",
    }  # fmt: skip
    for name, values in result.sample_stats_.items():
        np.testing.assert_array_equal(data.sample_stats[name].values, values)


def test_quantiles_of_eight_schools_are_those_of_quadrature():
    effects = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    errors = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])

    def eight_schools(mu, tau, eta):
        value = -0.5 * (((effects - mu - tau * eta) / errors) ** 2).sum() - 0.5 * (eta**2).sum()
        return value - 0.5 * mu**2 / 25.0 - np.log(1.0 + tau**2 / 25.0)

    parameters = {"mu": (), "tau": Positive(), "eta": (8,)}
    sampler = NUTS(target_accept=0.95)
    draws = sample(eight_schools, sampler, parameters=parameters, n_iter=3000, n_chains=4, random_state=0).samples_
    # Schools and mu integrate out in closed form.
    grid = np.linspace(1e-3, 200.0, 40_000)
    variance = errors**2 + grid[:, None] ** 2
    precision = 1.0 / 25.0 + (1.0 / variance).sum(axis=1)
    centre = (effects / variance).sum(axis=1) / precision
    log_weight = -0.5 * np.log(variance).sum(axis=1) - 0.5 * (effects**2 / variance).sum(axis=1)
    log_weight += 0.5 * precision * centre**2 - 0.5 * np.log(precision) - np.log(1.0 + grid**2 / 25.0)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    assert scores(draws["mu"], weight @ centre) < THRESHOLD
    below = float(weight[grid < 3.0].sum())
    assert scores(draws["tau"] < 3.0, below) < THRESHOLD
