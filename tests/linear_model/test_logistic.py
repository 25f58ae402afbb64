"""BayesianLogisticRegression: its signal, its mode, and its posterior against other ways to all three."""

import pickle
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from sk_sgmcmc import BayesianLogisticRegression
from sk_sgmcmc.dense.tuning import DenseGradient
from sk_sgmcmc.linear_model import _base, _design
from sk_sgmcmc.linear_model._design import Design, DiagonalDesign, independent_prior
from sk_sgmcmc.metrics import effective_sample_size
from sk_sgmcmc.samplers import HMC, SGHMC, ConstantStep
from tests.cases import THRESHOLD
from tests.common.compare import StopAt
from tests.common.instances import classes
from tests.conftest import importorskip


def log_posterior(X, y, weight, coef, intercept, prior_scale=1.0, wide=100.0):
    """Written from the model, without the estimator's coordinates: the intercept's prior is that at the mean row."""
    eta = X @ coef.T + intercept
    eta = np.column_stack([np.zeros(len(X)), eta]) if eta.shape[1] == 1 else eta
    likelihood = weight @ (eta[np.arange(len(y)), y] - np.logaddexp.reduce(eta, axis=1))
    centred = intercept + coef @ np.average(X, axis=0, weights=weight) * np.any(intercept)
    return likelihood - 0.5 * np.sum(coef**2) / prior_scale**2 - 0.5 * np.sum(centred**2) / wide**2


def signal_of(design, X, y, weight, n_batch):
    """The data as an estimator's kernels read them, with the log density."""
    return BayesianLogisticRegression()._data_maker(design, HMC(), X, y, weight)[0](n_batch)


def some_zeros(X, seed=0):
    """Small columns of which two thirds are zero."""
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X * (np.random.default_rng(seed).random(X.shape) < 1 / 3)


