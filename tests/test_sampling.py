"""`sample` on bare targets: exact laws end to end, what does not fit, seeds and jobs."""

import os
import signal
import sys
import threading
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import sample
from sk_sgmcmc.metrics import rosenblatt_ks
from sk_sgmcmc.samplers import (
    HMC,
    SCIR,
    SGGMC,
    SGHMC,
    SGLD,
    SGNHT,
    SGRLD,
    Blob,
    CyclicalStep,
    ExponentialOU,
    MonteCarloEM,
    PolynomialDecay,
)
from sk_sgmcmc.samplers.schedules import Schedule
from sk_sgmcmc.targets import (
    ChainedVonMisesFisher,
    Density,
    DirichletCategorical,
    ExponentialMixture,
    GammaPoisson,
    GaussianMean,
    LogNormalMedian,
    MatrixCompletion,
    RestrictedGaussian,
)
from tests.cases import N_BATCHES, THRESHOLD, z_scores

CODES = np.repeat([0, 1, 2], [12, 6, 2])


def chain_means(draws):
    """One batch mean of value and square for each chain."""
    return np.hstack([draws.mean(axis=1), (draws**2).mean(axis=1)])


@pytest.mark.parametrize("sampler", [SCIR(step_size=0.5), "exact-dirichlet"])
def test_full_data_draws_have_the_exact_posterior(sampler, global_random_seed):
    target = DirichletCategorical(CODES, concentration=0.3, n_categories=4)
    result = sample(target, sampler, n_iter=600, burn_in=100, n_chains=N_BATCHES, random_state=global_random_seed)
    a = target.posterior_concentration()
    total = a.sum()
    exact = np.concatenate([a / total, a * (a + 1) / (total * (total + 1))])
    assert np.abs(z_scores(chain_means(result.samples_["omega"]), exact)).max() < THRESHOLD
    np.testing.assert_allclose(np.exp(result.samples_["log_omega"]), result.samples_["omega"], rtol=1e-9)
    np.testing.assert_allclose(result.samples_["omega"].sum(axis=-1), 1.0)


@pytest.mark.parametrize("n_batch", [4, "auto"])
def test_gamma_target_has_its_law_with_the_minibatch_term(n_batch, global_random_seed):
    counts, h = np.array([[0, 3], [1, 5], [4, 2], [1, 1], [2, 9], [0, 2], [3, 4], [1, 6]]), 0.3
    target = GammaPoisson(counts, shape=0.7, rate=2.0)
    result = sample(
        target, SCIR(step_size=h), batch_size=n_batch, with_replacement=True, n_iter=1500, burn_in=50,
        n_chains=N_BATCHES, random_state=global_random_seed,
    )  # fmt: skip
    a = 0.7 + counts.sum(axis=0)
    noise = 0.0 if n_batch == "auto" else len(counts) ** 2 * counts.var(axis=0) / n_batch
    mean = a / (2.0 + len(counts))
    variance = (a + (1 - np.exp(-h)) / (1 + np.exp(-h)) * noise) / (2.0 + len(counts)) ** 2
    values = chain_means(result.samples_["rate"])
    assert np.abs(z_scores(values, np.concatenate([mean, variance + mean**2]))).max() < THRESHOLD


@pytest.mark.parametrize("n_batch", [3, "auto"])
def test_log_normal_target_has_its_law_with_the_minibatch_term(n_batch, global_random_seed):
    rng = np.random.default_rng(3)
    values, h = np.exp(rng.normal([0.5, -1.0], 0.8, (12, 2))), 0.4
    target = LogNormalMedian(values, log_scale=0.8, prior_location=0.2, prior_scale=1.5)
    result = sample(
        target, ExponentialOU(step_size=h), batch_size=n_batch, with_replacement=True, n_iter=1500, burn_in=50,
        n_chains=N_BATCHES, random_state=global_random_seed,
    )  # fmt: skip
    precision = 1.5**-2 + 12 * 0.8**-2
    mean = (0.2 * 1.5**-2 + np.log(values).sum(axis=0) * 0.8**-2) / precision
    noise = 0.0 if n_batch == "auto" else 12**2 * np.log(values).var(axis=0) / n_batch * (0.8**-2 / precision) ** 2
    variance = 1 / precision + noise * (1 - np.exp(-h)) / (1 + np.exp(-h))
    draws = np.log(result.samples_["median"])
    assert np.abs(z_scores(chain_means(draws), np.concatenate([mean, variance + mean**2]))).max() < THRESHOLD


