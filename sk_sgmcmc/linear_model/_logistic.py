"""Bayesian logistic regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from ..base import all_or_nothing, fits_anew
from ..dense.chain import Metric
from ..kernels.models import metrics
from ..kernels.models.linear import logistic
from ..utils._labels import check_labels
from ..utils._parameters import keyword_parameters
from ..utils._sklearn import ClassifierMixin, StrOptions, validate_data
from ..utils._tables import aligned
from ..utils._typing import MatrixLike
from ..utils._warnings import warn_user
from ._base import BaseLinearModel
from ._design import CLASSES
from ._input import row_weights
from ._predict import INPUT, DrawsPredictMixin


def _n_predictors(classes):
    """Number of linear predictors: one for two classes, else one for each class."""
    return 1 if len(classes) == 2 else len(classes)


@keyword_parameters
class BayesianLogisticRegression(DrawsPredictMixin, ClassifierMixin, BaseLinearModel):
    r"""Bayesian logistic regression, binary or multinomial, with draws of the coefficients.

    :math:`P(y = k \mid x) \propto \exp(b_k + \beta_k^\top x)` with :math:`\beta_{kj} \sim N(0, \sigma^2)`. With two
    classes there is one :math:`\beta`, for the second class; with more, each class has its own.

    Parameters
    ----------
    prior_scale : float or "auto", default=1
        Scale :math:`\sigma` of the prior of each coefficient. A number refers to the columns of X as given; the mode of
        the posterior is then the estimate of scikit-learn's ``LogisticRegression(C=prior_scale**2)``, up to the
        intercept's prior. `fit` warns if the standard deviations of dense columns differ by a factor of 100 or more.
        "auto" learns the scale from the data: for standardised columns if X is dense, so that their units do not
        matter, and for the columns as given if X is sparse. See Notes.
    prior : {"normal", "laplace"}, default="normal"
        Distribution of the coefficients. "laplace" has the density :math:`e^{-|\beta| / \sigma} / (2 \sigma)`, which
        shrinks small coefficients more and large ones less. Its mode is that of an L1 penalty with ``C=prior_scale``.
    class_weight : dict, "balanced" or None, default=None
        As in scikit-learn, this multiplies the weights of the rows of a class. A row of weight w counts as w rows in
        the posterior, so intervals are up to :math:`\sqrt w` times too narrow. A weight above 2 raises a warning.
    fit_intercept : bool, default=True
        Whether to fit an intercept. Without one, a column whose mean is large for its spread can have hardly any
        effect; `fit` then warns.
    n_iter : int or None, default=None
        Number of steps (trajectories of `HMC`). None: enough for about 1,500 nearly independent draws after burn-in, or
        for 100 to 300 with more than two classes, since their steps take longer.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    coef_ : ndarray of shape (1 or n_classes, n_features)
        Posterior mean of the coefficients.
    intercept_ : ndarray of shape (1 or n_classes,)
        Posterior mean of the intercepts.
    samples_ : dict of ndarray
        ``"coef"``: (n_chains, n_kept, 1 or n_classes, n_features), ``"intercept"``: (n_chains, n_kept, 1 or n_classes).
        With more than 10,000 coefficients they are float32, and their memory is bounded; see Notes.

    Other Parameters
    ----------------
    intercept_prior_scale : float, default=100
        Standard deviation of the wide normal prior of the intercept. The prior is on the intercept of the centred
        columns, which is the linear predictor at the mean of X (in a stream, at the mean of the first block), so it
        does not shrink the effect of columns far from zero, such as years. ``intercept_`` and
        ``samples_["intercept"]`` refer to the columns as given.
    thin : int or "auto", default="auto"
        Keep every ``thin``-th step after burn-in. "auto" keeps at most 100 draws, and averages posterior means and
        predictions over up to fifteen times as many, or three times for more than two classes.

    Notes
    -----
    Newton's method finds the mode :math:`\hat\beta`. The chain moves in coordinates :math:`\phi` with
    :math:`\beta = \hat\beta + T \phi`, where :math:`T T^\top` is the inverse Hessian at the mode. The posterior is then
    close to :math:`N(0, I)` whatever the scales of the columns and their correlations, so one step size suits all data.
    With control variates the gradient is

    .. math:: -\phi + \frac Nn \, T^\top \sum_{i \in S} x_i \bigl(p_i(\hat\beta) - p_i(\beta)
              + p_i(\hat\beta) (1 - p_i(\hat\beta)) \, x_i^\top T \phi\bigr),

    which is unbiased, and without noise if the posterior is Gaussian.

    `partial_fit` only adds rows. When a fitted attribute is first read, the chains run on all rows in memory, so the
    posterior is that of `fit` on these rows. Memory holds the rows of calls of `partial_fit` up to 25 million entries
    (200 MB if X is dense), and a saved estimator contains them. If there are more, the Gaussian approximation at the
    mode replaces the rows so far, as it replaces the rows of `fit`. It is inaccurate if these rows lack a class or come
    sorted by class; a warning then says so.

    ``prior_scale="auto"`` takes the mode of the posterior of :math:`\log \sigma`, under a half-Cauchy prior on
    :math:`\sigma` whose median moves the log odds by 1 for a typical column. The coefficients are integrated out with a
    Gaussian approximation at their mode (MacKay's evidence); for the Laplace prior, with the best Gaussian bound of the
    prior. The search covers the whole range of scales, since there may be several modes. The draws are conditional on
    the scale found.

    For dense X, DataFrames included, the prior is :math:`\beta_j s_j \sim N(0, \sigma^2)`, where :math:`s_j` is the
    standard deviation of column j (without an intercept, its root mean square). A change of units or a shift of a
    column then changes no prediction. For sparse X, such as tf-idf, one scale applies to all columns as given, so rare
    words are shrunk more. Once a Gaussian replaces rows, their scale and units stay, and a column that was constant in
    them gets its unit from the rows in which it first varies.

    With ``prior="laplace"`` the kink at 0 is rounded. Chains target the density with :math:`\sqrt{\beta^2 +
    \epsilon^2}` instead of :math:`|\beta|`, where :math:`\epsilon` is a tenth of a coefficient's posterior standard
    deviation. This hardly increases the standard deviation of the draws. The mode and the Hessian are computed with the
    best Gaussian bound of the prior.

    Sparse rows stay sparse. With more than 1,000 coefficients, no matrix of all coefficients is formed:

    - Truncated Newton steps find the mode, with conjugate gradients.
    - :math:`T` is diagonal, except in up to 16 directions in which the posterior is stiffest. The diagonal is between
      the prior's and the posterior's standard deviation of a column. For each column, one coordinate is what all
      classes share, which only the prior bounds.
    - Chains start at draws of the Gaussian closest to the posterior.
    - Control variates are of first order.
    - Fewer draws are kept above 2,000 coefficients: 150 to 200, or 200 to 300 with more than two classes; more where
      predictions are less certain. They are in float32 above 10,000 coefficients, and within 512 MiB over all chains.
      ``samples_`` contains at most 100 of them, and ``coef_`` and predictions use all.
    - The Gaussian that replaces rows in `partial_fit` has the Hessian's diagonal.
    - Dense rows are converted to sparse ones.

    References
    ----------
    Baker, Fearnhead, Fox and Nemeth (2019), Control variates for stochastic gradient MCMC, Statistics and Computing
    29. Chen, Fox and Guestrin (2014), Stochastic gradient Hamiltonian Monte Carlo, ICML.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sk_sgmcmc import BayesianLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BayesianLogisticRegression("auto", random_state=0).fit(X, y)
    >>> model.samples_["coef"].shape
    (1, 100, 1, 30)
    >>> bool(model.score(X, y) > 0.94)
    True
    """

    prior_scale: float | Literal["auto"] = field(default=1.0, kw_only=False)
    class_weight: Mapping[Any, float] | Literal["balanced"] | None = None

    _likelihood = CLASSES

    _parameter_constraints = {
        **BaseLinearModel._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    # -- fitting -------------------------------------------------------------------------------------------------

    @fits_anew
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model: draw the coefficients.

        Parameters
        ----------
        X : array-like, sparse matrix or sparse array of shape (n_samples, n_features)
            Features, on any scales. Sparse rows stay sparse.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Each row counts this many times.

        Returns
        -------
        self : object
            Fitted.

        Raises
        ------
        ValueError
            For entries that are not finite, fewer than two classes, parameters out of range, a sampler that does not
            fit, or a batch larger than the data.
        ChainDivergedError
            If a chain becomes infinite or NaN, at too large a step size.
        FitInterrupted
            After Ctrl-C, as a ``KeyboardInterrupt``. The estimator is fitted with the draws made so far; it is
            ``estimator_`` of the exception.
        """
        self._validate_params()
        sampler, _ = self._checked_sampler()
        y, sample_weight = aligned(X, y=y, sample_weight=sample_weight)
        X, y = validate_data(self, X, y, **INPUT)
        check_labels(y)
        classes, codes = np.unique(y, return_inverse=True)
        self._check_classes(classes)
        data = self._weighted(X, codes, classes, y, sample_weight)
        self._check_weighted_classes(classes, data[1])
        self.classes_ = classes
        return self._start_chains(sampler, data, _n_predictors(classes))

    @all_or_nothing
    def partial_fit(
        self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Add further rows; the chains run when a fitted attribute is first read.

        They then have the parameters that the estimator has in this call. With ``callbacks`` or ``verbose``, they run
        in the call itself. See Notes for the rows of earlier calls.

        Parameters
        ----------
        X, y : as for `fit`
            Further rows.
        classes : array-like of shape (n_classes,), default=None
            All labels. Required in the first call unless its y contains all of them.
        sample_weight : array-like of shape (n_samples,), default=None
            As for `fit`.

        Returns
        -------
        self : object
            Fitted.
        """
        self._validate_params()
        sampler, _ = self._checked_sampler()
        first = self._stream is None
        y, sample_weight = aligned(X, y=y, sample_weight=sample_weight)
        X, y = validate_data(self, X, y, reset=first, **INPUT)
        check_labels(y)
        if isinstance(self.class_weight, str):
            raise ValueError(
                'class_weight="balanced" needs all rows at once, but partial_fit receives some; give a dict, for '
                "example from sklearn.utils.class_weight.compute_class_weight."
            )
        if first:
            known = np.unique(y if classes is None else classes)
        else:
            known = self.classes_
            if classes is not None and not np.array_equal(known, np.unique(classes)):
                raise ValueError(f"classes={classes!r} differ from those of the first call, {known!r}.")
        self._check_classes(known)
        data = self._weighted(X, self._codes(y, known), known, y, sample_weight)
        self.classes_ = known
        return self._add_rows(sampler, data, _n_predictors(known))

    @staticmethod
    def _check_classes(classes):
        if len(classes) < 2:
            raise ValueError(f"y holds only one class, {classes.tolist()}; a classifier needs at least two classes.")

    @staticmethod
    def _check_weighted_classes(classes, codes):
        """Raise if fewer than two classes have rows of positive weight; warn if a class has none.

        ``codes`` are the class codes of the rows of positive weight.
        """
        has_rows = np.bincount(codes, minlength=len(classes)) > 0
        without = classes[~has_rows].tolist()
        if has_rows.sum() < 2:
            raise ValueError(
                f"All rows of the classes {without} have weight 0, so that rows of only one class are left; a "
                "classifier needs at least two classes. Give some of their rows a positive weight (sample_weight "
                "times class_weight)."
            )
        if without:
            warn_user(
                f"All rows of the classes {without} have weight 0: nothing but the prior tells how likely these are. "
                "Give some of their rows a positive weight (sample_weight times class_weight), or leave them out."
            )

    @staticmethod
    def _codes(y, known):
        """Codes of the labels y; raises if a label is not among the ``known`` classes."""
        if unknown := sorted(set(np.unique(y).tolist()) - set(known.tolist())):
            raise ValueError(f"y holds the labels {unknown}, which are not among the classes {known.tolist()}.")
        return np.searchsorted(known, y)

    def _weighted(self, X, codes, classes, y, sample_weight):
        """Rows with a weight above 0, in the form that the kernels read, with their class codes and weights."""
        X = self._checked_rows(X)
        weight = row_weights(X, codes, classes, y, self.class_weight, sample_weight)
        return self._weighted_rows(X, codes.astype(np.int64), weight, _n_predictors(classes))

    @all_or_nothing
    def resume(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:  # type: ignore[override]
        """Continue a fit that was interrupted or loaded from a checkpoint.

        The draws are the same as without the interruption.

        Parameters
        ----------
        X, y, sample_weight : same type and content as given to `fit`, or to the last `partial_fit`
            The data. A saved estimator contains only the rows that `partial_fit` keeps.

        Returns
        -------
        self : object
            Fitted.
        """
        self._check_resumable()
        y, sample_weight = aligned(X, y=y, sample_weight=sample_weight)
        X, y = validate_data(self, X, y, reset=False, **INPUT)
        X, codes, weight = self._weighted(X, self._codes(y, self.classes_), self.classes_, y, sample_weight)
        return self._resume_on(X, codes, weight)

    def _signal(self, is_sparse, n_predictors):
        if n_predictors == 1:
            return logistic.sparse_binary if is_sparse else logistic.binary
        return logistic.sparse_multinomial if is_sparse else logistic.multinomial

    def _metric(self, design):
        return Metric(metrics.logistic, design.metric_params())
