"""Poisson factor analysis with a gamma process prior of the topics' weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ...samplers._base import Sampler
from ...samplers._registry import check_fits, fitting_pair, make_sampler
from ...utils import as_table
from ...utils._numbers import interval_tails, real_array
from ...utils._parameters import keyword_parameters
from ...utils._sklearn import Interval
from ...utils._typing import Table
from ...utils._warnings import warn_user
from .._estimator.model import CountTopicModel
from .atoms import ProcessPrior
from .document_prior import START_MASS, START_WEIGHT, GammaProcessPrior

_PAIR = [tuple, list]
_MOVES_TOPICS = (("simplex", "counts"), ("any", "conditionals"))

_MAX_ROUNDS = 100_000


@keyword_parameters
class GammaProcessTopicModel(CountTopicModel):
    r"""Find topics and how many there are: Poisson factor analysis with a gamma process.

    Counts of word v in document n are :math:`\mathrm{Poisson}(\sum_k \phi_{kv} \theta_{nk})`, with topics
    :math:`\phi_k \sim \mathrm{Dirichlet}(\beta)`, activities :math:`\theta_{nk} \sim \mathrm{Gamma}(r_k, p_n / (1 -
    p_n))` (shape and scale), :math:`p_n \sim \mathrm{Beta}(a_0, b_0)`, and weights :math:`r_k` that are the atoms of a
    gamma process. Given the lengths of documents, this is latent Dirichlet allocation with :math:`\alpha = r`.

    Parameters
    ----------
    n_components : int, default=100
        Largest possible number of topics. Topics beyond those in use cost little.
    concentration_prior : tuple of two float, default=(1.0, 0.1)
        Shape and rate of the Gamma prior of the mass :math:`\gamma \alpha` of the process, which is the expected number
        of atoms with weights between x and e x, for x well below 1/c.
    topic_word_prior : float or array-like of shape (n_features,), default=0.05
        :math:`\beta`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Posterior mean of the topics in the reference chain; rows sum to 1. Topics are ordered by weight; after
        `partial_fit`, by their first weights. Rows of topics that no draw uses are near the prior.
    weights_ : ndarray of shape (n_components,)
        Posterior mean of the weights in the reference chain.
    n_topics_ : int
        Posterior mode of the number of topics with at least 1% of the total weight, over the draws of all chains.
    samples_ : dict of ndarray
        ``"components"`` (n_chains, n_kept, n_components, n_features), float32; ``"weights"`` (n_chains, n_kept,
        n_components); ``"concentration"`` and ``"rate"``, the mass and the rate of the process, and ``"n_topics"``, the
        number of topics with at least 1% of the total weight, (n_chains, n_kept).
    doc_topic_prior_ : ndarray of shape (n_components,)
        ``weights_``.
    chains_agree_ : ndarray of bool, shape (n_chains, n_components)
        Whether ``chain_distances_`` is at most 0.25. Intervals of a topic use the draws of the chains that agree on it.
        The warning about topics on which chains disagree omits those with less than 1% of the weight in every chain.
    topics_sampler_ : sampler object
        The sampler of the topics.
    sampler_ : sampler object
        The sampler of the weights if they have their own, otherwise the sampler of both. On flat space, ``step_size_``
        is the step size that the first chain found. With a mass other than the identity, ``inverse_mass_`` of shape
        (n_chains, 2 n_components + 2) contains the inverse masses of log E (1 if masses are learnt), of log T, and of
        the logarithms of concentration and rate.
    diagnostics_ : DataFrame, or Bunch of columns if pandas is not installed
        ``quantity``, ``mean``, split ``r_hat``, ``ess`` and ``mcse`` of the log predictive of some fitted documents,
        the entropy of the topics' shares, the sum of the weights, and the number of topics. See "Warnings and
        what to do" in the user guide.

    Other Parameters
    ----------------
    rate_prior : tuple of two float, default=(1.0, 1.0)
        Shape and rate of the Gamma prior of the rate c.
    scale_prior : tuple of two float, default=(0.01, 0.01)
        :math:`a_0, b_0`. If both are small, the lengths of documents carry no information about the weights.
    atoms_per_round : float, default=1.0
        :math:`\gamma`. Only its product with :math:`\alpha` is identified, so it is fixed.
    topics_sampler : str, sampler object or None, default=None
        Sampler of the topics if ``sampler`` is None, `Gibbs` or on flat space: `Gibbs`, `SCIR`, `SGRLD` or
        `ExactDirichlet`. None chooses as for ``sampler``.
    n_inner : int, default=50
        Steps of a sampler on flat space per step of the chain.
    assignments : {"auto", "stored", "fresh"}, default="auto"
        Whether to keep the topics of tokens between steps, as in `BayesianLDA`. With "fresh", the statistics of
        documents on which the weights depend are averaged over minibatches, and forgotten as fast as the topics.
    sampler : str, sampler object or None, default=None
        Sampler of the weights, and of the topics if it can draw them.

        - `Gibbs`: draws both from their conditionals, with the topics integrated out.
        - `SCIR`, `SGRLD`, `ExactDirichlet`: draw the topics. The weights are drawn from their conditionals (with a
          finite step size of `SCIR` and stored assignments, by its transition).
        - Samplers on flat space, such as `SGHMC`, `SGNHT`, with a mass that `MonteCarloEM` learns ("sghmc-em"), or
          under a metric (`SGRNPHMC`): draw the weights alone. ``topics_sampler`` draws the topics.

        None selects `Gibbs` if `fit` receives all documents, as in `BayesianLDA`, and otherwise `SCIR`. To tune it,
        pass an object or set ``sampler__step_size``.
    n_jobs : int or None, default=None
        Number of threads, as in `BayesianLDA`, but the collapsed sweeps of a chain over counts in memory always use
        one. The draws do not depend on it.

    Notes
    -----
    Weights are :math:`r_k = E_k e^{-T_k}` with :math:`E_k \sim \mathrm{Exp}(c)` and :math:`T_k \sim
    \mathrm{Gamma}(d_k, \alpha)`, where :math:`\mathrm{Poisson}(\gamma)` atoms have :math:`d_k = 1`, as many
    :math:`d_k = 2`, and so on. The points :math:`T_k` are then a Poisson process of constant rate :math:`\gamma
    \alpha`, and the weights one of intensity :math:`\gamma \alpha x^{-1} e^{-cx}`. ``n_components`` atoms represent
    the first ``n_components / atoms_per_round`` rounds, R in number. :math:`d_k` is summed out, and the rounds left
    out have the share :math:`(\alpha / (1 + \alpha))^R` of the mass.

    Given the assignments of tokens to topics, and with :math:`\theta` integrated out, the weights depend on the
    documents, under every sampler, only through two statistics: the number of documents with more than m tokens of each
    topic, for each m, and the sum of :math:`-\log(1 - p_n)`. The cost of moving the weights does not grow with the
    documents.

    References
    ----------
    Roychowdhury and Parthasarathy (2017), Adaptive Bayesian sampling with Monte Carlo EM, NeurIPS, section 4.3.
    Roychowdhury and Kulis (2015), Gamma processes, stick-breaking, and variational inference, AISTATS. Zhou and Carin
    (2015), Negative binomial process count and mixture modeling, IEEE PAMI 37.

    Examples
    --------
    >>> from sk_sgmcmc import GammaProcessTopicModel
    >>> from sk_sgmcmc.datasets import make_lda
    >>> X = make_lda(
    ...     n_samples=200, n_features=50, n_components=3, random_state=0
    ... ).counts
    >>> model = GammaProcessTopicModel(
    ...     n_components=20, n_iter=100, random_state=0
    ... ).fit(X)
    >>> model.samples_["weights"].shape
    (1, 50, 20)
    >>> model.n_topics_
    3
    """

    n_components: int = field(default=100, kw_only=False)
    concentration_prior: tuple[float, float] = (1.0, 0.1)
    rate_prior: tuple[float, float] = (1.0, 1.0)
    scale_prior: tuple[float, float] = (0.01, 0.01)
    atoms_per_round: float = 1.0
    topic_word_prior: float | ArrayLike = 0.05
    topics_sampler: str | Sampler | None = None
    n_inner: int = 50

    _takes_blocks = True
    _order = None  # Order of the chains' topics by weight.
    _seeds_hint = ""  # There are no seed words: all topics have the same prior.
    _offers = (
        ("simplex", "counts"),
        ("euclidean", "block-gradient"),
        ("euclidean", "block-gradient-metric"),
        ("any", "conditionals"),
    )

    _parameter_constraints = {
        **CountTopicModel._parameter_constraints,
        "topics_sampler": [str, Sampler, None],
        "concentration_prior": _PAIR,
        "rate_prior": _PAIR,
        "scale_prior": _PAIR,
        "atoms_per_round": [Interval(Real, 0, None, closed="neither")],
        "n_inner": [Interval(Integral, 1, None, closed="left")],
    }

    # -- choices ---------------------------------------------------------------------------------------------------

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``sampler__...`` and ``topics_sampler__...`` also work if these are names or None.

        Parameters
        ----------
        **params : dict
            Parameters of the estimator, or of its samplers.

        Returns
        -------
        self : object
        """
        if any(key.startswith("topics_sampler__") for key in params):
            sampler = params.get("topics_sampler", self.topics_sampler)
            if sampler is None or isinstance(sampler, str):
                params = {**params, "topics_sampler": make_sampler(sampler or self._default_sampler)}
        return super().set_params(**params)

    def _checked_samplers(self, streams):
        """The sampler of the topics, the sampler of the weights, and the (geometry, signal) of the latter."""
        sampler, pair = super()._checked_sampler(streams=streams)
        if getattr(sampler, "drive", "kinetic") != "kinetic":
            raise ValueError(
                f"sampler={sampler!r}: drive={sampler.drive!r} compares log densities over time, but assignments "
                'change between two steps; use drive="kinetic".'
            )
        if pair[0] == "simplex" and self.sampler is not None:
            if self.topics_sampler is not None:
                raise ValueError(
                    f"topics_sampler={self.topics_sampler!r}, but sampler={sampler!r} moves the topics; set one of "
                    'them to None, or sampler to one for the weights, such as "sghmc".'
                )
            return sampler, sampler, pair
        given = self.topics_sampler
        topics = sampler if pair[0] != "euclidean" else self._default_for(streams)
        topics = make_sampler(topics if given is None else given)
        check_fits(topics, _MOVES_TOPICS, f"the topics of {type(self).__name__}")
        topics._validate_params()
        return topics, sampler, pair

    def _checked_sampler(self, *, streams=False):
        """The sampler of the topics, and its (geometry, signal)."""
        topics, *_ = self._checked_samplers(streams)
        return topics, fitting_pair(topics, self._offers)

    def _moves_flat(self, weights):
        """Whether a sampler of the weights is on flat space."""
        return fitting_pair(weights, self._offers)[0] == "euclidean"

    def _process(self):
        """The checked `ProcessPrior`."""
        for name in ("concentration_prior", "rate_prior", "scale_prior"):
            pair = getattr(self, name)
            if len(pair) != 2 or not all(isinstance(x, Real) and 0 < x < np.inf for x in pair):
                raise ValueError(f"{name}={pair!r} must be two positive numbers, for example (1.0, 1.0).")
        K = self.n_components
        if self.atoms_per_round < K / _MAX_ROUNDS:
            raise ValueError(
                f"atoms_per_round={self.atoms_per_round!r} spreads n_components={K} over more than {_MAX_ROUNDS} "
                f"rounds; use at least {K / _MAX_ROUNDS:g}, or the default of 1."
            )
        n_rounds = max(1, round(K / self.atoms_per_round))
        pairs = (tuple(map(float, pair)) for pair in (self.concentration_prior, self.rate_prior, self.scale_prior))
        return ProcessPrior(K, n_rounds, *pairs)

    def _priors(self, n_words):
        self._process()
        beta = real_array("topic_word_prior", self.topic_word_prior)
        if beta.shape not in ((), (n_words,)):
            raise ValueError(
                f"topic_word_prior has shape {beta.shape}; give a number or an array of shape ({n_words},)."
            )
        if not (np.all(beta > 0) and np.all(np.isfinite(beta))):
            raise ValueError(f"topic_word_prior must be positive and finite; its smallest entry is {beta.min():g}.")
        K = self.n_components
        return np.full(K, min(START_WEIGHT, START_MASS / K)), beta[:, None] if beta.ndim else float(beta)

    def _document_prior(self, alpha, stored, plan):
        return GammaProcessPrior(
            alpha, stored, process=self._process(), weights_sampler=self.sampler_,
            moves_flat=self._moves_flat(self.sampler_), n_inner=self.n_inner, n_burn=plan.n_burn,
        )  # fmt: skip

    def _streaming_params(self):
        return {"weights_sampler": self.sampler_}

    def _name_samplers(self, resolved, streams):
        _, weights, pair = self._checked_samplers(streams)
        self.topics_sampler_ = self.sampler_ = resolved
        if pair[0] != "simplex":  # On flat space, each chain finds its own step size.
            self.sampler_ = weights._resolved(None)

    def _refuse_other_way(self, sampler, pair):
        super()._refuse_other_way(sampler, pair)
        _, weights, _ = self._checked_samplers(True)
        moves_flat, present = self._moves_flat(weights), self._chains[0].doc_prior.weights_sampler
        if moves_flat != self._moves_flat(present):
            raise ValueError(
                f"The weights were moved by {present!r}, and cannot go on with {weights!r}; set the sampler back, or "
                "call fit, or partial_fit on a clone, to start over."
            )
        if moves_flat:
            self._refuse_other_chains(weights, present)

    # -- fitted ----------------------------------------------------------------------------------------------------

    def _set_fitted(self, chains):
        self._collect(chains)
        weights = self._of_reference("weights").mean(axis=0)
        if self._order is None or not chains[0].plan.streams:
            self._order = np.argsort(-weights, kind="stable")
        order = self._order  # In a stream, topics keep their numbers.
        for c in range(len(chains)):
            self.samples_.topic_draws.reorder(c, order)
        self.samples_["weights"] = self.samples_["weights"][:, :, order]
        self._agreement = self._agreement.renumbered(order)
        self.components_, self.weights_ = self.components_[order], weights[order]
        self.doc_topic_prior_ = self.weights_
        self._count_topics()
        atoms = [chain.doc_prior.atoms for chain in chains]
        atoms[0].report(self.sampler_, atoms)

    def _count_topics(self):
        self.samples_["n_topics"] = self._numbers_of_topics(0.01)
        values, often = np.unique(self.samples_["n_topics"], return_counts=True)
        self.n_topics_ = int(values[np.argmax(often)])

    def merge_topics(self, groups: Sequence[int] | Sequence[Sequence[int]]) -> Self:
        """Join topics into one, in all draws.

        Parameters
        ----------
        groups : list of int, or list of lists of int
            Topics that become one, such as ``[0, 3]`` or ``[[0, 3], [1, 7, 8]]``.

        Returns
        -------
        merged : GammaProcessTopicModel
            A fitted estimator with fewer topics; this one is unchanged. See `BayesianLDA.merge_topics`. Weights are
            added, and topics are counted again. A new topic has the place of the first of its group, even if its weight
            exceeds that of topics before it.
        """
        merged = super().merge_topics(groups)
        merged.weights_ = merged.doc_topic_prior_
        merged._count_topics()
        return merged

    def _prior_in_chain(self, samples, c, chain, data, docs):
        return samples["weights"][c].mean(axis=0)

    def _prior_of_draw(self, data, c, s, docs):
        return self.samples_["weights"][c, s]

    def _monitored(self, chains):
        return {**super()._monitored(chains), "n_topics": self.samples_["n_topics"]}

    def _topics_in_use(self):
        weights = self.samples_["weights"].mean(axis=1)
        return (weights >= 0.01 * weights.sum(axis=1, keepdims=True)).any(axis=0)

    def _doc_prior(self, corpus, draws=None):
        return self.weights_ if draws is None else self._flat("weights")[draws][:, None]

    def _numbers_of_topics(self, min_share):
        weights = self.samples_["weights"]
        return (weights >= min_share * weights.sum(axis=2, keepdims=True)).sum(axis=2)

    def n_topics_posterior(self, min_share: float = 0.01) -> Table:
        """Posterior of the number of topics.

        Parameters
        ----------
        min_share : float, default=0.01
            Share of the total weight that a topic needs to be counted.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per number that occurs: ``n_topics``, ``probability``.

        Examples
        --------
        >>> from sk_sgmcmc import GammaProcessTopicModel
        >>> from sk_sgmcmc.datasets import make_lda
        >>> X = make_lda(
        ...     n_samples=200, n_features=50, n_components=3, random_state=0
        ... ).counts
        >>> model = GammaProcessTopicModel(10, n_iter=60, random_state=0).fit(X)
        >>> bool(abs(model.n_topics_posterior()["probability"].sum() - 1.0) < 1e-9)
        True
        """
        check_is_fitted(self)
        if not 0 <= min_share <= 1:
            raise ValueError(f"min_share={min_share} must lie between 0 and 1; 0.01 is a common choice.")
        numbers, K = self._numbers_of_topics(min_share), self.components_.shape[0]
        if min_share > 0 and np.mean(numbers == K) > 0.9:
            warn_user(
                f"All {K} topics are in use in {np.mean(numbers == K):.0%} of the draws, so n_components={K} limits "
                "their number; fit with a larger n_components."
            )
        values, often = np.unique(numbers, return_counts=True)
        return as_table({"n_topics": values, "probability": often / often.sum()})

    def topic_weights(self, interval: float = 0.9) -> Table:
        """Weights of the topics with their uncertainty.

        Parameters
        ----------
        interval : float, default=0.9
            Mass of the central credible intervals.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per topic: ``topic``, ``name``, ``weight`` (as in ``weights_``), ``low``, ``high``, and ``share`` of
            the total weight (posterior mean in the reference chain). Intervals use all chains that agree on the topic.

        Examples
        --------
        >>> from sk_sgmcmc import GammaProcessTopicModel
        >>> from sk_sgmcmc.datasets import make_lda
        >>> X = make_lda(
        ...     n_samples=200, n_features=50, n_components=3, random_state=0
        ... ).counts
        >>> model = GammaProcessTopicModel(10, n_iter=60, random_state=0).fit(X)
        >>> table = model.topic_weights()
        >>> bool((table["low"] <= table["high"]).all())
        True
        """
        check_is_fitted(self)
        (low, high), _ = self._agreement.summary(self.samples_["weights"], interval_tails(interval))
        draws = self._of_reference("weights")
        share = (draws / draws.sum(axis=1, keepdims=True)).mean(axis=0)
        names = {"topic": np.arange(draws.shape[1]), "name": self.topic_names_}
        return as_table({**names, "weight": self.weights_, "low": low, "high": high, "share": share})
