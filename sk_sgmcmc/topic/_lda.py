"""Latent Dirichlet allocation, with posterior uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..samplers._base import Sampler
from ..utils._numbers import real_array
from ..utils._sklearn import SCALE_CONSTRAINT, Interval, StrOptions
from ..utils._typing import Callbacks, RandomState
from ._counts.doc_prior import DocumentPrior, FittedPrior, first_doc_prior
from ._counts.model import CountTopicModel
from ._counts.seeds import SeedWords
from ._counts.word_prior import DEFAULT


class BayesianLDA(CountTopicModel):
    r"""Latent Dirichlet allocation with topics, and their uncertainty, drawn by MCMC.

    Documents are bags of words: :math:`\theta_d \sim \mathrm{Dirichlet}(\alpha)`, topics
    :math:`\phi_k \sim \mathrm{Dirichlet}(\beta)`, and each token draws a topic from :math:`\theta_d` and a word from
    that topic.

    Parameters
    ----------
    n_components : int, default=10
        Number of topics.
    sampler : str, sampler object or None, default=None
        How topics are drawn: by the exact, collapsed `Gibbs`; on the simplex by `SCIR`, `SGRLD` or `ExactDirichlet`; or
        as a softmax on flat space by `SGHMC`, `SGNHT`, or `SGLD`, which is slow (at its default length, intervals are
        somewhat too narrow), or by particles such as `Blob` and `PSGHMC`, whose intervals are too narrow. None is
        `Gibbs` if `fit` holds all documents: with ``batch_size="auto"``, no ``total_samples``, and assignments that are
        not "fresh". Otherwise, and in `partial_fit`, which may follow a default `fit`, None is `SCIR`; with a normal
        ``topic_prior``, it is always `SGHMC`. To tune the sampler, pass an object or set ``sampler__step_size``, which
        turns None into the sampler that `partial_fit` uses.
    doc_topic_prior : float, array-like of shape (n_components,) or "auto", default="auto"
        :math:`\alpha`. "auto" fits one value for each topic, to stored assignments in the second half of the sweeps of
        burn-in.
    topic_word_prior : float, array-like of shape (n_features,) or (n_components, n_features) or "auto", default="auto"
        :math:`\beta`. "auto" fits one number for all words, by the collapsed sweeps of burn-in or of a young stream's
        restarts; with a sampler on flat space, in `fit` with fresh assignments, or with fewer than ten sweeps in
        burn-in, it is 0.01. A matrix distinguishes topics: the words with a larger prior in one topic than in others
        are its seeds, from which chains start.
    seed_words : dict, default=None
        Words to anchor to topics: names of topics to lists of words, as in ``{"Water": ["canal", "harbor"]}``, or
        words to topics, as in ``{"canal": 0, "harbor": 0, "treaty": [1, 2]}``. Names belong to the first topics, in
        their order, and appear in ``topic_names_``. Seeds become a prior of shape (n_components, n_features), from
        which chains start; a ``topic_word_prior`` that is "auto" is then 0.01. Words need names: those of the columns
        of X, or ``feature_names`` of `fit`. `fit` warns if the seed words of a topic are more probable in another one.
    seed_weight : float, default=5
        Prior counts that a seed word has in its topic beside ``topic_word_prior``.
    topic_prior : {"dirichlet", "normal"}, default="dirichlet"
        The prior of the topics. "normal" is for samplers on flat space: a topic is then the softmax of coordinates
        that are independent normals with mean ``topic_word_prior``.
    topic_prior_scale : float, default=1
        Standard deviation of the normal prior.
    whiten : bool, default=True
        Samplers on flat space move in coordinates divided by their posterior standard deviations, estimated from the
        curvature early in burn-in; step sizes are then in these units. False leaves the coordinates as they are.
    assignments : {"auto", "stored", "fresh"}, default="auto"
        "stored" keeps the topic of every token, two bytes each. The shape of a topic is then :math:`\beta` plus the
        counts of all stored assignments, after those of the minibatch have been redrawn, without N/n: exact for any
        minibatch. "fresh" draws new assignments in each minibatch, by ``n_sweeps`` Gibbs sweeps, and scales counts
        by N/n, as in the papers: for streams and corpora that do not fit in memory. "auto" stores in `fit`, unless
        ``total_samples`` differs from the number of rows of X; `partial_fit` always draws new ones.
    n_sweeps : tuple of two int, default=(5, 5)
        For fresh assignments: the numbers of Gibbs sweeps to discard and to average over. Averaging narrows the
        posterior slightly, in proportion to the step size; (k, 1) does not.
    init : {"soft", "random"}, default="soft"
        Where chains start: from assignments made by one or two streaming passes of EM with forgetting, or at random.
        With "soft", chains of `partial_fit` restart while their stream is young, and `Gibbs` starts at random if there
        are more than 125 topics, since its sweeps then find better topics by themselves.
    total_samples : int or None, default=None
        Number of documents behind the posterior, at most 1e15. None counts those in X in `fit`, those seen so far in
        `partial_fit`.
    new_features : {"error", "extend"}, default="error"
        Whether documents with other columns are refused, or their columns are aligned by name: missing ones count as
        0, and `partial_fit` adds new words to the topics, with prior mass.
    n_iter : int or None, default=None
        Steps: minibatches, or sweeps of `Gibbs`. None depends on the sampler: about 200 passes over the data with
        stored assignments (100 from 5 million tokens on), 1000 minibatches with fresh ones. Samplers that move topics
        by small steps make up to 2000 passes, 50 million tokens in all, over corpora of less than 250,000 tokens.
        Particle samplers make 60 passes, or 250 minibatches with fresh assignments.
    burn_in : float or int, default=0.5
        Fraction, or number, of the steps to discard at the start.
    thin : int or "auto", default="auto"
        Every ``thin``-th later step is kept; "auto" keeps at most 100 draws, as float32, within 512 MiB.
    batch_size : int or "auto", default="auto"
        Documents in a minibatch.
    n_chains : int, default=1
        Independent chains.
    n_jobs : int or None, default=None
        Threads: over chains and, if there are more threads than chains, over the documents of a minibatch or, in
        burn-in, over shards of a corpus of 200,000 tokens or more. A chain's kept sweeps of collapsed Gibbs sampling
        take one thread below two million tokens, and all its collapsed sweeps do where counts are fractional or words
        have priors of their own. The draws do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed; an int gives the same draws each time.
    verbose : int, default=0
        1 shows a progress bar.
    callbacks : callback or list of callbacks, default=None
        See `sk_sgmcmc.callbacks`: held-out score while fitting, checkpoints.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Posterior mean of the topics by the reference chain; rows sum to 1. Where assignments are stored, the mean of
        :math:`(\beta + n_{kw}) / (V\beta + n_k)` over kept draws, which has less noise than that of the draws. By
        `SCIR` with fresh assignments, the average of the conditional means given the minibatches' shapes.
    samples_ : dict of ndarray
        ``"components"``: draws of the topics, float32 of shape (n_chains, n_kept, n_components, n_features), in one
        order over draws and chains; by `Gibbs` they are made when they are first read. With ``doc_topic_prior="auto"``
        also ``"doc_topic_prior"``.
    doc_topic_prior_ : ndarray of shape (n_components,)
        :math:`\alpha` in use, averaged over the reference chain's draws if it is fitted.
    topic_word_prior_ : float or ndarray
        :math:`\beta` in use: as given, or the number that the reference chain fitted.
    reference_chain_ : int
        The chain of all results: the one whose mean topics predict hidden words best, by document completion on up to
        1000 of the fitted documents.
    chain_distances_ : ndarray of shape (n_chains, n_components)
        Hellinger distance of each chain's mean topic from that of the reference chain.
    chains_agree_ : ndarray of bool, shape (n_chains, n_components)
        Whether that distance is at most the typical one between draws of one chain, or at most 0.2. Intervals of a
        topic use the draws of the chains that agree on it.
    topic_stability_ : ndarray of shape (n_components,)
        `topic_stability <sk_sgmcmc.metrics.topic_stability>` over all draws of all chains.
    sampler_ : sampler object
        The sampler in use, with its step sizes in ``step_size_``.
    n_iter_ : int
        Steps made.
    diagnostics_ : DataFrame, or Bunch of columns if pandas is not installed
        Convergence of the log predictive of some fitted documents, the entropy of the topics' shares, and the sum of a
        fitted doc_topic_prior: ``quantity``, ``mean``, split ``r_hat``, ``ess`` and ``mcse``. See "When not to believe
        a fit" in the user guide.
    n_samples_seen_ : int
        Documents seen; those of a block that `partial_fit` recognises count once.
    trace_ : dict
        Held-out scores, if `HeldOutScore` was among the callbacks.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    A default `fit` is collapsed Gibbs sampling throughout: a step redraws the topic of every token given those of all
    others, and topics are drawn from their Dirichlet distribution given the assignments of a kept draw. In burn-in,
    shards of a large corpus are swept side by side, each with the other shards' counts of before the sweep. Kept sweeps
    of two million tokens or more are cut by words instead, which is exact: the shares of a topic's mass in the parts of
    the vocabulary have a Dirichlet distribution, and given these shares, tokens of a part depend on no count of another
    part but those of their document. The shares are drawn before each round of blocks that have no document and no part
    in common. With whole counts and one number as the topics' prior, sweeps begin warm, at about the temperature at
    which the last topic would melt: 1 plus the ``n_components``-th singular value of the scaled counts, at most 1.4. It
    falls to 1 over 60 % of burn-in or 60 sweeps, whichever ends first.

    `SCIR` with stored assignments has an infinite step size by default. A step then draws the topics' cells for the
    words of the minibatch from their Gamma distribution given all assignments, the rest of each topic's mass from its
    own distribution, and then the assignments of the minibatch: random-scan Gibbs, exact whatever the minibatch. The
    first 70 % of burn-in are collapsed Gibbs sweeps, which have the same stationary distribution and reach it sooner.

    With fractional counts, no sampler of stored assignments is exact: a token of weight w adds w to the counts, but its
    topic is drawn as that of a whole token, and such conditionals belong to no joint distribution. Draws then differ
    from those of any posterior by little where few tokens are fractions, and by more where all are, as in tf-idf rows.

    Interrupting a fit (Ctrl-C) leaves a fitted estimator, which `resume` continues.

    References
    ----------
    Blei, Ng and Jordan (2003), Latent Dirichlet allocation, JMLR 3. Patterson and Teh (2013), Stochastic gradient
    Riemannian Langevin dynamics on the probability simplex, NeurIPS, section 4. Baker, Fearnhead, Fox and Nemeth
    (2018), Large-scale stochastic sampling from the probability simplex, NeurIPS, section 4.1.

    Examples
    --------
    >>> from sk_sgmcmc import BayesianLDA
    >>> from sk_sgmcmc.datasets import make_lda
    >>> X = make_lda(n_samples=200, n_features=50, n_components=3, random_state=0).counts
    >>> lda = BayesianLDA(n_components=3, n_iter=50, random_state=0).fit(X)
    >>> lda.samples_["components"].shape
    (1, 25, 3, 50)
    >>> lda.transform(X).shape
    (200, 3)
    """

    _takes_blocks = True
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

    def __init__(
        self,
        n_components: int = 10,
        *,
        sampler: str | Sampler | None = None,
        doc_topic_prior: float | ArrayLike | Literal["auto"] = "auto",
        topic_word_prior: float | ArrayLike | Literal["auto"] = "auto",
        seed_words: Mapping[str, Any] | None = None,
        seed_weight: float = 5.0,
        topic_prior: Literal["dirichlet", "normal"] = "dirichlet",
        topic_prior_scale: float = 1.0,
        whiten: bool = True,
        assignments: Literal["auto", "stored", "fresh"] = "auto",
        n_sweeps: tuple[int, int] = (5, 5),
        init: Literal["soft", "random"] = "soft",
        total_samples: float | None = None,
        new_features: Literal["error", "extend"] = "error",
        n_iter: int | None = None,
        burn_in: float = 0.5,
        thin: int | Literal["auto"] = "auto",
        batch_size: int | Literal["auto"] = "auto",
        n_chains: int = 1,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
        callbacks: Callbacks = None,
    ) -> None:
        self.n_components = n_components
        self.sampler = sampler
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.seed_words = seed_words
        self.seed_weight = seed_weight
        self.topic_prior = topic_prior
        self.topic_prior_scale = topic_prior_scale
        self.whiten = whiten
        self.assignments = assignments
        self.n_sweeps = n_sweeps
        self.init = init
        self.total_samples = total_samples
        self.new_features = new_features
        self.n_iter = n_iter
        self.burn_in = burn_in
        self.thin = thin
        self.batch_size = batch_size
        self.n_chains = n_chains
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

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

    def _doubts(self, chains):
        found = super()._doubts(chains)
        if self._seeds is None or chains[0].plan.streams:
            return found
        names = self._word_names(self.components_.shape[1])
        return [*found, *self._seeds.doubts(self.components_, names, self.topic_names_)]

    # -- choices -------------------------------------------------------------------------------------------------

    def _priors(self, n_words):
        """Checked priors: of documents (n_topics,); of topics a number, (n_words, 1) or (n_words, n_topics)."""
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

    def _fits_word_prior(self, n_passes):
        return not self.seed_words and super()._fits_word_prior(n_passes)

    def _document_prior(self, alpha, stored, plan):
        make = FittedPrior if isinstance(self.doc_topic_prior, str) else DocumentPrior
        return make(alpha, stored, bears_heat=True)

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
        """Parameter of the Dirichlet prior of documents ``docs`` of ``data`` in draw ``s`` of chain ``c``."""
        return self.samples_["doc_topic_prior"][c, s] if "doc_topic_prior" in self.samples_ else self._doc_priors[c]

    def _set_word_prior(self, chains):
        prior = chains[self.reference_chain_].word_prior
        if np.ndim(prior):  # one column for all topics, or one for each
            prior = prior[:, 0].copy() if prior.shape[1] == 1 else prior.T.copy()
        self.topic_word_prior_ = prior
