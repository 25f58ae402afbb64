"""Latent Dirichlet allocation, with posterior uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..chains.checks import PARTICLES_TOO_CLOSE, SEEDS_LOST
from ..utils._numbers import real_array
from ..utils._parameters import keyword_parameters
from ..utils._sklearn import SCALE_CONSTRAINT, Interval, StrOptions
from ._counts.document_prior import DocumentPrior, FittedPrior, first_doc_prior
from ._counts.word_prior import DEFAULT, SeedWords
from ._estimator.model import CountTopicModel


@keyword_parameters
class BayesianLDA(CountTopicModel):
    r"""Find the topics of documents, with their uncertainty: latent Dirichlet allocation by MCMC.

    Documents are bags of words. Each document d has topic proportions :math:`\theta_d \sim \mathrm{Dirichlet}(\alpha)`,
    and each topic k has word probabilities :math:`\phi_k \sim \mathrm{Dirichlet}(\beta)`. Each token draws a topic from
    :math:`\theta_d` and a word from that topic.

    Parameters
    ----------
    doc_topic_prior : float, array-like of shape (n_components,) or "auto", default="auto"
        :math:`\alpha`. "auto" fits one value for each topic to stored assignments, in the second half of the sweeps of
        burn-in; with more than 125 topics, one value for all, at most 5 / n_components.
    topic_word_prior : float, array-like of shape (n_features,) or (n_components, n_features) or "auto", default="auto"
        :math:`\beta`. "auto" fits one number for all words in the collapsed sweeps of burn-in, or of the restarts of
        `partial_fit`. It is 0.01 with samplers on flat space, in `fit` with fresh assignments, and with fewer than ten
        sweeps in burn-in. In a matrix, the words with a larger prior in one topic than in others are its seeds, from
        which chains start.
    seed_words : dict, default=None
        Words to anchor to topics. Requires feature names: names of the columns of X, or ``feature_names`` of `fit`.

        - ``{"Water": ["canal", "harbor"]}`` names the first topics, in this order; the names appear in
          ``topic_names_``.
        - ``{"canal": 0, "harbor": 0, "treaty": [1, 2]}`` maps words to topics.

        Seeds become a prior of shape (n_components, n_features), from which chains start. A ``topic_word_prior`` of
        "auto" is then fitted to the words that are no seeds of a topic. `fit` warns if the seed words of a topic are
        more probable in another one.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Posterior mean of the topics in the reference chain; rows sum to 1. With stored assignments, it is the mean of
        :math:`(\beta + n_{kw}) / (V\beta + n_k)` over kept draws, which is less noisy than the mean of the draws. With
        `SCIR` and fresh assignments, it averages the conditional means given the shapes of the minibatches.
    samples_ : dict of ndarray
        ``"components"``: draws of the topics, float32 of shape (n_chains, n_kept, n_components, n_features), in the
        same order in all draws and chains. With `Gibbs`, they are made when first read. With ``doc_topic_prior="auto"``
        also ``"doc_topic_prior"``.
    doc_topic_prior_ : ndarray of shape (n_components,)
        :math:`\alpha` in use. If fitted, the average over the draws of the reference chain.
    topic_word_prior_ : float or ndarray
        :math:`\beta` in use: as given, or the number that the reference chain fitted, with ``seed_weight`` added for
        seed words.
    diagnostics_ : DataFrame, or Bunch of columns if pandas is not installed
        ``quantity``, ``mean``, split ``r_hat``, ``ess`` and ``mcse`` of the log predictive of some fitted documents,
        the entropy of the topics' shares, and the sum of a fitted ``doc_topic_prior``. See "Warnings and what to do"
        in the user guide.

    Other Parameters
    ----------------
    seed_weight : float, default=5
        Prior counts of a seed word in its topic, in addition to ``topic_word_prior``.
    topic_prior : {"dirichlet", "normal"}, default="dirichlet"
        Prior of the topics. "normal" is for samplers on flat space: a topic is then the softmax of coordinates that are
        independent normals with mean ``topic_word_prior``.
    topic_prior_scale : float, default=1
        Standard deviation of the normal prior.
    whiten : bool, default=True
        Whether samplers on flat space move in coordinates divided by their posterior standard deviations, which are
        estimated from the curvature early in burn-in. Step sizes are then in these units.
    sampler : str, sampler object or None, default=None
        Sampler of the topics.

        - `Gibbs`: exact and collapsed.
        - `SCIR`, `SGRLD`, `ExactDirichlet`: on the simplex.
        - `SGHMC`, `SGNHT`, `SGLD`: on flat space, with topics as a softmax. `SGLD` is slow, and its intervals are
          somewhat too narrow at its default length.
        - `Blob`, `PSGHMC` and other particles: their intervals are too narrow.

        None selects `Gibbs`, also in `partial_fit`, with ``batch_size="auto"``, no ``total_samples``, and assignments
        that are not "fresh". Otherwise it selects `SCIR`. With a normal ``topic_prior`` it always selects `SGHMC`.
        Setting ``sampler__step_size`` with ``sampler=None`` selects `SCIR`, or `SGHMC`.

    Notes
    -----
    By default, `fit` is collapsed Gibbs sampling throughout. A step redraws the topic of every token given the topics
    of all others, and topics are drawn from their Dirichlet distribution given the assignments of a kept draw.

    In the first half of burn-in, the shards of a large corpus are swept in parallel, each with the counts that the
    other shards had before the sweep. Later sweeps of two million tokens or more are divided by words instead, which is
    exact. The shares
    of a topic's mass in the parts of the vocabulary have a Dirichlet distribution. Given these shares, the tokens of a
    part depend on the counts of other parts only through their own document. The shares are drawn before each round, in
    which no two threads share a document or a part of the vocabulary.

    With whole counts and one number as the prior of the topics, the first sweeps are tempered. The initial temperature
    is about the one at which the last topic would vanish: 1 plus the ``n_components``-th singular value of the scaled
    counts, at most 1.4. It falls to 1 over 60% of burn-in or over 60 sweeps, whichever ends first. With 3 to 125 topics
    and documents in memory, burn-in then searches for lost topics. It makes two similar topics one and splits another
    if this raises the probability of the tokens, each given all others (Ueda et al. 2000 do so in EM).

    `SCIR` with stored assignments has an infinite step size by default. A step draws the topics' cells for the words of
    the minibatch from their Gamma distribution given all assignments, then the rest of each topic's mass from its own
    distribution, and then the assignments of the minibatch. This is random-scan Gibbs sampling, exact for any
    minibatch. The first 70% of burn-in are collapsed Gibbs sweeps, which have the same stationary distribution and
    reach it sooner.

    With fractional counts, no sampler of stored assignments is exact. A token of weight w adds w to the counts, but its
    topic is drawn as that of a whole token, and no joint distribution has such conditionals. The draws differ little
    from those of a posterior if few tokens are fractions, and more if all are, as in tf-idf rows.

    Interrupting a fit (Ctrl-C) leaves a fitted estimator, which `resume` continues.

    References
    ----------
    Blei, Ng and Jordan (2003), Latent Dirichlet allocation, JMLR 3. Patterson and Teh (2013), Stochastic gradient
    Riemannian Langevin dynamics on the probability simplex, NeurIPS, section 4. Baker, Fearnhead, Fox and Nemeth
    (2018), Large-scale stochastic sampling from the probability simplex, NeurIPS, section 4.1. Ueda, Nakano, Ghahramani
    and Hinton (2000), SMEM algorithm for mixture models, Neural Computation 12.

    Examples
    --------
    >>> from sk_sgmcmc import BayesianLDA
    >>> from sk_sgmcmc.datasets import make_lda
    >>> X = make_lda(
    ...     n_samples=200, n_features=50, n_components=3, random_state=0
    ... ).counts
    >>> lda = BayesianLDA(n_components=3, n_iter=50, random_state=0).fit(X)
    >>> lda.samples_["components"].shape
    (1, 25, 3, 50)
    >>> lda.transform(X).shape
    (200, 3)
    """

    doc_topic_prior: float | ArrayLike | Literal["auto"] = "auto"
    topic_word_prior: float | ArrayLike | Literal["auto"] = "auto"
    seed_words: Mapping[str, Any] | None = None
    seed_weight: float = 5.0
    topic_prior: Literal["dirichlet", "normal"] = "dirichlet"
    topic_prior_scale: float = 1.0
    whiten: bool = True

    _takes_blocks = True
    _check_definitions = (*CountTopicModel._check_definitions, PARTICLES_TOO_CLOSE, SEEDS_LOST)

    _parameter_constraints = {
        **CountTopicModel._parameter_constraints,
        "doc_topic_prior": [Interval(Real, 0, None, closed="neither"), "array-like", StrOptions({"auto"})],
        "topic_word_prior": [Interval(Real, 0, None, closed="neither"), "array-like", StrOptions({"auto"})],
        "seed_words": [dict, None],
        "seed_weight": [Interval(Real, 0, None, closed="neither")],
        "topic_prior": [StrOptions({"dirichlet", "normal"})],
        "topic_prior_scale": SCALE_CONSTRAINT,
        "whiten": ["boolean"],
    }

    # -- seed words ----------------------------------------------------------------------------------------------

    def _validate_params(self):
        super()._validate_params()
        if self.seed_words:
            SeedWords(self.seed_words).checked(self.n_components)

    def _begin(self, feature_names=None):
        super()._begin(feature_names)
        self._seeds = SeedWords(self.seed_words) if self.seed_words else None

    @property
    def _own_topic_names(self):
        return [] if self._seeds is None else self._seeds.topic_names

    def _checks(self, chains):
        found = super()._checks(chains)
        if self._seeds is None or chains[0].plan.streams:
            return found
        names = self._word_names(self.components_.shape[1])
        return [*found, self._seeds.check(self.components_, names, self.topic_names_)]

    # -- choices -------------------------------------------------------------------------------------------------

    def _priors(self, n_words):
        """Checked priors of documents, (n_topics,), and of topics, a number, (n_words, 1) or (n_words, n_topics)."""
        K = self.n_components
        alpha = first_doc_prior(K) if isinstance(self.doc_topic_prior, str) else self.doc_topic_prior
        alpha = real_array("doc_topic_prior", alpha)
        beta = DEFAULT if isinstance(self.topic_word_prior, str) else self.topic_word_prior
        beta = real_array("topic_word_prior", beta)
        shapes = {"doc_topic_prior": (alpha, [(), (K,)]), "topic_word_prior": (beta, [(), (n_words,), (K, n_words)])}
        for name, (value, allowed) in shapes.items():
            if value.shape not in allowed:
                raise ValueError(
                    f"{name} has shape {value.shape}; give a number or an array of shape "
                    f"{' or '.join(str(shape) for shape in allowed[1:])}."
                )
            if not (np.all(value > 0) and np.all(np.isfinite(value))):
                raise ValueError(f"{name} must be positive and finite; its smallest entry is {value.min():g}.")
        if self.seed_words:
            beta = SeedWords(self.seed_words).in_prior(beta, self.seed_weight, self._word_names(n_words), K)
        word_prior = np.ascontiguousarray(beta.T) if beta.ndim == 2 else beta[:, None] if beta.ndim else float(beta)
        return np.broadcast_to(alpha, (K,)).copy(), word_prior

    def _document_prior(self, alpha, stored, plan):
        make = FittedPrior if isinstance(self.doc_topic_prior, str) else DocumentPrior
        return make(alpha, stored, allows_tempering=True)

    # -- fitted --------------------------------------------------------------------------------------------------

    def _set_fitted(self, chains):
        self._collect(chains, chains[0].topic_groups)
        if "doc_topic_prior" in self.samples_:
            self._doc_priors = np.stack([each.mean(axis=0) for each in self.samples_["doc_topic_prior"]])
        else:
            self._doc_priors = np.stack([chain.doc_topic_prior for chain in chains])
        self.doc_topic_prior_ = self._doc_priors[self.reference_chain_].copy()
        self._set_word_prior(chains)

    def _prior_of_draw(self, data, c, s, docs):
        """Dirichlet parameter of documents ``docs`` of ``data`` in draw ``s`` of chain ``c``."""
        return self.samples_["doc_topic_prior"][c, s] if "doc_topic_prior" in self.samples_ else self._doc_priors[c]

    def _set_word_prior(self, chains):
        prior = chains[self.reference_chain_].word_prior.value
        if np.ndim(prior):  # It has one column for all topics, or one column per topic.
            prior = prior[:, 0].copy() if prior.shape[1] == 1 else prior.T.copy()
        self.topic_word_prior_ = prior
