"""BayesianGaussian under any legal prior and on columns of any scale: the exact posterior, or a refusal that helps."""

import warnings

import numpy as np
import pytest

from sk_sgmcmc import BayesianGaussian
from sk_sgmcmc.exceptions import ChainDivergedError
from sk_sgmcmc.samplers import PSGHMC

ROWS = np.random.default_rng(5).normal(size=(200, 3)) @ np.array([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.0, 0.3, 1.0]])


@pytest.fixture(autouse=True)
def no_warning_leaks():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "The draws have not converged")  # chains are short on purpose
        yield


def distances(model, X):
    """Of posterior means, in exact standard deviations, and of the logarithms of standard deviations."""
    exact = model.exact_samples(X, 20_000, random_state=1)
    means, spreads = [], []
    for name, theirs in exact.items():
        ours = model._all_samples[name][0]
        means.append(np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) / theirs.std(axis=0))
        spreads.append(np.abs(np.log(ours.std(axis=0) / theirs.std(axis=0))))
    return max(part.max() for part in means), max(part.max() for part in spreads)


def assert_exact(model, X):
    away, spread = distances(model, X)
    assert away < 0.25 and spread < 0.2


def given(scale):
    """Priors of which one number is extreme."""
    far = {"mean_prior": [3.0, 0.0, 0.0], "mean_precision_prior": scale}
    priors = [{"mean_precision_prior": scale}, far, {"covariance_prior": scale * np.eye(3)}]
    return priors + [{"degrees_of_freedom_prior": 2.0 + scale}, {**far, "degrees_of_freedom_prior": 2.0 + scale}]


@pytest.mark.parametrize("scale", [1e-3, 1e3, 1e4, 1e6, 1e8])
def test_any_legal_prior_gives_the_exact_posterior_at_the_default_step(scale):
    for prior in given(scale):
        assert_exact(BayesianGaussian(random_state=0, **prior).fit(ROWS), ROWS)


@pytest.mark.parametrize("sampler", ["sgld", "sgnht", "hmc", "rhmc", "sg-nphmc", "sgr-nphmc", "sghmc-em", "hmc-em"])
def test_every_sampler_takes_priors_that_outweigh_the_rows(sampler):
    for prior in ({"degrees_of_freedom_prior": 1e4}, {"mean_precision_prior": 1e6, "mean_prior": [3.0, 0.0, 0.0]}):
        assert_exact(BayesianGaussian(sampler=sampler, random_state=0, **prior).fit(ROWS), ROWS)


def test_minibatches_and_streams_take_priors_that_outweigh_the_rows():
    prior = {"degrees_of_freedom_prior": 1e4, "mean_precision_prior": 1e6, "mean_prior": np.zeros(3)}
    X = np.tile(ROWS, (5, 1))
    assert_exact(BayesianGaussian(batch_size=100, random_state=0, **prior).fit(X), X)
    stream = BayesianGaussian(random_state=0, covariance_prior=np.eye(3), **prior)
    stream.partial_fit(X[:600]).partial_fit(X[600:])
    assert_exact(stream, X[600:])


@pytest.mark.parametrize("n, d", [(2, 1), (2, 3), (5, 10), (12, 10)])
def test_fewer_rows_than_the_precision_has_dimensions(n, d):
    X = np.random.default_rng(0).normal(size=(n, d))
    model = BayesianGaussian(random_state=0, degrees_of_freedom_prior=d + 4.0).fit(X)
    assert_exact(model, X)


COLUMNS = {
    "scale 1e8": lambda x: 1e8 * x, "scale 1e-8": lambda x: 1e-8 * x, "scale 1e70": lambda x: 1e70 * x,
    "scale 1e-70": lambda x: 1e-70 * x, "offset 1e9": lambda x: x + 1e9, "constant": lambda x: 0.0 * x + 0.1,
    "constant 1e9": lambda x: 0.0 * x + 1e9, "zero": lambda x: 0.0 * x,
}  # fmt: skip


@pytest.mark.parametrize("change", COLUMNS.values(), ids=COLUMNS)
def test_columns_of_any_scale_and_offset_have_the_exact_posterior(change):
    X = np.column_stack([ROWS, change(ROWS[:, 1])])  # also collinear
    assert_exact(BayesianGaussian(random_state=0).fit(X), X)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float16])
def test_narrow_types_are_read_as_numbers(dtype):
    X = (3.0 * ROWS).astype(dtype)
    narrow, wide = (BayesianGaussian(n_iter=50, random_state=0).fit(rows) for rows in (X, X.astype(np.float64)))
    np.testing.assert_array_equal(narrow.samples_["precision"], wide.samples_["precision"])


def test_numbers_that_float64_cannot_square_are_refused_by_column_and_value():
    for value, match in ((1e300, r"Column 1 of X holds 1e\+300.*MaxAbsScaler"), (1e-300, r"Column 1 .*1e-300")):
        X = ROWS.copy()
        X[:, 1] = 0.0
        X[3, 1] = value
        with pytest.raises(ValueError, match=match):
            BayesianGaussian().fit(X)
    with pytest.raises(ValueError, match="mean_prior"):
        BayesianGaussian(mean_prior=[1e300, 0.0, 0.0]).fit(ROWS)
    with pytest.raises(ValueError, match="covariance_prior"):
        BayesianGaussian(covariance_prior=1e300 * np.eye(3)).fit(ROWS)
    model = BayesianGaussian(n_iter=20).fit(ROWS)
    with pytest.raises(ValueError, match="Column 2 of X holds -1e"):
        model.score_samples([[0.0, 0.0, -1e200]])


def test_a_covariance_prior_is_positive_definite_or_not_whatever_the_units():
    units = np.diag([1e-30, 1.0, 1e30])
    correlated = 0.5 * (np.eye(3) + 1.0)
    BayesianGaussian(n_iter=20, covariance_prior=units @ correlated @ units).fit(ROWS)
    with pytest.raises(ValueError, match="positive definite"):
        BayesianGaussian(covariance_prior=units @ (correlated - np.eye(3)) @ units).fit(ROWS)


def test_a_step_so_long_that_precisions_overflow_is_an_error_with_a_remedy():
    sampler = PSGHMC(step_size=10.0)
    with warnings.catch_warnings(), pytest.raises(ChainDivergedError, match="step size is too large; try a tenth"):
        warnings.simplefilter("error")
        BayesianGaussian(sampler=sampler, n_iter=2, random_state=0).fit(np.random.default_rng(0).normal(size=(14, 6)))


def test_rows_whose_scatter_float64_cannot_hold_are_refused_and_change_nothing():
    model = BayesianGaussian(random_state=0).fit(np.zeros((2, 3)))
    before = model.mean_.copy()
    row = 2.0**63 * np.ones((2, 3))
    for call in (model.partial_fit, model.exact_posterior):
        with pytest.raises(ValueError, match=r"not positive definite in float64.*RobustScaler"):
            call(row)
    np.testing.assert_array_equal(model.mean_, before)
    assert np.all(np.isfinite(model.partial_fit(np.ones((2, 3))).mean_))
