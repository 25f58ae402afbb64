"""A spherical admixture model after fitting: proportions and densities of rows, tables of words."""

from numbers import Integral

import numpy as np
from joblib import Parallel, delayed
from scipy.special import logsumexp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ...directions import RowData, content_keys, has_content
from ...kernels.math import bessel
from ...kernels.models.spherical import admixture
from ...kernels.models.spherical import proportions as proportions_kernels
from ...kernels.models.spherical import score as score_kernels
from ...utils import as_precise_as, as_table, rng_from_key
from ...utils._numbers import check_n_jobs
from .chain import ADAPTS

_SCORED_DRAWS = 5  # kept draws averaged in a score
_N_TEMPERATURES = 400  # of annealing, in a score
_N_BURN, _N_KEEP = 60, 120  # trajectories of a row's proportions in `transform`


def _gram_and_products(rows, beta):
    data = RowData.from_csr(rows, 1)
    K = beta.shape[0]
    gram, products = np.empty((K, K)), np.empty((rows.shape[0], K))
    admixture.document_products(
        np.ascontiguousarray(beta, dtype=np.float64), *data.csr, np.arange(rows.shape[0]), gram, products
    )
    return gram, products


def mean_proportions(rows, beta, alpha, kappa):
    """Posterior mean proportions of each row, by geodesic Monte Carlo with a stream keyed by the row's content."""
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
            gram,
            products[i : i + 1],
            alpha,
            kappa,
            np.zeros(1, np.int64),
            theta,
            step,
            _N_BURN,
            _N_KEEP,
            10,
            ADAPTS,
            draws,
            rng,
        )
        out[i] = draws[0].mean(axis=0)
    return out / out.sum(axis=1, keepdims=True)


def log_normaliser(n_words, kappa):
    """Log of the normaliser c(kappa) of the von Mises-Fisher law of directions of ``n_words`` coordinates."""
    out = np.empty(1)
    bessel.von_mises_fisher_normalisers(float(n_words), np.array([float(kappa)]), out)
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
    scores = Parallel(n_jobs=check_n_jobs(n_jobs), prefer="threads")(delayed(some)(part) for part in parts)
    return np.concatenate(scores) + log_normaliser(rows.shape[1], kappa)


