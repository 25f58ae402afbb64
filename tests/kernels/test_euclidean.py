"""Kernels on flat space against their slow twins, step by step; energy of Nosé-Poincaré; the M-step."""

import numpy as np
import pytest

from sk_sgmcmc.kernels.samplers import mass as at
from sk_sgmcmc.kernels.samplers.euclidean import flat_flow, half_drift, sgnht_half
from sk_sgmcmc.samplers import SGHMC, SGLD, SGNHT, SGNPHMC, MonteCarloEM
from sk_sgmcmc.samplers._mass import mass_state
from tests.naive import euclidean as naive

PRECISION = np.array([[2.0, 0.8, 0.0], [0.8, 1.0, 0.3], [0.0, 0.3, 0.5]])
MASSES = {
    "identity": None,
    "diagonal": np.array([1.0, 4.0, 0.5]),
    "full": np.array([[1.0, 0.5, 0.0], [0.5, 3.0, 0.4], [0.0, 0.4, 2.0]]),
}
each_mass = pytest.mark.parametrize("mass", MASSES.values(), ids=MASSES)


def gradient(theta):
    return -PRECISION @ theta + 0.1 * np.sin(theta)


def log_density(theta):
    return -0.5 * theta @ PRECISION @ theta - 0.1 * np.cos(theta).sum()


def dense(mass):
    return np.eye(3) if mass is None else np.diag(mass) if mass.ndim == 1 else mass


def machine(sampler, h, seed=0):
    """A function that makes one step of the sampler's kernels; (theta, aux, scalars)."""
    fitted = sampler._resolved(h)
    rng = np.random.default_rng(seed)
    theta = np.array([[0.3], [-1.0], [0.7]])
    aux, scalars = fitted._state(theta, "euclidean", 0)
    kernels, hyper, rows = fitted._kernels("euclidean"), fitted._hyper(0, 1)[0], np.arange(3)

    def step():
        extra = np.zeros(1)
        assert kernels[0](theta, aux, scalars, np.zeros((3, 1)), extra, hyper, rows, rng) == 0
        signal = gradient(theta[:, 0])[:, None]
        extra[0] = log_density(theta[:, 0])
        assert kernels[1](theta, aux, scalars, signal, extra, hyper, rows, rng) == 0

    return step, theta, aux, scalars


def test_sgld_is_its_twin():
    P = np.array([0.5, 1.0, 2.0])
    step, theta, _, _ = machine(SGLD(preconditioner=P, temperature=0.7), 0.1)
    rng, slow = np.random.default_rng(0), theta[:, 0].copy()
    for _ in range(20):
        step()
        slow = naive.sgld(slow, gradient, 0.1, 0.7, P, rng)
        np.testing.assert_allclose(theta[:, 0], slow, rtol=1e-10)


@each_mass
@pytest.mark.parametrize("scheme", ["euler", "baoab", "aboba", "ubu"])
def test_sghmc_is_its_twin(scheme, mass):
    step, theta, aux, _ = machine(SGHMC(friction=1.3, scheme=scheme, noise_estimate=0.2, mass=mass), 0.2)
    rng, slow, M = np.random.default_rng(0), theta[:, 0].copy(), dense(mass)
    p = np.linalg.cholesky(M) @ rng.standard_normal(3)
    twin = getattr(naive, f"sghmc_{scheme}")
    for _ in range(20):
        step()
        slow, p = twin(slow, p, gradient, 0.2, 1.0, 1.3, 0.2, M, rng)
        np.testing.assert_allclose(theta[:, 0], slow, rtol=1e-9)
        np.testing.assert_allclose(aux[0, :, 0], p, rtol=1e-9)


@each_mass
@pytest.mark.parametrize("form", ["euler", "white", "aboba"])
def test_sgnht_is_its_twin(form, mass):
    scheme, pair = ("euler", "white") if form == "white" else (form, "mass")
    step, theta, _, scalars = machine(SGNHT(noise=0.8, scheme=scheme, form=pair, thermostat_mass=0.5, mass=mass), 0.1)
    rng, slow, M, xi = np.random.default_rng(0), theta[:, 0].copy(), dense(mass), 0.8
    p = np.linalg.cholesky(M) @ rng.standard_normal(3)
    twin = getattr(naive, f"sgnht_{form}")
    for _ in range(20):
        step()
        slow, p, xi = twin(slow, p, xi, gradient, 0.1, 1.0, 0.8, 0.5, M, rng)
        np.testing.assert_allclose(theta[:, 0], slow, rtol=1e-9)
        assert scalars[at.XI] == pytest.approx(xi, rel=1e-9)


