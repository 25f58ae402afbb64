"""BayesianLogisticRegression on columns of any offset and scale, and under any prior scale: right, or told."""

import warnings

import numpy as np
import pytest
from scipy import sparse, special
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from sk_sgmcmc import BayesianLogisticRegression
from sk_sgmcmc.samplers import HMC


@pytest.fixture(autouse=True)
def no_warning_leaks():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "The draws have not converged")  # chains are short on purpose
        warnings.filterwarnings("ignore", "Columns .* have the standard deviations")  # see test_units
        yield


def elections(n_classes=2, n=600):
    """Years and another number of rows, the effect of a year being .3, and labels."""
    rng = np.random.default_rng(0)
    year, x = rng.integers(1990, 2021, n).astype(float), rng.normal(size=n)
    p = special.softmax(
        np.column_stack([np.zeros(n)] + [k * (0.3 * (year - 2005) + x) for k in range(1, n_classes)]), 1
    )
    return np.column_stack([year, x]), (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1)


def with_others(X, n_columns):
    """X and columns that are nearly all zero."""
    others = sparse.random_array((len(X), n_columns), density=0.02, random_state=np.random.default_rng(1))
    return sparse.hstack([X, others], format="csr")


OFFSETS = [0.0, 1e4, 1.6e9, 1e12]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("offset", OFFSETS)
def test_a_column_of_years_or_timestamps_keeps_its_effect(offset, n_classes):
    X, y = elections(n_classes)
    flat = LogisticRegression(C=1e6, tol=1e-8, max_iter=10_000).fit(X - [2005.0, 0.0], y)
    model = BayesianLogisticRegression(random_state=0).fit(X + [offset, 0.0], y)
    np.testing.assert_allclose(np.diff(model.coef_[:, 0]), np.diff(flat.coef_[:, 0]), atol=0.02)
    if n_classes == 2:
        assert model.coef_[0, 0] == pytest.approx(flat.coef_[0, 0], abs=0.01)
    assert model.score(X + [offset, 0.0], y) == pytest.approx(flat.score(X - [2005.0, 0.0], y), abs=0.01)


@pytest.mark.parametrize("n_others", [30, 1200], ids=["factorised", "diagonal"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_an_offset_changes_nothing_but_the_intercept_and_sparse_rows_stay_sparse(n_classes, n_others):
    X, y = elections(n_classes)
    fits = []
    for offset in OFFSETS:
        rows = with_others(X + [offset, 0.0], n_others)
        model = BayesianLogisticRegression(random_state=0, n_iter=200).fit(rows, y)
        assert model._chains[0].data[0].X.shape[1] == 2  # places of entries
        fits.append((model.coef_, model.predict_proba(rows), model.samples_["coef"].std(axis=1)))
    for other in fits[1:]:
        for ours, theirs in zip(fits[0], other, strict=True):
            np.testing.assert_allclose(theirs, ours, rtol=2e-3, atol=2e-4)


def test_predictions_follow_from_the_samples_for_the_columns_as_given():
    X, y = elections(3)
    model = BayesianLogisticRegression(random_state=0, n_iter=200, thin=1).fit(X + [1e4, 0.0], y)
    eta = (X + [1e4, 0.0]) @ np.swapaxes(model.samples_["coef"][0], 1, 2) + model.samples_["intercept"][0][:, None]
    np.testing.assert_allclose(
        special.softmax(eta, axis=2).mean(axis=0), model.predict_proba(X + [1e4, 0.0]), rtol=1e-6
    )


@pytest.mark.parametrize("n_others", [0, 1200], ids=["factorised", "diagonal"])
def test_a_stream_of_timestamps_is_that_of_centred_years(n_others):
    X, y = elections()
    order = np.argsort(X[:, 0], kind="stable")  # each block has later years than the one before
    coef = []
    for offset in (-2005.0, 1.6e9):
        rows = X + [offset, 0.0]
        rows = with_others(rows, n_others) if n_others else rows
        stream = BayesianLogisticRegression(random_state=0)
        for block in np.array_split(order, 3):
            stream.partial_fit(rows[block], y[block], classes=[0, 1])
        assert stream.score(rows, y) > 0.84
        coef.append(stream.coef_[0])
    np.testing.assert_allclose(coef[1], coef[0], rtol=0.02, atol=0.02)
    if not n_others:
        assert coef[1][0] == pytest.approx(0.28, abs=0.06)


def test_a_resumed_fit_with_timestamps_has_the_draws_of_an_uninterrupted_one():
    X, y = elections()
    rows = X + [1.6e9, 0.0]
    model = BayesianLogisticRegression(random_state=0, n_iter=60).fit(rows, y)
    drawn = model.samples_["coef"].copy()
    np.testing.assert_array_equal(model.resume(rows, y).samples_["coef"], drawn)


def test_without_an_intercept_a_column_far_from_zero_warns():
    X, y = elections()
    with pytest.warns(UserWarning, match=r"Column 0 of X has the mean 2005.* fit_intercept=True"):
        BayesianLogisticRegression(fit_intercept=False, n_iter=20).fit(X, y)
    constant = np.column_stack([X - X.mean(axis=0), np.ones(len(X))])
    BayesianLogisticRegression(fit_intercept=False, n_iter=20).fit(constant, y)  # an intercept of the user's own


def plain():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, (rng.random(120) < special.expit(X @ [1.0, -1.0, 0.5] + 0.3)).astype(int)


def assert_law_of_long_hmc(X, y, **params):
    ours = BayesianLogisticRegression(random_state=0, **params).fit(X, y)._all_samples["coef"][0]
    hmc = HMC(n_leapfrog=8)
    exact = BayesianLogisticRegression(sampler=hmc, n_iter=6000, thin=1, random_state=1, **params).fit(X, y)
    exact = exact.samples_["coef"][0]
    assert np.all(np.abs(ours.mean(axis=0) - exact.mean(axis=0)) < 0.2 * exact.std(axis=0))
    assert np.all(np.abs(np.log(ours.std(axis=0) / exact.std(axis=0))) < 0.15)


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1e-3, 1e3, 1e6, 1e30, 1e300])
def test_any_prior_scale_has_the_law_of_long_hmc_at_the_default_step(scale):
    assert_law_of_long_hmc(*plain(), prior_scale=scale)
    assert_law_of_long_hmc(*plain(), intercept_prior_scale=scale)


