"""Kernels on the simplex: step by step equal to their slow twins, and SCIR's moments after any number of steps."""

import numpy as np
import pytest
from scipy import stats

from sk_sgmcmc.kernels._jit import NOT_FINITE, OK
from sk_sgmcmc.kernels.models.conjugate import dirichlet_categorical
from sk_sgmcmc.kernels.runners import run_dense
from sk_sgmcmc.kernels.samplers import simplex
from sk_sgmcmc.samplers import SCIR
from tests.cases import THRESHOLD, run_columns, z_scores
from tests.naive import simplex as naive

N_ROWS, WIDTH, STEPS = 7, 3, 12


def state(seed, small=True):
    rng = np.random.default_rng(seed)
    a = rng.gamma(1.0, 2.0, (N_ROWS, WIDTH))
    if small:
        a[:2] = [[1e-4, 1e-2, 0.04], [1e-3, 0.06, 0.3]]
    return rng.gamma(2.0, 1.0, (N_ROWS, WIDTH)) + 0.1, a, rng.random(N_ROWS) + 0.1


def call(kernel, theta, signal, extra, h, rows, rng, n_aux=0):
    aux = np.zeros((n_aux, *theta.shape))
    status = kernel(theta, aux, np.zeros(1), np.ascontiguousarray(signal), extra, np.array([h]), rows, rng)
    return status, aux


@pytest.mark.parametrize("h", [1e-3, 0.3, 800.0])
def test_scir_step_equals_its_twin(h):
    theta, a, _ = state(0)
    twin, rows = theta.copy(), np.array([5, 0, 1, 3])
    rng, rng_twin = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(STEPS):
        assert call(simplex.scir_step, theta, a[rows], np.zeros(WIDTH), h, rows, rng)[0] == OK
        twin = naive.scir(twin, a[rows], h, rng_twin, rows)
        np.testing.assert_allclose(theta, twin, rtol=1e-10)
    assert rng.random() == rng_twin.random()


def test_scir_step_in_logs_equals_its_twin():
    theta, a, _ = state(0)
    twin, rows = theta.copy(), np.arange(N_ROWS)
    rng, rng_twin = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(STEPS):
        _, aux = call(simplex.scir_step, theta, a, np.zeros(WIDTH), 0.3, rows, rng, n_aux=1)
        log_theta, twin = naive.scir_log(twin, a, 0.3, rng_twin, rows)
        np.testing.assert_allclose(theta, twin, rtol=1e-10)
        np.testing.assert_allclose(aux[0], log_theta, rtol=1e-10)


@pytest.mark.parametrize("n_aux", [0, 1])
@pytest.mark.parametrize("h", [1e-300, 1e-17])
def test_scir_steps_below_rounding_change_nothing_and_end(h, n_aux):
    theta, a, _ = state(0)
    before, rows, rng = theta.copy(), np.arange(N_ROWS), np.random.default_rng(1)
    status, aux = call(simplex.scir_step, theta, a, np.zeros(WIDTH), h, rows, rng, n_aux)
    assert status == OK
    np.testing.assert_array_equal(theta, before)
    np.testing.assert_allclose(aux, np.log(before)[None][:n_aux])
    assert simplex.cox_ingersoll_ross(2.0, 0.5, np.exp(-h), rng) == 2.0


def test_scir_advance_equals_its_twin_and_leaves_rows_alone_over_no_time():
    theta, a, elapsed = state(0)
    elapsed[3] = 0.0
    twin, rows = theta.copy(), np.array([6, 3, 0, 1])
    rng, rng_twin = np.random.default_rng(1), np.random.default_rng(1)
    waited = np.array([0, 2, 3])
    for _ in range(STEPS):
        assert call(simplex.scir_advance, theta, a[rows], elapsed[rows], 0.0, rows, rng)[0] == OK
        twin = naive.scir(twin, a[rows[waited]], elapsed[rows[waited]], rng_twin, rows[waited])
        np.testing.assert_allclose(theta, twin, rtol=1e-10)


