"""The spherical admixture model: a topic model of unit vectors."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ...base import all_or_nothing, fits_anew
from ...chains.chain import DrawPlan, StreamPlan, stacked_draws
from ...chains.checks import NEVER_MOVED, TOO_FAST
from ...chains.convergence import evenly
from ...directions import RowData, check_unit_rows, check_velocities, has_content, rows_with_content
from ...utils import as_precise_as
from ...utils._dask import lazy_for_dask
from ...utils._parameters import keyword_parameters
from ...utils._sklearn import Interval, StrOptions
from ...utils._tables import checked_names
from ...utils._typing import AnyArray, FloatArray, MatrixLike, Table
from .._agreement import number_topics
from .._base import BaseTopicModel
from .._draws import TopicDraws, chosen_draws
from .chain import CONCENTRATIONS, AdmixtureChain, MetropolisAdmixtureChain, VariationalAdmixtureChain, checked_prior
from .results import (  # fmt: skip
    N_TEMPERATURES,
    annealed_mean,
    annealed_scores,
    direction_table,
    log_density_under_prior,
    mean_cosines,
    mean_proportions,
    proportion_draws,
)

# Classes of chains, by the name of the loop that a sampler declares.
CHAINS = {"dense": AdmixtureChain, "metropolis": MetropolisAdmixtureChain, "variational": VariationalAdmixtureChain}
_N_ITER = 400
_FULL_BATCH = 2000  # largest number of rows that are all in one automatic minibatch
_BATCH = 500
_SCORED_DRAWS = 5  # largest number of kept draws averaged in a score
_REFERENCE_ROWS, _REFERENCE_TEMPERATURES = 100, 200  # rows and temperatures for the choice of the reference chain


@keyword_parameters
class SphericalAdmixtureModel(BaseTopicModel):
    r"""Bayesian topic model of unit vectors such as tf-idf rows; words can be present in or absent from a topic.

    In the spherical admixture model, :math:`\mu \sim \mathrm{vMF}(m, \kappa_0)`, topics :math:`\beta_k \sim
    \mathrm{vMF}(\mu, \sigma)`, and each document :math:`\theta_d \sim \mathrm{Dirichlet}(\alpha)`, :math:`v_d \sim
    \mathrm{vMF}(\beta'\theta_d / |\beta'\theta_d|, \kappa_1)`. Here :math:`\mathrm{vMF}(\mu, \kappa)` is the von
    Mises-Fisher distribution, whose density at a unit vector :math:`x` is proportional to :math:`e^{\kappa \mu' x}`. A
    topic is a direction. Its entries can be negative, for words that are *absent* from documents with the topic.

    Parameters
    ----------
    doc_topic_prior : float, array-like of shape (n_components,) or "auto", default=10.0
        :math:`\alpha`. "auto" learns one number for all topics, with the prior :math:`\log\alpha \sim N(0, 1)`.
    kappa0, kappa1, sigma : float, "auto" or None, default=None
        Concentrations of the mean of the topics, of documents, and of topics. None: 2, 6 and 2 times the number of
        features, as published. "auto" learns the concentration: its logarithm has the prior :math:`N(\log c, 1)`, where
        :math:`c` is the default. "auto" for all three and for ``doc_topic_prior`` predicts better. With the fixed
        defaults, draws of topics hardly vary.
    normalize : bool, default=True
        Whether to scale rows to unit length. False: rows of other lengths raise an error.
    n_iter : int or None, default=None
        Number of steps. None: 400.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Mean direction of each topic over the draws of the reference chain, scaled to unit length.
    samples_ : dict of ndarray
        ``"components"``: draws of the topics, unit rows, float32 of shape (n_chains, n_kept, n_components, n_features).
        Topics are aligned across draws and chains. ``"kappa0"``, ``"kappa1"``, ``"sigma"`` and ``"doc_topic_prior"``,
        if they are "auto": draws of shape (n_chains, n_kept).
    doc_topic_prior_ : ndarray of shape (n_components,)
        The fixed value, or the posterior mean in the reference chain.
    kappa0_, kappa1_, sigma_ : float
        The fixed value, or the posterior mean in the reference chain.
    reference_chain_ : int
        Index of the chain from which results are computed. It is the chain whose mean topics give the greatest density
        to (up to 100 of) the fitted rows, estimated as in `score`.
    chain_distances_ : ndarray of shape (n_chains, n_components)
        Distance :math:`\sqrt{1 - \cos}` between the mean topics of each chain and of the reference chain.
    topic_stability_ : ndarray of shape (n_components,)
        `topic_stability <sk_sgmcmc.metrics.topic_stability>` of all draws of all chains, by cosine.
    n_samples_seen_ : int
        Number of documents seen by `fit` and later calls of `partial_fit`.
    diagnostics_ : DataFrame, or Bunch of columns if pandas is not installed
        ``quantity``, ``mean``, split ``r_hat``, ``ess`` and ``mcse`` of the mean cosine between some rows and the cone
        of the topics, the length of the mean of the topics, and learnt parameters. See "Warnings and what to do" in
        the user guide.

    Other Parameters
    ----------------
    n_inner : int, default=10
        Number of steps of the sampler of topics between draws of the proportions of documents. Together they are one
        step of ``n_iter``.
    n_doc_draws : tuple of two int or None, default=None
        Number of trajectories of a document's proportions to discard and to average over, at each visit. None: (4, 1),
        or the values of a reference sampler. Each visit starts from the proportions of the last.
    proportions : {"stored", "fresh"}, default="stored"
        How the gradient of the topics is computed in minibatches.

        - "stored": from all documents. Documents outside the minibatch contribute the terms of their last visit. The
          effect of the motion of the topics since then is estimated from the minibatch.
        - "fresh": from the minibatch alone, scaled by N/n, as published. Its noise requires step sizes that are many
          times smaller. `partial_fit` is always "fresh".
    total_samples : int or None, default=None
        Number of documents in the whole stream of `partial_fit`. None: the number seen so far.
    init : {"centroids", "random"}, default="centroids"
        Initial topics: centroids of spherical k-means, or random directions near the mean of the data.
    sampler : str, sampler object or None, default=None
        Sampler of the topics: `SGGMC`, `GSGNHT` or `GMC`; the exact reference `GMCBGibbs`; the approximate `GMCApprMH`;
        or `VariationalInference` and `StochasticVI`, which return a point estimate without uncertainty. None: `SGGMC`.
    batch_size : int or "auto", default="auto"
        Number of rows in a minibatch. "auto": all of up to 2,000 rows, otherwise 500.

    See Also
    --------
    BayesianLDA : Topic model of counts, in which topics are distributions over words.

    Notes
    -----
    :math:`\mu` is integrated out. Proportions are drawn in ``n_components`` dimensions, given :math:`\beta\beta'` and
    sparse products of documents and topics. Parameters that are "auto" are drawn by slice sampling, given topics and
    proportions. They have log-normal priors with a standard deviation of 1. ``step_size="auto"`` is at most 0.4 over
    the square root of the largest curvature of the topics, is limited by the noise of the gradient, and is adapted
    during burn-in. Published step sizes are unstable.

    References
    ----------
    Reisinger, Waters, Silverthorn and Mooney (2010), Spherical topic models, ICML. Liu, Zhu and Song (2016), Stochastic
    gradient geodesic MCMC methods, NeurIPS, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import SphericalAdmixtureModel
    >>> X = np.abs(np.random.default_rng(0).standard_normal((60, 12)))
    >>> sam = SphericalAdmixtureModel(
    ...     n_components=3, n_iter=20, random_state=0
    ... ).fit(X)
    >>> sam.samples_["components"].shape
    (1, 10, 3, 12)
    """

    doc_topic_prior: float | ArrayLike | Literal["auto"] = 10.0
    kappa0: float | Literal["auto"] | None = None
    kappa1: float | Literal["auto"] | None = None
    sigma: float | Literal["auto"] | None = None
    normalize: bool = True
    n_inner: int = 10
    n_doc_draws: tuple[int, int] | None = None
    proportions: Literal["stored", "fresh"] = "stored"
    total_samples: int | None = None
    init: Literal["centroids", "random"] = "centroids"

    _offers = (("sphere", "gradient"), ("sphere", "admixture"))
    _default_sampler = "sggmc"
    _metric = "cosine"
    _check_definitions = (*BaseTopicModel._check_definitions, TOO_FAST, NEVER_MOVED)
    _drifts = "mean_cosine", None

    _parameter_constraints = {
        **BaseTopicModel._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "doc_topic_prior": [Interval(Real, 0, None, closed="neither"), "array-like", StrOptions({"auto"})],
        **{name: [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"}), None] for name in CONCENTRATIONS},
        "normalize": ["boolean"],
        "n_inner": [Interval(Integral, 1, None, closed="left")],
        "n_doc_draws": [tuple, list, None],
        "proportions": [StrOptions({"stored", "fresh"})],
        "total_samples": [Interval(Integral, 1, None, closed="left"), None],
        "init": [StrOptions({"centroids", "random"})],
    }

    # -- fitting -------------------------------------------------------------------------------------------------

    @fits_anew
    def fit(self, X: MatrixLike, y: Any = None, *, feature_names: Sequence[str] | AnyArray | None = None) -> Self:
        """Sample the topics given rows.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, scaled to unit length unless ``normalize=False``. All-zero rows are ignored.
        y : ignored
        feature_names : array-like of str of shape (n_features,), default=None
            Names of the columns in tables of results, if X has none.

        Returns
        -------
        self : object
            Fitted.

        Raises
        ------
        ValueError
            For entries that are not finite, rows of other lengths than 1 with ``normalize=False``, parameters out of
            range, an unsupported sampler, or a batch larger than the data.
        ChainDivergedError
            If the state of a chain becomes infinite or NaN, because the step size is too large.
        FitInterrupted
            After Ctrl-C; it is a subclass of ``KeyboardInterrupt``. The estimator is fitted with the draws made so far,
            and is also ``estimator_`` of the exception.
        """
        self._validate_params()
        sampler, _ = self._checked_sampler()
        rows = self._check_X(X, reset=True)
        self._feature_names, self._topic_names = checked_names(feature_names, self.n_features_in_), None
        data = self._taken(rows, self._n_batch(sampler, rows.shape[0]))
        plan = DrawPlan(self.n_iter or _N_ITER, self.burn_in, self.thin, self._bytes_per_draw())
        chains = self._new_chains(sampler, rows, lambda: plan, stored=self.proportions == "stored")
        self.n_samples_seen_ = data.n_docs
        return self._run([chain.bind(data) for chain in chains], plan.n_iter)

    @all_or_nothing
    def partial_fit(
        self, X: MatrixLike, y: Any = None, *, feature_names: Sequence[str] | AnyArray | None = None
    ) -> Self:
        """Continue the chains with one pass over more documents.

        The gradient is computed from the minibatch alone, scaled to ``total_samples``, or to the number of documents
        seen so far. Priors, including their mean direction, and other parameters of the chains are set in the first
        call. A change of the step size or friction takes effect in the next call. Changing the sampler,
        ``n_components`` or ``n_chains`` raises an error.

        A call makes one step per minibatch, so ``n_iter`` is ignored. ``thin`` is ignored too: at most 100 draws are
        kept, evenly spaced over all calls. ``burn_in`` is a share, or a number, of all steps so far.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Rows, as for `fit`.
        y : ignored
        feature_names : array-like of str of shape (n_features,), default=None
            Names of the columns, as for `fit`; None keeps the names of earlier calls.

        Returns
        -------
        self : object
            Fitted.
        """
        self._validate_params()
        sampler, _ = self._checked_sampler()
        sampler._refuse_blocks('"sggmc", "gsgnht" or "sto-vi"')
        first = not hasattr(self, "_chains")
        if not first:
            chain = self._chains[0]
            self._refuse_other_chains(sampler, chain.sampler, n_components=chain.n_topics)
        rows = self._check_X(X, reset=first)
        self._feature_names = checked_names(feature_names, self.n_features_in_, self._feature_names)
        n_batch = _BATCH if isinstance(self.batch_size, str) else int(self.batch_size)
        data = self._taken(rows, min(n_batch, rows.shape[0]))

        def plan():
            return StreamPlan(self.burn_in, self._bytes_per_draw())

        if first:
            self.n_samples_seen_ = 0
            chains = self._new_chains(sampler, rows, plan, stored=False)
        else:
            chains = self._chains
            for chain in chains:
                chain.take_sampler(sampler)
        self.n_samples_seen_ += data.n_docs
        for chain in chains:
            if not chain.plan.streams:
                chain.restart(plan())
            chain.bind(data).stream(float(self.total_samples or self.n_samples_seen_))
        return self._run(chains, chains[0].step + -(-data.n_docs // data.n_batch))

    def _bytes_per_draw(self):
        return 4 * self.n_chains * self.n_features_in_ * self.n_components

    def _new_chains(self, sampler, rows, plan, *, stored):
        draws = self._checked_draws(sampler)
        auto = sampler._picks_step
        make = sampler._pick_loop(CHAINS)
        prior = checked_prior(self, rows, sampler, make.is_sampled)
        return [
            make(
                # Each chain needs its own copy of the sampler, because it adapts its own step size.
                seed, plan(), sampler._resolved(None), prior, n_draws=draws, init=self.init, auto=auto,
                n_inner=sampler._n_trajectories or self.n_inner, stored=stored and make.stores,
            )
            for seed in self._chain_seeds()[1:]
        ]  # fmt: skip

    def _set_fitted(self, chains):
        samples = stacked_draws(chains)
        components, prior = samples.pop("components"), chains[0].prior

        def best(means):
            return self._best_chain(means, samples, chains)

        self._agreement, means = number_topics(
            TopicDraws(components), samples, self._metric, prior.alpha, best, n_rounds=1
        )
        self.samples_, c = {"components": components, **samples}, self.reference_chain_
        self.components_ = means[c] / np.linalg.norm(means[c], axis=1, keepdims=True)
        (self.kappa0_, self.kappa1_, self.sigma_), self.doc_topic_prior_ = self._values_in_chain(samples, prior, c)
        self.sampler_ = chains[0].sampler
        if chains[0].proposes:
            self.sampler_.acceptance_rate_ = np.array([chain.acceptance / max(1, chain.step) for chain in chains])

    def _values_in_chain(self, samples, prior, c):
        """Concentrations and Dirichlet parameter of proportions in chain ``c``: fixed values, or means of its draws."""
        numbers = [
            float(np.mean(samples[name][c] if name in samples else value))
            for name, value in zip(CONCENTRATIONS, prior.numbers, strict=True)
        ]
        alpha = prior.alpha.copy()
        if "doc_topic_prior" in samples:
            alpha[:] = samples["doc_topic_prior"][c].mean()
        return numbers, alpha

    def _best_chain(self, means, samples, chains):
        """Index of the chain whose mean topics give the greatest density to a subset of the fitted rows."""
        rows = chains[0].data.as_csr()
        rows = rows[has_content(rows)]
        if rows.shape[0] == 0:
            return 0
        rows = rows[evenly(rows.shape[0], _REFERENCE_ROWS)]
        scores = []
        for c, mean in enumerate(means):
            numbers, alpha = self._values_in_chain(samples, chains[c].prior, c)
            beta = mean / np.linalg.norm(mean, axis=1, keepdims=True)
            scores.append(annealed_scores(rows, beta, alpha, numbers[1], _REFERENCE_TEMPERATURES).mean())
        return int(np.argmax(scores))

    def _check_X(self, X, *, reset):
        return check_unit_rows(self, X, reset=reset)

    def _scored_rows(self, X):
        return rows_with_content(self._check_X(X, reset=False))

    def _taken(self, rows, n_batch):
        """Convert rows to the data of the chains, and record the batch size and fingerprint for `resume`."""
        data = RowData.from_csr(rows, n_batch)
        self._n_batch_, self._fingerprint = n_batch, data.fingerprint()
        return data

    def _bound_data(self, X, y=None):
        data = RowData.from_csr(self._check_X(X, reset=False), self._n_batch_)
        self._refuse_other_data(data.fingerprint())
        return data

    def _monitored(self, chains):
        components = self.samples_["components"]
        resultant = np.linalg.norm(components.mean(axis=2, dtype=np.float64), axis=-1)
        learnt = {name: value for name, value in self.samples_.items() if name != "components"}
        cosine = mean_cosines(chains[0].data.as_csr(), components)
        return {"mean_cosine": cosine, "mean_resultant": resultant, **learnt}

    def _checks(self, chains):
        return [*super()._checks(chains), *check_velocities(chains)]

    # -- sizes of batches and draws -----------------------------------------------------------------------------

    def _n_batch(self, sampler, n_rows):
        self._refuse_large_batch(n_rows)
        automatic = n_rows if n_rows <= _FULL_BATCH else _BATCH
        return sampler._rows_read(n_rows, automatic if isinstance(self.batch_size, str) else int(self.batch_size))

    def _checked_draws(self, sampler):
        draws = sampler._n_doc_draws if self.n_doc_draws is None else tuple(self.n_doc_draws)
        if len(draws) != 2 or not all(isinstance(n, Integral) for n in draws) or draws[0] < 0 or draws[1] < 1:
            raise ValueError(
                f"n_doc_draws={self.n_doc_draws!r} must be two whole numbers: trajectories to discard (at least 0) "
                "and to average over (at least 1), for example (4, 1)."
            )
        return int(draws[0]), int(draws[1])

    # -- documents -----------------------------------------------------------------------------------------------

    @lazy_for_dask(lambda self: len(self.components_), dtype=None, draws=())
    def transform(self, X: MatrixLike) -> FloatArray:
        """Posterior mean proportions of rows, given the mean topics of the reference chain.

        Parameters
        ----------
        X : array-like, sparse or Dask array of shape (n_samples, n_features)

        Returns
        -------
        proportions : ndarray, lazy for a Dask array, of shape (n_samples, n_components)
            Rows sum to 1, and do not depend on each other. An all-zero row gets the prior mean.
        """
        return self._transform(X)

    def _transform(self, X):
        rows = self._filled(X)[0]
        proportions = mean_proportions(rows, self.components_, self.doc_topic_prior_, self.kappa1_)
        return as_precise_as(X, proportions)

    def _filled(self, X):
        """Unit rows, and a boolean mask of those with a non-zero entry."""
        check_is_fitted(self)
        rows = self._check_X(X, reset=False)
        return rows, has_content(rows)

    def _proportion_draws(self, X, n_draws, random_state, *, groups=None):
        """Yield draws of the proportions of rows, each given a draw of the topics from the reference chain."""
        rows, components = self._filled(X)[0], self._of_reference("components")
        chosen = chosen_draws(len(components), n_draws)
        values = [self._values_in_draw(self.reference_chain_ * len(components) + s) for s in chosen]
        states = [(components[s].astype(np.float64), *value) for s, value in zip(chosen, values, strict=True)]
        return proportion_draws(rows, states, random_state, groups)

    @lazy_for_dask()
    def score_samples(self, X: MatrixLike, *, n_temperatures: int = N_TEMPERATURES) -> FloatArray:
        """Log predictive density of each row: proportions are integrated out, and the density averaged over draws.

        Parameters
        ----------
        X : array-like, sparse or Dask array of shape (n_samples, n_features)
        n_temperatures : int, default=400
            Number of temperatures of the annealed importance sampling that integrates proportions out, at least 1. More
            temperatures are slower and more accurate.

        Returns
        -------
        log_density : ndarray, lazy for a Dask array, of shape (n_samples,)
            Density with respect to the surface measure of the sphere, from at most 5 kept draws, evenly spaced. An
            all-zero row is not an observation and gets 0.
        """
        rows, full = self._filled(X)
        out = np.zeros(rows.shape[0])
        if full.any():
            out[full] = self._log_density(rows[full], n_temperatures)
        return out

    def _log_density(self, rows, n_temperatures):
        draws = self._flat("components")
        states = [(draws[i], *self._values_in_draw(i)) for i in evenly(len(draws), _SCORED_DRAWS)]
        return annealed_mean(rows, states, n_temperatures, self.n_jobs)

    def score(self, X: MatrixLike, y: Any = None, *, n_temperatures: int = N_TEMPERATURES) -> float:
        """Mean of `score_samples` over rows with a non-zero entry.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
        y : ignored
        n_temperatures : int, default=400
            As for `score_samples`. Use more for a ``doc_topic_prior`` below about 0.1.

        Returns
        -------
        score : float
            Higher is better.
        """
        check_is_fitted(self)
        return float(np.mean(self._log_density(self._scored_rows(X), n_temperatures)))

    def _held_out(self, X, y=None, **given):
        return self._scored_rows(X), given

    def _present_score(self, held_out):
        rows, given = held_out
        chain = self._chains[0]
        state = chain.current()["components"], chain.alpha, chain.numbers[1]
        return annealed_mean(rows, [state], **given, n_jobs=self.n_jobs).mean()

    def log_perplexity(
        self,
        X: MatrixLike,
        method: Literal["prior", "annealed"] = "prior",
        *,
        pooled: bool = True,
        n_proportions: int = 200,
    ) -> float:
        """Mean negative log density of rows with a non-zero entry.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
        method : {"prior", "annealed"}, default="prior"
            "prior": average over one set of proportions drawn from the prior, the same for all rows and draws, as
            published. It is too inaccurate to rank models; use "annealed" for that, which is minus `score`.
        pooled : bool, default=True
            Whether to average over all kept draws, as published (with "annealed", over the draws that `score` uses).
            False: use the last draw only.
        n_proportions : int, default=200
            Number of proportions drawn from the prior, for "prior".

        Returns
        -------
        log_perplexity : float
            Lower is better. It can be negative.
        """
        check_is_fitted(self)
        if method not in ("prior", "annealed"):
            raise ValueError(f'method={method!r} must be "prior" or "annealed".')
        if method == "annealed" and pooled:
            return -self.score(X)
        if method == "annealed":
            last = self._flat("components")[-1], *self._values_in_draw(-1)
            return -float(np.mean(annealed_mean(self._scored_rows(X), [last], n_jobs=self.n_jobs)))
        rows = self._scored_rows(X)
        draws = self._flat("components")
        chosen = range(len(draws)) if pooled else [-1]
        kappas = [self._values_in_draw(i)[1] for i in chosen]
        return -log_density_under_prior(rows, draws[chosen], kappas, self.doc_topic_prior_, n_proportions)

    def _values_in_draw(self, i):
        """Dirichlet parameter and concentration of documents in draw ``i``, counted over all chains."""
        alpha, kappa = self.doc_topic_prior_, self.kappa1_
        if "doc_topic_prior" in self.samples_:
            alpha = np.full_like(alpha, self.samples_["doc_topic_prior"].ravel()[i])
        return alpha, float(self.samples_["kappa1"].ravel()[i]) if "kappa1" in self.samples_ else kappa

    def top_words(
        self,
        n: int = 10,
        interval: float | None = 0.9,
        *,
        format: Literal["long", "wide"] = "long",
        feature_names: Sequence[str] | AnyArray | None = None,
    ) -> Table:
        """Table of the words most present in, and most absent from, each topic.

        Parameters
        ----------
        n : int, default=10
            Number of words of each kind for each topic, at most half of all words.
        interval : float or None, default=0.9
            Mass of the central credible interval. None omits its columns, and so does ``format="wide"``.
        format : {"long", "wide"}, default="long"
            "long": a row for each word. "wide": a row for each rank, and a column of present words for each topic.
        feature_names : array-like of str, default=None
            Names of the columns. None: the names passed to `fit`, or else the indices of the columns.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            "long": ``topic``, ``name``, ``kind`` ("present" or "absent"), ``rank``, ``word`` and ``weight``, by which
            words are ranked: the posterior mean of the entry of the topic in the reference chain. It is smaller than
            the entry of ``components_``, which is rescaled to unit length. With ``interval`` also ``low`` and ``high``,
            quantiles of the draws of all chains that agree on the topic.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import SphericalAdmixtureModel
        >>> X = (
        ...     np.random.default_rng(0).normal(size=(60, 12))
        ...     + 3.0 * np.eye(12)[np.arange(60) % 3]
        ... )
        >>> model = SphericalAdmixtureModel(3, n_iter=40, random_state=0).fit(X)
        >>> sorted(set(model.top_words(2)["topic"].tolist()))
        [0, 1, 2]
        """
        check_is_fitted(self)
        names = self._word_names(self.components_.shape[1], feature_names)
        draws = self._of_reference("components")
        return direction_table(draws, n, interval, format, names, self.topic_names_, self._draws_of_topic)
