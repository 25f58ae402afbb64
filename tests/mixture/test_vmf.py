"""Mixtures of von Mises-Fisher laws: their posterior where it is known, calibration, clusters found again."""

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import logsumexp

from sk_sgmcmc import VonMisesFisherMixture
from sk_sgmcmc.kernels.math.concentration import concentration_draw
from sk_sgmcmc.kernels.math.special import von_mises_fisher_table
from sk_sgmcmc.kernels.models.von_mises_fisher import exact_means
from sk_sgmcmc.mixture._von_mises_fisher import model as _vmf
from sk_sgmcmc.mixture._von_mises_fisher.chain import MixtureChain, log_densities
from tests.calibration import p_values
from tests.cases import THRESHOLD, z_scores

SAMPLERS = ["sggmc", "gsgnht", "gmc", "gibbs"]


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def table(V, kappa):
    out = [np.empty(np.size(kappa)) for _ in range(3)]
    von_mises_fisher_table(float(V), np.atleast_1d(np.asarray(kappa, dtype=float)), *out)
    return out[1], out[2]  # log normaliser, mean length


def clusters(n=300, V=6, K=3, kappa=40.0, seed=0):
    rng = np.random.default_rng(seed)
    means = np.eye(K, V)
    labels = np.arange(n) % K
    return np.concatenate([stats.vonmises_fisher(m, kappa).rvs(n // K, random_state=rng) for m in means]), np.sort(
        labels
    )


# ---------------------------------------------------------------------------------------------------- the parts


@pytest.mark.parametrize("V, kappa", [(2, 0.0), (2, 3.0), (3, 50.0), (50, 20.0), (3000, 6000.0), (4, 1e6)])
def test_exact_draws_are_von_mises_fisher(V, kappa, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    b = np.zeros((2000 if V < 1000 else 300, V))
    b[:, 1] = kappa
    x = np.empty_like(b)
    exact_means(x, b.ravel(), rng)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1.0)
    A = table(V, max(kappa, 1e-12))[1][0]
    second = 1.0 - A * (V - 1) / kappa if kappa else 1.0 / V
    values = np.stack([x[:, 1], x[:, 1] ** 2, x[:, 0], x[:, 0] ** 2], axis=1)
    exact = [A, second, 0.0, (1.0 - second) / (V - 1)]
    assert np.abs(z_scores(values, exact)).max() < THRESHOLD


@pytest.mark.parametrize(
    "numbers",
    [
        (0.0, 3.0, 7.0, 6.0, 0.0, 1.5, 0.0, 0.0, 0.0, 0.0),  # learnt concentration of a cluster
        (0.0, 10.0, 3.0, 0.0, 1.0, 1.0, 1.0, 4.0, 2.0, 5.0),  # of topics, with their mean integrated out
        (1.0, 3.0, 20.0, -80.0, 0.0, 2.0),  # of a Dirichlet law
    ],
)
def test_concentrations_have_their_conditional_law(numbers, global_random_seed):
    numbers = np.array(numbers)
    x = np.linspace(-9, 9, 20_001)
    kappa = np.exp(x)
    if numbers[0] == 1.0:
        from scipy.special import gammaln

        K, n, total, a, s = numbers[1:6]
        log_p = n * (gammaln(K * kappa) - K * gammaln(kappa)) + kappa * total - 0.5 * ((x - a) / s) ** 2
    else:
        V, n, t, a, s, m, pp, pq, qq = numbers[1:]
        log_p = n * table(V, kappa)[0] + kappa * t - 0.5 * ((x - a) / s) ** 2
        if m:
            log_p -= m * table(V, np.sqrt(pp + 2 * pq * kappa + qq * kappa**2))[0]
    p = np.exp(log_p - log_p.max())
    exact = np.array([x @ p, x**2 @ p]) / p.sum()
    rng, means = np.random.default_rng(global_random_seed), []
    for _ in range(30):
        value, drawn = 1.0, []
        for _ in range(600):
            value = concentration_draw(value, numbers, rng)
            drawn.append(np.log(value))
        means.append([np.mean(drawn[20:]), np.mean(np.square(drawn[20:]))])
    assert np.abs(z_scores(np.array(means), exact)).max() < THRESHOLD


# ------------------------------------------------------------------------------------------------- the posterior

ANGLES = np.array([-0.9, -0.4, 0.1, 1.4, 1.7, 2.9])
CIRCLE = np.stack([np.cos(ANGLES), np.sin(ANGLES)], axis=1)
KAPPA = 4.0


def of_draws(means, weights):
    """Statistics that do not depend on labels; means (..., 2, 2), weights (..., 2)."""
    middle = np.einsum("...k,...kv->...v", weights, means)
    across = np.einsum("...v,...v->...", means[..., 0, :], means[..., 1, :])
    return np.stack([across, across**2, (weights**2).sum(-1), middle[..., 0], middle[..., 1]], axis=-1)


def exact_circle(process, kappas=(KAPPA, KAPPA)):
    """Two components on the circle, by a grid over two angles and a weight."""
    grid = (np.arange(72) + 0.5) / 72 * 2 * np.pi
    share = (np.arange(60) + 0.5) / 60
    of_one, of_two = (np.exp(k * np.cos(ANGLES[:, None] - grid) + table(2, k)[0]) for k in kappas)
    one, two, pi = np.meshgrid(np.arange(72), np.arange(72), share, indexing="ij")
    p = np.ones(pi.shape)
    for first, second in zip(of_one, of_two, strict=True):
        p *= pi * first[one] + (1.0 - pi) * second[two]
    # Dirichlet(1.5, 1.5), or the first of two sticks, Beta(1, 1.5).
    p *= (1.0 - pi) ** 0.5 * (1.0 if process else pi**0.5)
    points = np.stack([np.cos(grid), np.sin(grid)], axis=1)
    values = of_draws(np.stack([points[one], points[two]], axis=-2), np.stack([pi, 1.0 - pi], axis=-1))
    return np.tensordot(p, values, axes=3) / p.sum()


def circle_z(sampler, seed, *, batch_size=6, process=False, kappas=(KAPPA, KAPPA)):
    n_iter = 400 if sampler == "gmc" else 1500
    model = VonMisesFisherMixture(
        2, kappa=kappas, sampler=sampler, weight_concentration_prior=1.5, batch_size=batch_size, n_iter=n_iter, thin=5,
        weight_concentration_prior_type="dirichlet_process" if process else "dirichlet_distribution",
        n_chains=16, burn_in=0.1, n_inner=5, random_state=seed,
    ).fit(CIRCLE)  # fmt: skip
    drawn = of_draws(model.samples_["means"].astype(float), model.samples_["weights"])
    return np.abs(z_scores(drawn.mean(axis=1), exact_circle(process, kappas))).max()


@pytest.mark.parametrize(
    "sampler, batch_size, process",
    [("sggmc", 6, False), ("gsgnht", 1, False), ("gmc", 6, False), ("gibbs", 6, True), ("sggmc", 2, True)],
)
def test_two_components_on_the_circle_have_their_posterior(sampler, batch_size, process, global_random_seed):
    assert circle_z(sampler, global_random_seed, batch_size=batch_size, process=process) < THRESHOLD


def test_components_of_unlike_concentrations_have_their_posterior(global_random_seed):
    assert circle_z("gibbs", global_random_seed, process=True, kappas=(1.0, 9.0)) < THRESHOLD


class Rescaled(MixtureChain):
    """Mistake: a minibatch's labels, scaled by N/n, in the place of those of all rows."""

    def _sweep(self, batches):
        self.labels[:] = -1
        # What the labels of other rows, N - n of them, would add if they were distributed as those of the minibatch.
        scale = self.labels.size / batches.shape[1]
        self.counts[:], self.sums[:] = 0.0, 0.0
        rows = self.data.as_csr()[batches[0]]
        chance = log_densities(rows, self.means, np.log(self.weights), self.kappas)
        label = (chance + self.rng.gumbel(size=chance.shape)).argmax(axis=1)
        for k in range(self.n_components):
            self.counts[k] = (scale - 1.0) * np.sum(label == k)
            self.sums[k] = (scale - 1.0) * rows[label == k].sum(axis=0)
        return super()._sweep(batches)


def test_labels_scaled_by_the_minibatch_are_rejected(monkeypatch, global_random_seed):
    monkeypatch.setattr(_vmf, "MixtureChain", Rescaled)
    assert circle_z("sggmc", global_random_seed, batch_size=1) > 1.3 * THRESHOLD


@pytest.mark.parametrize("sampler", ["sggmc", "gibbs"])
def test_one_component_learns_its_concentration(sampler, global_random_seed):
    """On the sphere in three dimensions the mean direction integrates out in closed form."""
    X = stats.vonmises_fisher([0.0, 0.0, 1.0], 5.0).rvs(12, random_state=0)
    x = np.linspace(-6, 7, 8001)
    length = np.linalg.norm(X.sum(axis=0))
    log_p = 12 * table(3, np.exp(x))[0] - table(3, length * np.exp(x))[0] - 0.5 * ((x - np.log(3)) / 2.0) ** 2
    p = np.exp(log_p - log_p.max())
    model = VonMisesFisherMixture(
        1, kappa_prior_scale=2.0, sampler=sampler, n_iter=1000, thin=5, n_chains=16, burn_in=0.1,
        random_state=global_random_seed,
    ).fit(X)  # fmt: skip
    log_kappa = np.log(model.samples_["kappas"][..., 0])
    means = np.stack([log_kappa.mean(axis=1), (log_kappa**2).mean(axis=1)], axis=1)
    assert np.abs(z_scores(means, np.array([x @ p, x**2 @ p]) / p.sum())).max() < THRESHOLD


def ranks(seed, n_replicates, process, scale=1.0):
    """Ranks of the truth among 7 draws, for data drawn from the model: Dirichlet weights or sticks, learnt kappas."""
    out = []
    for s in range(n_replicates):
        rng = np.random.default_rng([seed, s])
        kappas = 3.0 * np.exp(scale * rng.standard_normal(2))
        stick = rng.beta(1.0, 1.0)
        weights = np.array([stick, 1.0 - stick])
        means = unit(rng.standard_normal((2, 3)))
        labels = rng.choice(2, 10, p=weights)
        X = np.concatenate([stats.vonmises_fisher(means[k], kappas[k]).rvs(1, random_state=rng) for k in labels])
        model = VonMisesFisherMixture(
            2, kappa_prior_scale=1.0, n_iter=40 + 7 * 12, burn_in=40, thin=12, batch_size=5, sampler="sggmc",
            weight_concentration_prior_type="dirichlet_process" if process else "dirichlet_distribution",
            random_state=s,
        ).fit(X)  # fmt: skip
        drawn = [model.samples_[name][0] for name in ("means", "weights", "kappas")]
        out.append((statistics(*drawn) < statistics(means[None], weights[None], kappas[None])).sum(axis=0))
    return np.array(out)


def statistics(means, weights, kappas):
    means = means.astype(float)
    middle = np.einsum("sk,skv->sv", weights, means)
    across = np.einsum("sv,sv->s", means[:, 0], means[:, 1])
    mean_log = (weights * np.log(kappas)).sum(axis=1)
    return np.stack([middle[:, 0], across, (weights**2).sum(axis=1), mean_log, np.log(kappas).max(axis=1)], axis=1)


@pytest.mark.parametrize("process", [False, True])
def test_draws_are_calibrated(process, global_random_seed):
    assert p_values(ranks(global_random_seed, 120, process)).min() > 1e-5


# ---------------------------------------------------------------------------------------------------- estimation


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_clusters_are_found_again(sampler):
    X, labels = clusters()
    batch = {} if sampler in ("gmc", "gibbs") else {"batch_size": 50}
    model = VonMisesFisherMixture(3, sampler=sampler, n_iter=200, n_chains=2, random_state=0, **batch).fit(X)
    found = model.means_ @ np.eye(3, 6).T
    order = found.argmax(axis=0)
    assert sorted(order) == [0, 1, 2] and found[order, range(3)].min() > 0.99
    assert np.mean(order[labels] == model.labels_) > 0.99
    np.testing.assert_allclose(model.kappas_, 40.0, rtol=0.25)
    np.testing.assert_allclose(model.weights_, 1 / 3, atol=0.05)
    np.testing.assert_allclose(np.linalg.norm(model.samples_["means"], axis=-1), 1.0, atol=1e-6)


def test_a_process_leaves_components_empty():
    X, _ = clusters()
    model = VonMisesFisherMixture(
        12, weight_concentration_prior_type="dirichlet_process", weight_concentration_prior=0.2, n_iter=300,
        random_state=0,
    ).fit(X)  # fmt: skip
    assert 3 <= model.n_clusters_ <= 5
    # Within each draw: a component that is empty in one may be a part of a cluster in the next.
    assert np.sort(model.samples_["weights"], axis=2)[..., -5:].sum(axis=2).mean() > 0.98


def test_score_is_the_density_of_the_draws():
    X, _ = clusters(60)
    model = VonMisesFisherMixture(2, kappa=[3.0, 9.0], n_iter=20, random_state=0).fit(X)
    each = []
    for means, weights, kappas in zip(
        *(model.samples_[name][0] for name in ("means", "weights", "kappas")), strict=True
    ):
        log_density = [
            np.log(w) + stats.vonmises_fisher(unit(m.astype(float)), k).logpdf(X)
            for m, w, k in zip(means, weights, kappas, strict=True)
        ]
        each.append(logsumexp(log_density, axis=0))
    exact = logsumexp(each, axis=0) - np.log(len(each))
    np.testing.assert_allclose(model.score_samples(X), exact, rtol=1e-9)
    assert model.score(X) == pytest.approx(exact.mean())
    np.testing.assert_allclose(model.transform(X).sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(sparse.csr_matrix(5.0 * X)), model.labels_)


def test_a_stream_finds_what_a_fit_finds():
    X = np.random.default_rng(0).permutation(clusters(600)[0])
    stream = VonMisesFisherMixture(3, batch_size=20, random_state=0)
    for start in range(0, 600, 100):
        stream.partial_fit(X[start : start + 100])
    assert stream.n_iter_ == 30 and stream._chains[0].counts.sum() == 600.0
    whole = VonMisesFisherMixture(3, random_state=0).fit(X)
    assert (stream.means_ @ whole.means_.T).max(axis=0).min() > 0.995
    assert stream.score(X) == pytest.approx(whole.score(X), abs=0.05)
    with pytest.raises(ValueError, match="n_components=4"):
        stream.set_params(n_components=4).partial_fit(X)
    stream.set_params(n_components=3)
    with pytest.raises(ValueError, match="n_chains=2"):
        stream.set_params(n_chains=2).partial_fit(X)
    stream.set_params(n_chains=1)
    with pytest.raises(ValueError, match=r"(?i)cannot (go on|continue)"):
        stream.set_params(sampler="gibbs").partial_fit(X)
    stream.set_params(sampler="gsgnht")
    assert stream.fit(X).sampler_.step_size == "auto"
    stream.set_params(sampler__step_size=0.01).partial_fit(X)
    assert stream.sampler_.step_size_(7) == 0.01
    assert stream.set_params(sampler__step_size="auto").partial_fit(X).sampler_.step_size_(7) <= 0.01


def test_the_length_of_rows_says_nothing_however_long():
    X, _ = clusters(60)
    model = VonMisesFisherMixture(3, n_iter=10, random_state=0).fit(X)
    plain = model.score_samples(X)
    for factor in (1e-200, 1e200, np.geomspace(1e-250, 1e250, len(X))[:, None]):
        np.testing.assert_allclose(model.score_samples(factor * X), plain, rtol=1e-9)


def test_bad_input_is_named():
    X, _ = clusters(30)
    for name, value in [("kappa", [1.0, 2.0]), ("kappa", -1.0), ("batch_size", 31), ("sampler", "scir"),
                        ("weight_concentration_prior_type", "other"), ("n_components", 0)]:  # fmt: skip
        with pytest.raises(ValueError, match=name):
            VonMisesFisherMixture(3).set_params(**{name: value}).fit(X)
    with pytest.raises(ValueError, match="normalize=False"):
        VonMisesFisherMixture(3, normalize=False).fit(2.0 * X)
    with pytest.raises(ValueError, match="n_features = 1"):
        VonMisesFisherMixture(3).fit(X[:, :1])


def test_an_empty_row_belongs_anywhere():
    X, _ = clusters(60)
    X[7] = 0.0
    # The least concentrated component is the smallest, so that an empty row is not there by its weight.
    X = np.concatenate([X, X[20:]])
    model = VonMisesFisherMixture(3, kappa=[5.0, 40.0, 200.0], n_iter=30, random_state=0).fit(X)
    assert model._chains[0].counts.sum() == 99.0
    full = np.arange(100) != 7
    scores = model.score_samples(X)
    assert scores[7] == 0.0 and model.score(X) == pytest.approx(scores[full].mean(), rel=1e-12)
    assert model.score(X[full]) == model.score(X)
    np.testing.assert_allclose(model.transform(np.zeros((2, 6))), np.tile(model.weights_, (2, 1)), rtol=1e-9)
    assert model.weights_.argmax() == model.labels_[7] == model.predict(X)[7] != model.kappas_.argmin()
    with pytest.raises(ValueError, match="got 2 rows that are all zero"):
        model.score(np.zeros((2, 6)))


def test_an_empty_row_scores_exactly_nothing():
    X, _ = clusters(20)
    for n_components in (7, 20):  # whose weights add up to 1 only to rounding
        model = VonMisesFisherMixture(n_components, n_iter=20, random_state=0).fit(X)
        assert model.score_samples(np.zeros((1, 6))) == [0.0]


def test_chains_start_as_without_empty_rows():
    X, _ = clusters(60)
    gaps = np.zeros((180, 6))
    gaps[1::3] = X
    with_gaps, without = (VonMisesFisherMixture(3, sampler="gibbs", n_iter=1, random_state=0) for _ in range(2))
    starts = []
    for model, rows in ((with_gaps, gaps), (without, X)):
        chain = model.fit(rows)._chains[0]
        chain.rng = np.random.default_rng(0)
        chain._start()
        starts.append((chain.means, chain.weights, chain.kappas))
    for one, other in zip(*starts, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    assert np.all(np.isfinite(VonMisesFisherMixture(3, n_iter=4, random_state=0).fit(np.zeros((5, 6))).means_))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_equal_rows_make_clusters_of_bounded_concentration(sampler):
    X = np.eye(3, 30).repeat(20, axis=0)
    model = VonMisesFisherMixture(3, sampler=sampler, n_iter=60, random_state=0).fit(X)
    assert len(set(model.labels_[[0, 20, 40]])) == 3 and np.all(model.labels_.reshape(3, 20).std(axis=1) == 0)
    assert np.all((model.samples_["kappas"] > 1e6) & (model.samples_["kappas"] <= 1e8 * (1 + 1e-9)))
    assert np.isfinite(model.score(X)) and (model.means_[:, :3] ** 2).max(axis=1).min() > 0.999


@pytest.mark.parametrize("process", [False, True])
def test_given_concentrations_stay_with_their_components(process):
    X, _ = clusters(60)
    kappas = [5.0, 50.0, 50.0, 500.0]
    model = VonMisesFisherMixture(
        4, kappa=kappas, weight_concentration_prior_type="dirichlet_process" if process else "dirichlet_distribution",
        n_iter=100, n_chains=2, random_state=0,
    ).fit(X)  # fmt: skip
    assert np.all(model.samples_["kappas"] == kappas)
