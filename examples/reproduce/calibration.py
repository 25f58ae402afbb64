"""Do the draws come from the posterior? Every estimator with every sampler, on small data drawn from the prior.

    python examples/reproduce/calibration.py --results calibration.jsonl --table doc/user_guide/_calibration_table.rst

A replicate draws parameters from the prior and data given them, and fits a model with that prior, all else by default.
If its draws come from the posterior, the rank of a true value among them is uniform, and a central interval of 90% of
the draws holds it nine times in ten, however few draws there are. Ranks are those of a few quantities that do not
depend on the order of topics or clusters; ties, and the place within a rank, are drawn at random.

Printed for each pair: the share of true values in intervals of 50% and of 90% of the draws, with standard errors over
replicates, the p-value of uniform ranks (Kolmogorov-Smirnov, the least of all quantities times their number), and the
share of fits with a `ConvergenceWarning`. The first row of an estimator is a sampler whose draws are exact, or nearly
so. The others see the same data, and have a star where a coverage differs from that of the first by more than three
standard errors of the difference.

Results are appended to a file as they come, and read from it at the next start, so that the run may be stopped at any
time. ``--hours`` ends it. All pairs get 25 replicates before one gets 50, and so on, those first that take least time.
Seconds are of processor time.
"""

import argparse
import json
import re
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import special, stats
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import (
    BayesianGaussian,
    BayesianLDA,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    DMRTopicModel,
    DPCategoricalMixture,
    GammaProcessTopicModel,
    LatentClassModel,
    SphericalAdmixtureModel,
    StructuralTopicModel,
    TopicClassifier,
    TopicRegressor,
    VonMisesFisherMixture,
)

SIMPLEX = ("gibbs", "scir", "sgrld", "exact-dirichlet")
LANGEVIN = ("sgld", "sghmc", "sgnht", "sg-nphmc", "sgr-nphmc")
MASS = ("sghmc-em", "sgnht-em", "sg-nphmc-em")
PARTICLES = ("blob", "gfsd", "gfsf", "svgd", "psghmc-det", "psghmc-fgh")
TOPICS = (*SIMPLEX, "sgld", "sghmc", "sgnht", "sghmc-em", "sgnht-em", *PARTICLES)
FLAT = ("hmc", "nuts", "rhmc", *LANGEVIN, "hmc-em", *MASS, *PARTICLES)
METRIC = ("rhmc", "sgr-nphmc")
# The first is exact, or the nearest to it.
SAMPLERS = {
    "BayesianLDA": TOPICS,
    "DMRTopicModel": TOPICS,
    "GammaProcessTopicModel": (*SIMPLEX, *LANGEVIN, *MASS),
    "SphericalAdmixtureModel": ("gmc-b-gibbs", "gmc", "sggmc", "gsgnht", "gmc-appr-mh", "vi", "sto-vi"),
    "DPCategoricalMixture": ("gibbs", "slice-gibbs", "scir", "sgrld", "exact-dirichlet"),
    "BayesianLogisticRegression": FLAT,
    "BayesianGaussian": FLAT,
    "VonMisesFisherMixture": ("gibbs", "gmc", "sggmc", "gsgnht"),
    "BayesianLinearRegression": ("gibbs", *(name for name in FLAT if name not in METRIC)),
    "BayesianPoissonRegressor": FLAT,
    "StructuralTopicModel": ("gibbs",),  # with content and keywords; without, it is DMRTopicModel
    "TopicRegressor": ("gibbs",),
    "TopicClassifier": ("gibbs",),
    "BayesianNegativeBinomialRegressor": tuple(name for name in FLAT if name not in METRIC),
    "LatentClassModel": ("gibbs",),
}
PAIRS = [(model, sampler) for model, samplers in SAMPLERS.items() for sampler in samplers]
FAR = 3.0  # standard errors
ROUNDS = (2, 25, 50, 100)  # replicates of all pairs before the next


# ------------------------------------------------------------------------- a model, its data, the truth and its draws


def unit(rows):
    """Rows of length 1."""
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def von_mises_fisher(means, kappas, rng):
    """A draw for each row of ``means``."""
    return np.concatenate(
        [stats.vonmises_fisher(m, k).rvs(1, random_state=rng) for m, k in zip(means, kappas, strict=True)]
    )


def pairs_of_words(topics):
    """Sums over topics of products of two words' probabilities."""
    return np.einsum("...kv,...kw->...vw", topics, topics)[..., [0, 0, 1, 2], [0, 1, 1, 3]]


