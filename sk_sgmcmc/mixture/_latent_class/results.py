"""Results of a latent class model: classes and densities of rows, profiles of classes, and effects of covariates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, xlogy
from sklearn.utils.validation import check_is_fitted

from ...chains.agreement import Agreement
from ...chains.chain import stacked_draws
from ...covariates.effects import Comparison, Counterfactuals, PriorMean, effects_of
from ...dense.rows import DenseRows
from ...utils import as_table
from ...utils._bit_stable import log_mean_exp
from ...utils._dask import lazy_for_dask
from ...utils._numbers import interval_ends, interval_tails
from ...utils._sklearn import available_if
from ...utils._tables import aligned
from ...utils._typing import AnyArray, Columns, FloatArray, IntArray, MatrixLike, Table
from .._dirichlet_process.input import checked_table
from .._dirichlet_process.results import mean_score, spread
from .alignment import align_chains, compared_rows, responsibilities, rows_of_classes

_PIECE = 20_000  # number of rows that are evaluated at once, to limit memory
_N_SCORED, _N_PREDICTED = 100, 50  # largest number of draws averaged for densities, and for classes


class FittedLatentClasses:
    """Methods of a fitted `LatentClassModel`."""

    _feature_names = None  # names passed to `fit`

    # -- fitted attributes -----------------------------------------------------------------------------------------

    def _set_fitted(self, chains):
        samples = stacked_draws(chains)
        self._log_posterior, data = samples.pop("log_posterior"), chains[0].data
        rows = compared_rows(data.n_rows)
        cells, Z = data.selected(rows), None if data.Z is None else data.Z[rows]
        n_chains, n_kept, K = samples["weights"].shape
        held, self._log_likelihood = np.empty((n_chains, n_kept, K, rows.size)), np.empty((n_chains, n_kept))
        for at in np.ndindex(n_chains, n_kept):
            coef = samples["coef"][at] if "coef" in samples else None
            log_weight = _log_prior(samples["weights"][at], coef, Z) + chains[0].layout.log_density(
                cells, samples["components"][at]
            )
            self._log_likelihood[at] = logsumexp(log_weight, axis=1).mean()
            held[at] = rows_of_classes(responsibilities(log_weight))
        order, self.chains_agree_, self._distances = align_chains(
            held, samples["weights"], self._log_posterior.mean(axis=1)
        )
        for name, value in samples.items():
            samples[name] = np.take_along_axis(value, order.reshape(order.shape + (1,) * (value.ndim - 3)), axis=2)
        self._sizes = samples.pop("sizes")[self.chains_agree_]
        samples["components"] = samples["components"][..., self._order.entries]
        if "coef" in samples:
            self._standard_coef = samples.pop("coef")
            centred = self._standard_coef - self._standard_coef.mean(axis=2, keepdims=True)
            samples["coef"] = self._encoder.as_given(centred)
        self.samples_ = samples
        self.weights_ = self._flat("weights").mean(axis=0)
        if "coef" in samples:
            self.coef_ = self._flat("coef").mean(axis=0)

    def _flat(self, name, chains=None):
        """Draws of the chains that agree with the best one, or of a mask of ``chains``, (n_draws, ...)."""
        value = self.samples_[name][self.chains_agree_ if chains is None else chains]
        return value.reshape(-1, *value.shape[2:])

    def _monitored(self, chains):
        weights, found = self.samples_["weights"], {"log_likelihood": self._log_likelihood}
        if self.n_components == 1:
            return found
        found |= {"log_posterior": self._log_posterior, "weight_entropy": -xlogy(weights, weights).sum(axis=2)}
        named = [name for name in ("weights", "coef") if name in self.samples_]
        return found | ({name: self.samples_[name] for name in named} if self.chains_agree_.all() else {})

    def _coords_of_draws(self):
        owner, levels, statistics = self._layout.entry_names()
        names = self._column_names()
        entries = [
            f"{names[j]}={level}" if statistic == "probability" else f"{statistic} of {names[j]}"
            for j, level, statistic in zip(owner, levels, statistics, strict=True)
        ]
        coords = {"class": np.arange(self.n_components), "entry": np.array(entries)}
        return coords | ({"term": ["intercept", *self.metadata_names_]} if "coef" in self.samples_ else {})

    def _held_out(self, X, y=None, sample_weight=None, metadata=None):
        metadata, sample_weight = aligned(X, metadata=metadata, sample_weight=sample_weight)
        return self._cells(X), metadata, sample_weight

    def _present_score(self, held_out):
        cells, metadata, sample_weight = held_out
        present = self._chains[0].current()
        Z = None if metadata is None else self._standardised(metadata, len(cells))
        coef = present.get("coef") if self._encoder.n_metadata else None
        density = self._layout.log_density(cells, present["components"][:, self._order.entries])
        scores = logsumexp(_log_prior(present["weights"], coef, Z) + density, axis=1)
        return mean_score(scores, sample_weight)

    # -- rows ------------------------------------------------------------------------------------------------------

    def _cells(self, X):
        return self._layout.encode(checked_table(self, X, reset=False))

    def _standardised(self, metadata, n_rows):
        """Standardised covariates, intercept last."""
        encoded = self._encoder.encode(metadata, n_rows, "warn")
        encoded = encoded.toarray() if hasattr(encoded, "toarray") else encoded
        return DenseRows(encoded, self._encoder.shift, self._encoder.scale, True).Z

    def _refuse_lacking(self, metadata):
        """Raise if the metadata of rows are lacking, or have no use."""
        if metadata is None and self._encoder.n_metadata:
            raise ValueError(
                "The classes of rows depend on covariates in this fit; pass metadata=, a table with the same columns."
            )

    def _each_draw(self, cells, metadata, n_most, chains=None):
        """Yield the log of weight times density of each encoded row under each class, for some draws.

        ``chains`` is a mask of the chains to use; None: those that agree with the best one.
        """
        chains = self.chains_agree_ if chains is None else chains
        weights, components = self._flat("weights", chains), self._flat("components", chains)
        Z, coef = None, None
        if self._encoder.n_metadata:
            Z = self._standardised(metadata, len(cells))
            coef = self._standard_coef[chains].reshape(-1, *self._standard_coef.shape[2:])
        for s in spread(len(weights), n_most):
            prior = _log_prior(weights[s], None if coef is None else coef[s], Z)
            yield prior + self._layout.log_density(cells, components[s])

    def _in_pieces(self, cells, metadata, answer):
        """Evaluate ``answer`` on some encoded rows and their metadata at a time, and concatenate the results."""
        if self._encoder.n_metadata and len(cells) > _PIECE:
            return answer(cells, metadata)
        parts = [answer(cells[start : start + _PIECE], metadata) for start in range(0, len(cells), _PIECE)]
        return np.concatenate(parts)

    def _proba(self, cells, metadata):
        def answer(cells, metadata):
            total, n = 0.0, 0
            for log_weight in self._each_draw(cells, metadata, _N_PREDICTED):
                total, n = total + responsibilities(log_weight), n + 1
            return total / n

        return self._in_pieces(cells, metadata, answer)

    def _classes_of(self, cells, metadata):
        return self._proba(cells, metadata).argmax(axis=1)

    def _log_probability(self, cells, metadata):
        def answer(cells, metadata):
            return log_mean_exp([logsumexp(each, axis=1) for each in self._each_draw(cells, metadata, _N_SCORED)])

        return self._in_pieces(cells, metadata, answer)

    def _log_likelihood_draws(self, X, y=None):
        """Log density of each row in each draw, (n_chains, n_kept, n_rows)."""
        cells = self._cells(X)
        self._refuse_lacking(None)
        n_chains, n_kept = self.samples_["weights"].shape[:2]
        draws = self._each_draw(cells, None, n_chains * n_kept, np.ones(n_chains, dtype=bool))
        return np.stack([logsumexp(each, axis=1) for each in draws]).reshape(n_chains, n_kept, -1)

    def _read(self, X, metadata):
        """Encoded rows and the metadata in their order."""
        check_is_fitted(self)
        (metadata,) = aligned(X, metadata=metadata)
        cells = self._cells(X)
        self._refuse_lacking(metadata)
        return cells, metadata

    @available_if(lambda self: not getattr(self, "_with_y", True))
    @lazy_for_dask(lambda self: self.n_components, row_arguments=("metadata",))
    def predict_proba(self, X: MatrixLike, *, metadata: Columns | None = None) -> FloatArray:
        """Probability that each row belongs to each class, averaged over draws.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
        metadata : as for `fit`, default=None
            Required after a fit with covariates.

        Returns
        -------
        proba : ndarray, lazy for a Dask array, of shape (n_samples, n_components)
            Rows sum to 1.

        Notes
        -----
        Available only after a fit without ``y``: classes are not classes of y, and scikit-learn would treat an
        estimator with this method as a classifier.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import LatentClassModel
        >>> X = np.array(
        ...     [["yes", "often", 2.5, 1.0], ["no", "never", 7.5, 2.0]] * 30,
        ...     dtype=object,
        ... )
        >>> model = LatentClassModel(2, n_iter=100, random_state=0).fit(X)
        >>> model.predict_proba(X[:2]).argmax(axis=1).tolist() == model.labels_[
        ...     :2
        ... ].tolist()
        True
        """
        return self._proba(*self._read(X, metadata))

    @lazy_for_dask(dtype=np.intp, row_arguments=("metadata",))
    def predict(self, X: MatrixLike, *, metadata: Columns | None = None) -> IntArray:
        """Assign each row to its most probable class.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
        metadata : as for `fit`, default=None
            Required after a fit with covariates.

        Returns
        -------
        labels : ndarray, lazy for a Dask array, of shape (n_samples,)
        """
        return self._classes_of(*self._read(X, metadata))

    def fit_predict(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        metadata: Columns | None = None,
    ) -> IntArray:
        """Fit the model and return the classes of the rows.

        Parameters
        ----------
        X, y, sample_weight, metadata
            As for `fit`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
        """
        return self.fit(X, y, sample_weight, metadata=metadata).labels_

    @lazy_for_dask(row_arguments=("metadata",))
    def score_samples(self, X: MatrixLike, *, metadata: Columns | None = None) -> FloatArray:
        """Log predictive density of each row: the log of the density averaged over draws.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
        metadata : as for `fit`, default=None
            Required after a fit with covariates.

        Returns
        -------
        log_density : ndarray, lazy for a Dask array, of shape (n_samples,)
            Densities of continuous columns refer to their units. Missing cells are ignored.
        """
        return self._log_probability(*self._read(X, metadata))

    def score(
        self,
        X: MatrixLike,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        metadata: Columns | None = None,
    ) -> float:
        """Mean of `score_samples` over rows; higher is better.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the mean; their scale does not matter.
        metadata : as for `fit`, default=None
            Required after a fit with covariates.

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        (sample_weight,) = aligned(X, sample_weight=sample_weight)
        return mean_score(self._log_probability(*self._read(X, metadata)), sample_weight)

    def _classification(self, X, metadata=None, sample_weight=None):
        """Quality of the classes of rows, by name, for `search_n_components`."""
        proba, K = self._proba(*self._read(X, metadata)), self.n_components
        (weight,) = aligned(X, sample_weight=sample_weight)
        uncertainty = -xlogy(proba, proba).sum(axis=1)
        mean = np.average(uncertainty, weights=None if weight is None else np.asarray(weight, dtype=np.float64))
        return {
            "entropy": 1.0 - mean / np.log(K) if K > 1 else 1.0,
            "smallest_class": float(self.weights_.min()),
            "n_warnings": sum(check.fired for check in self._check_results),
        }

    # -- tables ----------------------------------------------------------------------------------------------------

    def _column_names(self):
        names = self._feature_names
        if names is None:
            names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        return np.asarray(names, dtype=object)

    def profile_table(self, interval: float = 0.9) -> Table:
        """Table of the profiles of all classes, with credible intervals.

        Parameters
        ----------
        interval : float, default=0.9
            Mass of the central credible interval.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per class and entry, in the order of the columns: ``class``, ``weight`` (share of the class),
            ``weight_low``, ``weight_high``, ``feature``, ``kind`` (of the column), ``level``, ``statistic``
            ("probability", "mean" or "sd"), ``mean`` (posterior mean of the statistic), ``low``, ``high``, and
            ``overall`` (in all rows). Binary columns have a row for their second level only.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import LatentClassModel
        >>> X = np.array([["yes", 1.5], ["no", 7.5]] * 30, dtype=object)
        >>> model = LatentClassModel(2, n_iter=100, random_state=0).fit(X)
        >>> table = model.profile_table()
        >>> np.asarray(table["statistic"])[:4].tolist()
        ['probability', 'probability', 'mean', 'sd']
        """
        check_is_fitted(self)
        weights, draws = self._flat("weights"), self._flat("components")
        tails = interval_tails(interval)
        low, high = interval_ends(draws, tails)
        weight_low, weight_high = interval_ends(weights, tails)
        shown = self._layout.reported()
        owner, levels, statistics = (each[shown] for each in self._layout.entry_names())
        kinds: AnyArray = np.array([column.kind for column in self._layout.columns], dtype=object)
        K, n = self.n_components, owner.size
        return as_table(
            {
                "class": np.repeat(np.arange(K), n),
                "weight": np.repeat(self.weights_, n),
                "weight_low": np.repeat(weight_low, n),
                "weight_high": np.repeat(weight_high, n),
                "feature": np.tile(self._column_names()[owner], K),
                "kind": np.tile(kinds[owner], K),
                "level": np.tile(levels, K),
                "statistic": np.tile(statistics, K),
                "mean": draws.mean(axis=0)[:, shown].ravel(),
                "low": low[:, shown].ravel(),
                "high": high[:, shown].ravel(),
                "overall": np.tile(self._layout.overall(weights, draws)[shown], K),
            }
        )

    def effects(
        self,
        covariate: str,
        at: Any = None,
        *,
        kind: Literal["difference", "prevalence"] = "difference",
        reference: Any = None,
        pairwise: bool = False,
        given: Mapping[str, Any] | None = None,
        metadata: Columns | None = None,
        interval: float = 0.9,
    ) -> Table:
        """Effect of a covariate on the prevalence of classes, averaged over rows.

        In the metadata of all rows the covariate is set to one value and then to another, with everything else as it
        was observed, and the mean probabilities of the classes are compared.

        Parameters
        ----------
        covariate : str
            A column of metadata; "x0", "x1" and so on if they have no names.
        at : value or list of values, default=None
            Values to compare. None selects all levels, or the first and third quartiles of numbers, or both numbers if
            there are only two.
        kind : {"difference", "prevalence"}, default="difference"
            Contrasts between values, or the prevalence at each.
        reference : value, default=None
            Value with which the others are compared. None: the first of ``at``.
        pairwise : bool, default=False
            Compare all pairs of values, the later with the earlier.
        given : dict, default=None
            Fixed values of other covariates, such as ``{"party": "Whig"}``.
        metadata : as for `fit`, default=None
            Rows over which to average. None: the fitted rows, with their weights.
        interval : float, default=0.9
            Mass of the central credible interval.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per class and contrast: ``class``, ``value``, ``reference``, ``prevalence`` (at the value),
            ``difference`` (posterior mean of the prevalence at the value less that at the reference), ``low``,
            ``high``, and ``positive``, the probability that the difference is above 0. With ``kind="prevalence"`` one
            row per class and value: ``class``, ``value``, ``prevalence``, ``low``, ``high``.

        See Also
        --------
        sk_sgmcmc.inspection.PrevalenceDisplay : Plots the prevalence of classes.
        sk_sgmcmc.inspection.EffectsDisplay : Plots the differences.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import LatentClassModel
        >>> X = np.array(
        ...     [["yes", "often", "a", 1], ["no", "never", "b", 2]] * 40,
        ...     dtype=object,
        ... )
        >>> metadata = {"party": np.array(["green", "red"] * 40)}
        >>> model = LatentClassModel(2, n_iter=400, random_state=0).fit(
        ...     X, metadata=metadata
        ... )
        >>> table = model.effects("party")
        >>> (
        ...     table["value"][0],
        ...     table["reference"][0],
        ...     bool(abs(table["difference"][0]) > 0.5),
        ... )
        ('red', 'green', True)
        """
        comparison = self._comparison(metadata=metadata, given=given)
        return effects_of(
            comparison, covariate, at, kind=kind, reference=reference, pairwise=pairwise, interval=interval
        )

    def _comparison(self, of=None, X=None, metadata=None, groups=None, given=None):
        """The `Comparison` of `effects`; refuses the arguments that only topic models have."""
        check_is_fitted(self)
        for name, value in (("of", of), ("X", X), ("groups", groups)):
            if value is not None:
                raise ValueError(
                    f"`{name}` is for topic models; leave it out. The shares of latent classes are the mean "
                    "probabilities of membership given the covariates."
                )
        if not self._encoder.n_metadata:
            raise ValueError(
                "This LatentClassModel was fitted without metadata, or with columns that are all missing, so nothing "
                "has an effect."
            )
        average = Counterfactuals.of_model(self, metadata, given)
        # Means are over all chains that agree, so these are one chain for `PriorMean`.
        agreement = Agreement.of_one_chain(self.n_components)
        together = PriorMean(agreement, self._flat("coef")[None], _prevalence)
        return Comparison(lambda: together, average, "classes", {"class": np.arange(self.n_components)})


def _log_prior(weights, coef, Z):
    """Log prior probabilities of classes: the log shares, or those of a regression on covariates, (n_rows, K)."""
    if coef is None:
        return np.log(np.maximum(weights, 1e-300))[None]
    eta = Z @ coef.T
    return eta - logsumexp(eta, axis=1, keepdims=True)


def _prevalence(encoded, coef):
    """Probabilities of classes, (n_rows, K), for encoded covariates and coefficients with the intercept first."""
    eta = np.asarray(encoded @ coef[:, 1:].T) + coef[:, 0]
    return np.exp(eta - logsumexp(eta, axis=1, keepdims=True))
