"""BayesianGaussian against its exact posterior."""

import numpy as np
import pytest
from scipy import stats

from sk_sgmcmc import BayesianGaussian
from sk_sgmcmc.dense.tuning import DenseGradient
from sk_sgmcmc.exceptions import ChainDivergedError
from sk_sgmcmc.samplers import GFSD, HMC
from tests.cases import N_BATCHES, THRESHOLD, z_scores

MIX = np.array([[1.0, 0.0, 0.0], [5.0, 10.0, 0.0], [-30.0, 20.0, 100.0]])


def rows(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)) @ MIX.T + [5.0, 6.0, 700.0]


PRIORS = {
    "default": {},
    "flat mean": {"mean_precision_prior": 0.0},
    "informative": {
        "mean_prior": [0.0, 0.0, 600.0], "mean_precision_prior": 3.0, "degrees_of_freedom_prior": 9.0,
        "covariance_prior": np.diag([1.0, 50.0, 1e4]),
    },
}  # fmt: skip


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_log_density_is_that_of_the_exact_posterior_with_its_gradient(prior):
    X = rows(30)
    model = BayesianGaussian(n_iter=20, **prior).fit(X)
    law = model.exact_posterior(X)
    gradient = DenseGradient(model._dense(model._standardised(X), 30), (9, 1))
    rng = np.random.default_rng(1)
    told, exact = [], []
    for theta in rng.standard_normal((5, 9)):
        value, slope = gradient(theta)
        seen = [(gradient(theta + e)[0] - gradient(theta - e)[0]) / 2e-5 for e in 1e-5 * np.eye(9)]
        np.testing.assert_allclose(slope, seen, rtol=1e-4, atol=1e-5)
        for chain in model._chains:
            chain.theta[:, 0] = theta
            chain.n_kept = 0
        model._set_fitted(model._chains)
        mean, precision = model.samples_["mean"][0, 0], model.samples_["precision"][0, 0]
        density = stats.wishart(law.degrees_of_freedom, law.scale).logpdf(precision)
        density += stats.multivariate_normal(law.mean, np.linalg.inv(law.mean_precision * precision)).logpdf(mean)
        # The volume of Lambda = L L^T in L and the logarithm of its diagonal: prod 2 L_ii^(d - i + 1) L_ii.
        diagonal = np.diag(np.linalg.cholesky(model._root.T @ precision @ model._root))
        exact.append(density + np.sum(np.arange(4, 1, -1) * np.log(diagonal)))
        told.append(value)
    np.testing.assert_allclose(np.diff(told), np.diff(exact), rtol=1e-6, atol=1e-6)


def test_the_exact_posterior_is_the_documented_prior_times_the_likelihood():
    X, prior = rows(30), PRIORS["informative"]
    m0, kappa, nu, C = (
        prior[name] for name in ("mean_prior", "mean_precision_prior", "degrees_of_freedom_prior", "covariance_prior")
    )
    law = BayesianGaussian(n_iter=4, **prior).fit(X).exact_posterior(X)
    rng = np.random.default_rng(0)

    def log_density(mu, L, mean, kappa, nu, scale):
        normal = stats.multivariate_normal(mean, np.linalg.inv(kappa * L))
        return stats.wishart(nu, scale).logpdf(L) + normal.logpdf(mu)

    told, exact = [], []
    for L in stats.wishart(law.degrees_of_freedom, law.scale).rvs(4, random_state=rng):
        mu = rng.normal(law.mean, 1.0)
        told.append(log_density(mu, L, law.mean, law.mean_precision, law.degrees_of_freedom, law.scale))
        likelihood = stats.multivariate_normal(mu, np.linalg.inv(L)).logpdf(X).sum()
        exact.append(log_density(mu, L, np.array(m0), kappa, nu, np.linalg.inv(nu * C)) + likelihood)
    np.testing.assert_allclose(np.diff(told), np.diff(exact), rtol=1e-7)


@pytest.mark.parametrize("n", [12, 200])
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_hmc_draws_have_the_exact_posterior(prior, n, global_random_seed):
    X = rows(n)
    model = BayesianGaussian(
        sampler=HMC(n_leapfrog=5), n_iter=600, thin=1, n_chains=N_BATCHES, random_state=global_random_seed, **prior
    ).fit(X)
    law = model.exact_posterior(X)
    draws, exact = model.samples_["precision"], law.precision
    values = np.concatenate([model.samples_["mean"], draws.reshape(*draws.shape[:2], 9)], axis=2).mean(axis=1)
    assert np.abs(z_scores(values, np.concatenate([law.mean, exact.ravel()]))).max() < THRESHOLD
    spread = np.sqrt(2 * law.degrees_of_freedom * np.diag(law.scale) ** 2)
    assert np.all(np.abs(np.diagonal(draws.std(axis=(0, 1))) / spread - 1.0) < 0.1)