def lda(rng):
    """Two topics of four words, twenty documents of ten."""
    phi, alpha = rng.dirichlet(np.full(4, 0.5), 2), np.full(2, 0.5)
    X = np.array([rng.multinomial(10, p / p.sum()) for p in rng.dirichlet(alpha, 20) @ phi]).astype(float)
    model = BayesianLDA(2, doc_topic_prior=0.5, topic_word_prior=0.5)
    return model, (X,), {}, lambda s: pairs_of_words(s["components"]), {"components": phi}


def dmr(rng):
    """The same with documents of two kinds."""
    phi, kind = rng.dirichlet(np.full(4, 0.5), 2), np.arange(24) % 2.0
    coef = rng.standard_normal((2, 2)) * [0.5, 0.7]
    alpha = np.exp(coef[:, 0] + kind[:, None] * coef[:, 1])
    p = np.array([rng.dirichlet(a) for a in alpha]) @ phi
    X = np.array([rng.multinomial(10, row / row.sum()) for row in p]).astype(float)
    model = DMRTopicModel(
        2, doc_topic_prior=1.0, topic_word_prior=0.5, intercept_prior_scale=0.5, metadata_prior_scale=0.7
    )

    def quantities(s):
        coef_of_word = np.einsum("...kt,...k->...t", s["coef"], s["components"][..., 0])
        return np.concatenate([pairs_of_words(s["components"])[..., :3], coef_of_word], axis=-1)

    # 0 and 1 are not standardised.
    return model, (X,), {"metadata": kind[:, None]}, quantities, {"components": phi, "coef": coef}


def structural(rng):
    """Two topics of four words that differ between two groups, of fifteen documents of ten words each.

    The first two words are keywords of the first topic.
    """
    grid, group = np.array([1.0, 3.0, 10.0, 30.0, 150.0, 2000.0]), np.arange(30) % 2
    base = np.array([[0.5] * 4, [0.5] * 4, [0.1, 0.1, 0.0, 0.0]])  # The third row draws keywords.
    kappa = rng.choice(grid, size=base.shape, p=rng.dirichlet(np.ones(6)))
    y = rng.gamma(kappa, size=(2, *base.shape)) * rng.gamma(base) / kappa
    columns, rate = y / y.sum(axis=2, keepdims=True), rng.beta(1.0, 1.0)
    phi = columns[:, :2].copy()
    phi[:, 0] += rate * (columns[:, 2] - columns[:, 0])
    theta = rng.dirichlet(np.exp(rng.standard_normal(2) * 0.5), 30)
    p = np.einsum("dk,dkv->dv", theta, phi[group])
    X = np.array([rng.multinomial(10, row / row.sum()) for row in p]).astype(float)
    model = StructuralTopicModel(
        2, formula="~ 1", content="group", keywords={"first": ["w0", "w1"]}, doc_topic_prior=1.0, topic_word_prior=0.5,
        intercept_prior_scale=0.5,
    )  # fmt: skip

    def quantities(s):
        a, b = s["components of a"], s["components of b"]
        own = [(a * b).sum(axis=-2)[..., :2], a[..., 0, :2], b[..., 0, 2:], s["keyword_rate"]]
        return np.concatenate([pairs_of_words(a)[..., :3], pairs_of_words(b)[..., :3], *own], axis=-1)

    truth = {"components of a": phi[0], "components of b": phi[1], "keyword_rate": np.array([rate])}
    given = {"metadata": {"group": np.array(["a", "b"])[group]}, "feature_names": ["w0", "w1", "w2", "w3"]}
    return model, (X,), given, quantities, truth


def outcomes(rng, is_binary):
    """Two topics of four words, thirty documents of six words with an outcome, under a Dirichlet prior of documents."""
    phi, alpha = rng.dirichlet(np.full(4, 0.5), 2), np.full(2, 0.5)
    theta = rng.dirichlet(alpha, 30)
    X = np.array([rng.multinomial(6, p / p.sum()) for p in theta @ phi]).astype(float)
    coef = rng.normal(scale=2.0, size=2)
    if is_binary:
        y = (rng.random(30) < 1.0 / (1.0 + np.exp(-theta @ coef))).astype(int)
        y[:2] = [0, 1]  # Both classes must occur, which is no draw.
        model = TopicClassifier(2, doc_topic_prior=0.5, topic_word_prior=0.5, coef_prior_scale=2.0)
    else:  # The prior is in units of y, and so wide that it hardly matters.
        y = theta @ coef + rng.normal(scale=0.3, size=30)
        model = TopicRegressor(2, doc_topic_prior=0.5, topic_word_prior=0.5)

    def quantities(s):
        coef_of_word = np.einsum("...k,...kw->...w", s["coef"], s["components"])[..., :2]
        return np.concatenate([pairs_of_words(s["components"])[..., :3], coef_of_word], axis=-1)

    return model, (X, y), {}, quantities, {"components": phi, "coef": coef}


