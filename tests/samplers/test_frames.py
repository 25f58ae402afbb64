"""Matrix completion on frames: its gradient, its law where a grid gives it, and a matrix that is found again."""

import numpy as np
import pytest
from scipy import stats

from sk_sgmcmc import sample
from sk_sgmcmc.kernels.models.manifold import factor_completion
from sk_sgmcmc.samplers import GMC, GSGNHT, SGGMC
from sk_sgmcmc.targets import MatrixCompletion
from tests.cases import THRESHOLD, z_scores


def low_rank(n=60, width=6, scales=(3.0, 1.5), sigma=0.3, missing=0.3, seed=0):
    rng = np.random.default_rng(seed)
    u = np.linalg.qr(rng.standard_normal((width, len(scales))))[0].T
    whole = (rng.standard_normal((n, len(scales))) * scales) @ u
    X = whole + sigma * rng.standard_normal((n, width))
    X[rng.random(X.shape) < missing] = np.nan
    return X, whole, u


def log_posterior(u, X, params):
    """Rows are Gaussian with covariance u' diag(tau^2) u + sigma^2 I, where they are seen."""
    covariance = (u.T * params[1:] ** 2) @ u + params[0] ** 2 * np.eye(u.shape[1])
    seen = [np.isfinite(x) for x in X]
    return sum(
        stats.multivariate_normal(np.zeros(o.sum()), covariance[np.ix_(o, o)]).logpdf(x[o])
        for x, o in zip(X, seen, strict=True)
        if o.any()
    )


def call(u, X, params, scale=1.0):
    signal, extra = np.empty_like(u), np.zeros(max(2, u.shape[1]))
    factor_completion(u, X, np.zeros((len(X), 0)), np.ones(len(X)), params, scale, signal, extra)
    return signal, extra


def test_gradient_is_the_slope_of_the_marginal_likelihood():
    X, _, u = low_rank(5)
    params = np.array([0.4, 2.0, 1.0])
    rng = np.random.default_rng(1)
    u = u + 0.1 * rng.standard_normal(u.shape)
    signal, extra = call(u, X, params)
    numeric = np.empty_like(u)
    for i in np.ndindex(u.shape):
        step = np.zeros_like(u)
        step[i] = 1e-6
        numeric[i] = (log_posterior(u + step, X, params) - log_posterior(u - step, X, params)) / 2e-6
    np.testing.assert_allclose(signal, numeric, rtol=1e-5, atol=1e-5)
    other = u + 0.05 * rng.standard_normal(u.shape)
    exact = log_posterior(other, X, params) - log_posterior(u, X, params)
    assert call(other, X, params)[1][0] - extra[0] == pytest.approx(exact, rel=1e-9)
    # Minibatches: unbiased, and with the variance that they say.
    pairs = [call(u, X[[i, j]], params, 2.5) for i in range(5) for j in range(i)]
    gradients = np.array([g for g, _ in pairs])
    np.testing.assert_allclose(gradients.mean(axis=0), signal, rtol=1e-9, atol=1e-9)
    assert np.mean([e[1] for _, e in pairs]) == pytest.approx(np.mean((gradients - signal) ** 2), rel=1e-9)


@pytest.mark.parametrize("sampler", [GMC(), SGGMC(0.02, 3.0), GSGNHT(0.02, 3.0)], ids=repr)
def test_one_direction_in_the_plane_has_its_posterior(sampler, global_random_seed):
    X, _, _ = low_rank(4, 2, (1.0,), 0.8)
    angle = (np.arange(720) + 0.5) / 720 * np.pi
    params = np.array([0.8, 1.0])
    p = [log_posterior(np.array([[np.cos(a), np.sin(a)]]), X, params) for a in angle]
    p = np.exp(p - np.max(p))
    exact = np.array([np.cos(2 * angle) @ p, np.sin(2 * angle) @ p]) / p.sum()
    n_iter = 800 if isinstance(sampler, GMC) else 20_000
    x = sample(
        MatrixCompletion(X, [1.0], 0.8), sampler, n_iter=n_iter, n_chains=20, thin=4, burn_in=0.1,
        random_state=global_random_seed,
    ).samples_["x"][:, :, 0]  # fmt: skip
    means = np.stack([(x[..., 0] ** 2 - x[..., 1] ** 2).mean(axis=1), 2 * (x[..., 0] * x[..., 1]).mean(axis=1)], axis=1)
    assert np.abs(z_scores(means, exact)).max() < THRESHOLD


def test_a_matrix_is_completed_from_minibatches():
    X, whole, _ = low_rank(200, 12)
    target = MatrixCompletion(X, [3.0, 1.5], 0.3)
    result = sample(target, SGGMC(gradient_noise="estimated"), n_iter=2000, batch_size=50, random_state=0, thin=20)
    frames = result.samples_["x"][0]
    np.testing.assert_allclose(
        frames @ np.swapaxes(frames, 1, 2), np.broadcast_to(np.eye(2), (len(frames), 2, 2)), atol=1e-9
    )
    mean, deviation = target.complete(frames)
    unseen = np.isnan(X)
    error = (mean - whole)[unseen]
    assert np.sqrt(np.mean(error**2)) < 0.25 * whole[unseen].std()
    assert 0.7 < np.sqrt(np.mean((error / deviation[unseen]) ** 2)) < 1.4


def test_bad_arguments_are_named():
    X, _, _ = low_rank(5)
    with pytest.raises(ValueError, match="factor_scales"):
        sample(MatrixCompletion(X, [1.0, -1.0], 0.3), "gmc")
    with pytest.raises(ValueError, match="noise_scale"):
        sample(MatrixCompletion(X, [1.0], 0.0), "gmc")
