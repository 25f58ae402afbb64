"""The prior of smooth functions: its precision, the law of coefficients under it, and what it does at the ends."""

import numpy as np
import pytest
from scipy import integrate, interpolate

from sk_sgmcmc import DMRTopicModel
from sk_sgmcmc.covariates import smoothness
from sk_sgmcmc.covariates.formula import FormulaEncoder
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.dense.rows import DenseRows
from sk_sgmcmc.samplers import SGHMC
from sk_sgmcmc.topic._dmr import coefficients as _coefficients
from sk_sgmcmc.topic._dmr.coefficients import Coefficients
from sk_sgmcmc.topic._dmr.group_counts import counts_of_rows, information, likelihood
from tests.cases import THRESHOLD, z_scores
from tests.conftest import importorskip
from tests.naive import dmr as naive
from tests.tiny_lda import batch_means

YEAR = np.linspace(1900.0, 2000.0, 81) ** 1.01
PARTY = np.where(np.arange(81) % 3 == 0, "a", "b")
TABLE = {"year": YEAR, "party": PARTY}
SCALES = (0.8, 1.2)


@pytest.fixture(autouse=True)
def formulaic():
    return importorskip("formulaic")


def encoder(formula, table=TABLE):
    return FormulaEncoder(formula).fit(table)


def given_precisions(formula, scales=SCALES):
    """Precisions of the coefficients of the columns as given."""
    made = encoder(formula)
    return [
        matrix * np.outer(made.scale[columns], made.scale[columns])
        for columns, matrix in made.smooth_precisions(scales)
    ]  # fmt: skip


# -------------------------------------------------------------------------------------------------------- the precision


def test_the_precision_is_the_integral_of_the_squared_slope():
    (precision,) = given_precisions("~ bs(year, df=4)")
    low, high = YEAR[0], YEAR[-1]
    knots = np.r_[[low] * 4, np.quantile(YEAR, 0.5), [high] * 4]
    rng = np.random.default_rng(0)
    for b in rng.normal(size=(3, 4)):
        slope = interpolate.BSpline(knots, np.r_[0.0, b], 3).derivative()
        value = integrate.quad(lambda u, f=slope: (f(low + u * (high - low)) * (high - low)) ** 2, 0, 1, limit=200)[0]
        assert b @ precision @ b == pytest.approx(value / 4.0 / SCALES[0] ** 2, rel=1e-3)


