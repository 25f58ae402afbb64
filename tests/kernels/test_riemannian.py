"""Riemannian kernels against their slow twins, step by step; their energy; the metrics of the models."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from sk_sgmcmc import BayesianGaussian, BayesianLogisticRegression
from sk_sgmcmc.dense.tuning import check_metric, metric_at
from sk_sgmcmc.kernels._jit import OK, kernel
from sk_sgmcmc.kernels.models.conjugate import gaussian_mean
from sk_sgmcmc.kernels.samplers import mass as at
from sk_sgmcmc.kernels.samplers import riemannian
from sk_sgmcmc.samplers import RHMC, SGRNPHMC
from tests.flat_cases import PRECISION, D, bent, bent_metric, gradient, log_density
from tests.naive import riemannian as naive

DATA = np.zeros((1, D)), np.zeros((1, 0)), np.ones(1), np.concatenate([[0.0], PRECISION.ravel()])
START = np.array([0.3, -1.0, 0.7])


def diagonal(theta):
    G, dG = bent(theta)
    return np.diag(np.diag(G)), np.stack([np.diag(np.diag(rates)) for rates in dG])


@kernel(riemannian.METRIC)
def diagonal_metric(theta, X, y, weight, params, scale, out, extra):
    """The diagonal of `bent`."""
    out[:] = 0.0
    for i in range(D):
        out[0, i] = 1.3 + np.tanh(theta[i, 0])
        if out.shape[0] > 1:
            out[1 + i, i] = 1.0 - np.tanh(theta[i, 0]) ** 2
    return OK


METRICS = {"full": (bent, bent_metric, False), "diagonal": (diagonal, diagonal_metric, True)}
each_metric = pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)


def machine(sampler, metric, h, seed=0):
    """A function that makes one step of the sampler; (theta, aux, scalars)."""
    fitted = sampler._resolved(h)
    rng, theta = np.random.default_rng(seed), START[:, None].copy()
    aux, scalars = fitted._state(theta, "euclidean", 0)
    hyper, kept = fitted._hyper(0, 1), np.empty((1, D, 1))
    rest = metric[2], hyper, np.zeros(1, np.int64), kept, gaussian_mean.compiled, metric[1].compiled, rng

    def step():
        if fitted._loop == "riemannian-metropolis":
            made = riemannian.run_metropolis(theta, aux, scalars, *DATA, np.zeros(0), *rest)
        else:
            starts = np.zeros(1, np.int64)
            made = riemannian.run_dense(theta, aux, scalars, *DATA, starts, 1, 1.0, *DATA[:3], np.zeros(0), 1.0, *rest)
        assert made == (OK, 1)
        np.testing.assert_array_equal(kept[0], theta)

    return step, theta, aux, scalars


@each_metric
@pytest.mark.parametrize("n, tolerance", [(2, 0.0), (60, 1e-12)])
def test_rhmc_is_its_twin(metric, n, tolerance):
    sampler = RHMC(step_size=0.15, n_leapfrog=4, jitter=0.0, n_fixed_point=n, tolerance=tolerance)
    step, theta, _, scalars = machine(sampler, metric, 0.15)
    rng, slow = np.random.default_rng(0), START
    for _ in range(30):
        step()
        slow = naive.rhmc(slow, log_density, gradient, metric[0], 0.15, 4, n, rng)
        np.testing.assert_allclose(theta[:, 0], slow, rtol=1e-8)
    assert 0 < scalars[at.N_ACCEPTED] <= 30


def test_a_trajectory_whose_equations_are_not_solved_is_rejected():
    step, theta, _, scalars = machine(RHMC(step_size=0.3, n_fixed_point=1, tolerance=1e-9), METRICS["full"], 0.3)
    step()
    np.testing.assert_array_equal(theta[:, 0], START)
    assert scalars[at.N_ACCEPTED] == 0.0


@each_metric
def test_leapfrog_solved_to_tolerance_is_reversible(metric):
    theta, p = START, np.array([1.0, -0.4, 0.8])
    end, q = naive.leapfrog(theta, p, gradient, metric[0], 0.15, 80)
    back, r = naive.leapfrog(end, -q, gradient, metric[0], 0.15, 80)
    np.testing.assert_allclose(np.concatenate([back, -r]), np.concatenate([theta, p]), atol=1e-12)


@each_metric
def test_stochastic_step_is_its_twin(metric):
    h, T, C, A = 0.15, 0.8, 1.3, 0.4
    sampler = SGRNPHMC(friction=C, thermostat_friction=A, thermostat_mass=2.0, n_fixed_point=3, temperature=T)
    step, theta, _, _ = machine(sampler, metric, h)
    rng, slow, Q = np.random.default_rng(0), START, 2.0 * D
    p = np.sqrt(T) * np.linalg.cholesky(metric[0](slow)[0]) @ rng.standard_normal(D)
    q = np.sqrt(T * Q) * rng.standard_normal()
    for _ in range(30):
        step()
        slow, p, q = naive.nose_hoover(slow, p, q, gradient, metric[0], h, T, C, A, Q, 3, rng)
        np.testing.assert_allclose(theta[:, 0], slow, rtol=1e-8)


@each_metric
def test_energy_is_kept_to_second_order(metric):
    worst = []
    for h in (0.08, 0.04, 0.02, 0.01):
        sampler = SGRNPHMC(friction=0.0, drive="likelihood", thermostat_mass=2.0, n_fixed_point=5)
        step, theta, _, scalars = machine(sampler, metric, h)
        Q, energies = 2.0 * D, []
        step()  # the first half of the first step: the start itself is before it
        rng = np.random.default_rng(0)
        p, q = np.linalg.cholesky(metric[0](START)[0]) @ rng.standard_normal(D), np.sqrt(Q) * rng.standard_normal()
        slow, s, H0 = START, 1.0, scalars[at.H0]
        for i in range(int(10.0 / h)):
            if i < 30:
                slow, p, s, q = naive.nose_poincare(slow, p, s, q, log_density, gradient, metric[0], h, 1.0, Q, H0, 5)
                np.testing.assert_allclose(theta[:, 0], slow, rtol=1e-7, atol=1e-9)
            step()
            energies.append(scalars[at.LAST_ENERGY])
            if i < 30:
                expected = naive.nose_poincare_energy(slow, p, s, q, log_density, metric[0], 1.0, Q, H0)
                assert energies[-1] == pytest.approx(expected, abs=1e-8)
        worst.append(np.abs(energies).max())
    slopes = np.log2(np.array(worst[:-1]) / worst[1:])
    assert np.all(np.abs(slopes - 2.0) < 0.25), slopes


X, Y = load_iris(return_X_y=True)


@pytest.mark.parametrize(
    "model, args",
    [
        (BayesianLogisticRegression(), (X[50:], Y[50:])),
        (BayesianLogisticRegression(control_variates=False), (X, Y)),
        (BayesianGaussian(mean_precision_prior=3.0), (X[:, :3],)),
        (BayesianGaussian(), (X[:, :1],)),
    ],
    ids=["logistic", "multinomial", "gaussian", "gaussian-1"],
)
def test_metrics_of_models_have_their_derivatives_and_are_the_curvature_at_the_mode(model, args):
    model.set_params(sampler="rhmc", n_iter=2).fit(*args)
    dense, n = model._chains[0].data[0], model._chains[0].theta.size
    for seed in range(2):
        check_metric(dense, 1.5 * np.random.default_rng(seed).standard_normal((n, 1)))
    if isinstance(model, BayesianLogisticRegression) and len(model.classes_) > 2:
        return  # whitened by the Gaussian that fits best, not at the mode
    # The coordinates are whitened at the mode, those of the Gaussian by the data alone.
    G, _ = metric_at(dense, np.zeros((n, 1)))
    np.testing.assert_allclose(G, np.eye(n), atol=1e-6 if isinstance(model, BayesianLogisticRegression) else 0.05)
