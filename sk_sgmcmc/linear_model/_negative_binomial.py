"""Bayesian negative binomial regression."""

from __future__ import annotations

from dataclasses import field
from numbers import Real

import numpy as np
from scipy import special

from ..chains.convergence import evenly
from ..dense.rows import LARGEST
from ..kernels.models.linear import dispersion
from ..utils._parameters import keyword_parameters
from ..utils._sklearn import Interval
from ._base import is_wide
from ._counts import LARGEST_MEAN, BaseCountRegressor
from ._design import Design, DiagonalDesign, check_scale, log_likelihoods
from ._dispersion import DispersedDesign, DispersionPrior, DistinctCounts, OverdispersedCounts, rising
from ._stream import ExactStream

_QUANTILE_DRAWS = 100  # that quantiles average over: their choice moves a quantile far less than the noise of counts
_FEW_DRAWS = 20  # from which a quantile of the mixture over draws is first estimated
_LARGEST_COUNT = 1e15  # larger counts differ by 1 from none of their neighbours after arithmetic in float64


@keyword_parameters
class BayesianNegativeBinomialRegressor(BaseCountRegressor):
    r"""Bayesian negative binomial regression of overdispersed counts, with draws of coefficients and dispersion.

    Counts have the mean :math:`\mu = t \, e^{b + \beta^\top x}`, where :math:`t` is the exposure (1 if none is passed),
    and the variance :math:`\mu + a \mu^2`. The dispersion :math:`a > 0` is learnt. For :math:`a \to 0`, this is Poisson
    regression.

    Parameters
    ----------
    dispersion_prior_scale : float, default=1
        Scale, and median, of the half-Cauchy prior of :math:`\sqrt a`, the coefficient of variation of the rates of
        rows with equal columns.

    Attributes
    ----------
    dispersion_ : float
        Posterior mean of the dispersion :math:`a`. If all counts are 0, it is infinite, and the mean of the draws
        arbitrary.
    samples_ : dict of ndarray
        ``"coef"``: (n_chains, n_kept, n_features), ``"intercept"`` and ``"dispersion"``: (n_chains, n_kept).

    Other Parameters
    ----------------
    intercept_prior_scale : float, default=100
        Standard deviation of the wide normal prior of the intercept of centred columns. ``intercept_`` refers to the
        columns as given.
    sampler : str, sampler object or None, default=None
        Any sampler on Euclidean space that needs no metric. None: `SGHMC`. Particle samplers (`Blob`, `GFSD`, `GFSF`,
        `SVGD`, `PSGHMC`) are approximate, and their intervals are too narrow.

    See Also
    --------
    BayesianPoissonRegressor : Counts without overdispersion.

    Notes
    -----
    A count is Poisson with the mean :math:`\mu g`, where :math:`g` has the Gamma distribution of mean 1 and variance
    :math:`a`. The draws target the joint posterior

    .. math::

        p(\beta, b, a \mid y) \propto p(\beta, b) \, p(a) \prod_i \left[ \frac{\Gamma(y_i + 1/a)}{\Gamma(1/a) \, y_i!}
        \left( \frac{a \mu_i}{1 + a \mu_i} \right)^{y_i} (1 + a \mu_i)^{-1/a} \right]^{w_i},

    with sample weights :math:`w_i`, up to the error of the step size; ``sampler="nuts"`` and ``"hmc"`` have no such
    error. The state consists of whitened coefficients and of :math:`\log a`. Minibatches estimate only what the counts
    contribute jointly with the coefficients; the sum of all :math:`\log \Gamma(y_i + 1/a) - \log \Gamma(1/a)` is read
    from a table.

    Priors of the coefficients, ``prior_scale="auto"`` and control variates are as in `BayesianPoissonRegressor`. Unlike
    in Poisson regression, counts with exposures differ from weighted rates.

    No statistic of fixed size represents earlier rows exactly. `partial_fit` therefore keeps all rows of a stream in
    memory, and its posterior is that of `fit` on all rows. `fit` keeps its rows only if X has at
    most 2,000,000 entries; `partial_fit` cannot continue after `fit` on more. A saved estimator contains kept rows.

    References
    ----------
    Hilbe (2011), Negative Binomial Regression, Cambridge University Press. Cox and Reid (1987), Parameter orthogonality
    and approximate conditional inference, Journal of the Royal Statistical Society B 49. Gelman (2006), Prior
    distributions for variance parameters in hierarchical models, Bayesian Analysis 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import BayesianNegativeBinomialRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = rng.poisson(
    ...     np.exp(1.0 + X @ [0.5, -0.3]) * rng.gamma(2.0, 0.5, size=500)
    ... )  # dispersion 0.5
    >>> model = BayesianNegativeBinomialRegressor(random_state=0).fit(X, y)
    >>> (
    ...     bool(np.all(np.abs(model.coef_ - [0.5, -0.3]) < 0.15)),
    ...     bool(0.35 < model.dispersion_ < 0.65),
    ... )
    (True, True)
    >>> mean, low, high = model.predict_interval(X)
    >>> bool(np.mean((low <= y) & (y <= high)) >= 0.88)
    True
    """

    dispersion_prior_scale: float = 1.0

    dispersion_: float = field(init=False)

    _offers = (("euclidean", "gradient"),)
    # Control variates err by the square of the dispersion, which is an exponential of the state: in a posterior of few
    # rows, which is wide, noise explodes where the dispersion is large.
    _cells_per_step = 100_000
    _stream_kind = ExactStream
    _set_by_run = (*BaseCountRegressor._set_by_run, "dispersion_")
    _fixed_in_stream = (*BaseCountRegressor._fixed_in_stream, "dispersion_prior_scale")

    _parameter_constraints = {
        **BaseCountRegressor._parameter_constraints,
        "dispersion_prior_scale": [Interval(Real, 0, None, closed="neither")],
    }

    @staticmethod
    def _as_rows(X, y, weight, exposure):
        """Responses are counts and logarithms of exposures, since exposures cannot be part of the weights."""
        if y.max() > _LARGEST_COUNT:
            raise ValueError(
                f"`y` must hold counts of at most {_LARGEST_COUNT:g}; got {y.max():g}. Model the logarithm of such "
                "responses by BayesianLinearRegression."
            )
        return X, np.column_stack([y, np.zeros(len(y)) if exposure is None else np.log(exposure)]), weight

    def _first_design(self, rows):
        check_scale("dispersion_prior_scale", self.dispersion_prior_scale)
        self._distinct = DistinctCounts(rows[1][:, 0], rows[2])
        return super()._first_design(rows)

    def _design_of(self, rows, prior, reference=None, start=None):
        kind = DiagonalDesign if is_wide(rows[0], 1) else Design

        def make(likelihood, start):
            return kind(*rows, 1, prior, self.fit_intercept, self.control_variates, reference, likelihood, start)

        of_dispersion = DispersionPrior(min(float(self.dispersion_prior_scale), LARGEST))
        return DispersedDesign(make, *rows, self._distinct, of_dispersion, start)

    def _signal(self, is_sparse, n_predictors):
        return dispersion.sparse_negative_binomial if is_sparse else dispersion.negative_binomial

    def _further_draws(self, values):
        self.dispersion_ = float(values.mean())
        return {"dispersion": values}

    def _log_likelihoods(self, chains, coef, near):
        drawn = np.log(self._all_samples["dispersion"])
        dense = chains[0].data[0]
        return log_likelihoods(self._design, dense, coef, near, lambda c, s: OverdispersedCounts(drawn[c, s]))

    def _monitored(self, chains):
        return {**super()._monitored(chains), "dispersion": self._all_samples["dispersion"]}

    @property
    def _dispersions(self):
        """All draws of the dispersion, (n_draws,)."""
        return self._all_samples["dispersion"].reshape(-1)

    def _variances(self, means):
        return means + self._dispersions * means**2

    def _log_densities(self, y, means):
        v = np.log(self._dispersions)
        normaliser = (y + np.exp(-v)) * np.log1p(np.exp(v) * means)
        return rising(y, v)[0] + special.xlogy(y, means) - normaliser - special.gammaln(y + 1.0)

    def _observations(self, means, rng):
        rates = means * rng.gamma(1.0 / self._dispersions, self._dispersions, size=means.shape)
        return rng.poisson(np.minimum(rates, LARGEST_MEAN))

    def _quantiles(self, means, tails):
        some = evenly(means.shape[1], _QUANTILE_DRAWS)
        return [mixture_quantile(means[:, some], self._dispersions[some], tail) for tail in tails]