def test_scir_is_far_below_sgrld_in_ks_distance_on_the_sparse_posterior():
    # A small setting of the synthetic study; the table itself is examples/studies/plot_sparse_dirichlet.py.
    target = DirichletCategorical(np.repeat([0, 1, 2], [800, 100, 100]), concentration=0.1, n_categories=10)
    a = target.posterior_concentration()
    score = {}
    for name, sampler in {"scir": SCIR(step_size=0.05), "sgrld": SGRLD(step_size=5e-3)}.items():
        draws = sample(target, sampler, batch_size=100, with_replacement=True, n_iter=2000, random_state=0)
        score[name] = rosenblatt_ks(draws.samples_["log_omega"][0], a, log=True)
    exact = sample(target, "exact-dirichlet", n_iter=2000, random_state=0).samples_["omega"][0]
    assert rosenblatt_ks(exact, a) < 0.05
    assert score["scir"] < 0.15
    assert score["sgrld"] > 0.3


@pytest.mark.parametrize(
    "sampler", ["scir", "exact-dirichlet", *(SGRLD(parameterization=p) for p in ("expanded-mean", "reduced-mean"))]
)
def test_a_seed_gives_the_same_draws_whatever_the_jobs(sampler):
    target = DirichletCategorical(CODES, concentration=2.0)
    a, b = (
        sample(target, sampler, n_iter=300, n_chains=3, batch_size=5, n_jobs=n_jobs, random_state=3).samples_["omega"]
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(a, b)
    other = sample(target, sampler, n_iter=300, n_chains=3, batch_size=5, random_state=4).samples_["omega"]
    assert not np.allclose(a, other)
    assert not np.allclose(a[0], a[1])  # chains differ
    more = sample(target, sampler, n_iter=300, n_chains=4, batch_size=5, random_state=3).samples_["omega"]
    np.testing.assert_array_equal(a, more[:3])


SAMPLERS_OF_WHOLE_NUMBERS = [
    ("sgld", {}),
    (HMC(n_leapfrog=5), {"n_leapfrog": np.int8(5)}),
    (Blob(n_particles=7), {"n_particles": np.int8(7)}),
    (SGNHT(mass=MonteCarloEM(every=3)), {"mass__every": np.int8(3)}),
]


@pytest.mark.parametrize(("sampler", "narrow"), SAMPLERS_OF_WHOLE_NUMBERS, ids=str)
def test_narrow_integers_of_numpy_are_integers(sampler, narrow):
    target = GaussianMean(np.random.default_rng(0).normal(size=(100, 60)))
    given = {"n_iter": 60, "n_chains": 3, "thin": 2, "burn_in": 20, "batch_size": 25, "n_jobs": 2, "random_state": 5}
    whole = sample(target, sampler, **given)
    if narrow:
        sampler = clone(sampler).set_params(**narrow)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # of what overflows and goes on
        again = sample(target, sampler, **{name: np.int8(value) for name, value in given.items()})
    np.testing.assert_array_equal(again.samples_["theta"], whole.samples_["theta"])
    assert all(sampler.get_params()[name] is value for name, value in narrow.items())


@pytest.mark.parametrize("parameterization", ["expanded-mean", "expanded-natural", "reduced-mean", "reduced-natural"])
def test_all_parameterizations_of_sgrld_report_the_same_posterior(parameterization):
    target = DirichletCategorical(np.repeat(np.arange(3), 30), concentration=2.0)
    sampler = SGRLD(step_size=0.01, parameterization=parameterization)
    omega = sample(target, sampler, n_iter=40_000, n_chains=4, random_state=0, thin=20).samples_["omega"]
    np.testing.assert_allclose(omega.sum(axis=-1), 1.0)
    np.testing.assert_allclose(omega.mean(axis=(0, 1)), 1 / 3, atol=0.02)
    assert np.all(np.abs(omega.std(axis=(0, 1)) / stats.beta(32, 64).std() - 1) < 0.15)


def test_result_says_what_was_done_and_leaves_the_arguments_alone():
    sampler = SCIR()
    result = sample(DirichletCategorical(CODES), sampler, n_iter=50, burn_in=10, thin=4, random_state=0)
    assert result.samples_["omega"].shape == (1, 10, 3)
    assert result.n_iter_ == 50
    assert result.sampler_.step_size_(0) == 1.0
    assert not hasattr(sampler, "step_size_")
    start = sample(DirichletCategorical(CODES), "scir", n_iter=1, burn_in=0, init=[[5.0], [1.0], [1.0]], random_state=0)
    assert start.samples_["omega"].shape == (1, 1, 3)


def test_a_sampler_that_does_not_fit_names_those_that_do():
    with pytest.raises(ValueError, match=r"does not fit DirichletCategorical.*fit DirichletCategorical: .*scir, sgrld"):
        sample(DirichletCategorical(CODES), "exponential-ou")
    with pytest.raises(ValueError, match=r"Samplers that fit LogNormalMedian: exponential-ou\."):
        sample(LogNormalMedian(np.ones((3, 1))), "scir")
    with pytest.raises(ValueError, match="does not fit GammaPoisson"):
        sample(GammaPoisson(np.ones((3, 1))), "gibbs")


def test_every_target_has_a_sampler_of_its_own():
    cube = RestrictedGaussian(linear=[[0.0, 0.0, 5.0]])
    for target, geometry, name in [
        (DirichletCategorical(CODES), None, "scir"),
        (LogNormalMedian(np.ones((3, 1))), None, "exponential-ou"),
        (GaussianMean(np.eye(3)), None, "sghmc"),
        (cube, None, "sggmc"),
        (cube, "simplex", "sggmc"),
    ]:
        result = sample(target, geometry=geometry, n_iter=20, random_state=0)
        assert result.sampler_._name == name


OFF_FLAT_SPACE = [  # with the share of the right step sizes
    (RestrictedGaussian([[3.0, -2.0, 1.0]]), SGGMC(step_size=1.0), {}, r"mean square is 1\d\.\d times"),
    (RestrictedGaussian([[3.0, -2.0, 1.0]]), SGGMC(step_size=0.5), {"geometry": "simplex"}, r"mean square is [\d.]+ "),
    (DirichletCategorical(CODES, n_categories=5), SCIR(step_size=1.0), {"batch_size": 1}, r"omega .* is [3-5]\.?\d* "),
    (DirichletCategorical(CODES, n_categories=5), SGRLD(step_size=1.0), {}, r"omega .* is \d\.?\d* times the exact"),
    (GammaPoisson(np.arange(40).reshape(20, 2)), SCIR(step_size=3.0), {"batch_size": 1}, r"rate .* is \d+\.?\d* times"),
    (
        LogNormalMedian(np.exp(5.0 * np.eye(10))),
        ExponentialOU(step_size=3.0),
        {"batch_size": 1},
        r"median .* is \d\.\d times",
    ),
]


@pytest.mark.parametrize(("target", "sampler", "args", "says"), OFF_FLAT_SPACE)
def test_draws_off_flat_space_that_are_too_warm_warn_with_the_number_and_those_of_small_steps_do_not(
    target, sampler, args, says
):
    args = {"n_iter": 4000, "random_state": 0} | args
    with pytest.warns(ConvergenceWarning, match=f"{says}.*smaller step_size than {sampler.step_size:g}"):
        sample(target, sampler, **args)
    smaller = clone(sampler).set_params(step_size=sampler.step_size / (1000 if isinstance(sampler, SGRLD) else 10))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        sample(target, smaller, n_chains=2, **args | {"batch_size": "auto", "n_iter": 20_000})
    assert not [str(w.message) for w in caught if "too wide" in str(w.message) or "too fast" in str(w.message)]


def test_slow_chains_off_flat_space_are_not_told_to_take_smaller_steps():
    for target, sampler in [
        (DirichletCategorical(CODES, n_categories=5), SCIR(step_size=1e-3)),
        (RestrictedGaussian([[300.0, -200.0, 100.0]]), SGGMC(step_size=1e-4)),
    ]:
        with pytest.warns(ConvergenceWarning, match="have not converged: split R-hat") as record:
            sample(target, sampler, random_state=0)
        assert "smaller" not in str(record[0].message)


class Falling(Schedule):
    """A user's schedule that ends below 0."""

    def __call__(self, step):
        return 0.1 - 0.01 * np.asarray(step)


BAD = [
    ({"sampler": "metropolis"}, ValueError, "Samplers that fit"),
    ({"sampler": 3}, TypeError, "sampler must be"),
    ({"sampler": SCIR}, TypeError, "sampler must be"),
    ({"batch_size": 0}, ValueError, "batch_size"),
    ({"batch_size": 21}, ValueError, "batch_size"),
    ({"burn_in": 100, "n_iter": 50}, ValueError, "burn_in"),
    ({"thin": 100, "n_iter": 50}, ValueError, "thin"),
    ({"sampler": SCIR(step_size=-1.0)}, ValueError, "step_size"),
    ({"sampler": SCIR(step_size=PolynomialDecay(-0.1))}, ValueError, "initial"),
    ({"sampler": SCIR(step_size=CyclicalStep(cycle_length=0))}, ValueError, "cycle_length"),
    ({"sampler": SCIR(step_size=Falling())}, ValueError, "a schedule must give a positive number"),
    ({"burn_in": -0.5}, ValueError, "burn_in"),
    ({"thin": 0}, ValueError, "thin"),
    ({"n_chains": 0}, ValueError, "n_chains"),
    ({"init": [1.0, 2.0]}, ValueError, r"init has shape \(2,\)"),
    ({"init": [1.0, np.nan, 1.0]}, ValueError, "finite"),
    ({"random_state": "a"}, TypeError, "random_state"),
]


@pytest.mark.parametrize("arguments, error, match", BAD)
def test_bad_arguments_are_refused_with_their_name(arguments, error, match):
    with pytest.raises(error, match=match):
        sample(DirichletCategorical(CODES), **{"n_iter": 50, **arguments})


@pytest.mark.parametrize(
    "target, match",
    [
        (DirichletCategorical([]), "categories"),
        (DirichletCategorical([0, -1]), "categories"),
        (DirichletCategorical([0.5]), "categories"),
        (DirichletCategorical([0, 5], n_categories=3), "n_categories"),
        (DirichletCategorical([0, 1], concentration=[1.0, -1.0]), "concentration"),
        (DirichletCategorical([0, 2], concentration=[1.0, 1.0]), "concentration"),
    ],
)
def test_bad_categories_are_refused(target, match):
    with pytest.raises(ValueError, match=match):
        sample(target, n_iter=10)


def test_bad_values_and_targets_are_refused():
    with pytest.raises(ValueError, match="negative"):
        sample(GammaPoisson([[1, -1]]), n_iter=10)
    with pytest.raises(ValueError, match="positive"):
        sample(LogNormalMedian([[1.0, 0.0]]), "exponential-ou", n_iter=10)
    with pytest.raises(ValueError, match="log_scale=0"):
        sample(LogNormalMedian([[1.0, 2.0]], log_scale=0), "exponential-ou", n_iter=10)
    with pytest.raises(ValueError, match="rate=-50"):
        sample(GammaPoisson([[1, 1]], rate=-50), n_iter=10)
    with pytest.raises(ValueError, match="precision must be"):
        sample(GaussianMean(np.ones((4, 2)), precision=-np.eye(2)), "sgld", n_iter=10)
    with pytest.raises(ValueError, match=r"mass has shape \(3,\)"):
        sample(GaussianMean(np.ones((4, 2))), SGHMC(mass=[1.0, 1.0, 1.0]), n_iter=10)
    with pytest.raises(TypeError, match="target"):
        sample(np.ones(3))


@pytest.mark.parametrize("n_particles", [True, np.int8(100)])
def test_odd_whole_numbers_of_samplers_are_read_as_whole_numbers(n_particles):
    sampler = Blob(n_particles=n_particles)
    draws = sample(GaussianMean(np.ones((4, 2))), sampler, n_iter=10, random_state=0).samples_["theta"]
    assert draws.shape[1] == int(n_particles) and sampler.n_particles is n_particles


def test_scales_beyond_squares_are_refused():
    for scale in (1e-300, 1e300):
        with pytest.raises(ValueError, match=r"noise_scale=.*between 1e-100 and 1e100"):
            sample(MatrixCompletion(np.ones((4, 2)), [1.0], scale), n_iter=10)


@pytest.mark.parametrize("given", [{}, [[1.0], [1.0, 2.0]], ["a", "b"]], ids=["dict", "ragged", "texts"])
@pytest.mark.parametrize("sampler", [HMC, SGHMC, SGLD])
def test_masses_that_are_no_numbers_are_refused_by_name(sampler, given):
    name = "preconditioner" if sampler is SGLD else "mass"
    with pytest.raises(ValueError, match=f"{name}=.* must be a number or an array of numbers"):
        sample(GaussianMean(np.ones((4, 2))), sampler(**{name: given}), n_iter=10)


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT to oneself")
def test_an_interrupt_before_the_first_kept_draw_is_raised_and_a_later_one_returns_what_there_is():
    target, args = GaussianMean(np.ones((4, 2))), {"n_iter": 10**8, "thin": 10**4, "random_state": 0}
    sample(target, "sgld", n_iter=10)  # compiled
    for burn_in in (10**8 - 10**4, 0):
        press = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        press.start()
        if burn_in:
            with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="Interrupted after"):
                sample(target, "sgld", burn_in=burn_in, **args)
        else:
            with pytest.warns(UserWarning, match="the result contains the draws made so far"):
                result = sample(target, "sgld", burn_in=burn_in, **args)
            assert 0 < result.n_iter_ < 10**8
            assert result.samples_["theta"].shape[1] == result.n_iter_ // 10**4
        press.join()