def test_gamma_redraw_equals_its_twin():
    theta, a, _ = state(0)
    rows = np.arange(N_ROWS)
    call(simplex.gamma_redraw, theta, a, np.zeros(WIDTH), 0.0, rows, np.random.default_rng(1))
    twin = naive.scir(theta, a, np.inf, np.random.default_rng(1), rows)
    np.testing.assert_allclose(theta, twin, rtol=1e-10)
    _, aux = call(simplex.gamma_redraw, theta, a, np.zeros(WIDTH), 0.0, rows, np.random.default_rng(1), n_aux=1)
    twin = naive.cells(lambda x, shape, rng: naive.log_gamma(shape, rng), theta, a, np.random.default_rng(1), rows)
    np.testing.assert_allclose(aux[0], twin, rtol=1e-10)


def test_exponential_ou_step_equals_its_twin():
    theta, m, _ = state(0)
    twin, rows, s = theta.copy(), np.array([4, 1]), np.array([0.5, 1.0, 2.0])
    rng, rng_twin = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(STEPS):
        assert call(simplex.exponential_ou_step, theta, m[rows], s, 0.4, rows, rng)[0] == OK
        twin = naive.exponential_ou(twin, m[rows], s, 0.4, rng_twin, rows)
        np.testing.assert_allclose(theta, twin, rtol=1e-10)


@pytest.mark.parametrize("name", ["expanded-mean", "expanded-natural", "reduced-mean", "reduced-natural"])
def test_sgrld_step_equals_its_twin(name):
    theta, a, _ = state(0, small=False)
    a += 3.0
    if name == "reduced-mean":
        theta /= theta.sum(axis=0)
    elif name != "expanded-mean":
        theta = np.log(theta / (theta[-1] if name == "reduced-natural" else 1.0))
    twin, n, rows = theta.copy(), np.array([20.0, 30.0, 15.0]), np.arange(N_ROWS)
    kernel = getattr(simplex, "sgrld_" + name.replace("-", "_"))
    rng, rng_twin = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(STEPS):
        assert call(kernel, theta, a, n, 0.01, rows, rng, n_aux=1)[0] == OK
        twin = naive.sgrld(name, twin, a, n, 0.01, rng_twin)
        np.testing.assert_allclose(theta, twin, rtol=1e-10)


def test_steps_that_leave_the_finite_numbers_say_so():
    theta, a, _ = state(0, small=False)
    rows, rng = np.arange(N_ROWS), np.random.default_rng(0)
    n = np.full(WIDTH, 20.0)
    a[2, 1] = -1.0
    assert call(simplex.scir_step, theta.copy(), a, n, 0.1, rows, rng)[0] == NOT_FINITE
    for kernel in (simplex.sgrld_expanded_natural, simplex.sgrld_reduced_natural, simplex.exponential_ou_step):
        assert call(kernel, theta.copy(), a * 1e6, n, 1e3, rows, rng, n_aux=1)[0] == NOT_FINITE
    for kernel in (simplex.sgrld_expanded_mean, simplex.sgrld_reduced_mean):
        assert call(kernel, theta.copy(), a * np.inf, n, 1.0, rows, rng, n_aux=1)[0] == NOT_FINITE


def test_waiting_mass_is_the_conditional_mean_of_the_waiting_cells():
    theta, a, elapsed = state(3)
    rows = np.array([6, 2, 4])
    mass, shape_mass = np.empty(WIDTH), np.empty(WIDTH)
    simplex.lazy_mass(theta, a[rows], rows, elapsed[rows], mass, shape_mass)
    expected = sum(theta[r] * np.exp(-elapsed[r]) + a[r] * (1.0 - np.exp(-elapsed[r])) for r in rows)
    np.testing.assert_allclose(mass, expected, rtol=1e-12)
    np.testing.assert_allclose(shape_mass, a[rows].sum(axis=0), rtol=1e-12)


# ------------------------------------------------------------------------------------- SCIR's moments and composition


@pytest.mark.parametrize("h, n_steps", [(0.05, 1), (0.05, 10), (0.7, 3)])
def test_scir_has_the_papers_moments_after_some_steps_from_a_point(h, n_steps, global_random_seed):
    a, start = np.array([0.05, 0.7, 6.0]), np.array([2.0, 0.3, 1.0])
    rng = np.random.default_rng(global_random_seed)
    theta = np.repeat(start[:, None], 40_000, axis=1)
    kept, _ = run_columns(SCIR()._kernels("positive"), theta, a, 0.0, h, n_steps, rng, thin=n_steps)
    check_moments(kept[0].T, start, a, h, n_steps, np.zeros(3))