@each_mass
def test_nose_poincare_is_its_twin_and_keeps_its_energy_to_second_order(mass):
    M, worst = dense(mass), []
    for h in (0.08, 0.04, 0.02, 0.01):
        sampler = SGNPHMC(friction=0.0, drive="likelihood", thermostat_mass=2.0, mass=mass)
        step, theta, _, scalars = machine(sampler, h)
        Q, energies = 6.0, []
        step()  # the first half of the first step: the start itself is before it
        rng = np.random.default_rng(0)
        p, q, s = np.linalg.cholesky(M) @ rng.standard_normal(3), np.sqrt(Q) * rng.standard_normal(), 1.0
        slow, H0 = np.array([0.3, -1.0, 0.7]), scalars[at.H0]
        assert naive.nose_poincare_energy(slow, p, s, q, log_density, 1.0, Q, H0, M) == pytest.approx(0.0, abs=1e-12)
        for _ in range(int(20.0 / h)):
            slow, p, s, q = naive.nose_poincare(slow, p, s, q, log_density, gradient, h, 1.0, Q, H0, M)
            np.testing.assert_allclose(theta[:, 0], slow, rtol=1e-7, atol=1e-9)
            step()
            energies.append(scalars[at.LAST_ENERGY])
            expected = naive.nose_poincare_energy(slow, p, s, q, log_density, 1.0, Q, H0, M)
            assert energies[-1] == pytest.approx(expected, abs=1e-8)
        worst.append(np.abs(energies).max())
    slopes = np.log2(np.array(worst[:-1]) / worst[1:])
    assert np.all(np.abs(slopes - 2.0) < 0.2), slopes


@each_mass
def test_flow_is_the_leapfrogs_drift(mass):
    theta, p = np.array([[0.3], [-1.0], [0.7]]), np.array([[1.0], [0.5], [-2.0]])
    M = dense(mass)
    W = np.ones((1, 1)) if mass is None else (1.0 / mass)[:, None] if mass.ndim == 1 else np.linalg.inv(mass)
    moved = theta.copy()
    assert flat_flow(moved, p, np.ascontiguousarray(W), 0.3) == 0
    np.testing.assert_allclose(moved, theta + 0.3 * np.linalg.solve(M, p))


def test_drifts_before_the_gradient_change_no_momentum():
    for kernel in (half_drift, sgnht_half):
        theta, aux, scalars = np.ones((3, 1)), np.ones((2, 3, 1)), mass_state(None, 3, 0)
        scalars[at.STARTED] = 1.0
        kernel(theta, aux, scalars, np.zeros((3, 1)), np.zeros(1), np.array([0.4, 1.0, 1.0, 1.0]), np.arange(3),
               np.random.default_rng(0))  # fmt: skip
        np.testing.assert_allclose(theta, 1.2)
        np.testing.assert_array_equal(aux[0], 1.0)


@pytest.mark.parametrize("structure", ["diagonal", "full"])
def test_m_step_is_equation_5_with_shrinkage_and_bounds(structure):
    # One E-step of n momenta through the kernel, against the formulas in NumPy.
    n, share = 40, 0.2
    em = MonteCarloEM(structure, n_momenta=n, every=1, shrinkage=share, adaptive=False, decay=0.6, bounds=(0.3, 1.2))
    step, _, aux, scalars = machine(SGHMC(mass=em), 0.2)
    scalars[at.FREEZE_AT] = np.inf
    scalars[at.N_UPDATES] = 2.0  # so that kappa is not 1
    seen = []
    for _ in range(n):
        step()
        seen.append(aux[0, :, 0].copy())
    S = np.array(seen).T @ np.array(seen) / n
    kappa = 3.0**-0.6
    if structure == "diagonal":
        v = np.diag(S)
        W = (1 - kappa) + kappa * (n - 2) / n / ((1 - share) * v + share * v.mean())
        expected = np.clip(W, 0.3, 1.2)
        got = scalars[at.HEAD : at.HEAD + 3]
    else:
        S = (1 - share) * S + share * np.trace(S) / 3 * np.eye(3)
        W = (1 - kappa) * np.eye(3) + kappa * (n - 4) / n * np.linalg.inv(S)
        values, vectors = np.linalg.eigh(W)
        expected = vectors @ np.diag(np.clip(values, 0.3, 1.2)) @ vectors.T
        got = scalars[at.HEAD : at.HEAD + 9].reshape(3, 3)
        root = scalars[at.HEAD + 9 : at.HEAD + 18].reshape(3, 3)
        np.testing.assert_allclose(root @ root.T, np.linalg.inv(expected), rtol=1e-9)
    np.testing.assert_allclose(got, expected, rtol=1e-9)
    assert scalars[at.COUNT] == 0.0 and scalars[at.N_UPDATES] == 3.0


def test_e_step_grows_only_where_the_m_step_is_within_noise():
    # No M-step can leave an interval of infinite width, none can stay in one of no width.
    for width, grows in ((1e9, True), (0.0, False)):
        step, _, _, scalars = machine(SGHMC(mass=MonteCarloEM(n_momenta=20, every=1, growth=4.0, width=width)), 0.2)
        scalars[at.FREEZE_AT] = np.inf
        for _ in range(20):
            step()
        assert scalars[at.WANTED] == (25.0 if grows else 20.0)


@pytest.mark.parametrize("bad", [np.ones(2), np.array([1.0, -1.0, 1.0]), -np.eye(3), np.ones((2, 3))])
def test_a_bad_mass_is_refused(bad):
    with pytest.raises(ValueError, match="mass"):
        mass_state(bad, 3, 0)
