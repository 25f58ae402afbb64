"""Spherical admixture: its gradients, its proportions' law, its posterior where that is known."""

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import logsumexp

from sk_sgmcmc import SphericalAdmixtureModel, VonMisesFisherMixture
from sk_sgmcmc.chains.chain import DrawPlan
from sk_sgmcmc.directions import content_keys, unit_rows
from sk_sgmcmc.kernels.math.special import von_mises_fisher_table
from sk_sgmcmc.kernels.models.spherical import proportions as admixture
from sk_sgmcmc.kernels.models.spherical import score as admixture_score
from sk_sgmcmc.kernels.models.spherical import variational as admixture_vi
from sk_sgmcmc.kernels.models.spherical.admixture import admixture_signal
from tests.cases import THRESHOLD, z_scores
from tests.conftest import importorskip


def vmf(V, kappa):
    out = [np.empty(1) for _ in range(3)]
    von_mises_fisher_table(float(V), np.array([float(kappa)]), *out)
    return float(out[1][0]), float(out[2][0])  # log normaliser, mean length


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def make_rows(n=80, V=12, K=3, kappa=300.0, seed=0):
    rng = np.random.default_rng(seed)
    beta = unit(np.kron(np.eye(K), np.ones(V // K)) + 0.1 * rng.standard_normal((K, V)))
    theta = rng.dirichlet(np.full(K, 0.3), n)
    return unit(unit(theta @ beta) + rng.standard_normal((n, V)) / np.sqrt(kappa)), beta, theta


def csr(X):
    X = sparse.csr_array(X)
    return X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data.astype(np.float64)


# -------------------------------------------------------------------------------------------------------- gradients


def log_joint(beta, X, draws, prior, center):
    """Log posterior of the topics given draws of theta, the paper's equation in dense NumPy."""
    k0, k1, sigma = prior
    u = unit(np.einsum("snk,kv->snv", draws, beta))
    mean = k0 * center + sigma * beta.sum(axis=0)
    return k1 * np.einsum("snv,sv->", u, X) / draws.shape[1] - vmf(X.shape[1], np.linalg.norm(mean))[0]


def call_signal(beta, X, docs, draws, prior, center, scale):
    K = len(beta)
    across, signal, extra = np.empty((K, K)), np.empty_like(beta), np.zeros(2)
    none = np.empty((0, 0)), np.empty((0, 0))
    admixture_signal(
        beta, *csr(X), docs, draws, np.array(prior), center, scale, *none, *none, 0.0, across, signal, extra
    )
    return signal, extra


def test_stored_zeros_are_no_content():
    X = sparse.csr_matrix(np.abs(make_rows(10)[0]))
    given = X.copy()
    given.data[::3] = 0.0
    kept, clean = given.data.copy(), given.copy()
    clean.eliminate_zeros()
    one, other = unit_rows(given, True), unit_rows(clean, True)
    assert one.nnz == other.nnz == clean.nnz
    np.testing.assert_array_equal(content_keys(one), content_keys(other))
    np.testing.assert_array_equal(given.data, kept)  # the user's


@pytest.mark.parametrize("model", [SphericalAdmixtureModel(2, n_iter=4), VonMisesFisherMixture(2, n_iter=4)], ids=str)
def test_a_column_may_be_called_dtype(model):
    pandas = importorskip("pandas")
    frame = pandas.DataFrame(make_rows(20, 3)[0], columns=["dtype", "columns_", "shape_"])
    assert model.fit(frame).transform(frame).shape == (20, 2)


def test_gradient_is_the_slope_of_the_collapsed_posterior():
    X, beta, _ = make_rows(9)
    X[np.abs(X) < 0.1] = 0.0
    X = unit(X)
    rng = np.random.default_rng(1)
    draws, center, prior = rng.dirichlet(np.ones(3), (9, 4)), unit(X.mean(axis=0)), (30.0, 200.0, 40.0)
    signal, extra = call_signal(beta, X, np.arange(9), draws, prior, center, 1.0)
    assert extra[0] == pytest.approx(log_joint(beta, X, draws, prior, center), rel=1e-12)
    numeric = np.empty_like(beta)
    for i in np.ndindex(beta.shape):
        step = np.zeros_like(beta)
        step[i] = 1e-6
        numeric[i] = (
            log_joint(beta + step, X, draws, prior, center) - log_joint(beta - step, X, draws, prior, center)
        ) / 2e-6
    np.testing.assert_allclose(signal, numeric, rtol=1e-6, atol=1e-5)


def test_minibatch_gradient_and_its_noise_are_unbiased():
    X, beta, theta = make_rows(8)
    draws, center, prior = theta[:8, None], unit(X.mean(axis=0)), (30.0, 200.0, 40.0)
    full, extra = call_signal(beta, X, np.arange(8), draws, prior, center, 1.0)
    assert extra[1] == 0.0
    pairs = [np.array([j, i]) for i in range(8) for j in range(i)]
    both = [call_signal(beta, X, docs, draws[docs], prior, center, 4.0) for docs in pairs]
    gradients = np.array([gradient for gradient, _ in both])
    np.testing.assert_allclose(gradients.mean(axis=0), full, rtol=1e-9, atol=1e-9)
    assert np.mean([e[1] for _, e in both]) == pytest.approx(np.mean((gradients - full) ** 2), rel=1e-9)


def test_variational_steps_climb_and_the_bound_is_the_papers():
    X, beta, _ = make_rows(5)
    rng = np.random.default_rng(2)
    a, alpha, A, kappa = rng.gamma(3.0, 2.0, (5, 3)), np.array([1.0, 2.0, 0.5]), 0.8, 200.0
    gram, y = beta @ beta.T, X @ beta.T

    def bound(a):
        total = 0.0
        for s in range(5):
            a0 = a[s].sum()
            E = (a0 + (1 - A**2) * (a[s] ** 2).sum() + A**2 * np.sum((a[s] @ beta) ** 2)) / (a0 * (a0 + 1))
            # KL of Dirichlets, without the normaliser of the prior.
            entropy = stats.dirichlet(a[s]).entropy()
            from scipy.special import digamma

            total += kappa * A * (a[s] @ y[s]) / (a0 * np.sqrt(E)) + entropy
            total += (alpha - 1) @ (digamma(a[s]) - digamma(a0))
        return total

    assert admixture_vi.documents_bound(gram, y, alpha, kappa, A, a) == pytest.approx(bound(a), rel=1e-10)
    before = bound(a)
    share, across = np.empty((5, 3)), np.empty((3, 3))
    args = (gram, y, alpha, kappa, A, np.arange(5), a, np.full(5, 1e-3))
    admixture_vi.ascend_documents(*args, 300, share, across, 1.0)
    assert bound(a) > before + 1.0
    slopes = [
        (bound(a + 1e-4 * np.eye(15)[i].reshape(5, 3)) - bound(a - 1e-4 * np.eye(15)[i].reshape(5, 3))) / 2e-4
        for i in range(15)
    ]
    np.testing.assert_allclose(slopes * a.ravel(), 0.0, atol=0.2)

    def in_topics(mu):
        return admixture_vi.documents_bound(mu @ mu.T, X @ mu.T, alpha, kappa, A, a)

    numeric = np.array(
        [
            (
                in_topics(beta + 1e-6 * np.eye(36)[i].reshape(3, 12))
                - in_topics(beta - 1e-6 * np.eye(36)[i].reshape(3, 12))
            )
            / 2e-6
            for i in range(36)
        ]
    )
    np.testing.assert_allclose((share.T @ X - across @ beta).ravel(), numeric, rtol=1e-5, atol=1e-3)


# ------------------------------------------------------------------------------------------------------ proportions


@pytest.mark.parametrize(
    "kappa, alpha", [(5.0, (1.0, 1.0)), (20.0, (0.3, 0.6)), (40.0, (2.0, 4.0)), (2000.0, (10.0, 10.0))]
)
def test_proportions_have_their_law(kappa, alpha, global_random_seed):
    gram, y, alpha = np.array([[1.0, 0.3], [0.3, 1.0]]), np.array([0.7, 0.5]), np.array(alpha)

    def likelihood(t):
        x = np.array([t, 1 - t])
        return np.exp(kappa * (x @ y / np.sqrt(x @ gram @ x) - 0.86))

    grid = stats.beta(*alpha).ppf((np.arange(20_000) + 0.5) / 20_000)  # the prior's quantiles
    p = np.array([likelihood(t) for t in grid])
    exact = np.array([grid @ p, grid**2 @ p]) / p.sum()
    rng, n = np.random.default_rng(global_random_seed), 40
    theta, steps, draws = np.full((n, 2), 0.5), np.full(n, 0.05), np.empty((n, 2000, 2))
    admixture.draw_proportions(
        gram, np.tile(y, (n, 1)), alpha, kappa, np.arange(n), theta, steps, 200, 2000, 10, 0.2, draws, rng
    )
    np.testing.assert_allclose(draws.sum(axis=2), 1.0, atol=1e-12)
    means = np.stack([draws[..., 0].mean(axis=1), (draws[..., 0] ** 2).mean(axis=1)], axis=1)
    assert np.abs(z_scores(means, exact)).max() < THRESHOLD
    np.testing.assert_array_equal(theta, draws[:, -1])


@pytest.mark.parametrize("kappa", [20.0, 3000.0])
def test_annealing_integrates_the_proportions_out(kappa):
    gram, y, alpha = np.array([[1.0, 0.2], [0.2, 1.0]]), np.array([0.5, 0.45]), np.array([10.0, 3.0])
    grid = (np.arange(200_000) + 0.5) / 200_000
    x = np.stack([grid, 1 - grid], axis=1)
    cosine = x @ y / np.sqrt(np.einsum("nk,kj,nj->n", x, gram, x))
    exact = logsumexp(kappa * cosine + stats.beta(*alpha).logpdf(grid)) - np.log(len(grid))
    weights = np.array(
        [admixture_score.annealed_log_mean(gram, y, alpha, kappa, 200, 8, np.random.default_rng(i)) for i in range(200)]
    )
    ratio = np.exp(weights - exact)
    assert abs(ratio.mean() - 1.0) < 5.0 * ratio.std() / np.sqrt(200)
    assert weights.std() < 1.5


# -------------------------------------------------------------------------------------------------------- the chain


SAMPLERS = ["sggmc", "gsgnht", "gmc-b-gibbs", "gmc-appr-mh"]


@pytest.mark.parametrize("name, batch_size", [*((name, "auto") for name in SAMPLERS), ("sggmc", 4)])
def test_one_topic_has_its_posterior(name, batch_size, global_random_seed):
    """Then theta is 1 and the posterior depends on the angle to the data's mean alone: an integral over the angle."""
    rng = np.random.default_rng(0)
    X = unit(np.array([1.0, 2.0, 0.5]) + 0.8 * rng.standard_normal((12, 3)))
    k0, k1, sigma = 3.0, 1.5, 4.0
    center, pull = unit(X.sum(axis=0)), k1 * np.linalg.norm(X.sum(axis=0))
    t = -1 + (np.arange(20_000) + 0.5) / 10_000
    lengths = np.sqrt(k0**2 + sigma**2 + 2 * k0 * sigma * t)
    p = pull * t - np.array([vmf(3, length)[0] for length in lengths])
    p = np.exp(p - p.max())
    exact = np.array([t @ p, t**2 @ p]) / p.sum()
    metropolis = name.startswith("gmc")
    # By steps short enough that their error of second order is below what the test sees.
    model = SphericalAdmixtureModel(
        1, sampler=name, kappa0=k0, kappa1=k1, sigma=sigma, n_iter=1500, thin=1, n_chains=20, burn_in=0.1,
        random_state=global_random_seed, batch_size=batch_size,
    )  # fmt: skip
    if not metropolis:
        model.set_params(sampler__step_size=0.06, sampler__friction=3.0)
    along = model.fit(X).samples_["components"][:, :, 0] @ center
    means = np.stack([along.mean(axis=1), (along**2).mean(axis=1)], axis=1)
    assert np.abs(z_scores(means, exact)).max() < THRESHOLD


@pytest.mark.parametrize("name", [*SAMPLERS, "vi", "sto-vi"])
def test_topics_are_found_again(name):
    X, beta, theta = make_rows(400, V=30, kappa=2000.0)
    batch = {"batch_size": 50} if name in ("sggmc", "gsgnht", "sto-vi") else {}
    model = SphericalAdmixtureModel(
        3,
        sampler=name,
        doc_topic_prior=0.5,
        kappa0=20.0,
        kappa1=2000.0,
        sigma=20.0,
        n_iter=150,
        random_state=0,
        **batch,
    ).fit(X)
    found = model.components_ @ beta.T
    order = found.argmax(axis=0)
    assert sorted(order) == [0, 1, 2]
    assert found[order, range(3)].min() > (0.88 if name.endswith("vi") else 0.97)
    # Variational topics have the prior's concentration, so their mean directions are drawn to each other.
    assert np.mean(np.abs(model.transform(X)[:, order] - theta)) < (0.3 if name.endswith("vi") else 0.08)
    np.testing.assert_allclose(np.linalg.norm(model.samples_["components"], axis=-1), 1.0, atol=1e-5)


def test_auto_step_keeps_the_temperature(global_random_seed):
    X, _, _ = make_rows(400, V=30, kappa=2000.0)
    for batch, proportions in (("auto", "stored"), (100, "stored"), (100, "fresh")):
        model = SphericalAdmixtureModel(
            3, n_iter=100, batch_size=batch, proportions=proportions, random_state=global_random_seed
        ).fit(X)
        heat = []
        model._chains[0].plan, model._chains[0].auto = DrawPlan(1000, 999, 1), False
        for _ in range(100):
            chain = model._chains[0]
            chain._advance(chain.step + 1)
            heat.append(np.sum(chain.state.aux[0] ** 2) / (3 * 29))
        assert 0.8 < np.mean(heat) < 1.3