@pytest.mark.parametrize("kind", ["dense", "sparse", "diagonal"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("control", [True, False])
def test_signal_is_the_gradient_of_the_log_posterior_and_unbiased(n_classes, control, intercept, kind):
    X, y = classes(n_classes)
    X = X if kind == "dense" else some_zeros(X)
    rows = X if kind == "dense" else sparse.csr_matrix(X)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    K = 1 if n_classes == 2 else n_classes
    prior = independent_prior(K, 5, 1.0, 100.0 if intercept else None)
    design = (DiagonalDesign if kind == "diagonal" else Design)(rows, y, weight, K, prior, intercept, control)
    gradient = DenseGradient(signal_of(design, rows, y, weight, 10), (design.mode.size, 1))
    rng = np.random.default_rng(0)
    theta, base = rng.standard_normal(design.mode.size), np.zeros(design.mode.size)

    def direct(theta):
        return log_posterior(X, y, weight, *design.coefficients(theta))

    told, slope = gradient(theta)
    assert told - gradient(base)[0] == pytest.approx(direct(theta) - direct(base), abs=1e-6)
    steps = 1e-5 * np.eye(theta.size)
    seen = [(direct(theta + e) - direct(theta - e)) / 2e-5 for e in steps]
    np.testing.assert_allclose(slope, seen, rtol=1e-4, atol=1e-4)
    # The mean over all batches of a partition is the gradient itself.
    parts = [gradient(theta, np.arange(i, i + 10))[1] for i in range(0, 150, 10)]
    np.testing.assert_allclose(np.mean(parts, axis=0), slope, rtol=1e-8, atol=1e-8)
    if kind == "diagonal" or n_classes == 2:  # base is the mode; else the mean of the best Gaussian
        np.testing.assert_allclose(gradient(base)[1], 0.0, atol=1e-4 if kind != "diagonal" else 1e-2)


def test_control_variates_lower_the_variance_of_the_gradient():
    X, y = classes(2)
    X, y = np.tile(X, (20, 1)), np.tile(y, 20)
    weight, prior = np.ones(len(X)), independent_prior(1, 5, 1.0, 100.0)
    variance = {}
    for control in (True, False):
        design = Design(X, y, weight, 1, prior, True, control)
        gradient = DenseGradient(signal_of(design, X, y, weight, 10), (6, 1))
        rng = np.random.default_rng(0)
        parts = [gradient(rng.standard_normal(6), rng.integers(0, len(X), 30))[1] for _ in range(300)]
        variance[control] = np.var(parts, axis=0).mean()
    assert variance[True] < 0.05 * variance[False]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_mode_is_scikit_learns_estimate(n_classes, monkeypatch):
    monkeypatch.setattr(_design, "_NEAR", _design._EXACT)
    monkeypatch.setattr(_design, "_WIDTHS", ())  # the search for the best Gaussian starts there
    X, y = classes(n_classes)
    scale = X.std(axis=0)  # it needs scaled columns to converge; the prior is then on scaled coefficients
    other = LogisticRegression(C=4.0, tol=1e-10, max_iter=10_000)
    ours = BayesianLogisticRegression(n_iter=20, intercept_prior_scale=1e6, prior_scale=2.0).fit(X / scale, y)
    coef, intercept = ours._design.coefficients(np.zeros(ours._design.mode.size))
    other.fit(X / scale, y)
    np.testing.assert_allclose(coef, other.coef_, atol=2e-3)
    np.testing.assert_allclose(intercept - intercept.mean() * (n_classes > 2), other.intercept_, atol=2e-2)


def three_times(n_classes):
    X, y = classes(n_classes)
    return np.tile(X, (3, 1)), np.tile(y, 3)


@cache
def long_hmc(n_classes):
    hmc = BayesianLogisticRegression(sampler=HMC(n_leapfrog=5), n_iter=6000, thin=1, random_state=1)
    return hmc.fit(*three_times(n_classes))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("batch", ["auto", 50])
def test_default_posterior_is_that_of_long_hmc(n_classes, batch, global_random_seed):
    model = BayesianLogisticRegression(random_state=global_random_seed, batch_size=batch).fit(*three_times(n_classes))
    exact = long_hmc(n_classes)
    # All the draws that the chain kept: a hundred, as samples_ shows, are too few for these bounds.
    kept = dict(zip(("coef", "intercept"), model._design.coefficients(model._kept_theta(model._chains)), strict=True))
    for name in ("coef", "intercept"):
        ours, theirs = kept[name][0], exact.samples_[name][0]
        np.testing.assert_allclose(ours.mean(axis=0), getattr(model, name + "_"), rtol=1e-6, atol=1e-9)
        assert np.all(np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 0.25 * theirs.std(axis=0))
        assert np.all(np.abs(np.log(ours.std(axis=0) / theirs.std(axis=0))) < 0.2)


def test_units_of_columns_change_no_prediction_under_a_wide_prior():
    X, y = classes(2)
    units = np.array([1e-6, 1e6, 1.0, 1e3, 1e-3])
    args = {"prior_scale": 1e9, "intercept_prior_scale": 1e9, "random_state": 0, "n_iter": 400}
    a = BayesianLogisticRegression(**args).fit(X, y)
    b = BayesianLogisticRegression(**args).fit(X * units, y)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X * units), atol=1e-3)


def test_weights_count_rows():
    X, y = classes(3)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    args = {"random_state": 0, "n_iter": 400}
    # The draws agree where each step reads all rows; minibatches of weighted and of repeated rows differ.
    whole = {"batch_size": int((weight > 0).sum())}, {"batch_size": int(weight.sum())}
    weighted = BayesianLogisticRegression(**args, **whole[0]).fit(X, y, sample_weight=weight)
    repeated = BayesianLogisticRegression(**args, **whole[1]).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4, atol=1e-7)
    by_class = BayesianLogisticRegression(**args, class_weight={0: 2.0, 1: 1.0, 2: 0.5}).fit(X, y)
    by_row = BayesianLogisticRegression(**args).fit(X, y, sample_weight=np.array([2.0, 1.0, 0.5])[y])
    np.testing.assert_array_equal(by_class.coef_, by_row.coef_)
    balanced = BayesianLogisticRegression(**args, class_weight="balanced").fit(X[y < 2][20:], y[y < 2][20:])
    assert np.isfinite(balanced.coef_).all()
    with pytest.raises(ValueError, match="sample_weight"):
        BayesianLogisticRegression().fit(X, y, sample_weight=-np.ones(len(X)))
    for weight in ({}, "balanced", 1j, [[1.0], [1.0, 2.0]]):
        with pytest.raises(ValueError, match=r"sample_weight=.* must be a number or an array of numbers"):
            BayesianLogisticRegression().fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match=r"(?i)sample.weight.*zero"):
        BayesianLogisticRegression().fit(X, y, sample_weight=np.zeros(len(X)))


