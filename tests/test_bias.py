"""The column ``bias`` of ``diagnostics_``: the predicted law of a chain with finite steps and minibatches."""

import numpy as np
import pytest

from sk_sgmcmc import BayesianGaussian, BayesianLinearRegression, BayesianLogisticRegression, sample
from sk_sgmcmc.dense.automatic_step import longest_step
from sk_sgmcmc.dense.bias import Noise, stationary_covariance
from sk_sgmcmc.metrics import effective_sample_size
from sk_sgmcmc.samplers import HMC, SGHMC, SGLD, SGNHT, SVGD, PolynomialDecay
from sk_sgmcmc.samplers._linear_chain import LinearChain, solved
from sk_sgmcmc.targets import GaussianMean

CURVATURES = np.array([0.3, 1.0, 2.5])
SPLITTINGS = [SGHMC(scheme="baoab"), SGHMC(scheme="aboba", friction=2.0)]
UBU = SGHMC(scheme="ubu", friction=1.5)


def chain_of(sampler, h, noise_variances=(0.0, 0.0, 0.0)):
    return sampler._linear_chain(CURVATURES, h, np.array(noise_variances))


def epochs(rng, n_steps, n_batches, scale):
    """Errors (n_steps, D) that sum to zero over each epoch of ``n_batches`` minibatches."""
    error = rng.standard_normal((n_steps // n_batches, n_batches, len(scale)))
    error -= error.mean(axis=1, keepdims=True)
    return (error * np.sqrt(n_batches / (n_batches - 1.0))).reshape(-1, len(scale)) @ scale.T


def simulated(chain, errors, rng, injects=True):
    """Covariance of theta under the recursion, step by step."""
    n, m = chain.response.shape
    state, total = np.zeros((n, m)), np.zeros((n, n))
    root = np.linalg.cholesky(chain.injected + 1e-14 * np.eye(m)) if injects else np.zeros((n, m, m))
    for error in errors:
        state = (chain.transition @ state[..., None])[..., 0] + chain.response * error[:, None]
        state += (root @ rng.standard_normal((n, m, 1)))[..., 0]
        total += np.outer(state[:, 0], state[:, 0])
    return total / len(errors)


# --------------------------------------------------------------------------------------------------------- exact laws


@pytest.mark.parametrize("h", [0.05, 0.4])
def test_known_variances(h):
    langevin, _ = stationary_covariance(chain_of(SGLD(), h), None)
    np.testing.assert_allclose(langevin, np.diag(1.0 / (CURVATURES * (1.0 - 0.5 * h * CURVATURES))), rtol=1e-12)
    for sampler in SPLITTINGS:
        np.testing.assert_allclose(
            stationary_covariance(chain_of(sampler, h), None)[0], np.diag(1.0 / CURVATURES), rtol=1e-10
        )
    # Gradient noise, from the docstring of `SGLD`: h / (lambda (2 - h lambda)) times its variance.
    V = np.diag([0.5, 2.0, 1.0])
    added = stationary_covariance(chain_of(SGLD(), h), Noise(V, np.inf))[1]
    np.testing.assert_allclose(np.diag(added), np.diag(V) * h / (CURVATURES * (2.0 - h * CURVATURES)), rtol=1e-12)


def test_a_noise_estimate_removes_white_noise_of_the_gradients():
    h, V = 0.1, 0.8
    sampler = SGHMC(scheme="euler", noise_estimate=0.5 * h * V)
    biased, _ = stationary_covariance(chain_of(sampler, h), Noise(V * np.eye(3), np.inf))
    plain, _ = stationary_covariance(chain_of(SGHMC(scheme="euler"), h), None)
    np.testing.assert_allclose(biased, plain, rtol=1e-10)


def test_a_thermostat_holds_the_kinetic_energy():
    V = np.array([0.5, 2.0, 1.0])
    for sampler in (SGNHT(), SGNHT(scheme="euler", noise=2.0)):
        chain = chain_of(sampler, 0.2, V)
        own = chain.response[:, :, None] * chain.response[:, None] * V[:, None, None]
        momentum = solved(chain.transition, chain.transition, chain.injected + own)[:, 1, 1]
        assert momentum.mean() == pytest.approx(1.0, rel=1e-8)


@pytest.mark.parametrize("sampler", [SGLD(), *SPLITTINGS, UBU, SGHMC(scheme="euler")], ids=str)
@pytest.mark.parametrize("n_batches", [2, 5, 40])
def test_noise_of_epochs_by_brute_force(sampler, n_batches):
    # All lags of the autocovariance, by sums over the response to an impulse.
    chain, V = chain_of(sampler, 0.15), np.array([[1.0, 0.3, 0.0], [0.3, 2.0, -0.5], [0.0, -0.5, 0.7]])
    response, state = [], chain.response
    for _ in range(1500):
        response.append(state[:, 0])
        state = (chain.transition @ state[..., None])[..., 0]
    response = np.array(response)
    expected = V * (response.T @ response)
    for k in range(1, n_batches):
        gamma = -(1.0 - k / n_batches) / (n_batches - 1.0)
        later = response[k:].T @ response[:-k]
        expected = expected + gamma * V * (later + later.T)
    added = stationary_covariance(chain, Noise(V, float(n_batches)))[1]
    np.testing.assert_allclose(added, expected, atol=1e-8 * np.abs(expected).max())
    white = stationary_covariance(chain, Noise(V, np.inf))[1]
    assert np.abs(white - expected).max() > 0.02 * np.abs(expected).max()  # the broken variant: independent errors


def test_the_recursion_has_the_predicted_covariance():
    rng, root = np.random.default_rng(0), np.array([[1.0, 0.0, 0.0], [0.6, 1.0, 0.0], [-0.3, 0.2, 0.5]])
    V = root @ root.T
    for sampler, n_batches in ((SGLD(), 4), (SGHMC(friction=1.5), 10)):
        chain, errors = chain_of(sampler, 0.3), epochs(rng, 40_000, n_batches, root)
        seen = simulated(chain, errors, rng, injects=False)
        added = stationary_covariance(chain, Noise(V, float(n_batches)))[1]
        np.testing.assert_allclose(seen, added, atol=0.06 * np.abs(added).max())


def test_langevin_dynamics_without_force_is_the_same_in_one_part_or_two():
    # The noise of the position is computed in another way below a friction times time of 0.1.
    whole = LinearChain.still(1).then_langevin(2.0, 0.09, 1.3)
    halves = LinearChain.still(1).then_langevin(2.0, 0.045, 1.3).then_langevin(2.0, 0.045, 1.3)
    long = LinearChain.still(1)
    for _ in range(2):
        long = long.then_langevin(2.0, 0.3, 1.3)
    for one, other in ((whole, halves), (long, LinearChain.still(1).then_langevin(2.0, 0.6, 1.3))):
        np.testing.assert_allclose(one.transition, other.transition, rtol=1e-12)
        np.testing.assert_allclose(one.injected, other.injected, rtol=1e-9)


# ---------------------------------------------------------------------------------------------------- automatic steps


def error_at(sampler, h, curvature, noise, n_batches):
    """Largest relative error of a standard deviation, for white or cancelling noise of the same size everywhere."""
    chain = sampler._linear_chain(np.array([1.0, curvature]), h, np.full(2, noise))
    law, _ = stationary_covariance(chain, Noise(noise * np.eye(2), n_batches))
    return np.abs(np.sqrt(np.diag(law) * [1.0, curvature]) - 1.0).max()


@pytest.mark.parametrize("sampler", [SGLD(), SGHMC(), SGHMC(scheme="euler"), UBU], ids=str)
@pytest.mark.parametrize(("noise", "n_batches"), [(0.0, np.inf), (5.0, np.inf), (5.0, 4.0), (200.0, 50.0)])
def test_automatic_steps_have_an_error_of_five_percent_or_the_longest_stable_length(sampler, noise, n_batches):
    h = longest_step(sampler, 2.0, noise, n_batches, "shuffled", 0.3)
    error = error_at(sampler, h, 2.0, noise, n_batches)
    assert error <= 0.0501 and (error > 0.045 or h == 0.3)


def test_automatic_steps_are_not_predicted_for_other_samplers():
    assert longest_step(HMC(), 1.0, 0.0, np.inf, "shuffled", 0.3) is None
    # A thermostat removes only noise that is the same in all directions.
    quiet, noisy = (longest_step(SGNHT(), 1.0, V, np.inf, "shuffled", 0.4) for V in (0.0, 50.0))
    assert quiet == 0.4 and 0.001 < noisy < 0.02


def test_automatic_steps_of_estimators_and_of_sample():
    for sampler in (SGLD(), SGHMC(scheme="euler")):
        model = BayesianLogisticRegression(sampler=sampler, batch_size=40, n_iter=2000, **GIVEN).fit(X, Y)
        assert 0.015 < of_coefficients(model).max() < 0.07
    rows = np.random.default_rng(0).normal(size=(50, 2))
    result = sample(GaussianMean(rows), SGLD(), batch_size=10, n_iter=4000, random_state=0)
    assert 0.02 < np.asarray(result.diagnostics_["bias"])[:2].max() < 0.07
    with_mass = [
        BayesianLogisticRegression(sampler=SGHMC(mass=mass), n_iter=60, **GIVEN) for mass in (None, np.ones(4))
    ]
    steps = [float(model.fit(X, Y).sampler_.step_size_(0)) for model in with_mass]
    assert steps[0] == pytest.approx(steps[1])


# ---------------------------------------------------------------------------------------------------------- estimators


RNG = np.random.default_rng(3)
X = RNG.normal(size=(400, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 1.0]])
Y = (RNG.random(400) < 1.0 / (1.0 + np.exp(-X @ [1.0, -0.5, 0.2]))).astype(int)


def of_coefficients(model):
    table = model.diagnostics_
    return np.asarray(table["bias"])[[str(name).startswith("coef") for name in table["quantity"]]]


def squares_of(model):
    """Squared deviations of the draws of the coefficients, (1, n_kept, 3)."""
    coef = model.samples_["coef"].reshape(1, -1, 3)
    return (coef - coef.mean(axis=1, keepdims=True)) ** 2


GIVEN = {"control_variates": False, "random_state": 0}


@pytest.fixture(scope="module")
def exact():
    return squares_of(BayesianLogisticRegression(sampler=HMC(), n_iter=20_000, thin=1, **GIVEN).fit(X, Y))


@pytest.mark.parametrize(
    ("sampler", "n_batch"),
    [
        (SGLD(0.4), 400),
        (SGHMC(0.3, scheme="euler"), 400),
        (SGNHT(0.6), 400),
        (SGHMC(0.35), 40),
        (SGLD(0.1), 40),
        (SGHMC(0.6, scheme="ubu"), 400),
    ],
    ids=str,
)
def test_stated_bias_is_that_of_long_chains(exact, sampler, n_batch):
    model = BayesianLogisticRegression(sampler=sampler, batch_size=n_batch, n_iter=60_000, thin=3, **GIVEN).fit(X, Y)
    bias, seen = of_coefficients(model), squares_of(model)
    assert np.all(np.abs(bias) > 0.005)
    errors = [
        each.std(axis=(0, 1)) / each.mean(axis=(0, 1)) / np.sqrt(effective_sample_size(each)) for each in (seen, exact)
    ]
    ratio = seen.mean(axis=(0, 1)) / exact.mean(axis=(0, 1)) / (1.0 + bias) ** 2
    # The noise of minibatches is itself measured with an error of 2%.
    assert np.all(np.abs(ratio - 1.0) < 4.0 * np.hypot(*errors) + 0.02)


def test_a_metropolis_test_has_no_bias_and_neither_has_gibbs():
    assert np.all(of_coefficients(BayesianLogisticRegression(sampler="hmc", n_iter=100, random_state=0).fit(X, Y)) == 0)
    assert np.all(of_coefficients(BayesianLinearRegression(random_state=0).fit(X, X[:, 0])) == 0.0)


def test_control_variates_remove_the_noise_of_minibatches():
    biases = [
        of_coefficients(
            BayesianLogisticRegression(
                sampler=SGHMC(0.3), batch_size=20, control_variates=on, n_iter=3000, random_state=0
            ).fit(X, Y)
        )
        for on in (True, False)
    ]
    assert np.abs(biases[0]).max() < 0.01 and biases[1].min() > 0.2


@pytest.mark.parametrize("sampler", [SVGD(n_particles=5), SGLD(PolynomialDecay(0.1)), "sg-nphmc"], ids=str)
def test_it_is_unknown_where_it_cannot_be_predicted(sampler):
    model = BayesianLogisticRegression(sampler=sampler, n_iter=200, random_state=0).fit(X, Y)
    assert np.isnan(of_coefficients(model)).all()


def test_it_is_unknown_far_from_a_gaussian():
    # The classes are separable, and the prior is wide.
    separable = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    model = BayesianLogisticRegression(10.0, sampler=SGHMC(0.2), n_iter=4000, random_state=0)
    assert np.isnan(model.fit(separable, [0, 0, 1, 1]).diagnostics_["bias"]).all()


def test_other_estimators_and_densities_state_it():
    table = BayesianGaussian(sampler=SGLD(0.05), n_iter=4000, random_state=0).fit(X).diagnostics_
    assert np.asarray(table["bias"])[np.asarray(table["quantity"]) == "mean[0]"][0] == pytest.approx(0.013, abs=0.01)

    def log_density(theta):
        return -0.5 * (theta[0] ** 2 + 4.0 * theta[1] ** 2)

    result = sample(log_density, parameters={"theta": (2,)}, sampler=SGLD(0.2), n_iter=4000, random_state=0)
    quantities = [str(name) for name in result.diagnostics_["quantity"]]
    expected = 1.0 / np.sqrt(1.0 - 0.1 * np.array([1.0, 4.0])) - 1.0
    stated = [result.diagnostics_["bias"][quantities.index(f"theta[{i}]")] for i in range(2)]
    np.testing.assert_allclose(stated, expected, rtol=0.02)


def test_a_linear_chain_composes_its_parts():
    chain = LinearChain.still(1).then_kick(np.array([2.0]), 0.1).then_drift(0.5).then_damping(0.5, 0.3)
    np.testing.assert_allclose(chain.transition[0], [[1.0 - 0.1, 0.5], [-0.1, 0.5]])
    np.testing.assert_allclose(chain.response[0], [0.05, 0.05])
    np.testing.assert_allclose(chain.injected[0], [[0.0, 0.0], [0.0, 0.3]])
    assert chain.is_stable() and not chain_of(SGLD(), 1.0).is_stable()