@pytest.mark.parametrize("other", ["poly(year, 3)", "poly(year, 3, raw=True)"])
def test_the_prior_belongs_to_functions_not_to_their_basis(other):
    points = YEAR[[0, 10, 40, 80]]
    laws = []
    for formula in ("~ bs(year, df=3)", f"~ {other}"):
        made = encoder(formula)
        rows = made.encode({"year": points}, 4, "error")
        (precision,) = given_precisions(formula)
        steps = np.diff(rows, axis=0)
        laws.append(steps @ np.linalg.solve(precision, steps.T))
    np.testing.assert_allclose(laws[1], laws[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "formula", ["~ bs(year, df=40)", "~ cr(year, df=40)", "~ cr(year, df=30, constraints='center')"]
)
def test_with_many_functions_the_prior_is_brownian_motion(formula):
    made = encoder(formula)
    points = np.array([YEAR[0], YEAR[0] + 0.25 * np.ptp(YEAR), YEAR[-1]])
    steps = np.diff(made.encode({"year": points}, 3, "error"), axis=0)
    (precision,) = given_precisions(formula)
    covariance = steps @ np.linalg.solve(precision, steps.T)
    expected = 4.0 * SCALES[0] ** 2 * np.diag([0.25, 0.75])
    np.testing.assert_allclose(covariance, expected, atol=0.1 * expected.max())


def test_the_mean_of_a_function_is_penalised_where_the_intercept_does_not_absorb_it():
    (alone,) = encoder("~ bs(year, df=4)").smooth
    assert not alone.has_level
    (whole,) = encoder("~ cr(year, df=4)").smooth  # the functions sum to 1
    assert whole.has_level and whole.is_proper
    (matrix,) = given_precisions("~ cr(year, df=4)")
    ones = np.ones(4)
    assert ones @ matrix @ ones == pytest.approx(SCALES[1] ** -2.0)
    two = encoder("~ party * cr(year, df=4)").smooth
    assert [each.alone for each in two] == [True, False]
    (_, matrix) = given_precisions("~ party * cr(year, df=4)")
    assert ones @ matrix @ ones == pytest.approx(SCALES[0] ** -2.0)


@pytest.mark.parametrize("first", [0, 1, 1900])
def test_points_that_differ_by_rounding_do_not_matter(first):
    year = np.arange(first, first + 80.0)  # A quantile and a point of the grid differ by 4e-16 in some of these ranges.
    points = smoothness.grid(year)
    assert np.diff(points).min() > 1e-3 and points[0] == year[0] and points[-1] == pytest.approx(year[-1])
    ((columns, precision),) = FormulaEncoder("~ bs(year, df=4)").fit({"year": year}).smooth_precisions((1.0, 1.0))
    assert len(columns) == 4 and np.linalg.eigvalsh(precision).min() > 0.0


def test_each_level_has_a_function_of_its_own():
    made = encoder("~ 0 + party * bs(year, df=5) + party:poly(year, 2)")
    names = [[made.names[i] for i in each.columns] for each in made.smooth]
    assert [len(each) for each in names] == [5, 5, 2, 2] or [len(each) for each in names] == [5, 2, 2, 5]
    for each in names:
        assert len({name.partition("year")[0] for name in each}) == 1
    columns = np.concatenate([each.columns for each in made.smooth])
    assert np.unique(columns).size == columns.size


def test_a_function_times_a_number_has_its_spread():
    table = {**TABLE, "length": np.random.default_rng(0).normal(10.0, 3.0, 81)}
    plain, times = (encoder(formula, table).smooth[0] for formula in ("~ cc(year, df=4)", "~ length:cc(year, df=4)"))
    assert plain.spread == 1.0 and times.spread == pytest.approx(table["length"].std())
    np.testing.assert_allclose(times.roughness, plain.roughness)


def test_what_is_no_basis_of_one_number_is_left_independent():
    table = {**TABLE, "size": np.arange(81.0) ** 0.5}
    formula = "~ party + year + log(year) + bs(year + size, df=4) + bs(year, df=3):bs(size, df=3) + C(year > 1950)"
    made = encoder(formula, table)
    assert made.smooth == [] and made.smooth_precisions(SCALES) == []


# ---------------------------------------------------------------------------------- the law of coefficients under it

TOPIC_COUNTS = np.array([[4.0, 1.0], [0.0, 6.0], [3.0, 0.0], [7.0, 2.0]])


def coupled(sampler, **params):
    """Coefficients of three columns, of which two are coupled, and an intercept; and their precision."""
    block = np.array([[3.0, -2.0], [-2.0, 2.5]])
    made = Coefficients(sampler, True, np.full(2, 0.5), 3, SCALES, [(np.array([0, 2]), block)], **params)
    precision = np.diag([0.0, SCALES[0] ** -2.0, 0.0, SCALES[1] ** -2.0])
    precision[np.ix_([0, 2], [0, 2])] = block
    return made, precision


def test_gradient_and_mode_are_those_of_the_coupled_prior():
    made, precision = coupled(SGHMC())
    np.testing.assert_array_equal(made.prior.matrix(), precision)
    rng = np.random.default_rng(0)
    rows = DenseRows(rng.normal(size=(4, 3)), np.zeros(3), np.ones(3), True)
    known, value = counts_of_rows(TOPIC_COUNTS, np.arange(4)), rng.normal(size=(2, 4))
    found = made.gradient(rows.pull(likelihood(known, np.exp(rows.predict(value)))[1]), value)
    flat = np.full(4, 1e100)  # the naive prior is independent, and is here left out

    def log_posterior(value):
        shift = value - made.mean
        log_likelihood = naive.log_posterior(value, rows.Z, TOPIC_COUNTS, made.mean, flat)
        return log_likelihood - 0.5 * np.sum(shift @ precision * shift)

    for k in range(2):
        for t in range(4):
            step = np.zeros((2, 4))
            step[k, t] = 1e-5
            slope = (log_posterior(value + step) - log_posterior(value - step)) / 2e-5
            assert found[k, t] == pytest.approx(slope, rel=1e-5, abs=1e-6)
    prior = made.doc_priors(rows)
    made.choose_coordinates(made.curvature(rows, prior, information(known, prior)))

    def likelihood_of(value):
        density, residual = likelihood(known, made.doc_priors(rows, value), with_value=True)
        return density, rows.pull(residual)

    made.maximise(likelihood_of, {"maxiter": 200})
    slope = made.gradient(likelihood_of(made.value)[1], made.value)
    assert np.abs(slope).max() < 0.05


def moments_under_the_prior(seed, break_it=False, coordinates="joint", n_steps=10_000, monkeypatch=None):
    """Batch means of the coefficients of a topic, and of their products, where no document has a word."""
    made, precision = coupled(SGHMC(0.3))
    if coordinates == "diagonal":
        monkeypatch.setattr(_coefficients, "_MAX_CELLS", 1)
    rows = DenseRows(np.zeros((1, 3)), np.zeros(3), np.ones(3), True)
    nothing = tuple(np.zeros(shape) for shape in ((1, 2), 1, (1, 2), (1, 2)))
    made.choose_coordinates(made.curvature(rows, made.doc_priors(rows), nothing, jointly=coordinates == "joint"))
    if break_it:
        made.prior.coupled = []  # mistake: only the diagonal of the precision
    rng, values = np.random.default_rng(seed), np.empty((n_steps, 4))
    for t in range(-200, n_steps):
        made.move(np.zeros_like, rng)
        values[t] = made.value[0] - made.mean[0]
    upper = np.triu_indices(4)
    law = np.concatenate([np.zeros(4), np.linalg.inv(precision)[upper]])
    products = values[:, upper[0]] * values[:, upper[1]]
    return np.abs(z_scores(batch_means(np.hstack([values, products])), law)).max()


@pytest.mark.parametrize("coordinates", ["joint", "by topic", "diagonal"])
def test_coefficients_have_the_law_of_the_coupled_prior(coordinates, global_random_seed, monkeypatch):
    z = moments_under_the_prior(global_random_seed, coordinates=coordinates, monkeypatch=monkeypatch)
    assert z < THRESHOLD


def test_a_prior_without_the_coupling_is_rejected(global_random_seed):
    assert moments_under_the_prior(global_random_seed, break_it=True) > 1.3 * THRESHOLD


@pytest.mark.parametrize("params", [{}, {"assignments": "fresh"}], ids=str)
def test_chains_use_the_prior(params):
    data = make_lda(81, 20, 2, document_length=10, random_state=0)
    formula = "~ party + bs(year, df=4)"
    shared = {"formula": formula, "n_iter": 6, "random_state": 0, "metadata_prior_scale": 0.8, **params}
    model = DMRTopicModel(2, **shared).fit(data.counts, metadata=TABLE)
    made = encoder(formula)
    ((columns, block),) = made.smooth_precisions((0.8, 1.0))
    precision = np.diag(np.append(np.full(5, 0.8**-2.0), 1.0))
    precision[np.ix_(columns, columns)] = block
    np.testing.assert_allclose(model._chains[0].doc_prior.coefficients.prior.matrix(), precision)
    rough = DMRTopicModel(2, spline_prior="independent", **shared).fit(data.counts, metadata=TABLE)
    np.testing.assert_allclose(
        rough._chains[0].doc_prior.coefficients.prior.matrix(), np.diag(np.append(np.full(5, 0.8**-2.0), 1.0))
    )


def test_the_band_stays_narrow_where_a_group_has_no_documents():
    rng = np.random.default_rng(1)
    year = np.r_[rng.uniform(1900.0, 2000.0, 200), rng.uniform(1940.0, 2000.0, 100)]
    party = np.repeat(["a", "b"], [200, 100])
    topics = make_lda(1, 40, 3, topic_word_prior=0.05, random_state=1).components
    u = (year - 1950.0) / 50.0
    theta = np.array([rng.dirichlet(alpha) for alpha in np.exp(np.column_stack([u, -u, 0.5 * u**2]) - 1.0)])
    X = np.array([rng.multinomial(30, p / p.sum()) for p in theta @ topics])
    early, widths = np.linspace(year.min(), 1935.0, 8), []
    for prior in ("independent", "smooth"):
        model = DMRTopicModel(3, formula="~ party * bs(year, df=8)", spline_prior=prior, n_iter=200, random_state=0)
        model.fit(X, metadata={"year": year, "party": party})
        _, low, high = model.predict_prevalence({"year": early, "party": ["b"] * 8}, interval=0.9)
        widths.append((high - low).mean())
    assert widths[1] < 0.8 * widths[0]
