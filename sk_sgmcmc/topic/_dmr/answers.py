"""What fitted regressions answer about prevalence and its coefficients."""

from collections.abc import Mapping
from typing import Any, Literal, overload

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ...utils._numbers import interval_tails
from ...utils._typing import Columns, FloatArray, Table
from .blocks import joined_metadata
from .effects import Counterfactuals, ObservedMetadata, effects_of
from .prevalence import coefficient_table, difference_table, doc_priors, predicted_prevalence


class PrevalenceAnswers:
    """Answers of a `DMRTopicModel`, from its draws of the coefficients."""

    def coef_table(self, interval: float = 0.9) -> Table:
        """Coefficients with their uncertainty.

        Parameters
        ----------
        interval : float, default=0.9
            Mass of the central credible interval.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per coefficient: ``topic``, ``term`` ("intercept" or a column of the metadata), ``mean`` (as in
            ``coef_``), ``low``, ``high``, and ``positive``, the probability that it is above 0. The last three use the
            draws of all chains that agree on the topic.
        """
        check_is_fitted(self)
        if self._merged_into is not None:
            raise ValueError(
                "Merged topics have no coefficients: their Dirichlet parameters are sums of exponentials. Use effects, "
                "predict_prevalence or prevalence_difference, which are exact; or the coef_table of the estimator that "
                "was merged."
            )
        terms = ["intercept", *self.metadata_names_]
        return coefficient_table(self.samples_["coef"], self.coef_, terms, self._agreement, interval_tails(interval))

    @overload
    def predict_prevalence(self, metadata: Columns, interval: None = None) -> FloatArray: ...
    @overload
    def predict_prevalence(self, metadata: Columns, interval: float) -> tuple[FloatArray, FloatArray, FloatArray]: ...
    def predict_prevalence(
        self, metadata: Columns, interval: float | None = None
    ) -> FloatArray | tuple[FloatArray, FloatArray, FloatArray]:
        r"""Expected topic proportions of documents with given metadata, before any of their words is read.

        Parameters
        ----------
        metadata : as for `fit`
            One row per prediction.
        interval : float or None, default=None
            Mass of the central credible interval, for example 0.9.

        Returns
        -------
        prevalence : ndarray of shape (n_rows, n_components)
            Posterior mean of :math:`\alpha_{k} / \sum_l \alpha_{l}`; rows sum to 1. With ``interval`` a tuple (mean,
            low, high) of such arrays; the interval is that of the expectation, not of a document's own proportions.
            The mean is over draws of the reference chain, the interval of a topic over those of all chains that agree
            on it.
        """
        encoded = self._encoded(metadata)
        return predicted_prevalence(encoded, self._coef_draws, self._agreement, interval, self._merged_into)

    def doc_topic_priors(self, metadata: Columns) -> FloatArray:
        r"""Dirichlet parameters of documents with given metadata, under each draw.

        Parameters
        ----------
        metadata : as for `fit`
            One row per document.

        Returns
        -------
        priors : ndarray of shape (n_draws, n_rows, n_components)
            :math:`\exp(x_d^\top \lambda_k)`, with the draws of all chains in sequence, in the form that
            `sk_sgmcmc.metrics.document_completion` takes as ``doc_topic_prior``.
        """
        encoded = self._encoded(metadata)
        return np.stack([doc_priors(encoded, coef, self._merged_into) for coef in self._flat_coef])

    def prevalence_difference(self, metadata_a: Columns, metadata_b: Columns, interval: float = 0.9) -> Table:
        """How much more prevalent topics are in one group of documents than in another.

        Parameters
        ----------
        metadata_a, metadata_b : as for `fit`
            Rows of the two groups, over which prevalence is averaged.
        interval : float, default=0.9
            Mass of the central credible interval.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per topic: ``topic``, ``difference`` (posterior mean of a minus b, in the reference chain), ``low``,
            ``high``, and ``positive``, the probability that it is above 0, over all chains that agree on the topic.
        """
        groups, tails = (self._encoded(metadata_a), self._encoded(metadata_b)), interval_tails(interval)
        return difference_table(groups, self._coef_draws, self._agreement, tails, self._merged_into)

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
        r"""Effect of a covariate on the prevalence of topics, averaged over documents.

        In the metadata of all documents the covariate is set to one value and then to another, with everything else as
        it was observed, and the mean of the expected topic proportions is compared.

        Parameters
        ----------
        covariate : str
            A column of metadata; "x0", "x1" and so on if they have no names.
        at : value or list of values, default=None
            Values to compare. None takes all levels; of numbers the first and third quartiles, or both values if there
            are only two.
        kind : {"difference", "prevalence"}, default="difference"
            Contrasts between values, or the prevalence at each.
        reference : value, default=None
            What the other values are compared with. None is the first of ``at``.
        pairwise : bool, default=False
            Compare all pairs of values, the later with the earlier.
        given : dict, default=None
            Values at which to hold other covariates, such as ``{"party": "Whig"}``.
        metadata : as for `fit`, default=None
            Documents over which to average. None takes those of `fit`.
        interval : float, default=0.9
            Mass of the central credible interval.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per topic and contrast: ``topic``, ``name``, ``value``, ``reference``, ``prevalence`` (at the
            value), ``difference`` (posterior mean of the prevalence at the value less that at the reference, in the
            reference chain), ``low``, ``high``, and ``positive``, the probability that the difference is above 0, over
            all chains that agree on the topic. With ``kind="prevalence"`` one row per topic and value: ``topic``,
            ``name``, ``value``, ``prevalence``, ``low``, ``high``.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import DMRTopicModel
        >>> X = np.array([[4, 3, 0, 0], [5, 2, 0, 0], [0, 0, 4, 4], [0, 1, 5, 3]] * 10)
        >>> metadata = {"party": np.array(["green", "green", "red", "red"] * 10)}
        >>> model = DMRTopicModel(2, n_iter=100, random_state=0).fit(X, metadata=metadata)
        >>> table = model.effects("party")
        >>> table["value"][0], table["reference"][0], bool(table["low"][0] > 0.5)
        ('red', 'green', True)
        """
        average = self._counterfactuals(metadata, given)
        comparison = {"kind": kind, "reference": reference, "pairwise": pairwise, "interval": interval}
        return effects_of(self, average, covariate, at, **comparison)

    def _counterfactuals(self, metadata=None, given=None):
        """Averages over documents of which some covariates are set; of those of `fit` without ``metadata``."""
        check_is_fitted(self)
        if not self._encoder.levels:
            raise ValueError(f"This {type(self).__name__} was fitted without metadata, so nothing has an effect.")
        if metadata is None and self._observed is None:
            raise ValueError("The metadata of a stream are not kept; pass metadata=, the documents to average over.")
        observed = self._observed if metadata is None else ObservedMetadata.of(self._encoder.table(metadata))
        return Counterfactuals(self._encoder, observed, given)

    def _encoded(self, metadata):
        check_is_fitted(self)
        if metadata is None or not self._encoder.levels:
            raise ValueError(
                "Predictions need metadata, here and in fit; doc_topic_prior_ is the mean prior of the documents."
            )
        encoded = self._encoder.encode(joined_metadata(metadata), None, self.handle_unknown)
        if encoded.shape[0] == 0:
            raise ValueError("metadata has no rows; pass one for each prediction.")
        return encoded