def test_sparse_rows_give_the_same_draws():
    X, y = classes(2)
    dense = BayesianLogisticRegression(random_state=0, n_iter=100).fit(X, y)
    for kind in (sparse.csr_array, sparse.csc_matrix):
        model = BayesianLogisticRegression(random_state=0, n_iter=100).fit(kind(X), y)
        np.testing.assert_array_equal(model.samples_["coef"], dense.samples_["coef"])
        np.testing.assert_allclose(model.predict_proba(kind(X)), dense.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_columns_of_any_spread_and_equal_ones_are_fitted(n_classes):
    X, y = classes(n_classes)
    rng = np.random.default_rng(0)
    plain = BayesianLogisticRegression(random_state=0).fit(X, y).score(X, y)
    for more in (rng.lognormal(15.0, 1.0, len(X)), rng.normal(1.7e9, 1e6, len(X)), 1e9 * X[:, 0]):
        wider = np.column_stack([X, more, more])
        assert BayesianLogisticRegression(random_state=0).fit(wider, y).score(wider, y) > plain - 0.05
        stream = BayesianLogisticRegression(random_state=0).partial_fit(wider[::2], y[::2])
        assert stream.partial_fit(wider[1::2], y[1::2]).score(wider, y) > plain - 0.05


def test_weights_of_classes_are_checked():
    X, y = classes(2)
    for bad in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="class_weight"):
            BayesianLogisticRegression(class_weight={0: bad, 1: 1.0}).fit(X, y)


@pytest.mark.parametrize(
    ("labels", "shown"),
    [(["a", 0], r"'a' \(str\) and 0 \(a number\)"), ([1, "b"], r"1 \(a number\)"), ([None, 1], "NoneType")],
)
def test_labels_of_several_types_are_refused_with_the_remedy(labels, shown):
    X, _ = classes(2, 90)
    y = np.array(labels * 45, dtype=object)
    for method in ("fit", "partial_fit"):
        with pytest.raises(ValueError, match=f"y mixes labels of different types, such as .*{shown}.*str\\(label\\)"):
            getattr(BayesianLogisticRegression(n_iter=20), method)(X, y)
    whole = BayesianLogisticRegression(n_iter=20, random_state=0).fit(X, [str(label) for label in y])
    assert set(whole.classes_) == {str(label) for label in labels}


def test_the_order_and_the_parts_of_sparse_entries_change_no_draw():
    X, y = classes(2, 90)
    X = sparse.csr_array(X)
    whole = BayesianLogisticRegression(n_iter=40, random_state=0).fit(X, y)
    halves = sparse.csr_array(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )  # and flags that are wrong
    halves.has_canonical_format = halves.has_sorted_indices = True
    again = BayesianLogisticRegression(n_iter=40, random_state=0).fit(halves, y)
    np.testing.assert_array_equal(again.samples_["coef"], whole.samples_["coef"])


def test_partial_fit_refuses_other_classes_and_balancing():
    X, y = classes(2)
    model = BayesianLogisticRegression(n_iter=20).partial_fit(X, y)
    with pytest.raises(ValueError, match="labels"):
        model.partial_fit(X, y + 1)
    with pytest.raises(ValueError, match="classes"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="balanced"):
        BayesianLogisticRegression(class_weight="balanced").partial_fit(X, y)
    with pytest.raises(ValueError, match="class"):
        BayesianLogisticRegression().fit(X, np.zeros(len(X)))


def test_partial_fit_takes_another_sampler_and_refuses_another_intercept():
    X, y = classes(2)
    model = BayesianLogisticRegression(sampler="blob", n_iter=20, random_state=0).partial_fit(X, y)
    model.set_params(sampler__n_particles=3).partial_fit(X, y)
    assert model.samples_["coef"].shape[1] == 3
    model.set_params(sampler="sghmc").partial_fit(X, y)
    assert np.all(np.isfinite(model.coef_))
    with pytest.raises(ValueError, match="fit_intercept=False differs"):
        model.set_params(fit_intercept=False).partial_fit(X, y)


def test_partial_fit_refuses_another_prior():
    X, y = classes(2)
    model = BayesianLogisticRegression(n_iter=20).partial_fit(X, y)
    for name, value in {"prior_scale": 0.1, "prior": "laplace", "intercept_prior_scale": 0.1}.items():
        before = getattr(model, name)
        with pytest.raises(ValueError, match=rf"{name}={value!r} differs from .*partial_fit.*restore it, or call fit"):
            model.set_params(**{name: value}).partial_fit(X, y)
        model.set_params(**{name: before}).partial_fit(X, y)