@pytest.mark.parametrize("args", [{}, {"batch_size": 100}], ids=["full", "minibatch"])
def test_default_draws_are_close_to_the_exact_posterior(args):
    X = rows(1000)
    model = BayesianGaussian(random_state=0, **args).fit(X)
    exact = model.exact_samples(X, 20_000, random_state=1)
    for name in ("mean", "precision"):
        ours, theirs = model.samples_[name][0], exact[name]
        assert np.all(np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < 0.25 * theirs.std(axis=0))
        assert np.all(np.abs(np.log(ours.std(axis=0) / theirs.std(axis=0))) < 0.25)


def test_scores_are_log_predictive_densities():
    X = rows(200)
    model = BayesianGaussian(random_state=0).fit(X)
    law, d = model.exact_posterior(X), 3
    nu = law.degrees_of_freedom - d + 1
    shape = np.linalg.inv(law.scale) * (law.mean_precision + 1) / (law.mean_precision * nu)
    exact = stats.multivariate_t(law.mean, shape, df=nu).logpdf(X)
    np.testing.assert_allclose(model.score_samples(X), exact, atol=0.1)
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())


def test_the_units_of_the_columns_change_nothing():
    X = rows(50)
    one, small = (BayesianGaussian(n_iter=50, random_state=0).fit(unit * X) for unit in (1.0, 1e-7))
    np.testing.assert_allclose(small.precision_ * 1e-14, one.precision_, rtol=1e-6)
    np.testing.assert_allclose(small.exact_posterior(1e-7 * X).precision * 1e-14, one.exact_posterior(X).precision)


def test_resume_refuses_other_rows():
    X = rows(50)
    model = BayesianGaussian(n_iter=50, random_state=0).fit(X)
    with pytest.raises(ValueError, match="pass the same again"):
        model.resume(X[:20])


@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
def test_a_stream_has_the_exact_posterior_of_all_rows(prior, global_random_seed):
    X = rows(400)
    given = {"mean_prior": [5.0, 6.0, 700.0], "covariance_prior": np.diag([1.0, 50.0, 1e4]), **prior}
    whole = BayesianGaussian(n_iter=20, **given).fit(X).exact_posterior(X)
    stream = BayesianGaussian(sampler=HMC(), n_iter=4000, thin=10, random_state=global_random_seed, **given)
    for block in (X[:150], X[150:399], X[399:]):
        stream.partial_fit(block)
    assert stream.n_samples_seen_ == 400
    law = stream.exact_posterior(X[399:])
    for name, value in whole.items():
        np.testing.assert_allclose(law[name], value, rtol=1e-9, err_msg=name)
    mean, precision = stream.samples_["mean"][0], stream.samples_["precision"][0][:, [0, 1, 2], [0, 1, 2]]
    parts = np.array_split(np.hstack([mean, precision]), N_BATCHES)
    values = np.stack([part.mean(axis=0) for part in parts])
    assert np.abs(z_scores(values, [*whole.mean, *np.diag(whole.precision)])).max() < THRESHOLD


def test_bad_priors_are_refused():
    for bad in (
        {"degrees_of_freedom_prior": 1.5},
        {"covariance_prior": -np.eye(3)},
        {"covariance_prior": {}},
        {"covariance_prior": np.eye(3) + np.eye(3, k=1)},
        {"covariance_prior": np.full((3, 3), np.nan)},
        {"mean_prior": [0.0]},
        {"mean_prior": [0.0, np.nan, 0.0]},
        {"mean_precision_prior": -1.0},
    ):
        with pytest.raises(ValueError, match=next(iter(bad))):
            BayesianGaussian(**bad).fit(rows(20))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_precision_beyond_all_numbers_is_a_divergence():
    X = np.random.default_rng(2).normal(size=(14, 6))
    with pytest.raises(ChainDivergedError, match=r"precision is too large|became infinite"):
        BayesianGaussian(n_iter=2, sampler=GFSD(n_particles=3, step_size=1000.0), random_state=0).fit(X)


def test_a_number_of_exact_draws_that_is_none_is_refused():
    X = rows(50)
    with pytest.raises(ValueError, match="n_draws=None must be a whole number of at least 1"):
        BayesianGaussian(n_iter=20, random_state=0).fit(X).exact_samples(X, None)
