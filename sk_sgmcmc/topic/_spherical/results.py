"""Results computed from the draws of a fitted spherical admixture model."""

from numbers import Integral

import numpy as np
from joblib import Parallel, delayed
from scipy.special import logsumexp

from ...chains.convergence import evenly
from ...directions import RowData, content_keys, has_content
from ...kernels.math import special
from ...kernels.models.spherical import admixture
from ...kernels.models.spherical import proportions as proportions_kernels
from ...kernels.models.spherical import score as score_kernels
from ...utils import as_table, rng_from_key
from ...utils._bit_stable import log_mean_exp
from ...utils._numbers import check_n_jobs, interval_ends, interval_tails
from ...utils._seeds import keys_of_copies, mix64, salt64
from .._results.topics import check_choice, wide
from .chain import ADAPTS

N_TEMPERATURES = 400  # default number of temperatures of annealed importance sampling in a score
_SEEN_ROWS, _SEEN_DRAWS, _CONE_STEPS = 200, 45, 60  # rows, draws and gradient steps of `mean_cosines`
_N_BURN, _N_KEEP = 60, 120  # trajectories of a row's proportions to discard and to average in `transform`
_N_BETWEEN = 10  # trajectories to discard between draws of a row's proportions given successive draws of the topics


def _gram_and_products(rows, beta):
    data = RowData.from_csr(rows, 1)
    K = beta.shape[0]
    gram, products = np.empty((K, K)), np.empty((rows.shape[0], K))
    admixture.document_products(
        np.ascontiguousarray(beta, dtype=np.float64), *data.csr, np.arange(rows.shape[0]), gram, products
    )
    return gram, products


def mean_proportions(rows, beta, alpha, kappa):
    """Posterior mean proportions of each row, by geodesic Monte Carlo seeded by the content of the row."""
    gram, products = _gram_and_products(rows, beta)
    K = alpha.size
    out = np.empty((rows.shape[0], K))
    draw = proportions_kernels.draw_proportions
    draws = np.empty((1, _N_KEEP, K))
    for i, key in enumerate(content_keys(rows)):
        theta, step = alpha[None] / alpha.sum(), np.array([0.1 / np.sqrt(kappa + K * K)])
        if rows.indptr[i] == rows.indptr[i + 1]:
            out[i] = theta[0]
            continue
        rng = rng_from_key(key)
        draw(
            gram, products[i : i + 1], alpha, kappa, np.zeros(1, np.int64), theta, step, _N_BURN, _N_KEEP, 10, ADAPTS,
            draws, rng,
        )  # fmt: skip
        out[i] = draws[0].mean(axis=0)
    return out / out.sum(axis=1, keepdims=True)


def proportion_draws(rows, states, random_state, groups=None):
    """Draw the proportions of rows once for each of the ``states``, draws of (topics, alpha, kappa).

    The random numbers of a row depend on ``random_state`` and on its content, not on the other rows. Pass ``groups`` if
    draws will be averaged over groups of rows: equal rows then have different random numbers. Trajectories continue
    from one state to the next, since topics change little between draws.

    Yields
    ------
    proportions : ndarray of shape (n_rows, n_topics)
        A new array for each state; rows sum to 1. All-zero rows get draws from the prior.
    """
    keys, salts = content_keys(rows), mix64(salt64(random_state) ^ np.arange(len(states), dtype=np.uint64))
    keys = keys if groups is None else keys_of_copies(keys, groups)
    full, draw, one = has_content(rows), proportions_kernels.draw_proportions, np.zeros(1, np.int64)
    for s, (beta, alpha, kappa) in enumerate(states):
        gram, products = _gram_and_products(rows, beta)
        if s == 0:
            theta = np.tile(alpha / alpha.sum(), (len(keys), 1))
            steps = np.full(len(keys), 0.1 / np.sqrt(kappa + alpha.size**2))
        n_burn, adapts = (_N_BURN, ADAPTS) if s == 0 else (_N_BETWEEN, 0.0)
        out = np.empty(theta.shape)
        for i, key in enumerate(keys):
            rng, place = rng_from_key(key, salts[s]), slice(i, i + 1)
            if full[i]:
                draw(
                    gram, products[place], alpha, kappa, one, theta[place], steps[place], n_burn, 1, 10, adapts,
                    out[place, None], rng,
                )  # fmt: skip
            else:
                out[i] = rng.dirichlet(alpha)
        yield out / out.sum(axis=1, keepdims=True)


def log_normaliser(n_words, kappa):
    """Log normaliser, log c(kappa), of the von Mises-Fisher distribution in ``n_words`` dimensions."""
    out = np.empty(1)
    special.von_mises_fisher_normalisers(float(n_words), np.array([float(kappa)]), out)
    return float(out[0])


