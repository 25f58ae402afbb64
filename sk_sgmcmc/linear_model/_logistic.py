"""Bayesian logistic regression."""

from dataclasses import replace
from numbers import Real

import numpy as np
from scipy import sparse
from sklearn.base import ClassifierMixin

from ..base import all_or_nothing
from ..dense.chain import DenseData, Metric
from ..dense.model import BaseDenseSGMCMC
from ..dense.rows import less_offsets, packed, refuse_extremes
from ..kernels.models import logistic, metrics
from ..utils._fingerprint import fingerprint
from ..utils._sklearn import Interval, StrOptions, validate_data
from ..utils._sparse import canonical
from ._design import MAX_ENTRIES, Design, DiagonalDesign, independent_prior, signal_outputs
from ._labels import check_labels
from ._predict import INPUT, DrawsPredictMixin
from ._rows import log_likelihoods, row_offsets, row_weights

# Above this share of nonzero entries, sparse rows are read faster as dense ones.
_DENSE_SHARE = 0.3


class BayesianLogisticRegression(DrawsPredictMixin, ClassifierMixin, BaseDenseSGMCMC):
    r"""Logistic regression, binary or multinomial, with draws of its coefficients.

    :math:`P(y = k \mid x) \propto \exp(b_k + \beta_k^\top x)` with :math:`\beta_{kj} \sim N(0, \sigma^2)`. Two classes
    have one :math:`\beta`, for the second; more have one each.

    Parameters
    ----------
    prior_scale : float, default=1
        :math:`\sigma`, in the units of the columns of X as given. The mode of the posterior is the estimate of
        scikit-learn's ``LogisticRegression(C=prior_scale**2)``, up to the intercept's prior.
    fit_intercept : bool, default=True
        Whether there is an intercept. Without one, a column whose mean is large for its spread can have hardly any
        effect; a warning says so.
    intercept_prior_scale : float, default=100
        Standard deviation of the wide normal prior of the intercept of centred columns, which is the linear predictor
        at the mean of X (in a stream, of the first block): so a column of years or timestamps keeps its effect.
        ``intercept_`` and ``samples_["intercept"]`` refer to the columns as given.
    class_weight : dict, "balanced" or None, default=None
        As in scikit-learn: multiplies the weights of the rows of a class. The posterior is then that of so many more
        rows: for a class counted w times, intervals are up to :math:`\sqrt w` times too narrow. A weight above 2
        warns.
    control_variates : bool, default=True
        Whether minibatches estimate only the part of the log likelihood beyond its second order at the mode.
    sampler : str, sampler object or None, default=None
        None is `SGHMC`. Any sampler on flat space will do; particles (`Blob`, `GFSD`, `GFSF`, `SVGD`, `PSGHMC`) are
        approximate, and their intervals too narrow.
    n_iter : int or None, default=None
        Steps (trajectories of `HMC`). None makes enough for about 1000 nearly independent draws after burn-in.
    burn_in : float or int, default=0.5
        Fraction, or number, of the steps to discard at the start. Chains start at the mode.
    thin : int or "auto", default="auto"
        Every ``thin``-th later step is kept; "auto" keeps at most 100 draws, and takes
        means and predictions over up to ten times as many.
    batch_size : int or "auto", default="auto"
        Rows of a minibatch; "auto" takes all of a small data set, else as many as keep the noise below 5 % of a
        posterior variance.
    with_replacement : bool, default=False
        Draw each minibatch row by row, instead of reading blocks of the rows in an order shuffled once.
    n_chains : int, default=1
        Independent chains.
    n_jobs : int or None, default=None
        Chains at a time; changes no draw.
    random_state : int, RandomState instance or None, default=None
        Seed; an int gives the same draws each time.
    verbose : int, default=0
        1 shows a progress bar.
    callbacks : callback or list of callbacks, default=None
        See `sk_sgmcmc.callbacks`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    coef_ : ndarray of shape (1 or n_classes, n_features)
        Posterior mean.
    intercept_ : ndarray of shape (1 or n_classes,)
        Posterior mean.
    samples_ : dict of ndarray
        ``"coef"``: (n_chains, n_kept, n_rows, n_features), ``"intercept"``: (n_chains, n_kept, n_rows).
    sampler_ : sampler object
        The sampler in use; ``sampler_.step_size_`` is the step size that "auto" chose, in units of whitened
        coordinates.
    batch_size_ : int
        Rows of a minibatch.
    n_iter_ : int
        Steps made.
    diagnostics_ : DataFrame, or Bunch of columns if pandas is not installed
        Convergence of the log likelihood, intercepts and coefficients (of many, the 20 least settled): ``quantity``,
        ``mean``, split ``r_hat``, ``ess`` and ``mcse``. See "When not to believe a fit" in the user guide.
    n_samples_seen_ : int
        Rows seen.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    Newton's method finds the mode :math:`\hat\beta`, and the chain moves in coordinates :math:`\phi`,
    :math:`\beta = \hat\beta + T \phi`, :math:`T T^\top` the inverse Hessian there. The posterior is then close to
    :math:`N(0, I)` whatever the scales of the columns and their correlations, and one step size suits all data. With
    control variates the gradient is

    .. math:: -\phi + \frac Nn \, T^\top \sum_{i \in S} x_i \bigl(p_i(\hat\beta) - p_i(\beta)
              + p_i(\hat\beta) (1 - p_i(\hat\beta)) \, x_i^\top T \phi\bigr),

    unbiased, and without noise where the posterior is Gaussian. In `partial_fit` the Gaussian approximation at the
    mode replaces the rows of earlier calls.

    Sparse rows are read as they are. With more than 1000 coefficients the Hessian is not factorised: L-BFGS finds the
    mode,
    :math:`T` is the diagonal root of the Hessian's inverse diagonal, control variates remove the first order only,
    fewer draws are kept (above 2000 coefficients at most 200, above 10,000 in float32; within 512 MB), and in
    `partial_fit` the diagonal replaces the Hessian. Dense rows are then converted to sparse ones.

    References
    ----------
    Baker, Fearnhead, Fox and Nemeth (2019), Control variates for stochastic gradient MCMC, Statistics and Computing
    29. Chen, Fox and Guestrin (2014), Stochastic gradient Hamiltonian Monte Carlo, ICML.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sk_sgmcmc import BayesianLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = BayesianLogisticRegression(random_state=0).fit(X, y)
    >>> model.samples_["coef"].shape
    (1, 100, 1, 30)
    >>> bool(model.score(X, y) > 0.94)
    True
    """

    _unneeded_by_answers = (*BaseDenseSGMCMC._unneeded_by_answers, "_design")

    _parameter_constraints = {
        **BaseDenseSGMCMC._parameter_constraints,
        "prior_scale": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "intercept_prior_scale": [Interval(Real, 0, None, closed="neither")],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "control_variates": ["boolean"],
    }

    def __init__(
        self,
        prior_scale=1.0,
        *,
        fit_intercept=True,
        intercept_prior_scale=100.0,
        class_weight=None,
        control_variates=True,
        sampler=None,
        n_iter=None,
        burn_in=0.5,
        thin="auto",
        batch_size="auto",
        with_replacement=False,
        n_chains=1,
        n_jobs=None,
        random_state=None,
        verbose=0,
        callbacks=None,
    ):
        self.prior_scale = prior_scale
        self.fit_intercept = fit_intercept
        self.intercept_prior_scale = intercept_prior_scale
        self.class_weight = class_weight
        self.control_variates = control_variates
        self.sampler = sampler
        self.n_iter = n_iter
        self.burn_in = burn_in
        self.thin = thin
        self.batch_size = batch_size
        self.with_replacement = with_replacement
        self.n_chains = n_chains
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- fitting -------------------------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Draw the coefficients given labelled rows.

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
        """
        self._validate_params()
        sampler, _ = self._checked_sampler()
        X, y = validate_data(self, X, y, **INPUT)
        check_labels(y)
        classes, codes = np.unique(y, return_inverse=True)
        self._check_classes(classes)
        data = self._weighted(X, codes, classes, y, sample_weight)
        return self._start(sampler, data, classes, None, 0)

    @all_or_nothing
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Continue with further rows, those of earlier calls being replaced by a Gaussian.

        Parameters
        ----------
        X, y : as for `fit`
            Further rows.
        classes : array-like of shape (n_classes,), default=None
            All labels; needed in the first call unless y holds them all.
        sample_weight : array-like of shape (n_samples,), default=None
            As for `fit`.

        Returns
        -------
        self : object
            Fitted.
        """
        self._validate_params()
        sampler, _ = self._checked_sampler()
        first = not hasattr(self, "_design")
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
        return self._start(sampler, data, known, None if first else self._chains, getattr(self, "n_samples_seen_", 0))

    @staticmethod
    def _check_classes(classes):
        if len(classes) < 2:
            raise ValueError(f"y holds only one class, {classes.tolist()}; a classifier needs at least two classes.")

    @staticmethod
    def _codes(y, known):
        """Codes of labels that must be known."""
        if unknown := sorted(set(np.unique(y).tolist()) - set(known.tolist())):
            raise ValueError(f"y holds the labels {unknown}, which are not among the classes {known.tolist()}.")
        return np.searchsorted(known, y)

    def _weighted(self, X, codes, classes, y, sample_weight):
        """Rows with a weight above 0, their class codes and weights; rows are sparse where the kernels read them so."""
        if sparse.issparse(X):
            X = canonical(X)
        refuse_extremes(X, getattr(self, "feature_names_in_", None))
        weight = row_weights(X, codes, classes, y, self.class_weight, sample_weight)
        used = weight > 0
        if not used.all():
            X, codes, weight = X[used], codes[used], weight[used]
        n_rows = 1 if len(classes) == 2 else len(classes)
        if n_rows * (X.shape[1] + 1) > MAX_ENTRIES:
            X = sparse.csr_matrix(X)
        elif sparse.issparse(X) and X.nnz > _DENSE_SHARE * X.shape[0] * X.shape[1]:
            X = X.toarray()
        return X, codes.astype(np.int64), weight

    def _start(self, sampler, data, classes, before, n_seen):
        X, codes, weight = data
        self._fingerprint = fingerprint(X, codes, weight)
        n_rows = 1 if len(classes) == 2 else len(classes)
        if before is None:
            self._offsets = row_offsets(X, weight, self.fit_intercept)
            wide = self.intercept_prior_scale if self.fit_intercept else None
            prior = independent_prior(n_rows, X.shape[1], self.prior_scale, wide)
        else:
            if self.fit_intercept != self._design.fit_intercept:
                raise ValueError(
                    f"fit_intercept={self.fit_intercept} differs from that of the earlier rows; partial_fit continues "
                    "with the same coefficients. Call fit to start afresh."
                )
            prior = self._design.summary
        X = less_offsets(X, self._offsets)
        wide = n_rows * (X.shape[1] + 1) > MAX_ENTRIES
        reference = None if before is None else self._design.reference
        design = (DiagonalDesign if wide else Design)(
            X, codes, weight, n_rows, prior, self.fit_intercept, self.control_variates, reference
        )
        make_dense, width = self._reader(design, sampler, X, codes, weight)
        streams = before is not None
        dense, fitted, n_iter = self._tuned(sampler, make_dense, X.shape[0], width, design.mode.size, streams=streams)
        starts = [np.zeros((design.mode.size, 1)) for _ in range(self.n_chains)]
        goes_on = before is not None and len(before) == self.n_chains and self._is_alike(before[0], fitted)
        if goes_on:
            starts = [self._carried(chain.theta, design) for chain in before]
        chains = self._make_chains(fitted, dense, n_iter, starts, before if goes_on else None)
        self.classes_, self._design, self.sampler_ = classes, design, fitted
        self.batch_size_, self.n_samples_seen_ = dense.n_batch, n_seen + X.shape[0]
        return self._run(chains, n_iter)

    @staticmethod
    def _is_alike(chain, sampler):
        """Whether a sampler can continue from the state of a chain: both have one particle, or equally many."""
        if sampler._runner != "particles":
            return chain.theta.ndim == 2
        return chain.theta.ndim == 3 and len(chain.theta) == sampler.n_particles

    def _carried(self, theta, design):
        """A state, or that of each particle, in the coordinates of another design."""
        if theta.ndim == 3:
            return np.stack([self._carried(each, design) for each in theta])
        return design.theta_of(*self._design.coefficients(theta[:, 0]))[:, None]

    def _reader(self, design, sampler, X, codes, weight):
        """A function from the batch size to the data for the kernels, and how many numbers they read for a row."""
        if sampler._uses_metric:
            if isinstance(design, DiagonalDesign):
                raise ValueError(
                    f"sampler={sampler!r} needs the Fisher information at every step, which is implemented for up to "
                    f"{MAX_ENTRIES} coefficients; these data have {design.mode.size}. Use another, such as 'hmc'."
                )
            X = X.toarray() if sparse.issparse(X) else X
        rows = design.rows(X)
        outputs = signal_outputs(codes, design.eta(rows))
        is_sparse = sparse.issparse(X)
        params = design.params(is_sparse, sampler._reads_log_density)
        binary = design.n_rows == 1
        if not is_sparse:
            signal = logistic.binary if binary else logistic.multinomial
            metric = None
            if sampler._uses_metric:
                metric = Metric(metrics.logistic, design.metric_params())

            def dense(n_batch):
                return DenseData(rows.Z, outputs, weight, params, signal, n_batch, self.with_replacement, metric=metric)

            return dense, rows.width
        signal = logistic.sparse_binary if binary else logistic.sparse_multinomial
        data = packed(X, outputs, weight, params, signal, X.shape[0], self.with_replacement)
        return lambda n_batch: replace(data, n_batch=n_batch), 2.0 * design.n_rows * (X.nnz / X.shape[0] + 1.0)

    @all_or_nothing
    def resume(self, X, y, sample_weight=None):
        """Continue a fit that was interrupted or loaded from a checkpoint.

        Gives the draws that an uninterrupted `fit` would have given.

        Parameters
        ----------
        X, y, sample_weight : same type and content as given to `fit`, or to the last `partial_fit`
            The data: a saved estimator holds none.

        Returns
        -------
        self : object
            Fitted.
        """
        self._check_resumable()
        X, y = validate_data(self, X, y, reset=False, **INPUT)
        X, codes, weight = self._weighted(X, self._codes(y, self.classes_), self.classes_, y, sample_weight)
        self._refuse_other_rows(X, codes, weight)
        X = less_offsets(X, self._offsets)
        dense = self._reader(self._design, self.sampler_, X, codes, weight)[0](self.batch_size_)
        for chain in self._chains:
            chain.bind((dense, None))
        return self._run(self._chains, self._planned_iter)

    def _set_fitted(self, chains):
        theta = self._kept_theta(chains)
        if self.sampler_._runner != "particles":
            self._design.warn_if_far(theta, getattr(self.sampler_, "temperature", 1.0))
        coef, self._near_intercepts = self._design.coefficients(theta)
        far = np.flatnonzero(self._offsets)
        intercept = self._near_intercepts - coef[..., far].astype(np.float64) @ self._offsets[far]
        self._all_samples = {"coef": coef, "intercept": intercept}
        self.samples_ = self._shown(self._all_samples)
        self.coef_, self.intercept_ = coef.mean(axis=(0, 1)), intercept.mean(axis=(0, 1))

    def _monitored(self, chains):
        coef, intercept = (self._all_samples[name] for name in ("coef", "intercept"))
        density = log_likelihoods(self._design, chains[0].data[0], coef, self._near_intercepts)
        return {"log_likelihood": density, "coef": coef, **({"intercept": intercept} if self.fit_intercept else {})}