def direction_table(draws, n, interval, feature_names, draws_of_topic):
    """Words with the largest and the smallest mean entries of each topic; intervals from ``draws_of_topic(k)``."""
    if not isinstance(n, Integral) or n < 1:
        raise ValueError(f"n={n!r} must be a whole number of words of at least 1, of each kind; 10 is the default.")
    if interval is not None and not 0 < interval < 1:
        raise ValueError(f"interval={interval} must lie between 0 and 1; 0.9 is a common choice.")
    # Not the mean direction: where draws differ, their mean is shorter than a unit vector, and intervals exclude it.
    means = draws.mean(axis=0, dtype=np.float64)
    K, V = means.shape
    n = min(int(n), V // 2)  # no word is both present and absent
    feature_names = np.asarray(feature_names, dtype=object)
    if feature_names.shape != (V,):
        raise ValueError(f"feature_names has shape {feature_names.shape}; it must hold {V} names.")
    order = np.argsort(-means, axis=1, kind="stable")
    words = np.hstack([order[:, :n], order[:, ::-1][:, :n]])
    table = {
        "topic": np.repeat(np.arange(K), 2 * n),
        "kind": np.tile(np.repeat(["present", "absent"], n), K),
        "rank": np.tile(np.arange(1, n + 1), 2 * K),
        "word": feature_names[words.ravel()],
        "weight": np.take_along_axis(means, words, axis=1).ravel(),
    }
    if interval is not None:
        tails = [(1 - interval) / 2, (1 + interval) / 2]
        bounds = [np.quantile(draws_of_topic(k)[:, words[k]].astype(np.float64), tails, axis=0) for k in range(K)]
        table |= {"low": np.ravel([b[0] for b in bounds]), "high": np.ravel([b[1] for b in bounds])}
    return as_table(table)


class FittedAdmixture(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods of a fitted `SphericalAdmixtureModel`."""

    # -- documents -----------------------------------------------------------------------------------------------

    def transform(self, X):
        """Posterior mean proportions of rows, given the mean topics of the reference chain.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)

        Returns
        -------
        proportions : ndarray of shape (n_samples, n_components)
            Rows sum to 1. They do not depend on one another; an all-zero row gets the prior's mean.
        """
        check_is_fitted(self)
        rows = self._check_X(X, reset=False)
        proportions = mean_proportions(rows, self.components_, self.doc_topic_prior_, self.kappa1_)
        return as_precise_as(X, proportions)

    def score_samples(self, X, *, n_temperatures=_N_TEMPERATURES):
        """Log of each row's density averaged over draws, with proportions integrated by annealing.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
        n_temperatures : int, default=400
            At least 1; larger is more exact and slower.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            With respect to the surface of the sphere, from at most 5 kept draws, evenly spaced; 0 for an all-zero row,
            which is not an observation.
        """
        check_is_fitted(self)
        rows = self._check_X(X, reset=False)
        full, out = has_content(rows), np.zeros(rows.shape[0])
        if full.any():
            out[full] = self._log_density(rows[full], n_temperatures)
        return out

    def _log_density(self, rows, n_temperatures):
        draws = self._draws()
        chosen = np.unique(np.linspace(0, len(draws) - 1, _SCORED_DRAWS).round().astype(int))
        return self._annealed(rows, [(draws[i], *self._laws(i)) for i in chosen], n_temperatures)

    def _annealed(self, rows, states, n_temperatures=_N_TEMPERATURES):
        """Log of each row's density averaged over ``states``, (topics, alpha, kappa1) of draws."""
        if not isinstance(n_temperatures, Integral) or n_temperatures < 1:
            raise ValueError(
                f"n_temperatures={n_temperatures!r} must be a whole number of at least 1; 400 is the default, and "
                "fewer are less exact."
            )
        scores = [annealed_scores(rows, *state, n_temperatures, self.n_jobs) for state in states]
        return logsumexp(scores, axis=0) - np.log(len(scores))

    def score(self, X, y=None, *, n_temperatures=_N_TEMPERATURES):
        """Mean log density of the rows that are not all-zero, by annealed importance sampling; see `score_samples`.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
        y : ignored
        n_temperatures : int, default=400
            As for `score_samples`. A sparse ``doc_topic_prior``, below about 0.1, needs more: with 0.05, and ``kappa1``
            and ``sigma`` of 1500, a mean was 14,274 with 400 temperatures and 14,290 with 3000.

        Returns
        -------
        score : float
            Higher is better.
        """
        check_is_fitted(self)
        return float(np.mean(self._log_density(self._scored_rows(X), n_temperatures)))

    def _score_now(self, callback):
        """Held-out score of the present topics, for `HeldOutScore`."""
        if callback._split is None:
            callback._split = self._scored_rows(callback.X)
        chain = self._chains[0]
        state = chain.current()["components"], chain.alpha, chain.numbers[1]
        return self._annealed(callback._split, [state], **callback.given).mean()

    def log_perplexity(self, X, method="prior", *, pooled=True, n_proportions=200):
        """Mean negative log density of the rows that are not all-zero.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
        method : {"prior", "annealed"}, default="prior"
            "prior": the paper's recipe, one set of proportions drawn from the prior for all rows and draws. It does not
            rank models; "annealed", which is minus `score`, does.
        pooled : bool, default=True
            Pool all kept draws, as in the paper, or with "annealed" those that `score` uses; False uses only the last.
        n_proportions : int, default=200
            Proportions drawn from the prior, for "prior".

        Returns
        -------
        log_perplexity : float
            Lower is better; may be negative.
        """
        check_is_fitted(self)
        if method not in ("prior", "annealed"):
            raise ValueError(f'method={method!r} must be "prior" or "annealed".')
        if method == "annealed" and pooled:
            return -self.score(X)
        if method == "annealed":
            return -float(np.mean(self._annealed(self._scored_rows(X), [(self._draws()[-1], *self._laws(-1))])))
        if not isinstance(n_proportions, Integral) or n_proportions < 1:
            raise ValueError(f"n_proportions={n_proportions!r} must be a whole number of at least 1.")
        rows = self._scored_rows(X)
        theta = np.random.default_rng(0).dirichlet(self.doc_topic_prior_, n_proportions)
        total = np.full(rows.shape[0], -np.inf)
        draws = self._draws()[slice(None) if pooled else slice(-1, None)]
        for i, beta in enumerate(draws.astype(np.float64)):
            kappa = self._laws(i if pooled else -1)[1]
            size = np.sqrt(np.einsum("nk,kj,nj->n", theta, beta @ beta.T, theta))
            cosine = (rows @ beta.T) @ (theta / size[:, None]).T
            total = np.logaddexp(total, logsumexp(kappa * cosine, axis=1) + log_normaliser(rows.shape[1], kappa))
        return float(np.log(len(draws) * n_proportions) - total.mean())

    def _draws(self):
        value = self.samples_["components"]
        return value.reshape(-1, *value.shape[2:])

    def _laws(self, i):
        """Parameter of the Dirichlet law and concentration of the documents, of kept draw ``i``."""
        alpha, kappa = self.doc_topic_prior_, self.kappa1_
        if "doc_topic_prior" in self.samples_:
            alpha = np.full_like(alpha, self.samples_["doc_topic_prior"].ravel()[i])
        return alpha, float(self.samples_["kappa1"].ravel()[i]) if "kappa1" in self.samples_ else kappa

    def top_words(self, n=10, interval=None, *, feature_names=None):
        """The words present in each topic, and those absent from it.

        Parameters
        ----------
        n : int, default=10
            Words of each kind for each topic; at most half of all words.
        interval : float or None, default=None
            Mass of the central credible interval, for example 0.9; None omits the columns.
        feature_names : array-like of str, default=None
            Names of the columns; None takes ``feature_names_in_``, or the indices of the columns.

        Returns
        -------
        table : DataFrame, or Bunch of columns where pandas is not installed
            One row per word: ``topic``, ``kind`` ("present" or "absent"), ``rank``, ``word``, ``weight`` (posterior
            mean of the topic's entry in the reference chain, by which words are ranked); with ``interval`` also ``low``
            and ``high``, quantiles of the draws of all chains that agree on the topic. ``components_`` is longer: it is
            rescaled to unit length.
        """
        check_is_fitted(self)
        if feature_names is None:
            feature_names = getattr(self, "feature_names_in_", np.arange(self.components_.shape[1]))
        draws = self.samples_["components"]
        return direction_table(
            self._of_reference("components"), n, interval, feature_names, lambda k: self._draws_of_topic(draws, k)
        )