def annealed_scores(rows, beta, alpha, kappa, n_temperatures, n_jobs=None):
    """Log density of each row under the topics ``beta``, (n_rows,), by annealed importance sampling."""
    gram, products = _gram_and_products(rows, beta)
    estimate = score_kernels.annealed_log_mean.compiled
    keys = content_keys(rows)

    def some(which):
        return [
            estimate(gram, products[i], alpha, float(kappa), n_temperatures, 8, rng_from_key(keys[i])) for i in which
        ]

    parts = np.array_split(np.arange(rows.shape[0]), max(1, rows.shape[0] // 64))
    scores = Parallel(n_jobs=check_n_jobs(n_jobs), require="sharedmem")(delayed(some)(part) for part in parts)
    return np.concatenate(scores) + log_normaliser(rows.shape[1], kappa)


def mean_cosines(rows, draws):
    """Mean cosine between some rows and the cone spanned by the topics, in evenly spaced draws, (n_chains, n_seen).

    The cosine times the concentration is the log density of a row at its best proportions, up to a constant.

    Parameters
    ----------
    rows : csr_array of shape (n_docs, n_words)
        Unit rows.
    draws : ndarray of shape (n_chains, n_kept, n_topics, n_words)
    """
    rows, seen = rows[np.flatnonzero(has_content(rows))], evenly(draws.shape[1], _SEEN_DRAWS)
    out = np.ones((draws.shape[0], seen.size))
    if rows.shape[0] == 0:
        return out
    rows = rows[evenly(rows.shape[0], _SEEN_ROWS)]
    words = np.unique(rows.indices)
    rows = rows[:, words]
    for c, i in np.ndindex(*out.shape):
        beta = draws[c, seen[i]].astype(np.float64)
        gram, products = beta @ beta.T, np.asarray(rows @ beta[:, words].T)
        theta = _nearest_in_cone(gram, products)
        out[c, i] = np.sqrt(np.einsum("dk,kj,dj->d", theta, gram, theta)).mean()
    return out


def _nearest_in_cone(gram, products):
    """Coefficients of the nearest points to rows in a cone: non-negative least squares by accelerated gradients."""
    step = 1.0 / np.linalg.eigvalsh(gram)[-1]
    theta = ahead = np.maximum(products, 0.0)
    for i in range(_CONE_STEPS):
        before, theta = theta, np.maximum(ahead - step * (ahead @ gram - products), 0.0)
        ahead = theta + i / (i + 3.0) * (theta - before)
    return theta


def direction_table(draws, n, interval, format, feature_names, topic_names, draws_of_topic):
    """Table of the words with the largest and the smallest mean entries of each topic.

    ``draws_of_topic(k)`` returns the draws of topic k for intervals. ``format="wide"`` returns only the words with the
    largest entries, in one column for each topic.
    """
    check_choice("format", format, ("long", "wide"))
    if not isinstance(n, Integral) or n < 1:
        raise ValueError(f"n={n!r} must be a whole number of at least 1, of words of each kind; 10 is the default.")
    tails = None if interval is None or format == "wide" else interval_tails(interval)
    # Do not rescale the mean to unit length: its entries would lie outside the intervals of the draws.
    means = draws.mean(axis=0, dtype=np.float64)
    K, V = means.shape
    n = min(int(n), V // 2)  # no word is both present and absent
    order = np.argsort(-means, axis=1, kind="stable")
    words = np.hstack([order[:, :n], order[:, ::-1][:, :n]])
    feature_names = np.asarray(feature_names, dtype=object)
    if format == "wide":
        return wide({"word": feature_names[order[:, :n]]}, topic_names)
    table = {
        "topic": np.repeat(np.arange(K), 2 * n),
        "name": np.repeat(np.asarray(topic_names, dtype=object), 2 * n),
        "kind": np.tile(np.repeat(["present", "absent"], n), K),
        "rank": np.tile(np.arange(1, n + 1), 2 * K),
        "word": feature_names[words.ravel()],
        "weight": np.take_along_axis(means, words, axis=1).ravel(),
    }
    if tails is not None:
        bounds = [interval_ends(draws_of_topic(k)[:, words[k]].astype(np.float64), tails) for k in range(K)]
        table |= {"low": np.ravel([b[0] for b in bounds]), "high": np.ravel([b[1] for b in bounds])}
    return as_table(table)


def annealed_mean(rows, states, n_temperatures=N_TEMPERATURES, n_jobs=None):
    """Log of the density of each row, averaged over draws ``states``, tuples (topics, alpha, kappa1)."""
    if not isinstance(n_temperatures, Integral) or n_temperatures < 1:
        raise ValueError(
            f"n_temperatures={n_temperatures!r} must be a whole number of at least 1; 400 is the default, and "
            "fewer are less exact."
        )
    scores = [annealed_scores(rows, *state, n_temperatures, n_jobs) for state in states]
    return log_mean_exp(scores)


def log_density_under_prior(rows, draws, kappas, alpha, n_proportions):
    """Mean log density of rows, averaged over proportions from the prior that are the same for all rows and draws."""
    if not isinstance(n_proportions, Integral) or n_proportions < 1:
        raise ValueError(f"n_proportions={n_proportions!r} must be a whole number of at least 1.")
    theta = np.random.default_rng(0).dirichlet(alpha, n_proportions)
    total = np.full(rows.shape[0], -np.inf)
    for beta, kappa in zip(draws.astype(np.float64), kappas, strict=True):
        size = np.sqrt(np.einsum("nk,kj,nj->n", theta, beta @ beta.T, theta))
        cosine = (rows @ beta.T) @ (theta / size[:, None]).T
        total = np.logaddexp(total, logsumexp(kappa * cosine, axis=1) + log_normaliser(rows.shape[1], kappa))
    return float(total.mean() - np.log(len(draws) * n_proportions))