def topic_regressor(rng):
    """See `outcomes`."""
    return outcomes(rng, False)


def topic_classifier(rng):
    """See `outcomes`."""
    return outcomes(rng, True)


def gamma_process(rng):
    """At most four topics of three words, twelve documents."""
    K, n_docs, concentration_prior, rate_prior, scale_prior = 4, 12, (4.0, 2.0), (6.0, 3.0), (8.0, 3.0)
    concentration, rate = (rng.gamma(shape) / over for shape, over in (concentration_prior, rate_prior))
    weights = rng.exponential(1.0, K) / rate * np.exp(-rng.gamma(rng.integers(1, K + 1, K)) / concentration)
    topics, p = rng.dirichlet(np.full(3, 0.7), K), rng.beta(*scale_prior, n_docs)
    activity = rng.gamma(np.maximum(weights, 1e-300), (p / (1.0 - p))[:, None], (n_docs, K))
    X = rng.poisson(activity @ topics).astype(float)
    X[0, 0] += X.sum() == 0  # a corpus needs a token
    model = GammaProcessTopicModel(
        K, concentration_prior=concentration_prior, rate_prior=rate_prior, scale_prior=scale_prior,
        topic_word_prior=0.7,
    )  # fmt: skip

    def quantities(s):
        w, phi = s["weights"], s["components"]
        parts = [w.sum(axis=-1), (w**2).sum(axis=-1), s["concentration"], s["rate"], (w * phi[..., 0]).sum(axis=-1)]
        return np.stack([*parts, (w[..., None] * phi**2).sum(axis=(-1, -2))], axis=-1)

    truth = {"weights": weights, "components": topics, "concentration": concentration, "rate": rate}
    return model, (X,), {}, quantities, truth


def spherical_admixture(rng):
    """Two topics in three dimensions about a centre with a uniform prior; twenty rows."""
    mu = unit(rng.standard_normal(3))
    beta = von_mises_fisher([mu, mu], [4.0, 4.0], rng)
    X = von_mises_fisher(unit(rng.dirichlet([2.0, 2.0], 20) @ beta), np.full(20, 20.0), rng)
    model = SphericalAdmixtureModel(2, kappa0=1e-6, kappa1=20.0, sigma=4.0, doc_topic_prior=2.0)

    def quantities(s):
        beta = s["components"]
        across = (beta[..., 0, :] * beta[..., 1, :]).sum(axis=-1)
        return np.concatenate([across[..., None], beta.sum(axis=-2)], axis=-1)

    return model, (X,), {}, quantities, {"components": beta}


def dirichlet_process(rng):
    """Thirty rows of eight counts of three columns."""
    alpha = rng.gamma(1.0)
    weights, components = sticks(np.ones(1), np.full(1, alpha), rng, 200)
    p = weights[0] / weights[0].sum()
    labels = rng.choice(p.size, 30, p=p)
    X = np.array([rng.multinomial(8, row / row.sum()) for row in components[0, labels]]).astype(float)

    def quantities(s):
        w, p, rest = s["weights"], s["components"], 1.0 - s["weights"].sum(axis=-1)
        if np.ndim(rest):  # the components yet unseen
            more, of_more = sticks(np.maximum(rest, 0.0), s["concentration"], rng, 30)
            w, p = np.concatenate([w, more], axis=-1), np.concatenate([p, of_more], axis=-2)
        parts = [s["concentration"], s["n_clusters"], (w**2).sum(axis=-1), (w * p[..., 0]).sum(axis=-1)]
        return np.stack([*parts, (w * p[..., 0] ** 2).sum(axis=-1)], axis=-1)

    truth = {"weights": weights[0], "components": components[0], "concentration": alpha}
    return DPCategoricalMixture(), (X,), {}, quantities, {**truth, "n_clusters": np.unique(labels).size}