def test_whole_numbers_too_large_for_numpy_are_numbers():
    directions = np.eye(3)[[0, 0, 1]]
    result = sample(ChainedVonMisesFisher(directions, prior_kappa=10**20), n_iter=4, random_state=0)
    assert np.all(np.isfinite(result.samples_["x"]))


def test_scales_of_any_type_of_number_mean_the_same():
    values = np.exp(np.random.default_rng(0).normal(size=(6, 1)))
    for scale in (np.uint64(3), np.int8(3), np.float32(3.0)):
        a, b = (sample(LogNormalMedian(values, prior_scale=s), n_iter=10, random_state=1) for s in (scale, 3.0))
        np.testing.assert_array_equal(a.samples_["median"], b.samples_["median"])


@pytest.mark.parametrize(
    "target, name",
    [
        (DirichletCategorical([0, 1], n_categories=(1.0, -1.0)), "n_categories"),
        (DirichletCategorical([0, 1], n_categories=2.5), "n_categories"),
        (DirichletCategorical([0, 0], n_categories=True), "n_categories"),
        (DirichletCategorical([0, 1], concentration=object()), "concentration"),
        (GammaPoisson([[1, 2]], shape=[1, 2]), "shape"),
        (LogNormalMedian([[1.0, 2.0]], prior_scale=(1, 2)), "prior_scale"),
        (LogNormalMedian([[1.0, 2.0]], prior_location=object()), "prior_location"),
        (LogNormalMedian([[1.0, 2.0]], prior_location=None), "prior_location"),
        (GaussianMean(np.ones((4, 2)), precision=object()), "precision"),
        (GaussianMean(np.ones((4, 2)), prior_precision="a"), "prior_precision"),
        (RestrictedGaussian(np.ones((1, 3)), quadratic=object()), "quadratic"),
        (ExponentialMixture(np.eye(3), weights={}), "weights"),
        (ExponentialMixture(np.eye(3), n_rows=1.5), "n_rows"),
        (Density(test_bad_values_and_targets_are_refused, dim="x"), "dim"),
        (Density(test_bad_values_and_targets_are_refused, dim=True), "dim"),
    ],
)
def test_parameters_of_targets_of_the_wrong_kind_are_refused_by_name(target, name):
    with pytest.raises(ValueError, match=f"^{name}=.* must be"):
        sample(target, n_iter=10)