def test_resume_refuses_other_rows_labels_and_weights():
    X, y = classes(2)
    model = BayesianLogisticRegression(n_iter=20, random_state=0).fit(X, y)
    for data in ((X[:20], y[:20]), (X, 1 - y), (X, y, np.full(len(X), 2.0))):
        with pytest.raises(ValueError, match="pass the same again"):
            model.resume(*data)
    with pytest.raises(ValueError, match="labels"):
        model.resume(X, y + 7)
    model.resume(X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_log_probabilities_are_finite_where_probabilities_round_to_0(n_classes):
    X, y = classes(n_classes)
    model = BayesianLogisticRegression(random_state=0, n_iter=40).fit(X, y)
    far = np.vstack([1e4 * X[:3], -1e4 * X[:3]])
    assert model.predict_proba(far).min() == 0.0
    logs, decision = model.predict_log_proba(far), model.decision_function(far)
    assert np.all(np.isfinite(logs)) and np.all(np.isfinite(decision)) and logs.min() < -1e3
    best = decision > 0 if n_classes == 2 else decision.argmax(axis=1)
    np.testing.assert_array_equal(model.classes_[best.astype(int)], model.predict(far))


def test_predictions_average_probabilities_over_draws():
    X, y = classes(3)
    model = BayesianLogisticRegression(random_state=0, n_chains=2, n_iter=400, thin=20).fit(X, y)
    eta = np.einsum("csrf,nf->csnr", model.samples_["coef"], X) + model.samples_["intercept"][:, :, None]
    p = np.exp(eta - np.logaddexp.reduce(eta, axis=-1, keepdims=True)).reshape(-1, len(X), 3)
    np.testing.assert_allclose(model.predict_proba(X), p.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(model.classes_[model.decision_function(X).argmax(axis=1)], model.predict(X))
    two = BayesianLogisticRegression(random_state=0, n_iter=40).fit(X, y > 0)
    proba = two.predict_proba(X)
    np.testing.assert_allclose(two.decision_function(X), np.log(proba[:, 1] / proba[:, 0]), rtol=1e-9)
    mean, low, high = model.predict_interval(X, interval=0.8)
    np.testing.assert_allclose(mean, p.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(low, np.quantile(p, 0.1, axis=0, method="weibull"), rtol=1e-6)
    np.testing.assert_allclose(high, np.quantile(p, 0.9, axis=0, method="weibull"), rtol=1e-6)
    parts = model.predict_uncertainty(X)
    entropy = -np.sum(mean * np.log(mean), axis=1)
    np.testing.assert_allclose(parts.total, entropy, rtol=1e-9)
    np.testing.assert_allclose(parts.aleatoric + parts.epistemic, entropy, rtol=1e-9)
    assert np.all(parts.epistemic > 0)
    with pytest.raises(ValueError, match="interval"):
        model.predict_interval(X, interval=1.5)


def test_table_of_coefficients():
    pandas = importorskip("pandas")
    X, y = classes(2)
    frame = pandas.DataFrame(X, columns=list("abcde"))
    model = BayesianLogisticRegression(random_state=0).fit(frame, np.array(["no", "yes"])[y])
    table = model.coef_table(interval=0.5)
    assert list(table["feature"]) == ["intercept", *"abcde"] and set(table["class"]) == {"yes"}
    np.testing.assert_allclose(table["mean"][1:], model.coef_[0])
    draws = model._all_samples["coef"].reshape(-1, 5)  # of which samples_ shows a part
    np.testing.assert_allclose(table["sd"][1:], draws.std(axis=0, ddof=1))
    ends = np.quantile(draws, [0.25, 0.75], axis=0, method="weibull")
    np.testing.assert_allclose(np.array([table["low"], table["high"]])[:, 1:], ends)
    np.testing.assert_allclose(table["p_positive"][1:], (draws > 0).mean(axis=0))
    assert np.all(table["ess"] > 200)
    assert len(BayesianLogisticRegression(fit_intercept=False, n_iter=20).fit(X, y).coef_table()["mean"]) == 5


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sparse_rows_have_the_law_of_dense_ones(n_classes):
    X, y = classes(n_classes)
    X, y = np.tile(some_zeros(X), (3, 1)), np.tile(y, 3)
    X[:, 4] *= np.arange(len(X)) % 9 == 0  # few entries in all, so that rows are read as sparse ones
    X[:, 3] = 0.0
    args = {"random_state": 0, "n_iter": 1000, "batch_size": 90}
    dense = BayesianLogisticRegression(**args).fit(X, y)
    model = BayesianLogisticRegression(**args).fit(sparse.csr_array(X), y)
    assert model._chains[0].data[0].X.shape[1] == 2  # places of entries
    sd = dense.samples_["coef"].std(axis=(0, 1))
    assert np.all(np.abs(model.coef_ - dense.coef_) < 0.5 * sd)
    assert np.all(np.abs(np.log(model.samples_["coef"].std(axis=(0, 1)) / sd)) < 0.35)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_wide_model_has_the_law_of_the_exact_one(n_classes, monkeypatch):
    X, y = classes(n_classes)
    X = some_zeros(np.tile(X, (2, 1))) + np.array([0.5, 0.0, 0.0, 0.0, 0.0])  # a column of one sign
    y = np.tile(y, 2)
    exact = BayesianLogisticRegression(sampler=HMC(n_leapfrog=5), n_iter=6000, thin=1, random_state=1).fit(X, y)
    monkeypatch.setattr(_base, "MAX_ENTRIES", 4)
    model = BayesianLogisticRegression(random_state=0, n_iter=20_000).fit(sparse.csr_matrix(X), y)
    assert model._design.whitener.ndim == 1
    for name in ("coef", "intercept"):
        ours, theirs = model._all_samples[name][0], exact._all_samples[name][0]
        sd = theirs.std(axis=0)
        assert np.all(np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 0.3 * sd)
        assert np.all(np.abs(np.log(ours.std(axis=0) / sd)) < 0.2)


def common_shares(monkeypatch, **args):
    """What all classes share of each coefficient, in units of its prior's spread: (n_kept, n_features)."""
    X, y = classes(3)
    X, y = some_zeros(np.tile(X, (20, 1))), np.tile(y, 20)
    monkeypatch.setattr(_base, "MAX_ENTRIES", 4)
    model = BayesianLogisticRegression(random_state=0, n_iter=2000, prior_scale=10.0, **args)
    coef = model.fit(sparse.csr_matrix(X), y)._all_samples["coef"][0]
    return coef.sum(axis=1) / (np.sqrt(3) * 10.0)


def far_from_prior(shares):
    """Largest z-score of the mean and of the second moment."""
    moments = np.concatenate([shares, shares**2 - 1.0], axis=1)
    sizes = [effective_sample_size(each[None]) for each in moments.T]
    return np.abs(moments.mean(axis=0) * np.sqrt(sizes) / np.repeat([1.0, np.sqrt(2.0)], 5)).max()


def test_what_all_classes_share_has_its_prior_and_moves_freely(monkeypatch):
    shares = common_shares(monkeypatch)
    assert far_from_prior(shares) < THRESHOLD
    assert min(effective_sample_size(each[None]) for each in shares.T) > 0.3 * len(shares)


def test_the_hessians_diagonal_by_class_does_not_see_what_classes_share(monkeypatch):
    """The variant without turned classes: the same density, in which a chain of that length does not move freely."""

    class ByClass(DiagonalDesign):
        """Each turned coordinate has the mean of the classes' curvatures, as it would have without turning."""

        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            units = self.whitener.reshape(-1, 3)[:-1]
            units[:, 0] = units[:, 1:].mean(axis=1)

    monkeypatch.setattr(_base, "DiagonalDesign", ByClass)
    shares = common_shares(monkeypatch)
    assert min(effective_sample_size(each[None]) for each in shares.T) < 0.1 * len(shares)


def test_many_sparse_features():
    rng = np.random.default_rng(0)
    X = sparse.random_array((200, 6000), density=0.01, random_state=rng, format="csr")
    y = np.asarray(X[:, :100].sum(axis=1) - X[:, 100:200].sum(axis=1)).ravel() > 0
    model = BayesianLogisticRegression(n_iter=200, random_state=0).fit(X, y)
    assert model.samples_["coef"].shape[2:] == (1, 6000)
    other = LogisticRegression(tol=1e-10, max_iter=1000).fit(X, y)
    mode = model._design.coefficients(np.zeros(6001))[0]
    np.testing.assert_allclose(mode, other.coef_, atol=2e-3)
    again = BayesianLogisticRegression(n_iter=200, random_state=0).fit(X.tocsc(), y)
    np.testing.assert_array_equal(model.samples_["coef"], again.samples_["coef"])


def test_resume_takes_weights():
    X, y = classes(2)
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    whole = BayesianLogisticRegression(n_iter=60, random_state=0).fit(X, y, sample_weight=weight)
    part = BayesianLogisticRegression(n_iter=60, random_state=0, callbacks=StopAt(20)).fit(X, y, sample_weight=weight)
    assert part.n_iter_ == 20
    again = pickle.loads(pickle.dumps(part)).resume(X, y, sample_weight=weight)
    np.testing.assert_array_equal(again.samples_["coef"], whole.samples_["coef"])


@pytest.mark.real_data
@pytest.mark.parametrize("name", ["australian", "heart"])
def test_defaults_on_unscaled_real_data(name):
    from sk_sgmcmc.datasets import fetch_table

    data = fetch_table(name)
    train = np.arange(len(data.target)) % 5 > 0
    model = BayesianLogisticRegression(random_state=0).fit(data.data[train], data.target[train])
    mean, sd = data.data[train].mean(axis=0), data.data[train].std(axis=0)
    other = LogisticRegression().fit((data.data[train] - mean) / sd, data.target[train])
    ours = log_loss(data.target[~train], model.predict_proba(data.data[~train]))
    theirs = log_loss(data.target[~train], other.predict_proba((data.data[~train] - mean) / sd))
    assert ours < theirs + 0.02


@pytest.mark.parametrize(("curvatures", "reach"), [([2.0, 4.0, 5.0], 0.5), ([1.0, 1.0, 100.0], 1.4 / np.sqrt(100.0))])
def test_one_stiff_probe_bounds_the_step_of_several_classes_by_stability_only(curvatures, reach):
    model = BayesianLogisticRegression()
    model._n_predictors = 3
    assert model._automatic_step(SGHMC(), curvatures, 0.0) == pytest.approx(reach)
    assert model._automatic_step(SGHMC(scheme="euler"), curvatures, 0.0) == pytest.approx(
        0.4 / np.sqrt(max(curvatures))
    )
    # The noise of minibatches bounds it as before.
    assert model._automatic_step(SGHMC(friction=2.0), curvatures, 10.0) == pytest.approx(0.02)


def test_several_classes_make_fewer_of_short_steps():
    model = BayesianLogisticRegression()
    model._n_predictors = 7
    steps = {h: model._n_steps(SGHMC()._resolved(ConstantStep(h)), 385) for h in (0.5, 0.1, 0.04)}
    assert steps == {0.5: 600 * 4, 0.1: 10_000, 0.04: 200 * 50}
    model._n_predictors = 1
    assert model._n_steps(SGHMC()._resolved(ConstantStep(0.04)), 55) == 3000 * 50


def test_automatic_steps_allow_for_the_change_of_a_metric():
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    params = {"sampler": "sgr-nphmc", "prior_scale": 10**0.5, "fit_intercept": False, "n_iter": 1000}
    model = BayesianLogisticRegression(**params, batch_size=128, n_chains=4, random_state=0).fit(X, y)
    assert np.all(np.isfinite(model.samples_["coef"]))


@pytest.mark.parametrize("batch_size", [8, 32])
def test_automatic_steps_under_a_metric_from_few_rows_do_not_diverge(batch_size):
    """The metric is measured on enough rows, and steps are as long as it makes them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((270, 13)) + rng.standard_normal((270, 1))
    y = (rng.random(270) < 1.0 / (1.0 + np.exp(-X[:, 0]))).astype(int)
    params = {"sampler": "sgr-nphmc", "prior_scale": 10**0.5, "fit_intercept": False, "n_iter": 4000, "thin": 1}
    few = BayesianLogisticRegression(**params, batch_size=batch_size, n_chains=4, random_state=0).fit(X, y)
    exact = BayesianLogisticRegression(**{**params, "sampler": "hmc"}, random_state=0).fit(X, y)
    spread = few.samples_["coef"].std(axis=(0, 1)) / exact.samples_["coef"].std(axis=(0, 1))
    np.testing.assert_allclose(spread, 1.0, atol=0.12)  # 4 standard errors of some 600 independent draws
