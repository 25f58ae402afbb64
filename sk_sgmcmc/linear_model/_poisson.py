"""Bayesian Poisson regression."""

from __future__ import annotations

import numpy as np
from scipy import special

from ..dense.chain import Metric
from ..dense.rows import LARGEST
from ..kernels.models import metrics
from ..kernels.models.linear import regression
from ..utils._mixtures import poisson_mixture_quantiles
from ..utils._parameters import keyword_parameters
from ._counts import LARGEST_MEAN, BaseCountRegressor
from ._design import COUNTS
from ._predict import refuse_sizes


@keyword_parameters
class BayesianPoissonRegressor(BaseCountRegressor):
    r"""Bayesian Poisson regression of counts with a log link, with draws of the coefficients.

    :math:`y \sim \mathrm{Poisson}(e^{b + \beta^\top x})`, or with an exposure :math:`t`,
    :math:`\mathrm{Poisson}(t \, e^{b + \beta^\top x})`.

    Attributes
    ----------
    samples_ : dict of ndarray
        ``"coef"``: (n_chains, n_kept, n_features), ``"intercept"``: (n_chains, n_kept).

    Other Parameters
    ----------------
    intercept_prior_scale : float, default=100
        Standard deviation of the wide normal prior of the intercept of centred columns, which is the log mean response
        at the mean of X (in a stream, at the mean of the first block). ``intercept_`` refers to the columns as given.

    See Also
    --------
    BayesianNegativeBinomialRegressor : Regression of overdispersed counts.
    BayesianLinearRegression : Regression with normal noise.
    sklearn.linear_model.PoissonRegressor : The posterior mode, with ``alpha = 1 / (n_samples * prior_scale**2)``.

    Notes
    -----
    Coordinates, control variates, sparse and wide rows, `partial_fit`, ``prior="laplace"`` and the columns to which
    ``prior_scale="auto"`` refers are as in `BayesianLogisticRegression`. ``prior_scale="auto"`` takes the mode of the
    posterior of :math:`\log \sigma`, under a half-Cauchy prior on :math:`\sigma` whose median multiplies the mean by
    :math:`e` for a typical column.

    Counts ``y`` with ``exposure=t`` have the same posterior as rates ``y / t`` with ``sample_weight=t``, the form that
    scikit-learn's ``PoissonRegressor`` takes. If counts are overdispersed, intervals are too narrow;
    use `BayesianNegativeBinomialRegressor`.

    References
    ----------
    Baker, Fearnhead, Fox and Nemeth (2019), Control variates for stochastic gradient MCMC, Statistics and Computing
    29. MacKay (1992), Bayesian interpolation, Neural Computation 4.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import BayesianPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = rng.poisson(np.exp(1.0 + X @ [0.5, -0.3]))
    >>> model = BayesianPoissonRegressor(random_state=0).fit(X, y)
    >>> bool(np.all(np.abs(model.coef_ - [0.5, -0.3]) < 0.1))
    True
    >>> mean, low, high = model.predict_interval(X)
    >>> bool(np.mean((low <= y) & (y <= high)) >= 0.9)
    True
    """

    _likelihood = COUNTS

    @staticmethod
    def _as_rows(X, y, weight, exposure):
        """Rates y / exposure, and weights times exposure, which have the likelihood of the counts."""
        if exposure is not None:
            y, weight = y / exposure, weight * exposure
        largest = max(y.max(), weight.max(), (y * weight).max())
        if not largest <= LARGEST:
            raise ValueError(f"y and its weights hold {largest:.6g}, too large to compute with in float64.")
        refuse_sizes("sample_weight times exposure", weight.max())
        return X, y, weight

    def _signal(self, is_sparse, n_predictors):
        return regression.sparse_poisson if is_sparse else regression.poisson

    def _metric(self, design):
        return Metric(metrics.poisson, design.metric_params())

    @staticmethod
    def _log_densities(y, means):
        return special.xlogy(y, means) - means - special.gammaln(y + 1.0)

    @staticmethod
    def _observations(means, rng):
        return rng.poisson(np.minimum(means, LARGEST_MEAN))

    @staticmethod
    def _variances(means):
        return means

    @staticmethod
    def _quantiles(means, tails):
        return poisson_mixture_quantiles(means, tails)