def check_moments(draws, start, a, h, n_steps, variance_of_shape):
    left, one = np.exp(-n_steps * h), np.exp(-h)
    mean = start * left + a * (1.0 - left)
    variance = (
        2.0 * start * (left - left**2) + a * (1.0 - left) ** 2
        + (1.0 - left**2) * (1.0 - one) / (1.0 + one) * variance_of_shape
    )  # fmt: skip
    statistics = np.hstack([draws, (draws - mean) ** 2])
    assert np.abs(z_scores(statistics, np.concatenate([mean, variance]))).max() < THRESHOLD


def minibatch_endpoints(seed, n_batch, h, n_steps, n_replicates):
    """theta after some SCIR steps with minibatches drawn with replacement; Dirichlet-categorical, exact Var[a-hat]."""
    codes, alpha = np.repeat([0.0, 1.0, 2.0], [12, 6, 2])[:, None], np.array([0.5, 0.5, 0.5])
    counts = np.array([12.0, 6.0, 2.0])
    n = codes.shape[0]
    rng = np.random.default_rng(seed)
    advance, step = (kernel.compiled for kernel in SCIR()._kernels("simplex"))
    start = np.array([5.0, 5.0, 1.0])
    ends = np.empty((n_replicates, 3))
    y, ones, hypers = np.zeros((n, 0)), np.ones(n), np.full((n_steps, 1), h)
    slots, starts = np.full(n_steps, -1), np.full(n_steps, -1)
    kept, aux, scalars = np.empty((0, 3, 1)), np.empty((0, 3, 1)), np.zeros(1)
    for i in range(n_replicates):
        theta = start[:, None].copy()
        run_dense(
            theta, aux, scalars, codes, y, ones, alpha, starts, n_batch, n / n_batch, hypers, slots, kept, aux,
            advance, dirichlet_categorical.compiled, step, rng,
        )  # fmt: skip
        ends[i] = theta[:, 0]
    p = counts / n
    return ends, start, alpha + counts, n**2 * p * (1.0 - p) / n_batch


@pytest.mark.parametrize("n_batch", [1, 5])
def test_a_minibatch_adds_the_papers_term_to_the_variance(n_batch, global_random_seed):
    h, n_steps = 0.4, 6
    ends, start, a, variance = minibatch_endpoints(global_random_seed, n_batch, h, n_steps, 6_000)
    check_moments(ends, start, a, h, n_steps, variance)
    with pytest.raises(AssertionError):  # without the term the same test fails
        check_moments(ends, start, a, h, n_steps, np.zeros(3))


@pytest.mark.parametrize("shape", [0.05, 0.5, 5.0])
def test_two_scir_steps_compose_to_one_of_twice_the_length(shape, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    start = np.full((1, 40_000), 1.3)
    kernels = SCIR()._kernels("positive")
    two = run_columns(kernels, start, [shape], 0.0, 0.3, 2, rng, thin=2)[0].ravel()
    one = run_columns(kernels, start, [shape], 0.0, 0.6, 1, rng)[0].ravel()
    check_moments(two[:, None], np.array([1.3]), np.array([shape]), 0.6, 1, np.zeros(1))
    assert stats.ks_2samp(two, one).pvalue > 1e-8
    longer = run_columns(kernels, start, [shape], 0.0, 0.75, 1, rng)[0].ravel()
    assert stats.ks_2samp(two, longer).pvalue < 1e-8  # a quarter more time is told apart


@pytest.mark.parametrize("shape", [1e-4, 1e-2, 0.3])
def test_gammas_of_small_shape_are_positive_and_have_their_law(shape, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    theta = np.ones((1, 20_000))
    _, aux = call(simplex.gamma_redraw, theta, np.full_like(theta, shape), np.zeros(1), 0.0, np.array([0]), rng, 1)
    plain = np.ones_like(theta)
    call(simplex.gamma_redraw, plain, np.full_like(theta, shape), np.zeros(1), 0.0, np.array([0]), rng)
    assert plain.min() >= 1e-300
    # G(a)^a is close to uniform, and told apart from it at these sizes only by its own distribution function.
    cdf = stats.gamma(shape).cdf
    seen = aux[0, 0] > np.log(1e-300)
    assert np.mean(seen) == pytest.approx(1.0 - cdf(1e-300), abs=0.02)
    below = cdf(1e-300)
    for draws in (np.exp(aux[0, 0][seen]), plain[0][plain[0] > 1e-300]):
        assert stats.kstest((cdf(draws) - below) / (1.0 - below), "uniform").pvalue > 1e-8