def test_a_start_that_is_one_number_fits_one_number_only():
    with pytest.raises(ValueError, match=r"init has shape \(1,\); this target needs \(2, 1\)"):
        sample(GaussianMean(np.ones((4, 2))), n_iter=10, init=0.5)
    assert sample(GaussianMean(np.ones((4, 1))), n_iter=10, init=0.5, random_state=0).n_iter_ == 10


def test_a_transposed_start_is_refused():
    target = ExponentialMixture(np.eye(3), n_rows=2)
    points = np.eye(3)[:2]
    assert sample(target, "gmc", n_iter=5, init=points, random_state=0).n_iter_ == 5
    for init in (points.T, np.stack([points.T] * 2)):
        with pytest.raises(ValueError, match=r"this target needs \(2, 3\) or, with n_chains=2"):
            sample(target, "gmc", n_iter=5, n_chains=2, init=init)


def test_a_density_whose_curvature_has_no_square_gets_a_step_and_a_warning_that_it_did_not_converge():
    target = GaussianMean(np.random.default_rng(0).normal(size=(6, 2)), prior_precision=1e300)
    with pytest.warns(ConvergenceWarning, match="theta"):
        sample(target, n_iter=200, random_state=1)


def test_a_single_category_is_sampled_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        result = sample(DirichletCategorical(np.zeros(5, dtype=int), n_categories=1), "scir", random_state=0)
    assert np.all(result.samples_["omega"] == 1.0)