def latent_classes(rng):
    """Two classes of forty rows with six columns of three declared levels, a tenth of the cells missing."""
    import pandas as pd

    weights = rng.dirichlet(np.ones(2))
    profiles = rng.dirichlet(np.full(3, 0.5), size=(2, 6))
    z = rng.choice(2, 40, p=weights)
    codes = (rng.random((40, 6, 1)) > np.cumsum(profiles[z], axis=2)[:, :, :2]).sum(axis=2)
    codes[rng.random(codes.shape) < 0.1] = -1
    X = pd.DataFrame({f"x{j}": pd.Categorical.from_codes(codes[:, j], ["a", "b", "c"]) for j in range(6)})

    def quantities(s):
        w, p = s["weights"], s["components"]
        parts = [(w**2).sum(axis=-1), *(np.moveaxis((w[..., None] * p).sum(axis=-2), -1, 0)[::3])]
        return np.stack([*parts, (w * p[..., 0] ** 2).sum(axis=-1)], axis=-1)

    truth = {"weights": weights, "components": profiles.reshape(2, 18)}
    return LatentClassModel(2), (X,), {}, quantities, truth


def sticks(rest, alpha, rng, n):
    """Weights that break up ``rest``, and probabilities of components from the prior."""
    v = rng.beta(1.0, np.maximum(alpha, 1e-12)[..., None], (*rest.shape, n))
    left = np.cumprod(np.concatenate([np.ones((*rest.shape, 1)), 1.0 - v[..., :-1]], axis=-1), axis=-1)
    return rest[..., None] * v * left, rng.dirichlet(np.full(3, 0.5), (*rest.shape, n))


