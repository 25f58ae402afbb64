"""A user's own density through `sample`: its law, and what functions of the wrong kind get."""

import numba
import numpy as np
import pytest

from sk_sgmcmc import sample
from sk_sgmcmc.dense.chain import DenseData
from sk_sgmcmc.dense.tuning import DenseGradient
from sk_sgmcmc.samplers import HMC, RHMC, SGLD
from sk_sgmcmc.targets import Density, GaussianMean

ROWS = np.random.default_rng(0).normal([1.0, -2.0], 1.0, (60, 2))


def gaussian(theta, rows, scale, gradient):
    value = 0.0
    gradient[:] = 0.0
    for i in range(rows.shape[0]):
        for j in range(theta.shape[0]):
            residual = rows[i, j] - theta[j]
            gradient[j] += scale * residual
            value -= 0.5 * scale * residual**2
    return value


jitted = numba.njit(gaussian)


@pytest.mark.parametrize("function", [gaussian, jitted], ids=["python", "jitted"])
@pytest.mark.parametrize("sampler", [HMC(), SGLD(step_size=0.002)], ids=["hmc", "sgld"])
def test_gives_the_draws_of_the_built_in_target(function, sampler):
    args = {"n_iter": 200, "random_state": 0, "batch_size": 20, "n_chains": 2}
    own = sample(Density(function, 2, ROWS, start=ROWS.mean(axis=0), control_variates=False), sampler, **args)
    known = sample(GaussianMean(ROWS), sampler, **args)
    np.testing.assert_allclose(own.samples_["theta"], known.samples_["theta"], rtol=1e-8)


def test_functions_that_do_not_fit_are_refused_with_the_way_out():
    @numba.njit
    def no_gradient(theta, rows):
        return -0.5 * theta[0] ** 2

    @numba.njit
    def wrong_gradient(theta, rows, scale, gradient):
        gradient[0] = -3.0 * (theta[0] - 1.0)
        return -0.5 * (theta[0] - 1.0) ** 2

    @numba.njit
    def cannot_compile(theta, rows, scale, gradient):
        return theta.no_such_thing

    for function, message in ((no_gradient, "gradient"), (wrong_gradient, "does not fit"), (cannot_compile, "numba")):
        with pytest.raises(ValueError, match=message):
            sample(Density(function, dim=1), "hmc")
    with pytest.raises(TypeError, match="function"):
        sample(Density(3, dim=1), "hmc")
    with pytest.raises(ValueError, match="start"):
        sample(Density(jitted, dim=2, start=[0.0]), "hmc")


def metric(theta, rows, scale, G, dG):
    dG[:] = 0.0
    for j in range(theta.shape[0]):
        G[j] = scale * rows.shape[0] * (1.0 + 0.2 * np.sin(theta[j]))
        dG[j, j] = scale * rows.shape[0] * 0.2 * np.cos(theta[j])


@numba.njit
def full_metric(theta, rows, scale, G, dG):
    dG[:] = 0.0
    G[:] = 0.0
    for j in range(theta.shape[0]):
        G[j, j] = scale * rows.shape[0] * (1.0 + 0.2 * np.sin(theta[j]))
        dG[j, j, j] = scale * rows.shape[0] * 0.2 * np.cos(theta[j])


@pytest.mark.parametrize("sampler", ["rhmc", "sgr-nphmc"])
def test_a_diagonal_metric_is_the_same_as_a_full_one_and_keeps_the_target(sampler):
    args = {"n_iter": 1000, "random_state": 0, "batch_size": 20, "with_replacement": True}
    draws = [
        sample(Density(jitted, 2, ROWS, ROWS.mean(axis=0), metric=f, metric_is_diagonal=f is metric), sampler, **args)
        for f in (metric, full_metric)
    ]
    a, b = (each.samples_["theta"][0] for each in draws)
    np.testing.assert_allclose(a, b, rtol=1e-6)
    assert np.all(np.abs(a.mean(axis=0) - ROWS.mean(axis=0)) < 5.0 / np.sqrt(len(ROWS)) / 5.0)
    assert np.all(np.abs(np.log(a.std(axis=0) * np.sqrt(len(ROWS)))) < 0.4)


def test_metrics_that_do_not_fit_are_refused_with_the_way_out():
    @numba.njit
    def not_positive(theta, rows, scale, G, dG):
        G[:] = 0.0
        dG[:] = 0.0

    @numba.njit
    def wrong_rates(theta, rows, scale, G, dG):
        G[0] = np.exp(theta[0])
        G[1] = 1.0
        dG[:] = 0.0

    @numba.njit
    def no_rates(theta, rows, scale, G):
        G[:] = 1.0

    for function, message in (
        (None, "metric=None"), (no_rates, "derivatives"), (not_positive, "positive definite"),
        (wrong_rates, "do not fit the metric"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            sample(Density(jitted, 2, ROWS, metric=function, metric_is_diagonal=True), RHMC(), n_iter=10)


@numba.njit
def poisson_rate(theta, rows, scale, gradient):
    value, gradient[0] = -0.05 * theta[0] ** 2, -0.1 * theta[0]
    for i in range(rows.shape[0]):
        value += scale * (rows[i, 0] * theta[0] - np.exp(theta[0]))
        gradient[0] += scale * (rows[i, 0] - np.exp(theta[0]))
    return value


def test_control_variates_take_out_the_noise_at_the_mode_and_nothing_else():
    counts = np.random.default_rng(0).poisson(4.0, (400, 1))
    args = {"dim": 1, "data": counts, "start": [1.0]}
    plain_signal, start = Density(poisson_rate, **args)._signal(), np.array([[1.0]])
    dense = DenseData(counts.astype(float), np.zeros((400, 0)), np.ones(400), np.zeros(0), plain_signal, 20)
    (controlled_dense, _), (plain_dense, _) = (
        Density(poisson_rate, control_variates=control, **args)._prepared(dense, start, SGLD(step_size=1.0))
        for control in (True, False)
    )
    gradients = {False: DenseGradient(plain_dense, (1, 1)), True: DenseGradient(controlled_dense, (1, 1))}
    theta, blocks = np.array([1.45]), np.arange(400).reshape(20, 20)
    plain, controlled = (np.array([gradients[c](theta, b)[1] for b in blocks]) for c in (False, True))
    np.testing.assert_allclose(controlled.mean(), gradients[False](theta)[1][0], rtol=1e-6)
    np.testing.assert_allclose(controlled.mean(), plain.mean(), rtol=1e-6)
    assert controlled.var() < 1e-6 * plain.var()  # the likelihood's curvature is the same for all rows here
    draws = sample(
        Density(poisson_rate, control_variates=True, **args), SGLD(step_size=2e-5), batch_size=20, n_iter=40_000,
        random_state=0,
    ).samples_["theta"]  # fmt: skip
    # The posterior is nearly normal: mode and curvature.
    total = counts.sum()
    assert abs(draws.mean() - np.log(total / 400)) < 0.5 / np.sqrt(total)
    assert abs(np.log(draws.std() * np.sqrt(total))) < 0.15