@pytest.mark.parametrize("scale", [1e-100, 1e-300])
def test_prior_scales_whose_squares_leave_float64_are_refused(scale):
    for name in ("prior_scale", "intercept_prior_scale"):
        with pytest.raises(ValueError, match=f"^{name}={scale}.*at least"):
            BayesianLogisticRegression(**{name: scale}).fit(*plain())


def changed(change, X, y):
    return np.column_stack([X[:, :2], change(X)]), y


COLUMNS = {
    "scale 1e8": lambda X: 1e8 * X[:, 2],
    "scale 1e-8": lambda X: 1e-8 * X[:, 2],
    "scale 1e70": lambda X: 1e70 * X[:, 2],
    "scale 1e-300": lambda X: 1e-300 * X[:, 2],
    "offset 1e8": lambda X: X[:, 2] + 1e8,
    "equal": lambda X: X[:, 0],
    "equal but for 1e9": lambda X: 1e9 * X[:, 0],
    "collinear": lambda X: X @ [1.0, 2.0, 0.0],
    "constant": lambda X: np.full(len(X), 0.1),
    "constant 1e70": lambda X: np.full(len(X), 1e70),
    "zero": lambda X: np.zeros(len(X)),
}


@pytest.mark.parametrize("change", COLUMNS.values(), ids=COLUMNS)
def test_columns_of_any_scale_offset_and_kinship_have_the_law_of_long_hmc(change):
    X, y = changed(change, *plain())
    assert_law_of_long_hmc(X, y)
    p = BayesianLogisticRegression(random_state=0).fit(X, y).predict_proba(X)
    assert np.all(np.isfinite(p)) and p.std() > 0.02


@pytest.mark.parametrize("rows", [4, 5, 20])
def test_fewer_rows_than_columns_have_the_law_of_long_hmc(rows):
    X = np.random.default_rng(1).normal(size=(rows, 8))
    assert_law_of_long_hmc(X, np.arange(rows) % 2)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.float16, np.float32])
def test_narrow_types_are_read_as_numbers(dtype):
    X, y = plain()
    X = (3.0 * X).astype(dtype)
    narrow, wide = (BayesianLogisticRegression(n_iter=50, random_state=0).fit(rows, y) for rows in (X, X.astype(float)))
    np.testing.assert_array_equal(narrow.samples_["coef"], wide.samples_["coef"])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_numbers_too_large_to_compute_with_are_refused_by_column_and_value(kind):
    X, y = plain()
    far = X.copy()
    far[3, 1] = 1e300
    with pytest.raises(ValueError, match=r"Column 1 of X holds 1e\+300.*missing value.*MaxAbsScaler"):
        BayesianLogisticRegression().fit(kind(far), y)
    model = BayesianLogisticRegression(n_iter=20).fit(kind(X), y)
    with pytest.raises(ValueError, match=r"Column 1 of X holds 1e\+300"):
        model.predict_proba(kind(far))


def test_weights_too_large_to_compute_with_are_refused():
    X, y = plain()
    with pytest.raises(ValueError, match=r"sample_weight holds 1e\+307.*divide"):
        BayesianLogisticRegression().fit(X, y, sample_weight=np.full(len(X), 1e307))


def test_names_of_columns_are_in_the_refusal():
    pandas = pytest.importorskip("pandas")
    X, y = plain()
    X[0, 2] = -1e200
    with pytest.raises(ValueError, match=r"Column 2 of X \('income'\) holds -1e\+200"):
        BayesianLogisticRegression().fit(pandas.DataFrame(X, columns=["a", "b", "income"]), y)


def test_a_posterior_that_is_far_from_its_mode_warns():
    X, y = plain()
    outlier = X.copy()
    outlier[3, 1] = -1e6 if y[3] == 0 else 1e6  # against what the other rows say
    x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    for rows, labels, scale in ((x, [0, 0, 1, 1], 1e4), (outlier, y, 1.0)):
        with pytest.warns(ConvergenceWarning, match="far from the Gaussian at its mode.*prior_scale"):
            BayesianLogisticRegression(scale, random_state=0).fit(rows, labels)
    BayesianLogisticRegression(10.0, random_state=0).fit(x, [0, 0, 1, 1])  # separable and skew, and right


@pytest.mark.parametrize(("sampler", "size"), [("nuts", 1e4), ("hmc", 2e3)])  # HMC at 1e4 is at the limit of R-hat
def test_samplers_that_correct_their_steps_may_go_far_from_the_mode(sampler, size):
    X, y = plain()
    X[3, 1] = -size if y[3] == 0 else size
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        BayesianLogisticRegression(sampler=sampler, random_state=0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="cannot be trusted"):
        BayesianLogisticRegression(random_state=0).fit(X, y)