def distribution_function(counts, means, dispersions):
    """Probability of at most ``counts`` (n,) under the mixture over draws: means (n, n_draws), dispersions (n_draws,).

    It is 0 for negative counts.
    """
    odds = dispersions * means
    above = special.betainc(np.maximum(counts, 0.0)[:, None] + 1.0, 1.0 / dispersions, odds / (1.0 + odds))
    return np.where(counts < 0, 0.0, 1.0 - above.mean(axis=1))


def mixture_quantile(means, dispersions, tail):
    """The smallest counts whose `distribution_function` reaches ``tail``, (n,).

    A few evenly spaced draws yield a first estimate, around which the quantile under all draws is then bracketed.
    """
    guess = np.zeros(len(means))
    if means.shape[1] > 2 * _FEW_DRAWS:
        some = np.linspace(0, means.shape[1] - 1, _FEW_DRAWS).round().astype(int)
        guess = mixture_quantile(means[:, some], dispersions[some], tail)
    low, high = guess - 1.0, guess.copy()
    reach = np.ones(len(means))
    todo = np.arange(len(means))
    while todo.size:  # move both ends upwards until the upper one has the mass
        todo = todo[distribution_function(high[todo], means[todo], dispersions) < tail]
        low[todo] = high[todo]
        high[todo] += reach[todo]
        reach[todo] *= 2.0
        todo = todo[high[todo] < LARGEST]
    reach, todo = np.ones(len(means)), np.flatnonzero((low >= 0) & (low == guess - 1.0))
    while todo.size:  # move them downwards until the lower one lacks the mass
        todo = todo[distribution_function(low[todo], means[todo], dispersions) >= tail]
        high[todo] = low[todo]
        low[todo] = np.maximum(low[todo] - reach[todo], -1.0)
        reach[todo] *= 2.0
        todo = todo[low[todo] >= 0]
    while True:
        middle = np.floor(0.5 * (low + high))
        todo = np.flatnonzero((low < middle) & (middle < high))
        if not todo.size:
            return high
        enough = distribution_function(middle[todo], means[todo], dispersions) >= tail
        high[todo[enough]], low[todo[~enough]] = middle[todo[enough]], middle[todo[~enough]]
