"""Results of a Dirichlet-process mixture: clusters and densities of rows, and profiles of clusters."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp, xlogy
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from ...chains.chain import TINY
from ...metrics import partition_distance, point_partition
from ...utils import as_table
from ...utils._bit_stable import bit_stable_product, log_mean_exp
from ...utils._dask import lazy_for_dask
from ...utils._numbers import checked_count, interval_ends, interval_tails
from ...utils._sklearn import ClassNamePrefixFeaturesOutMixin, TransformerMixin, available_if, check_sample_weight
from ...utils._tables import aligned
from ...utils._typing import FloatArray, IntArray, MatrixLike, Table
from .cells import CATEGORICAL, MIXED

_PARTITION_ROWS = 3000  # largest number of rows from which the point partition is computed
_PIECE = 20_000  # number of rows that are evaluated at once, to limit memory
_DIVISION_STEPS = 10  # number of EM steps
_NO_ROWS = 1e-6  # a component with fewer expected rows counts as empty
_N_SCORED, _N_PREDICTED = 100, 25  # largest number of draws averaged for densities, and for clusters


def log_weights(X, weights, components, layout, base):
    """Log of weight times density of each row under the components of one draw, (n_rows, n_slots + 1).

    The last column is for all components without rows; ``base`` is the log density of rows under the prior.
    """
    density = layout.log_density(X, components)
    with np.errstate(divide="ignore"):
        known = np.log(weights)
        rest = np.log(max(1.0 - weights.sum(), 1e-300))
    return np.concatenate([density + known, (base + rest)[:, None]], axis=1)


def _responsibilities(log_weight, log_density=None):
    """Probability of each component given the row; pass the row-wise ``logsumexp`` as ``log_density`` if known."""
    if log_density is None:
        log_density = logsumexp(log_weight, axis=1)
    return np.exp(log_weight - log_density[:, None])


def mean_score(scores, sample_weight):
    """Mean score of rows, weighted if weights are passed."""
    if sample_weight is None:
        return float(np.mean(scores))
    weight = check_sample_weight(sample_weight, scores[:, None], dtype=np.float64, ensure_non_negative=True)
    if not weight.max() > 0:
        raise ValueError("sample_weight must have at least one non-zero number.")
    return float(np.average(scores, weights=weight / weight.max()))


class FittedDPMixture(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Methods of a fitted `DPCategoricalMixture`."""

    _feature_names = None  # names passed to `fit`

    # -- fitted attributes -----------------------------------------------------------------------------------------

    def _set_fitted(self, chains):
        drawn = [chain.draws() for chain in chains]
        n_kept = min(len(draws["weights"]) for draws in drawn)
        # One slot more than any draw has components, so that rows of a new component can form a cluster.
        n_slots = 1 + max(draws["weights"].shape[1] for draws in drawn)
        samples = {}
        for name in drawn[0]:
            parts = [draws[name][:n_kept] for draws in drawn]
            if name in ("weights", "components"):
                parts = [
                    np.pad(part, [(0, 0), (0, n_slots - part.shape[1])] + [(0, 0)] * (part.ndim - 2)) for part in parts
                ]
            samples[name] = np.stack(parts)
        absent = samples["weights"] == 0
        samples["components"][absent] = self._layout.prior_mean()
        data = chains[0].data
        rows = np.unique(np.linspace(0, data.n_rows - 1, min(_PARTITION_ROWS, data.n_rows)).round().astype(int))
        self._find_clusters(samples, data.selected(rows))
        self.samples_["components"] = self._in_public_order(self.samples_["components"])

    def _in_public_order(self, components):
        """Reorder the levels of components from the order of the chains to that of ``categories_``."""
        return components if self._level_places is None else components[..., self._level_places]

    def _find_clusters(self, samples, X):
        """Find the point partition of encoded rows X, and order the components of all draws by its clusters."""
        flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in samples.items()}
        n_draws, n_slots = flat["weights"].shape
        base = self._layout.base_log_density(X)
        shares, labels, densities = [], np.empty((n_draws, X.shape[0]), dtype=np.int64), np.empty(n_draws)
        for s in range(n_draws):
            log_weight = log_weights(X, flat["weights"][s], flat["components"][s], self._layout, base)
            log_density = logsumexp(log_weight, axis=1)
            densities[s] = log_density.mean()
            share = _responsibilities(log_weight, log_density)
            labels[s] = share.argmax(axis=1)
            shares.append(share)
        partition, self.partition_loss_ = point_partition(labels, self.partition_loss)
        while True:
            order, part_of = _parts_of(partition, shares, flat["weights"])
            held = sum(shares[s][:, [*order[s], n_slots]] @ part_of[s] for s in spread(n_draws, _N_PREDICTED))
            found = np.bincount(held.argmax(axis=1), minlength=held.shape[1]) > 0
            if found.all():
                break
            # Drop clusters that `predict` would never return, and assign their rows as `predict` does.
            labels = np.where(found[partition], partition, held.argmax(axis=1))
            by_size = np.argsort(-np.bincount(labels, minlength=found.size), kind="stable")
            partition = np.argsort(by_size)[labels]
        for name in ("weights", "components"):
            index = order if name == "weights" else order[:, :, None]
            samples[name] = np.take_along_axis(flat[name], index, axis=1).reshape(samples[name].shape)
        self._part_of, self._log_likelihoods = part_of, densities.reshape(samples["n_clusters"].shape)
        self.samples_ = samples
        self.n_clusters_ = part_of.shape[2]
        self.weights_ = np.einsum("sk,skc->c", samples["weights"].reshape(n_draws, -1), self._part_of[:, :n_slots])
        self.weights_ /= self.weights_.sum()

    def _monitored(self, chains):
        samples = self.samples_
        entropy = -xlogy(samples["weights"], samples["weights"]).sum(axis=2)
        learnt = [] if np.isscalar(self.concentration_prior) else ["concentration"]
        found = {name: samples[name] for name in ("n_clusters", *learnt)}
        return {"log_likelihood": self._log_likelihoods, "weight_entropy": entropy, **found}

    def _held_out(self, X, y=None, sample_weight=None):
        return self._encoded(X), *aligned(X, sample_weight=sample_weight)

    def _present_score(self, held_out):
        X, sample_weight = held_out
        now = self._chains[0].current()
        base = self._layout.base_log_density(X)
        components = self._in_public_order(now["components"])
        scores = logsumexp(log_weights(X, now["weights"], components, self._layout, base), axis=1)
        return mean_score(scores, sample_weight)

    # -- rows ------------------------------------------------------------------------------------------------------

    def _each_draw(self, X, n_draws=_N_SCORED):
        """Yield the index of each draw and the `log_weights` of encoded rows, for at most ``n_draws`` draws."""
        weights = self.samples_["weights"]
        components = self.samples_["components"].reshape(-1, *self.samples_["components"].shape[2:])
        weights = weights.reshape(-1, weights.shape[-1])
        base = self._layout.base_log_density(X)
        for s in spread(len(weights), n_draws):
            yield s, log_weights(X, weights[s], components[s], self._layout, base)

    def _in_pieces(self, X, answer):
        """Evaluate ``answer`` on at most `_PIECE` encoded rows at a time, and concatenate the results."""
        return np.concatenate([answer(X[start : start + _PIECE]) for start in range(0, X.shape[0], _PIECE)])

    def _proba(self, X):
        total = np.zeros((X.shape[0], self.n_clusters_))
        for s, log_weight in self._each_draw(X, _N_PREDICTED):
            total += bit_stable_product(_responsibilities(log_weight), self._part_of[s])
        return total / total.sum(axis=1, keepdims=True)

    def _most_probable(self, X):
        return self._in_pieces(X, lambda piece: self._proba(piece).argmax(axis=1))

    @available_if(lambda self: not getattr(self, "_with_y", True))
    @lazy_for_dask(lambda self: self.n_clusters_)
    def predict_proba(self, X: MatrixLike) -> FloatArray:
        """Probability that each row belongs to each cluster, averaged over draws.

        Parameters
        ----------
        X : array-like, sparse, DataFrame or Dask array of shape (n_samples, n_features)

        Returns
        -------
        proba : ndarray, lazy for a Dask array, of shape (n_samples, n_clusters)
            Rows sum to 1. In each draw, a component is divided between the clusters that contain its rows.

        Notes
        -----
        Available only after a fit without ``y``: clusters are not classes of y, and scikit-learn would treat an
        estimator with this method as a classifier.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import DPCategoricalMixture
        >>> X = np.array([["yes", "often"], ["no", "never"]] * 30, dtype=object)
        >>> mixture = DPCategoricalMixture(
        ...     likelihood="categorical", n_iter=60, random_state=0
        ... ).fit(X)
        >>> mixture.predict_proba(X[:2]).argmax(axis=1).tolist() == mixture.labels_[
        ...     :2
        ... ].tolist()
        True
        """
        check_is_fitted(self)
        return self._in_pieces(self._encoded(X), self._proba)

    @lazy_for_dask(lambda self: self.n_clusters_)
    def transform(self, X: MatrixLike) -> FloatArray:
        """Probability that each row belongs to each cluster, as ``predict_proba``, for use in pipelines.

        Parameters
        ----------
        X : array-like, sparse, DataFrame or Dask array of shape (n_samples, n_features)

        Returns
        -------
        proba : ndarray, lazy for a Dask array, of shape (n_samples, n_clusters)
            Rows sum to 1.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import DPCategoricalMixture
        >>> X = np.array([["yes", "often"], ["no", "never"]] * 30, dtype=object)
        >>> mixture = DPCategoricalMixture(
        ...     likelihood="categorical", n_iter=60, random_state=0
        ... ).fit(X)
        >>> mixture.transform(X).shape
        (60, 2)
        """
        check_is_fitted(self)
        return self._in_pieces(self._encoded(X), self._proba)

    @property
    def _n_features_out(self):
        return self.n_clusters_

    @lazy_for_dask(dtype=np.intp)
    def predict(self, X: MatrixLike) -> IntArray:
        """Assign each row to its most probable cluster.

        Parameters
        ----------
        X : array-like, sparse, DataFrame or Dask array of shape (n_samples, n_features)

        Returns
        -------
        labels : ndarray, lazy for a Dask array, of shape (n_samples,)
            0 is the largest cluster.
        """
        check_is_fitted(self)
        return self._most_probable(self._encoded(X))

    def fit_predict(
        self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> IntArray:
        """Fit the mixture and return the clusters of the rows.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return self.fit(X, y, sample_weight).labels_

    @lazy_for_dask()
    def score_samples(self, X: MatrixLike) -> FloatArray:
        """Log predictive probability of each row: the log of the probability averaged over draws.

        Parameters
        ----------
        X : array-like, sparse, DataFrame or Dask array of shape (n_samples, n_features)

        Returns
        -------
        log_probability : ndarray, lazy for a Dask array, of shape (n_samples,)
            Without the multinomial coefficient. Components without rows contribute the prior predictive probability.
            Missing entries are ignored.
        """
        check_is_fitted(self)
        return self._log_probability(self._encoded(X))

    def _log_likelihood_draws(self, X, y=None):
        """Log probability of each row in each draw, (n_chains, n_kept, n_rows)."""
        n_chains, n_kept = self.samples_["n_clusters"].shape
        each = self._each_draw(self._encoded(X), n_chains * n_kept)
        return np.stack([logsumexp(log_weight, axis=1) for _, log_weight in each]).reshape(n_chains, n_kept, -1)

    def _log_probability(self, X):
        def answer(X):
            return log_mean_exp([logsumexp(log_weight, axis=1) for _, log_weight in self._each_draw(X)])

        return self._in_pieces(X, answer)

    def score(self, X: MatrixLike, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean of `score_samples` over rows; higher is better.

        Parameters
        ----------
        X : array-like, sparse or DataFrame of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the mean; their scale does not matter.

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        (sample_weight,) = aligned(X, sample_weight=sample_weight)
        return mean_score(self._log_probability(self._encoded(X)), sample_weight)

    def co_clustering(self, X: MatrixLike) -> FloatArray:
        """Probability that each pair of rows belongs to the same component.

        Parameters
        ----------
        X : array-like, sparse or DataFrame of shape (n_samples, n_features)

        Returns
        -------
        together : ndarray of shape (n_samples, n_samples)
            Mean over draws of the probability that both rows belong to the same component. The diagonal is 1. Two rows
            that belong to none of the components in use count as separate.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import DPCategoricalMixture
        >>> X = np.array([["yes", "often"], ["no", "never"]] * 30, dtype=object)
        >>> mixture = DPCategoricalMixture(
        ...     likelihood="categorical", n_iter=60, random_state=0
        ... ).fit(X)
        >>> together = mixture.co_clustering(X[:3])
        >>> bool(together[0, 1] < 0.1), bool(together[0, 2] > 0.9)
        (True, True)
        """
        check_is_fitted(self)
        together, n = np.zeros(()), 0
        for _, log_weight in self._each_draw(self._encoded(X), _N_SCORED):
            share = _responsibilities(log_weight)[:, :-1]
            together, n = together + share @ share.T, n + 1
        together = together / n
        np.fill_diagonal(together, 1.0)
        return together

    def consensus_partition(
        self, X: MatrixLike, loss: Literal["vi", "binder"] | None = None, interval: float = 0.9
    ) -> Bunch:
        """Partition of rows with the smallest mean distance from the draws, and the spread of the draws around it.

        `predict` assigns each row to a cluster of the fitted rows. This method clusters the rows passed to it.

        Parameters
        ----------
        X : array-like, sparse or DataFrame of shape (n_samples, n_features)
        loss : {"vi", "binder"}, default=None
            Distance between partitions, see `sk_sgmcmc.metrics.partition_distance`. None: ``partition_loss``.
        interval : float, default=0.9
            Share of the draws within ``radius``.

        Returns
        -------
        consensus : Bunch
            ``labels``, int64 of shape (n_samples,), numbered from the largest cluster to the smallest;
            ``expected_loss``, the mean distance of the partition from the draws; and ``radius``, the distance from the
            partition within which a share ``interval`` of the draws lies (a credible ball).

        See Also
        --------
        co_clustering : Probability that pairs of rows belong together.
        sk_sgmcmc.metrics.point_partition : Point partition of any draws of labels.

        References
        ----------
        Wade and Ghahramani (2018), Bayesian cluster analysis: point estimation and credible balls, Bayesian Analysis
        13.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import DPCategoricalMixture
        >>> X = np.array([["yes", "often"], ["no", "never"]] * 30, dtype=object)
        >>> mixture = DPCategoricalMixture(
        ...     likelihood="categorical", n_iter=60, random_state=0
        ... ).fit(X)
        >>> np.bincount(mixture.consensus_partition(X).labels)
        array([30, 30])
        """
        check_is_fitted(self)
        loss = self.partition_loss if loss is None else loss
        interval_tails(interval)
        labels = np.stack([log_weight.argmax(axis=1) for _, log_weight in self._each_draw(self._encoded(X))])
        partition, expected = point_partition(labels, loss)
        apart = [partition_distance(partition, draw, loss) for draw in labels]
        return Bunch(labels=partition, expected_loss=expected, radius=float(np.quantile(apart, interval)))

    # -- tables ----------------------------------------------------------------------------------------------------

    def top_categories(self, n: int = 5, interval: float = 0.9) -> Table:
        """Table of the entries that characterise each cluster: more probable in it than in all rows.

        Parameters
        ----------
        n : int, default=5
            Number of entries for each cluster.
        interval : float, default=0.9
            Mass of the central credible interval.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per entry: ``cluster``, ``weight`` (of the cluster), ``rank``, ``feature``, ``level`` (only for
            categories), ``probability`` (posterior mean), ``low``, ``high``, ``overall`` (probability in all rows), and
            ``lift``, the ratio of ``probability`` to ``overall``. Entries are ranked by ``probability * log(lift)``.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import DPCategoricalMixture
        >>> X = np.array([["yes", "often"], ["no", "never"]] * 30, dtype=object)
        >>> mixture = DPCategoricalMixture(
        ...     likelihood="categorical", n_iter=60, random_state=0
        ... ).fit(X)
        >>> table = mixture.top_categories(2)
        >>> sorted({str(level) for level in table["level"]})
        ['never', 'no', 'often', 'yes']
        """
        check_is_fitted(self)
        n = checked_count("n", n)
        overall, probabilities = self._profiles(interval_tails(interval))
        features, levels = self._entry_names()
        is_probability = np.ones(features.size, dtype=bool)
        if self._layout.kind == MIXED:
            is_probability = self._layout.entry_names()[2] == "probability"
        columns = {name: [] for name in ("cluster", "weight", "rank", "feature", "level", "probability", "low", "high",
                                         "overall", "lift")}  # fmt: skip
        for c, (mean, low, high) in enumerate(probabilities):
            # A probability below the smallest float64 in all draws gets lift 1.
            lift = np.divide(mean, overall, out=np.ones_like(mean), where=is_probability & (overall > 0))
            gain = np.where(is_probability, xlogy(mean, lift), -np.inf)
            top = np.argsort(-gain, kind="stable")[: min(n, np.count_nonzero(is_probability))]
            columns["cluster"] += [c] * top.size
            columns["weight"] += [self.weights_[c]] * top.size
            columns["rank"] += range(1, top.size + 1)
            columns["feature"] += features[top].tolist()
            columns["level"] += levels[top].tolist()
            for name, value in (("probability", mean[top]), ("low", low[top]), ("high", high[top]),
                                ("overall", overall[top]), ("lift", lift[top])):  # fmt: skip
                columns[name] += value.tolist()
        if self._layout.kind not in (CATEGORICAL, MIXED):
            del columns["level"]
        return as_table({name: np.asarray(column) for name, column in columns.items()})

    def n_clusters_posterior(self) -> Table:
        """Posterior distribution of the number of components that have rows.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per number that occurs in the draws: ``n_clusters``, ``probability``.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import DPCategoricalMixture
        >>> X = np.array([["yes", "often"], ["no", "never"]] * 30, dtype=object)
        >>> mixture = DPCategoricalMixture(
        ...     likelihood="categorical", n_iter=60, random_state=0
        ... ).fit(X)
        >>> table = mixture.n_clusters_posterior()
        >>> bool(np.isclose(table["probability"].sum(), 1.0))
        True
        """
        check_is_fitted(self)
        values, often = np.unique(self.samples_["n_clusters"], return_counts=True)
        return as_table({"n_clusters": values, "probability": often / often.sum()})

    def profile_table(self, interval: float = 0.9) -> Table:
        """Table of all probabilities of all clusters, with credible intervals.

        Parameters
        ----------
        interval : float, default=0.9
            Mass of the central credible interval.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per cluster and entry, in the order of the columns and of their levels: ``cluster``, ``weight`` (of
            the cluster), ``feature``, ``level`` (only for categories), ``probability`` (posterior mean), ``low``,
            ``high``, and ``overall`` (probability in all rows). With ``likelihood="mixed"`` the columns are those of
            `LatentClassModel.profile_table <sk_sgmcmc.LatentClassModel>`, with ``cluster`` in place of ``class``.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import DPCategoricalMixture
        >>> X = np.array([["yes", "often"], ["no", "never"]] * 30, dtype=object)
        >>> mixture = DPCategoricalMixture(
        ...     likelihood="categorical", n_iter=60, random_state=0
        ... ).fit(X)
        >>> table = mixture.profile_table()
        >>> (
        ...     np.asarray(table["level"])[:4].tolist(),
        ...     bool(np.all(table["low"] <= table["high"])),
        ... )
        (['no', 'yes', 'never', 'often'], True)
        """
        check_is_fitted(self)
        overall, probabilities = self._profiles(interval_tails(interval))
        features, levels = self._entry_names()
        n, n_entries = self.n_clusters_, features.size
        mean, low, high = (np.concatenate(part) for part in zip(*probabilities, strict=True))
        if self._layout.kind == MIXED:
            return self._mixed_profiles(mean, low, high, overall)
        columns = {
            "cluster": np.repeat(np.arange(n), n_entries),
            "weight": np.repeat(self.weights_, n_entries),
            "feature": np.tile(features, n),
            "level": np.tile(levels, n),
            "probability": mean,
            "low": low,
            "high": high,
            "overall": np.tile(overall, n),
        }
        if self._layout.kind != CATEGORICAL:
            del columns["level"]
        return as_table(columns)

    def _mixed_profiles(self, mean, low, high, overall):
        """The profile table of columns of several kinds."""
        shown, n = self._layout.reported(), self.n_clusters_
        owner, levels, statistics = (each[shown] for each in self._layout.entry_names())
        kinds = np.array([column.kind for column in self._layout.columns], dtype=object)
        chosen = np.tile(shown, n)
        return as_table(
            {
                "cluster": np.repeat(np.arange(n), owner.size),
                "weight": np.repeat(self.weights_, owner.size),
                "feature": np.tile(self._column_names()[owner], n),
                "kind": np.tile(kinds[owner], n),
                "level": np.tile(levels, n),
                "statistic": np.tile(statistics, n),
                "mean": mean[chosen],
                "low": low[chosen],
                "high": high[chosen],
                "overall": np.tile(overall[shown], n),
            }
        )

    def _profiles(self, tails):
        """Probabilities of entries in all rows; and for each cluster, (mean, low, high) of its probabilities."""
        weights = self.samples_["weights"]
        components = self.samples_["components"].reshape(-1, *self.samples_["components"].shape[2:])
        weights = weights.reshape(-1, weights.shape[-1])
        if self._layout.kind == MIXED:
            overall = self._layout.overall(weights, components)
        else:
            overall = np.mean([w @ theta / w.sum() for w, theta in zip(weights, components, strict=True)], axis=0)
        each = []
        for c in range(self.n_clusters_):
            there = weights[:, c] > 0
            draws = components[there if there.any() else slice(None), c].astype(np.float64)
            each.append((draws.mean(axis=0), *interval_ends(draws, tails)))
        return overall, each

    def _column_names(self):
        names = self._feature_names
        if names is None:
            names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        return np.asarray(names, dtype=object)

    def _entry_names(self):
        """Feature and level of each entry of a component."""
        names = self._column_names()
        if self._layout.kind == MIXED:
            owner, levels, _ = self._layout.entry_names()
            return names[owner], levels
        if self._layout.kind != CATEGORICAL:
            return names, np.full(names.size, "")
        return names[self._layout.block], np.concatenate([np.asarray(of, dtype=object) for of in self.categories_])


def spread(n, n_most):
    """Indices of at most ``n_most`` of n draws, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, n_most)).round().astype(int))


