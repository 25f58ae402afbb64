"""A density of one's own, by minibatches and default arguments: right answers, or a warning with the number."""

import warnings
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from scipy.signal import lfilter
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import sample
from sk_sgmcmc.chains.checks import curvature_checks
from sk_sgmcmc.chains.convergence import spread_of
from sk_sgmcmc.dense.chain import DenseData
from sk_sgmcmc.dense.tuning import DenseGradient
from sk_sgmcmc.samplers import HMC, SGHMC, SGLD
from sk_sgmcmc.targets import Density, DirichletCategorical, GaussianMean, ManifoldDensity
from sk_sgmcmc.targets._laplace import laplace_approximation

N = 5000


@numba.njit
def poisson_regression(theta, rows, scale, gradient):
    value = 0.0
    for k in range(theta.size):
        value -= 0.005 * theta[k] ** 2
        gradient[k] = -0.01 * theta[k]
    for i in range(rows.shape[0]):
        eta = 0.0
        for k in range(theta.size):
            eta += rows[i, 1 + k] * theta[k]
        value += scale * (rows[i, 0] * eta - np.exp(eta))
        for k in range(theta.size):
            gradient[k] += scale * (rows[i, 0] - np.exp(eta)) * rows[i, 1 + k]
    return value


def counted(units=(1.0, 1.0, 1.0, 1.0)):
    """Rows (count, 1, x), where the columns of the design are in some units."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(N), rng.standard_normal((N, 3))])
    y = rng.poisson(np.exp(X @ [0.5, 0.3, -0.2, 0.1]))
    return np.column_stack([y, X / units])


ROWS = counted()


def normal_approximation(rows):
    """Mode and standard deviations of the regression's posterior by Newton's steps, apart from the package."""
    y, X = rows[:, 0], rows[:, 1:]
    theta = np.linalg.lstsq(X, np.log(y + 0.5), rcond=None)[0]
    for _ in range(50):
        rate = np.exp(X @ theta)
        precision = (X * rate[:, None]).T @ X + 0.01 * np.eye(4)
        theta = theta + np.linalg.solve(precision, X.T @ (y - rate) - 0.01 * theta)
    return theta, np.sqrt(np.diag(np.linalg.inv(precision)))


@pytest.mark.parametrize("units", [(1.0, 1.0, 1.0, 1.0), (1.0, 0.01, 1.0, 100.0)], ids=["alike", "unlike"])
@pytest.mark.parametrize("sampler", ["sghmc", "sgld", "sgnht"])
def test_minibatches_have_the_spread_of_the_posterior_by_default(sampler, units):
    rows = counted(units)
    mode, deviation = normal_approximation(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        result = sample(Density(poisson_regression, 4, rows), sampler, batch_size=250, n_chains=4, random_state=0)
    theta = result.samples_["theta"]
    assert np.abs((theta.mean(axis=(0, 1)) - mode) / deviation).max() < 0.3
    assert np.abs(theta.std(axis=(0, 1)) / deviation - 1.0).max() < 0.15


def test_all_rows_have_the_spread_of_the_posterior_by_default():
    _, deviation = normal_approximation(ROWS)
    theta = sample(Density(poisson_regression, 4, ROWS), random_state=0).samples_["theta"]
    assert np.abs(theta.std(axis=(0, 1)) / deviation - 1.0).max() < 0.2


def test_a_chain_that_has_not_settled_warns_with_the_number_and_what_to_type():
    target = Density(poisson_regression, 4, ROWS, control_variates=False)
    with pytest.warns(ConvergenceWarning, match=r"split R-hat of theta\[\d\] is [1-9]") as record:
        sample(target, "sghmc", batch_size=250, n_chains=2, n_iter=300, random_state=0)
    said = str(record[0].message)
    assert "n_iter=3000" in said and "batch_size than 250" in said and "control_variates=True" in said
    assert record[0].filename == __file__


def test_draws_without_the_spread_of_the_curvature_warn_with_its_share():
    mode, _ = normal_approximation(ROWS)
    target = Density(poisson_regression, 4, ROWS, start=mode, control_variates=False)
    with pytest.warns(ConvergenceWarning, match=r"too narrow: .* is 0\.\d+ times .*larger step_size than 1e-09"):
        sample(target, SGLD(step_size=1e-9), batch_size=250, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"too wide: .* is [\d.]+ times .*smaller step_size than 0\.002"):
        sample(target, SGHMC(step_size=0.002), batch_size=250, n_iter=20_000, with_replacement=True, random_state=0)


def test_chains_that_are_too_wide_warn_of_it_before_they_advise_a_longer_run():
    target = GaussianMean(np.zeros((1, 2)), np.diag([1.0, 400.0]))
    with pytest.warns(
        ConvergenceWarning, match=r"draws of theta\[1\] are too wide: .*smaller step_size than 0\.0045"
    ) as c:
        sample(target, SGLD(step_size=0.0045), n_iter=1000, random_state=0)
    second = str(c[0].message).split("\n")[1]
    assert "split R-hat of " in second and "Reduce the spread first. Then try n_iter=10000" in second
    with pytest.warns(ConvergenceWarning, match="n_iter=20000") as c:  # still on its way to the mode
        sample(target, SGHMC(step_size=0.003), init=[1000.0, 0.0], random_state=0)
    assert "too wide" not in str(c[0].message)


def test_a_chain_that_never_moves_warns():
    target = Density(poisson_regression, 4, ROWS)
    with pytest.warns(ConvergenceWarning, match="never moved"):
        sample(target, HMC(step_size=10.0), n_iter=100, init=normal_approximation(ROWS)[0], random_state=0)


def test_draws_of_targets_without_a_curvature_warn_by_their_chains():
    target = DirichletCategorical(np.repeat([0, 1, 2], [500, 300, 200]))
    with pytest.warns(ConvergenceWarning, match=r"split R-hat of omega\[\d\]"):
        sample(target, "sgrld", batch_size=10, n_iter=200, n_chains=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        sample(target, "scir", n_iter=1000, n_chains=3, random_state=0)


@pytest.mark.parametrize("share", [0.2, 1.0, 1.7])
def test_spread_ratios_are_those_of_variances_to_the_right_ones(share):
    rng = np.random.default_rng(1)
    root = np.array([[1.0, 0.0, 0.0], [0.9, 0.3, 0.0], [-0.5, 0.2, 2.0]])
    data = rng.standard_normal((50, 3))
    target = GaussianMean(data, precision=np.linalg.inv(root @ root.T))
    X, params, shape = target._rows()
    gradient = DenseGradient(DenseData(X, np.zeros((50, 0)), np.ones(50), params, target._signal(), 50), shape)
    exact, covariance = target.posterior() if hasattr(target, "posterior") else (X.mean(axis=0), root @ root.T / 50)
    draws = rng.multivariate_normal(exact, share * covariance, size=(4, 5000))
    # Of 100 of the draws: the standard error of each entry is at most share * sqrt(2 / 100) and correlations' part.
    np.testing.assert_allclose(spread_of(gradient, draws).ratios, share, rtol=0.6)
    ratios = [spread_of(gradient, chunk).ratios for chunk in np.split(draws, 50, axis=1)]
    error = np.std(ratios, axis=0) / np.sqrt(50)
    assert np.abs((np.mean(ratios, axis=0) - share) / error).max() < 4.5
    assert np.abs((np.mean(ratios, axis=0) - share**2) / error).max() > 10 or share == 1.0


class Normal:
    """Log density and gradient of N(mean, covariance)."""

    dense = SimpleNamespace(n_rows=1)

    def __init__(self, mean, covariance):
        self.mean, self.precision = mean, np.linalg.inv(covariance)

    def __call__(self, theta):
        slope = self.precision @ (self.mean - theta)
        return 0.5 * (theta - self.mean) @ slope, slope


def correlated(seed):
    """A normal distribution of 2 to 10 entries in units of their own, correlated up to 0.9999."""
    rng = np.random.default_rng(seed)
    d, units = 2 + seed % 9, 10.0 ** rng.uniform(-2, 2, 2 + seed % 9)
    rho = [0.0, 0.9, 0.99, 0.999, 0.9999][seed % 5]
    apart = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    correlation = rho**apart if seed % 2 else np.where(apart > 0, rho, 1.0)
    return rng, rng.normal(size=d), correlation * np.outer(units, units)


def wrong_spreads(normal, draws):
    spread = spread_of(normal, draws)
    found = curvature_checks(spread.ratios, {"narrow": "", "wide": ""}, "b", spread.limits, spread.given)
    return [check.name.removeprefix("spread_too_") for check in found if check.fired]


def test_right_draws_are_not_called_narrow_or_wide_and_wrong_ones_are():
    alarms, hot, cold, slow = [], [], [], []
    for seed in range(150):
        rng, mean, covariance = correlated(seed)
        normal, n_chains = Normal(mean, covariance), [1, 4][seed % 2]
        white = rng.standard_normal((n_chains, 1000, mean.size))
        root = np.linalg.cholesky(covariance)
        alarms += wrong_spreads(normal, mean + white @ root.T)
        hot.append("wide" in wrong_spreads(normal, mean + 2.0 * white @ root.T))
        cold.append("narrow" in wrong_spreads(normal, mean + 0.25 * white @ root.T))
        white = lfilter([np.sqrt(1.0 - 0.98**2)], [1.0, -0.98], white, axis=1)  # about ten effective draws a chain
        slow += wrong_spreads(normal, mean + white @ root.T)
    # Of 150 right posteriors, 1% are 1.5; the chance of more than 4 alarms is then 2%.
    assert len(alarms) == 0 and len(slow) <= 4
    assert np.mean(hot) > 0.98 and np.mean(cold) > 0.98


def regression_by_name(b, X, y, gradient):
    error = y - X @ b
    gradient.b[:] = X.T @ error - b / 1e6
    return -0.5 * (error**2).sum() - 0.5 * (b**2).sum() / 1e6


@pytest.mark.parametrize("mean", [50.0, 2000.0])
def test_columns_far_from_0_do_not_make_right_draws_narrow_or_wide(mean):
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(300), rng.normal(mean, 1.0, size=300)])
    y = X @ [1.0, 0.1] + rng.normal(size=300)
    init = {"b": np.linalg.lstsq(X, y, rcond=None)[0]}
    for seed in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            arguments = {"data": {"X": X, "y": y}, "init": init, "n_iter": 1000, "n_chains": 4, "random_state": seed}
            sample(regression_by_name, parameters={"b": (2,)}, **arguments)
        said = " ".join(str(w.message) for w in caught)
        assert "too narrow" not in said and "too wide" not in said


def test_changes_between_draws_show_the_spread_of_single_chains_and_no_drift():
    rng = np.random.default_rng(3)
    target = GaussianMean(np.zeros((1, 2)))
    X, params, shape = target._rows()
    gradient = DenseGradient(DenseData(X, np.zeros((1, 0)), np.ones(1), params, target._signal(), 1), shape)
    apart = np.array([-50.0, 50.0])[:, None, None] + np.linspace(0.0, 30.0, 500)[:, None]
    draws = rng.standard_normal((2, 500, 2))
    np.testing.assert_array_equal(spread_of(gradient, draws + apart).of_changes, 1.0)
    np.testing.assert_allclose(spread_of(gradient, draws * [1.0, 4.0] + apart).of_changes, [1.0, 16.0], rtol=0.5)
    assert spread_of(gradient, draws[:1, :10]).of_changes is None


def test_the_normal_approximation_of_a_gaussian_is_itself():
    rng = np.random.default_rng(2)
    precision = np.array([[1e6, 20.0], [20.0, 1e-2]])
    target = GaussianMean(rng.standard_normal((30, 2)), precision=precision)
    X, params, shape = target._rows()
    gradient = DenseGradient(DenseData(X, np.zeros((30, 0)), np.ones(30), params, target._signal(), 30), shape)
    found = laplace_approximation(gradient, np.array([40.0, -300.0]))
    np.testing.assert_allclose(found.precision, 30 * precision, rtol=1e-4)
    assert np.all(np.abs(found.mode - X.mean(axis=0)) < 0.05 / np.sqrt(30 * np.diag(precision)))
    draws = found.draws(20_000, rng)
    np.testing.assert_allclose(np.cov(draws.T), np.linalg.inv(30 * precision), rtol=0.05, atol=1e-5)


# -------------------------------------------------------------------------------------------------- wrong functions


@numba.njit
def well(theta, rows, scale, gradient):
    gradient[:] = theta  # of the wrong sign, which does not show where theta is 0
    return -0.5 * (theta**2).sum()


def test_a_gradient_of_the_wrong_sign_is_refused_at_any_start():
    for start in ([0.0, 0.0], [1.0, -2.0], [1e-9, 0.0]):
        with pytest.raises(ValueError, match="gradient does not fit the log density"):
            sample(Density(well, dim=2, start=start), "hmc", n_iter=10)
    with pytest.raises(ValueError, match=r"gradient of the part 'x' does not fit.*away from the start"):
        sample(ManifoldDensity(well, {"x": ("euclidean", (2,))}), "sggmc", n_iter=10)


@numba.njit
def wrong_above_1(theta, rows, scale, gradient):
    gradient[:] = -theta
    if theta[0] > 1.0:
        gradient[0] += 0.8
    return -0.5 * (theta**2).sum()


@numba.njit
def wrong_beside_the_circle(theta, rows, scale, gradient):
    gradient[:] = 0.0
    gradient[0] = 2.0 if theta[0] > -0.5 else 1.0
    return 2.0 * theta[0]


@numba.njit
def kinked(theta, rows, scale, gradient):
    gradient[:] = -np.sign(theta) - 4.0 * theta**3
    return -(np.abs(theta) + theta**4).sum()


def test_a_gradient_that_is_wrong_away_from_the_start_warns_with_the_numbers():
    with pytest.warns(
        ConvergenceWarning, match=r"does not fit the log density at \d of 25 draws.* \[.*gradient gives .*give "
    ):
        sample(Density(wrong_above_1, dim=2), "sghmc", random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sample(Density(wrong_above_1, dim=2, check_gradient=False), "sghmc", random_state=0)
        for seed in range(5):
            sample(Density(kinked, dim=40), SGHMC(0.05), n_iter=400, init=np.full(40, 0.3), random_state=seed)
            sample(Density(poisson_regression, 4, ROWS), "sghmc", batch_size=250, n_iter=400, random_state=seed)
    assert not [w for w in caught if "does not fit" in str(w.message)]


def test_a_gradient_on_a_manifold_that_is_wrong_away_from_the_start_warns():
    target = ManifoldDensity(wrong_beside_the_circle, {"x": ("sphere", (2,))}, start={"x": [1.0, 0.0]})
    with pytest.warns(ConvergenceWarning, match="does not fit the log density at [1-9]+ of 25 draws"):
        sample(target, "sggmc", random_state=0)


@numba.njit
def unscaled_gradient(theta, rows, scale, gradient):
    gradient[0] = (rows[:, 0] - theta[0]).sum()
    return -0.5 * scale * ((rows[:, 0] - theta[0]) ** 2).sum()


@numba.njit
def scaled_prior(theta, rows, scale, gradient):
    gradient[0] = scale * ((rows[:, 0] - theta[0]).sum() - 3.0 * theta[0])
    return -0.5 * scale * (((rows[:, 0] - theta[0]) ** 2).sum() + 3.0 * theta[0] ** 2)


@pytest.mark.parametrize("wrong", [unscaled_gradient, scaled_prior])
def test_a_scale_that_is_missing_or_too_much_is_refused_before_minibatches_use_it(wrong):
    target = Density(wrong, dim=1, data=np.random.default_rng(0).normal(2.0, 1.0, (101, 1)))
    with pytest.raises(ValueError, match=r"do not add up to the data: .* on all rows .*by scale"):
        sample(target, "sghmc", batch_size=10, n_iter=10)
    sample(target, HMC(), n_iter=20, random_state=0)  # all rows: a scale of 1


# ------------------------------------------------------------------------------------------------------------ starts


def test_each_chain_starts_where_it_is_told_to():
    starts = np.array([[5.0, 1.0], [-3.0, 2.0], [0.0, 7.0]])
    target, still = GaussianMean(np.zeros((4, 2))), SGLD(step_size=1e-12)
    args = {"n_iter": 1, "burn_in": 0, "random_state": 0}
    first = sample(target, still, n_chains=3, init=starts, **args).samples_["theta"][:, 0]
    np.testing.assert_allclose(first, starts, atol=1e-4)
    shared = sample(target, still, n_chains=3, init=starts[0], **args).samples_["theta"][:, 0]
    np.testing.assert_allclose(shared, np.tile(starts[0], (3, 1)), atol=1e-4)
    with pytest.raises(ValueError, match=r"init has shape \(3, 2\).*with n_chains=2.*\(2, 2, 1\)"):
        sample(target, still, n_chains=2, init=starts, **args)
    particles = np.random.default_rng(0).normal(size=(2, 20, 2))
    moved = sample(target, "blob", n_chains=2, init=particles, n_iter=1, random_state=0).samples_["theta"]
    assert np.abs(moved - particles).max() < 0.5 < np.abs(moved[0] - particles[1]).max()


def test_wide_starts_of_a_density_are_forgotten_or_warned_of():
    mode, deviation = normal_approximation(ROWS)
    starts = mode + 8.0 * deviation * np.array([[1.0], [-1.0]])
    target = Density(poisson_regression, 4, ROWS)
    args = {"batch_size": 250, "n_chains": 2, "init": starts, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        sample(target, "sghmc", **args)
    with pytest.warns(ConvergenceWarning, match="split R-hat"):
        sample(target, SGHMC(step_size=1e-5), n_iter=100, **args)


# --------------------------------------------------------------------------------------------------- control variates


@numba.njit
def waves(theta, rows, scale, gradient):
    # Gradients of rows turn within a fraction of the posterior's spread: those at the mode tell nothing of others.
    gradient[0] = -theta[0]
    value = -0.5 * theta[0] ** 2
    for i in range(rows.shape[0]):
        value += scale * 0.02 * np.cos(rows[i, 0] * theta[0])
        gradient[0] -= scale * 0.02 * rows[i, 0] * np.sin(rows[i, 0] * theta[0])
    return value


def uses_control_variates(target, dim, n_batch):
    X, params, shape = target._rows()
    dense = DenseData(X, np.zeros((len(X), 0)), np.ones(len(X)), params, target._signal(), n_batch)
    return target._prepared(dense, np.zeros(shape), SGHMC())[0].params.size > 0


def test_control_variates_are_taken_where_they_lessen_the_noise():
    assert uses_control_variates(Density(poisson_regression, 4, ROWS), 4, 250)
    assert not uses_control_variates(Density(poisson_regression, 4, ROWS, control_variates=False), 4, 250)
    assert not uses_control_variates(Density(poisson_regression, 4, ROWS), 4, N)
    rough = np.random.default_rng(0).uniform(8.0, 12.0, (40, 1))
    assert not uses_control_variates(Density(waves, 1, rough), 1, 4)
    assert uses_control_variates(Density(waves, 1, rough, control_variates=True), 1, 4)
    with pytest.raises(ValueError, match="control_variates='yes' must be True, False or"):
        sample(Density(waves, 1, rough, control_variates="yes"), n_iter=10)


@numba.njit
def ridge(theta, rows, scale, gradient):
    # Only the sum of the two is known: no proper mode.
    residual = rows[:, 0] - theta[0] - theta[1]
    gradient[:] = scale * residual.sum()
    return -0.5 * scale * (residual**2).sum()


def test_a_density_without_a_proper_mode_is_sampled_without_its_help():
    target = Density(ridge, 2, np.random.default_rng(0).normal(size=(300, 1)))
    assert not uses_control_variates(target, 2, 30)
    with pytest.warns(ConvergenceWarning):
        sample(target, "sghmc", batch_size=30, n_iter=500, random_state=0)