def correlated(n, rng):
    """Rows of two correlated columns, and their mean."""
    X = rng.standard_normal((n, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    return X, X.mean(axis=0)


def logistic(rng):
    """Forty rows, two correlated columns."""
    X, centre = correlated(40, rng)
    truth = rng.standard_normal(3)
    p = special.expit((X - centre) @ truth[:2] + truth[2])
    y = (rng.random(40) < p).astype(int)
    y[:2] = [0, 1] if len(np.unique(y)) == 1 else y[:2]  # a classifier needs both; about once in a thousand
    model = BayesianLogisticRegression(intercept_prior_scale=1.0)

    def quantities(s):
        coef = s["coef"][..., 0, :]
        return np.concatenate([coef, (s["intercept"][..., 0] + coef @ centre)[..., None]], axis=-1)

    truth = {"coef": truth[None, :2], "intercept": truth[2:] - centre @ truth[:2]}
    return model, (X, y), {}, quantities, truth


def linear(rng):
    """Twenty rows, two correlated columns."""
    X, centre = correlated(20, rng)
    coef, level, noise = rng.standard_normal(2), rng.standard_normal(), np.sqrt(5.0 / rng.chisquare(5.0))
    y = level + (X - centre) @ coef + noise * rng.standard_normal(20)
    model = BayesianLinearRegression(
        1.0, intercept_prior_scale=1.0, noise_scale_prior=1.0, degrees_of_freedom_prior=5.0
    )  # fmt: skip

    def quantities(s):
        at_mean = s["intercept"] + s["coef"] @ centre
        return np.concatenate([s["coef"], at_mean[..., None], s["noise_scale"][..., None]], axis=-1)

    return model, (X, y), {}, quantities, {"coef": coef, "intercept": level - centre @ coef, "noise_scale": noise}


def poisson(rng):
    """Thirty rows, two correlated columns."""
    X, centre = correlated(30, rng)
    coef, level = 0.5 * rng.standard_normal(2), rng.standard_normal()
    y = rng.poisson(np.exp(level + (X - centre) @ coef))
    model = BayesianPoissonRegressor(0.5, intercept_prior_scale=1.0)

    def quantities(s):
        return np.concatenate([s["coef"], (s["intercept"] + s["coef"] @ centre)[..., None]], axis=-1)

    return model, (X, y), {}, quantities, {"coef": coef, "intercept": level - centre @ coef}


def negative_binomial(rng):
    """The same with overdispersed counts."""
    X, centre = correlated(30, rng)
    coef, level = 0.5 * rng.standard_normal(2), rng.standard_normal()
    dispersion = (0.5 * np.tan(0.5 * np.pi * rng.random())) ** 2
    y = rng.poisson(np.exp(level + (X - centre) @ coef) * rng.gamma(1.0 / dispersion, dispersion, 30))
    model = BayesianNegativeBinomialRegressor(0.5, intercept_prior_scale=1.0, dispersion_prior_scale=0.5)

    def quantities(s):
        at_mean = s["intercept"] + s["coef"] @ centre
        return np.concatenate([s["coef"], at_mean[..., None], s["dispersion"][..., None]], axis=-1)

    truth = {"coef": coef, "intercept": level - centre @ coef, "dispersion": dispersion}
    return model, (X, y), {}, quantities, truth


def gaussian(rng):
    """Twelve rows of two columns."""
    precision = stats.wishart(5.0, np.eye(2) / 5.0).rvs(random_state=rng)
    root = np.linalg.cholesky(np.linalg.inv(precision))
    mean = root @ rng.standard_normal(2)
    X = mean + rng.standard_normal((12, 2)) @ root.T
    model = BayesianGaussian([0.0, 0.0], 1.0, 5.0, np.eye(2))

    def quantities(s):
        P = s["precision"]
        return np.concatenate(
            [s["mean"], P[..., [0, 1], [0, 1]], np.linalg.slogdet(P)[1][..., None]], axis=-1
        )  # fmt: skip

    return model, (X,), {}, quantities, {"mean": mean, "precision": precision}


def von_mises_fisher_mixture(rng):
    """Two clusters in three dimensions, thirty rows."""
    kappas, means = 3.0 * np.exp(rng.standard_normal(2)), unit(rng.standard_normal((2, 3)))
    weights = rng.dirichlet(np.ones(2))
    labels = rng.choice(2, 30, p=weights)
    X = von_mises_fisher(means[labels], kappas[labels], rng)
    model = VonMisesFisherMixture(2, kappa_prior_scale=1.0)

    def quantities(s):
        w, mu, kappa = s["weights"], s["means"], s["kappas"]
        middle, across = np.einsum("...k,...kv->...v", w, mu), (mu[..., 0, :] * mu[..., 1, :]).sum(axis=-1)
        parts = [middle[..., 0], across, (w**2).sum(axis=-1), (w * np.log(kappa)).sum(axis=-1)]
        return np.stack([*parts, np.log(kappa).max(axis=-1)], axis=-1)

    return model, (X,), {}, quantities, {"weights": weights, "means": means, "kappas": kappas}


MODELS = dict(zip(SAMPLERS, (lda, dmr, gamma_process, spherical_admixture, dirichlet_process, logistic, gaussian,
                             von_mises_fisher_mixture, linear, poisson, structural, topic_regressor, topic_classifier,
                             negative_binomial, latent_classes),
                  strict=True))  # fmt: skip


def one(name, sampler, replicate):
    """A replicate of a pair: the record of its ranks, as shares of 1."""
    rng = np.random.default_rng([list(SAMPLERS).index(name), replicate])
    model, args, named, quantities, truth = MODELS[name](rng)
    began = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.set_params(sampler=sampler, random_state=replicate).fit(*args, **named)
    seconds = time.process_time() - began
    samples = {
        **model.samples_,
        **{f"components of {g}": model.content_draws(g) for g in getattr(model, "groups_", ())},
    }
    draws = {key: np.asarray(value[0], dtype=float) for key, value in samples.items() if key in truth}
    drawn, true = quantities(draws), quantities({key: np.asarray(value, dtype=float) for key, value in truth.items()})
    # float32 draws and float64 truths are equal to rounding where both are at a bound.
    equal = np.isclose(drawn, true, rtol=1e-6, atol=1e-12)
    below = ((drawn < true) & ~equal).sum(axis=0)
    u = (below + rng.random(true.size) * (equal.sum(axis=0) + 1)) / (len(drawn) + 1)
    warned = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    return {
        "model": name, "sampler": sampler, "replicate": replicate, "u": u.round(5).tolist(), "n_draws": len(drawn),
        "warned": warned, "seconds": round(seconds, 3),
    }  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ the table


def summary(records):
    """(coverage, standard error) of 50% and 90%, the p-value of uniform ranks, and the share that warned."""
    u = np.array([r["u"] for r in records])
    n = len(u)
    found = []
    for level in (0.5, 0.9):
        inside = (np.abs(u - 0.5) < level / 2).mean(axis=1)
        # Where no replicate differs from another, the error of a coin of this level.
        error = max(inside.std(ddof=1) if n > 1 else 0.0, np.sqrt(level * (1 - level)) / u.shape[1]) / np.sqrt(n)
        found.append((inside.mean(), error))
    p = min(stats.kstest(column, "uniform").pvalue for column in u.T)
    return (*found, min(1.0, p * u.shape[1]), np.mean([r.get("warned", np.nan) for r in records]))


def falls_short(records, exact):
    """Whether a coverage differs from that of exact draws on the same data by more than `FAR` errors."""
    of = {r["replicate"]: np.abs(np.array(r["u"]) - 0.5) for r in exact}
    pairs = [(np.abs(np.array(r["u"]) - 0.5), of[r["replicate"]]) for r in records if r["replicate"] in of]
    for level in (0.5, 0.9):
        gaps = np.array([(a < level / 2).mean() - (b < level / 2).mean() for a, b in pairs])
        if len(gaps) > 5 and abs(gaps.mean()) > FAR * gaps.std(ddof=1) / np.sqrt(len(gaps)):
            return True
    return False


def table(records, path=None):
    """Print the table, and write it as reStructuredText."""
    lines, exact = [], None
    print(f"{'estimator':28s}{'sampler':17s}{'n':>4s}  {'50%':>12s}  {'90%':>12s}  {'p':>7s}  warned  seconds")
    for model, sampler in PAIRS:
        these = [r for r in records if (r["model"], r["sampler"]) == (model, sampler)]
        if not these:
            continue
        row = summary(these)
        is_exact = sampler == SAMPLERS[model][0]
        exact = these if is_exact else exact
        mark = "*" if exact and falls_short(these, exact) else ""
        half, most = (f"{mean:.3f} ({error:.3f})" for mean, error in row[:2])
        seconds = np.median([r["seconds"] for r in these])
        print(f"{model:28s}{sampler + mark:17s}{len(these):4d}  {half:>12s}  {most:>12s}  {row[2]:7.1g}  "
              f"{row[3]:6.2f}  {seconds:7.2f}")  # fmt: skip
        cells = [f"`{model}`" if is_exact else "", f'``"{sampler}"``' + (" \\*" if mark else ""), f"{len(these)}"]
        cells += [f"{mean:.2f} ± {error:.2f}" for mean, error in row[:2]]
        cells += [f"{row[2]:.2g}" if row[2] >= 0.001 else "< 0.001", f"{row[3]:.2f}" if row[3] >= 0 else "–"]
        lines.append("   " + ";".join(cells))
    total = sum(r["seconds"] for r in records)
    n_pairs = len({(r["model"], r["sampler"]) for r in records})
    print(f"{len(records)} fits of {n_pairs} pairs, {total / 60:.0f} minutes")
    if path is not None:
        heads = "   :header: Estimator,Sampler,Replicates,50%,90%,p of ranks,Warned"
        path.write_text("\n".join([".. csv-table::", heads, "   :delim: ;", "", *lines, ""]), encoding="utf-8")


def missing(pairs, n_replicates, records):
    """Yield (estimator, sampler, replicate) that are not among the records, which the caller extends."""
    for n in [*(n for n in ROUNDS if n < n_replicates), n_replicates]:
        known, seconds = set(), {pair: [] for pair in pairs}
        for r in records:
            known.add((r["model"], r["sampler"], r["replicate"]))
            seconds.setdefault((r["model"], r["sampler"]), []).append(r["seconds"])
        for pair in sorted(pairs, key=lambda pair: min(seconds[pair], default=0.0)):
            yield from ((*pair, i) for i in range(n) if (*pair, i) not in known)


def main():
    """Fit what is not in the file yet, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="two replicates of two pairs, nothing kept")
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--only", default="", metavar="PATTERN", help="of pairs' names, 'model sampler'")
    parser.add_argument("--hours", type=float, default=2.0, help="end after so long")
    parser.add_argument("--results", type=Path, default=None)
    parser.add_argument("--table", type=Path, default=None, help="also write the table there, for the guide")
    options = parser.parse_args()
    pairs, n_replicates = [pair for pair in PAIRS if re.search(options.only, " ".join(pair))], options.replicates
    if options.smoke:
        pairs, n_replicates = [("BayesianLDA", "gibbs"), ("BayesianGaussian", "hmc")], 2
    records = []
    if options.results is not None and options.results.exists():
        records = [json.loads(line) for line in options.results.read_text(encoding="utf-8").splitlines()]
    end = time.monotonic() + 3600 * options.hours
    for model, sampler, replicate in missing(pairs, n_replicates, records):
        if time.monotonic() > end:
            break
        records.append(one(model, sampler, replicate))
        if options.results is not None:
            with options.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(records[-1]) + "\n")
    table(records, options.table)


if __name__ == "__main__":
    main()