def _parts_of(partition, shares, weights):
    """Match the components of each draw to the clusters, and divide each component between the clusters.

    Parameters
    ----------
    partition : ndarray of shape (n_rows,)
    shares : list of ndarray, (n_rows, n_slots + 1)
        Probability that each row belongs to each component, or to one without rows (last column); one array per draw.
    weights : ndarray of shape (n_draws, n_slots)

    Returns
    -------
    order : ndarray of shape (n_draws, n_slots)
        Permutation of the components: first those matched to the clusters, then the others by weight.
    part_of : ndarray of float32, shape (n_draws, n_slots + 1, n_clusters)
        Probability that a row of a component is in each cluster. Components are permuted by ``order``.
    """
    member = np.eye(partition.max() + 1)[partition]
    order, part_of = np.empty(weights.shape, dtype=np.int64), []
    for s, share in enumerate(shares):
        order[s] = _in_order_of_clusters(share[:, :-1].T @ member, weights[s])
        part_of.append(_division(share[:, [*order[s], weights.shape[1]]], partition, member))
    return order, np.stack(part_of).astype(np.float32)


def _division(share, partition, member):
    """Maximum-likelihood estimate, by EM, of the probability that a row of each component is in each cluster.

    Cross-tabulating ``share`` and the partition instead would blur overlapping clusters twice: between components, and
    between components and clusters.

    Parameters
    ----------
    share : ndarray of shape (n_rows, n_components)
        Probability that each row belongs to each component.
    partition : ndarray of shape (n_rows,)
    member : ndarray of shape (n_rows, n_clusters)
        One-hot encoding of ``partition``.

    Returns
    -------
    division : ndarray of shape (n_components, n_clusters)
        Rows sum to 1. A component without rows is divided in proportion to the sizes of the clusters.
    """
    everywhere = member.mean(axis=0)
    counts = share.T @ member
    held = counts.sum(axis=1) > _NO_ROWS
    share, counts = share[:, held], counts[held]
    for _ in range(_DIVISION_STEPS):
        explained = share * (counts / counts.sum(axis=1, keepdims=True)).T[partition]
        counts = (explained / (explained.sum(axis=1, keepdims=True) + TINY)).T @ member + _NO_ROWS * everywhere
    division = np.tile(everywhere, (held.size, 1))
    division[held] = counts / counts.sum(axis=1, keepdims=True)
    return division


def _in_order_of_clusters(overlap, weights):
    """Order components: first those that best match the clusters, in their order, then the others by weight."""
    rows, columns = linear_sum_assignment(-overlap)
    matched = rows[np.argsort(columns)]
    others = np.setdiff1d(np.arange(len(weights)), matched)
    return np.concatenate([matched, others[np.argsort(-weights[others], kind="stable")]])
