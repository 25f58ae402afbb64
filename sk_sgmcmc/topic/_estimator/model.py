"""The base class of count topic models: fitting, streams, scores and defaults."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ...base import all_or_nothing, fits_anew
from ...chains.chain import DrawPlan, StreamPlan
from ...chains.checks import (
    DUPLICATE_TOPICS,
    SHARES_CHANGE,
    TOO_NARROW,
    TOO_WIDE,
    WORSE_THAN_UNIGRAM,
    any_fired,
)
from ...chains.growth import GrowthPlan, is_within, known_with, planned_update
from ...metrics import doc_topic_proportions, document_completion, split_tokens
from ...metrics.completion import joined_results, words_of
from ...samplers._registry import fitting_pair
from ...utils import as_precise_as
from ...utils._containers import refuse_dask
from ...utils._dask import lazy_for_dask
from ...utils._numbers import interval_tails
from ...utils._parameters import keyword_parameters
from ...utils._sklearn import Interval, StrOptions
from ...utils._tables import aligned, checked_names
from ...utils._typing import AnyArray, FloatArray, Table
from ...utils.blocks import CountsLike
from ...utils.corpus import warn_if_empty, warn_of_other_values
from .._agreement import number_topics
from .._counts.corpus import KeptCorpus, KeptShards, TokenCorpus
from .._counts.documents import input_of, refuse_too_many_tokens
from .._counts.growth import HOTTEST
from .._counts.growth import SWEEPS as FIT_SWEEPS
from .._counts.record import best_chain, kept_draws, scored_draws
from .._counts.vocabulary import extend_names, padded
from .._counts.word_prior import LEAST_PASSES, FittedWordPrior, WordPrior
from .._draws import Samples, chosen_draws
from .._minibatch.updates import SWEEPS, after_block, digest_of, refuse_other_pair, warn_if_fitted
from .._results.covariates import Covariates, checked_outcomes
from .._results.documents import proportion_draws
from .._results.regression import plug_in_table, warn_of_short_documents
from .._results.topics import merged, new_topics, refuse_merged
from .checks import check_duplicate_topics, check_shares, check_spread, check_unigram
from .plan import (
    ChainConfig,
    checked_sweeps,
    checked_total,
    default_batch,
    default_steps,
    resolved_sampler,
    stores_assignments,
    stream_batch,
)
from .predictive import PredictiveProbe, predictive_draws
from .tables import TopicsOfWords

# Share of burn-in that consists of collapsed sweeps; see TopicChain.
_WARM_SHARE = 0.7


@keyword_parameters
class CountTopicModel(TopicsOfWords):
    r"""Base of topic models of counts, fitted by chains of assignments of tokens to topics.

    A subclass has the parameters named in ``_parameter_constraints`` and those of `BaseSGMCMC`, and implements

    ``_priors(n_words)``
        The checked priors: of documents at the start, (n_topics,), and of topics, as `WordPrior` takes it.
    ``_document_prior(alpha, stored, plan)``
        A `DocumentPrior` for a chain.
    ``_word_prior(value, n_words, is_fitted)``
        A `WordPrior` for a chain; needed if it is neither fixed nor one fitted number.
    ``_prepared(given)``
        Encoded metadata ``given`` in the form that the document prior takes, if documents have metadata.
    ``_set_fitted(chains)``
        See `BaseSGMCMC`; it calls `_collect`.
    ``_prior_of_draw(data, c, s, docs)``
        The Dirichlet prior of documents ``docs`` of ``data`` in kept draw ``s`` of chain ``c``.
    ``_doc_prior``, ``_present_doc_prior``, ``_prior_in_chain``
        Needed if the document prior is not one number per topic.

    Parameters
    ----------
    n_iter : int or None, default=None
        Number of steps: minibatches, or sweeps of `Gibbs`. None: chosen by the sampler, as follows.

        - Stored assignments: 2,000 passes over corpora of up to 125,000 tokens, 250 million over the number of tokens
          for larger ones, 200 from 1.25 million tokens on, and 100 from 5 million on. With metadata: 2,000 passes up to
          500,000 tokens, a billion over the number of tokens for larger corpora, and 200 from 5 million on.
        - Fresh assignments: 1,000 minibatches.
        - Particles: 60 passes, or 250 minibatches with fresh assignments.
    n_jobs : int or None, default=None
        Number of threads, over chains. Threads beyond the number of chains share the documents of a minibatch or, in
        burn-in, the shards of a corpus of 200,000 tokens or more. Some sweeps use one thread per chain: the collapsed
        ones after burn-in below two million tokens, and all collapsed ones if counts are fractional or words have
        priors of their own. The draws do not depend on ``n_jobs``.

    Attributes
    ----------
    reference_chain_ : int
        The chain behind all results: the one whose mean topics best predict hidden words, by document completion on up
        to 1,000 of the fitted documents.
    chain_distances_ : ndarray of shape (n_chains, n_components)
        Hellinger distance between each chain's mean topic and that of the reference chain.
    n_samples_seen_ : int
        Number of documents seen; the documents of a block that `partial_fit` recognises count once.

    Other Parameters
    ----------------
    assignments : {"auto", "stored", "fresh"}, default="auto"
        Whether to keep the topics of tokens between steps.

        - "stored" keeps the topic of every token, two bytes each. The shape of a topic is :math:`\beta` plus the counts
          of all stored assignments, after those of the minibatch have been redrawn, without the factor N/n. This is
          exact for any minibatch.
        - "fresh" draws the assignments of each minibatch from scratch, by ``n_sweeps`` Gibbs sweeps, and scales their
          counts by N/n, as in the papers on these samplers. Use it for streams and corpora that do not fit in memory.
        - "auto" stores, unless ``total_samples`` differs from the number of rows of X. `partial_fit` with a minibatch
          sampler always uses fresh assignments.
    n_sweeps : tuple of two int, default=(5, 5)
        For fresh assignments: the numbers of Gibbs sweeps to discard and to average over. Averaging makes the posterior
        slightly narrower, in proportion to the step size; (k, 1) does not.
    init : {"soft", "random"}, default="soft"
        Where chains start: from assignments by one or two streaming passes of EM with forgetting, or at random. With
        "soft", chains of `partial_fit` restart during the first calls, and `Gibbs` with more than 125 topics learns an
        eighth of them in the passes, and divides each at random, since its sweeps then find better topics.
    total_samples : int or None, default=None
        Corpus size used to rescale the counts of minibatches, at most 1e15. None: the documents of X in `fit`, and
        those seen so far in `partial_fit`.
    keep_documents : bool, int or "auto", default="auto"
        Whether a default fit keeps the tokens of its documents and their topics, six bytes a token, also in a pickle,
        so that `partial_fit` can continue from them. A number is the largest number of tokens to keep; "auto" is 20
        million. `forget_documents` drops them.
    new_features : {"error", "extend"}, default="error"
        What to do with documents that have other columns. "extend" aligns columns by name: missing ones count as 0, and
        `partial_fit` adds new words to the topics, with prior mass.
    thin : int or "auto", default="auto"
        Keep every ``thin``-th step after burn-in. "auto" keeps at most 100 draws, as float32, within 512 MiB.
    batch_size : int or "auto", default="auto"
        Number of documents in a minibatch.
    """

    assignments: Literal["auto", "stored", "fresh"] = "auto"
    n_sweeps: tuple[int, int] = (5, 5)
    init: Literal["soft", "random"] = "soft"
    total_samples: float | None = None
    new_features: Literal["error", "extend"] = "error"
    keep_documents: bool | int | Literal["auto"] = "auto"

    _offers = (("simplex", "counts"), ("euclidean", "conditional-gradient"), ("any", "conditionals"))
    _unused_by_predictions = (*TopicsOfWords._unused_by_predictions, "_young", "_kept", "_known")
    _seeds_hint = "seed_words={word: topic, ...} to say which topics are meant, "

    _parameter_constraints = {
        **TopicsOfWords._parameter_constraints,
        "n_components": [Interval(Integral, 1, 65535, closed="both")],
        "topic_word_prior": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "assignments": [StrOptions({"auto", "stored", "fresh"})],
        "n_sweeps": [tuple, list],
        "init": [StrOptions({"soft", "random"})],
        "total_samples": [Interval(Real, 1, 1e15, closed="both"), None],
        "new_features": [StrOptions({"error", "extend"})],
        "keep_documents": ["boolean", Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
    }

    _takes_blocks = False  # Whether X may be `CountBlocks`.
    _prepared = None
    _is_merged = False  # Whether topics were merged after they were drawn.
    _known = frozenset()  # Digests of the blocks that have been read.
    _kept = None  # The `KeptCorpus`, to which `partial_fit` appends.
    _forgot = False  # Whether documents were dropped, without which chains cannot continue.
    _pending = 0.0  # Number of tokens that came since the last sweeps over all documents.
    _seeds = None  # The `SeedWords` of the fit.
    _without_topics = ()  # Names of the arrays in ``samples_`` that have no axis of topics.
    _check_definitions = (
        *TopicsOfWords._check_definitions,
        DUPLICATE_TOPICS,
        SHARES_CHANGE,
        WORSE_THAN_UNIGRAM,
        TOO_NARROW,
        TOO_WIDE,
    )

    # Values for models that do not have these parameters.
    topic_prior, topic_prior_scale, whiten = "dirichlet", 1.0, True
    _default_sweeps = FIT_SWEEPS

    # With routing on, scikit-learn's Pipeline passes sample_weight=None to score, and fails if no request names it.
    __metadata_request__score = {"sample_weight": None}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags

    def _check_X(self, X, *, reset, described=None):
        """The checked corpus; sets or compares the number and names of features.

        ``described`` is the encoded metadata of the documents, (n_docs, n_columns).
        """
        corpus = self._input(X).corpus(self, reset=reset)
        if reset:
            warn_of_other_values(corpus, type(self).__name__)
        return corpus if described is None else corpus.with_described(_checked_rows(described, corpus.n_docs))

    def _input(self, X):
        """X as a `MatrixInput` or `BlockInput`; raises if it is in blocks and this model does not take them."""
        given = input_of(X)
        if not self._takes_blocks:
            given.refuse_for(type(self).__name__)
        return given

    # -- fit -------------------------------------------------------------------------------------------------------

    @fits_anew
    def fit(self, X: CountsLike, y: Any = None, *, feature_names: Sequence[str] | AnyArray | None = None) -> Self:
        """Draw topics given documents.

        Parameters
        ----------
        X : array-like, sparse, DataFrame, `CountBlocks` or Dask array of shape (n_samples, n_features)
            Counts. A fractional entry x counts as floor(x) tokens and one of weight x - floor(x), for which Gibbs
            sampling is an approximation; round counts for exact draws.
        y : ignored
        feature_names : array-like of str of shape (n_features,), default=None
            Names of the words for all tables, if X has none.

        Returns
        -------
        self : object
            Fitted.

        Raises
        ------
        ValueError
            For negative or non-finite counts, parameters out of range, a sampler that does not fit, or a batch
            larger than the data.
        FitInterrupted
            After Ctrl-C, as a ``KeyboardInterrupt``. The estimator is fitted with the draws made so far; it is
            ``estimator_`` of the exception.
        """
        return self._fit(X, feature_names=feature_names)

    def _fit(self, X, feature_names=None, **given):
        self._validate_params()
        sampler, pair = self._checked_sampler()
        self._input(X).refuse_minibatches(sampler, pair)
        corpus = self._check_X(X, reset=True, **given)
        warn_if_empty(corpus)
        self._begin(checked_names(feature_names, self._n_words_of(corpus)))
        stored = stores_assignments(sampler, corpus, self.assignments, self.total_samples)
        n_batch = self._n_batch(sampler, corpus, stored)
        n_iter = int(self.n_iter or default_steps(self._default_sweeps, sampler, corpus, stored, n_batch))
        plan = DrawPlan(n_iter, self.burn_in, self.thin, self._bytes_per_draw(corpus))
        n_warm = plan.n_burn if self._collapses(sampler) else int(_WARM_SHARE * plan.n_burn)
        fits_word_prior = stored and pair[0] != "euclidean" and self._fits_word_prior(n_warm * n_batch / corpus.n_docs)
        config, alpha = self._chain_config(sampler, pair, corpus, n_batch, stored, plan)
        chains = self._new_chains(config, alpha, n_warm=n_warm, fits_word_prior=fits_word_prior)
        if self._collapses(sampler):
            self._known = known_with(self._known, digest_of(corpus))
            self._keep(config.data if corpus.may_be_kept(self.keep_documents) else None)
        return self._run([chain.bind(config.data) for chain in chains], n_iter)

    def _keep(self, data):
        """Keep the documents of a `TokenCorpus` in memory, or none."""
        self._kept = None if data is None else KeptCorpus(data.documents.without_rows())

    def _begin(self, feature_names=None):
        """Reset the documents seen and the names of topics, and set the names of the words."""
        self._feature_names, self._topic_names = feature_names, None
        self._young, self._known, self._warned_total = None, frozenset(), False
        self._kept, self._forgot, self._pending = None, False, 0.0
        self.n_samples_seen_ = self._n_stored = 0
        self.word_counts_ = np.zeros(0)

    def _chain_config(self, sampler, pair, corpus, n_batch, stored, plan, is_known=False):
        """Add a corpus to the documents seen, unless it ``is_known``, and set up a run over it.

        Returns the `ChainConfig` of the run, and the prior of documents at the start, (n_topics,).
        """
        self.n_samples_seen_ += 0 if is_known else corpus.n_docs
        seen = self.n_samples_seen_ - self._n_stored
        total, self._warned_total = checked_total(self.total_samples, seen, self._warned_total)
        # Resolve at each call of a stream: the user may have set another step size, and N/n limits it on flat space.
        resolved = resolved_sampler(sampler, pair, corpus, 0.0 if stored else total / n_batch, self.whiten)
        n_sweeps, (alpha, word_prior) = checked_sweeps(self.n_sweeps), self._priors(self._n_words_of(corpus))
        self._token_args = n_batch, total
        data = self._token_corpus(corpus)
        self._fingerprint = data.fingerprint()
        if not is_known:
            counts = corpus.word_counts
            if counts is None:
                self.word_counts_ = None
            else:
                counts = self._of_words(counts)
                self.word_counts_ = counts + padded(self.word_counts_, counts.size)
        self._name_samplers(resolved, plan.streams)
        flat = self._flat_arguments(pair)
        n_sweeps = (0, 1) if stored else n_sweeps
        return ChainConfig(data, plan, resolved, pair, word_prior, stored, n_sweeps, self.init, flat), alpha

    def _new_chains(self, config, alpha, *, fits_word_prior=False, n_warm=0):
        return [
            config.new_chain(
                seed,
                self._document_prior(alpha, config.stored, config.plan),
                self._word_prior(config.word_prior, config.data.n_words, fits_word_prior),
                n_warm=n_warm,
            )
            for seed in self._chain_seeds()[1:]
        ]

    def _word_prior(self, value, n_words, is_fitted):
        """A `WordPrior` for a chain, with a parameter ``value``; ``is_fitted`` says whether it is learnt in burn-in."""
        return (FittedWordPrior if is_fitted else WordPrior)(value, n_words, self.n_components)

    def _bytes_per_draw(self, corpus):
        return 4 * self.n_chains * corpus.n_words * self.n_components

    def _token_corpus(self, corpus):
        """The `TokenCorpus` of a corpus, to which chains are bound; with the documents of a growing corpus, if any."""
        (n_batch, total), early = self._token_args, None
        more = {"n_threads": self._threads_per_chain(), "n_chains": self.n_chains, "prepare": self._prepared}
        make = corpus.choose_shards(self.n_chains)
        if self._young is not None:
            early = TokenCorpus(self._young.corpus, make, self.n_components, prepare=self._prepared).documents
        return TokenCorpus(corpus, make, self.n_components, n_batch=n_batch, total_samples=total, early=early, **more)

    def _bound_data(self, X, y=None, **given):
        if self._forgot:
            raise ValueError(
                "resume needs the topics of the tokens, but the documents were dropped, by forget_documents or because "
                "they exceeded keep_documents; call fit, or partial_fit with other documents."
            )
        corpus, what = self._check_X(X, reset=False, **given), "X"
        if self._chains[0].plan.streams:
            corpus, what = corpus.last_block(), "the last block of documents,"
        data = self._token_corpus(corpus)
        self._refuse_other_data(data.fingerprint(), f"{what} of shape {data.n_docs, data.n_words}")
        return self._kept_data(self._kept) if self._has_grown else data

    @property
    def _has_grown(self):
        """Whether the chains continue over kept documents, of which the last block is only a part."""
        return self._kept is not None and self._chains[0].plan.streams

    # -- choices ---------------------------------------------------------------------------------------------------

    @property
    def _default_sampler(self):
        return "sghmc" if self.topic_prior == "normal" else "scir"

    def _default_for(self, streams):
        """The default sampler: collapsed Gibbs, unless the parameters, or the chains of a stream, imply minibatches."""
        exact = (
            not (streams and any(chain.has_topics for chain in getattr(self, "_chains", ())))
            and self.topic_prior == "dirichlet"
            and self.assignments != "fresh"
            and isinstance(self.batch_size, str)
            and self.total_samples is None
        )
        return "gibbs" if exact else self._default_sampler

    def _offered(self):
        return self._offers[1:2] if self.topic_prior == "normal" else self._offers

    def _flat_arguments(self, pair):
        """Arguments of `SoftmaxTopics`; None for samplers on the simplex."""
        if pair[0] != "euclidean":
            return None
        normal = self.topic_prior == "normal"
        return {"prior_scale": float(self.topic_prior_scale) if normal else 0.0, "whiten": self.whiten}

    def _fits_word_prior(self, n_passes):
        """Whether to fit the word prior, given the number of passes of collapsed sweeps in burn-in."""
        return isinstance(self.topic_word_prior, str) and n_passes >= LEAST_PASSES

    def _name_samplers(self, resolved, streams):
        """Set the fitted attributes that contain samplers; ``resolved`` is the sampler of the topics."""
        self.sampler_ = resolved

    def _n_batch(self, sampler, corpus, stored):
        self._refuse_large_batch(corpus.n_docs, "documents")
        automatic = isinstance(self.batch_size, str)
        wanted = default_batch(corpus, stored, self.n_components) if automatic else int(self.batch_size)
        return sampler._rows_read(corpus.n_docs, wanted)

    # -- streams ---------------------------------------------------------------------------------------------------

    @all_or_nothing
    def partial_fit(
        self, X: CountsLike, y: Any = None, *, feature_names: Sequence[str] | AnyArray | None = None
    ) -> Self:
        """Update the fit with more documents.

        By default, the documents of `fit` and of earlier calls are kept with the topics of their tokens. A call appends
        the documents of X, draws their topics, and sweeps five times over them. Once there are 5% more tokens, it makes
        sweeps over all documents: as many as a default fit, times the share of new tokens. The first half of them
        begins at a raised temperature and is not kept. The first call of an unfitted estimator is a `fit`. Kept draws
        are the latest 100 that were made with at least 80% of the present documents, but never fewer than 20, if there
        are so many. The earlier ones take in the documents of X with their present topics. ``n_iter``, ``burn_in`` and
        ``thin`` only affect the first call.

        Documents are kept up to a number of tokens, ``keep_documents``. Beyond it, and after `forget_documents`, each
        of 20 kept draws takes in the documents of X by itself, with five sweeps given its topics: memory stays
        constant, and the topics of earlier documents do not change any more.

        With a minibatch sampler (``sampler="scir"`` and others, ``batch_size``, ``assignments="fresh"`` or
        ``total_samples``) a call makes one step per minibatch of X instead. Assignments are drawn from scratch, and
        counts are scaled to ``total_samples``, or to the documents seen so far. After a `fit`, results use 20 of its
        draws until the stream has as many of its own. With ``init="soft"``, such a stream keeps its documents until
        they contain five million tokens. Each time they have grown by a quarter, sweeps over all of them continue.
        Each time they have doubled, or tripled if they contain more than 200,000 tokens, it restarts from them. At
        most 100 draws, evenly spaced over all calls, are kept; ``burn_in`` is a share, or a number, of all steps so
        far.

        A repeated block of at least 100 tokens, with the same rows in the same order, is recognised. Its documents are
        not counted again, but cause further sweeps over all documents, so several passes over the same blocks do not
        make the posterior narrower. Set ``total_samples`` if equal blocks are different documents.

        New values of the sampler's step size, friction or temperature take effect at the next call. Another sampler,
        ``n_components`` or ``n_chains`` is refused. Priors and the remaining configuration of the chains are those of
        the first call.

        Parameters
        ----------
        X : array-like, sparse, DataFrame, `CountBlocks` or Dask array of shape (n_samples, n_features)
            Counts of documents, as for `fit`. Blocks are passed on one after another.
        y : ignored
        feature_names : array-like of str of shape (n_features,), default=None
            As for `fit`. None keeps the names of earlier calls.

        Returns
        -------
        self : object
            Fitted.
        """
        self._validate_params()
        self._checked_sampler(streams=True)
        for block, _ in self._input(X).parts():
            self._partial_fit(block, feature_names)
        return self

    def _partial_fit(self, X, feature_names=None, **given):
        self._validate_params()
        refuse_merged(self)
        sampler, pair = self._checked_sampler(streams=True)
        if self._collapses(sampler):
            return self._update(X, sampler, pair, feature_names, **given)
        first = not hasattr(self, "_chains")
        if not first:
            self._refuse_other_way(sampler, pair)
            if self.new_features == "extend":
                extend_names(self, X)
        corpus = self._check_X(X, reset=first, **given)
        names = checked_names(feature_names, corpus.n_words, self._feature_names)
        begins_stream = not first and not self._chains[0].plan.streams
        if first:
            self._begin()
        self._feature_names = names
        if begins_stream:
            self._token_args = corpus.n_docs, None
            warn_if_fitted(self._fingerprint, self._token_corpus(corpus))
            self._n_stored = self.n_samples_seen_ if self._chains[0].stored else 0
        keeps = first and self.init == "soft"
        self._young, self._known, is_known, restart = after_block(self._young, self._known, corpus, keeps)
        # The last block of a stream may be shorter than a minibatch.
        n_batch = stream_batch(corpus) if self.batch_size == "auto" else min(corpus.n_docs, self.batch_size)
        plan = StreamPlan(self.burn_in, self._bytes_per_draw(corpus))
        config, alpha = self._chain_config(sampler, pair, corpus, n_batch, False, plan, is_known)
        # All arguments are checked at this point: below, chains change and nothing is refused.
        if first:
            fits_word_prior = self._young is not None and pair[0] != "euclidean" and self._fits_word_prior(SWEEPS)
            chains = self._new_chains(config, alpha, fits_word_prior=fits_word_prior)
        else:
            chains = [config.continued(chain, begins_stream, self._streaming_params()) for chain in self._chains]
        chains = [chain.begin_block(config.data, restart) for chain in chains]
        return self._run(chains, chains[0].step + -(-corpus.n_docs // n_batch))

    def _update(self, X, sampler, pair, feature_names, **given):
        """Append documents to the fitted ones and continue the collapsed chains, or let kept draws take them in."""
        if not hasattr(self, "_chains"):
            return self._fit(X, feature_names, **given)
        self._refuse_other_way(sampler, pair)
        if self.new_features == "extend":
            extend_names(self, X)
        corpus = self._check_update(X, **given)
        refuse_too_many_tokens(corpus, self.n_chains)
        checked_sweeps(self.n_sweeps)
        self._feature_names = checked_names(feature_names, self._n_words_of(corpus), self._feature_names)
        block, word_prior = self._token_corpus(corpus), self._priors(self._n_words_of(corpus))[1]
        digest = digest_of(corpus)
        is_known, grows = digest in self._known, self._appends(corpus)
        if not grows:
            self._refuse_taking_in()
        # All arguments are checked at this point: below, chains change and nothing is refused.
        self._fingerprint, self._known = block.fingerprint(), known_with(self._known, digest)
        if not is_known:
            self.n_samples_seen_ += corpus.n_docs
            counts = self._of_words(corpus.word_counts)
            self.word_counts_ = padded(self.word_counts_, counts.size) + counts
        if grows:
            return self._append(corpus, is_known, word_prior)
        step, self._kept, self._forgot = self._chains[0].step, None, True
        if not is_known:
            plan = GrowthPlan(step, 0, self._bytes_per_draw(corpus))
            self._chains = [chain.take_in(block, word_prior, copy(plan)) for chain in self._chains]
        return self._run(self._chains, step)

    def _check_update(self, X, **given):
        """The checked corpus of an update."""
        return self._check_X(X, reset=False, **given)

    def _appends(self, corpus):
        """Whether an update keeps the documents of a corpus together with the earlier ones."""
        n_new = 0 if digest_of(corpus) in self._known else corpus.n_tokens
        return self._kept is not None and is_within(self.keep_documents, self._kept.n_tokens + n_new)

    def _append(self, corpus, is_known, word_prior):
        """Append documents to those that are kept, unless they ``is_known``, and make the sweeps that are due."""
        kept = self._kept
        is_new = np.zeros(kept.n_docs, dtype=bool)
        if not is_known:
            kept, is_new = kept.append(corpus)
        sizes = self._pending, corpus.n_tokens, kept.n_tokens
        bytes_per_draw, hottest = self._bytes_per_draw(corpus), 1.0 if is_known else HOTTEST
        plan, self._pending = planned_update(self._default_sweeps, self._chains[0], *sizes, bytes_per_draw, hottest)
        self._kept, data = kept, self._kept_data(kept)
        chains = [chain.append(data, is_new, word_prior, copy(plan)) for chain in self._chains]
        return self._run(chains, plan.n_iter)

    def _refuse_taking_in(self):
        """Raise if kept draws cannot take in documents by themselves, without the earlier ones."""

    def _kept_data(self, kept):
        """The `TokenCorpus` of a `KeptCorpus`."""
        more = {"n_threads": self._threads_per_chain(), "n_chains": self.n_chains, "prepare": self._prepared}
        return TokenCorpus(kept, KeptShards, self.n_components, **more)

    def forget_documents(self) -> Self:
        """Drop the documents and their assignments, for privacy or to make the estimator small.

        All results stay as they are, and `resume` is refused. From then on, each kept draw of the topics takes in the
        documents of `partial_fit` by itself, at most 20 draws; the topics of earlier documents no longer change. A
        stream by minibatches no longer restarts from its documents.

        Returns
        -------
        self : object
        """
        check_is_fitted(self, "_chains")
        if self.__dict__.get("_diagnostics", ()) is None:  # They may need the documents.
            self._diagnostics = self._diagnosis(self._chains).columns
        self._kept, self._young, self._forgot = None, None, True
        for chain in self._chains:
            chain.forget()
        return self

    def _collapses(self, sampler):
        """Whether a sampler integrates topics out."""
        return fitting_pair(sampler, self._offers)[1] == "conditionals"

    def _streaming_params(self):
        """Samplers of the parameters of the document prior, by name, with which chains continue as a stream."""
        return {}

    def _refuse_other_way(self, sampler, pair):
        """Raise if the chains cannot continue as a stream under this sampler of the topics."""
        present = self._chains[0].sampler
        if self._collapses(present):  # Any sampler on the simplex can start from the assignments.
            present = sampler if pair[0] == "simplex" else present
        refuse_other_pair(present, fitting_pair(present, self._offers), sampler, pair)
        self._refuse_other_chains(sampler, present, n_components=self._chains[0].n_topics)

    # -- draws -----------------------------------------------------------------------------------------------------

    def _collect(self, chains, groups=None):
        """Stack the chains' kept draws into ``samples_``, and number the topics alike; only ``groups`` mix."""
        samples, draws = kept_draws(chains)
        data = chains[0].data.start

        def best(means):
            return best_chain(means, data, lambda c, docs: self._prior_in_chain(samples, c, chains[c], data, docs))

        by_topic = {name: value for name, value in samples.items() if name not in self._without_topics}
        self._agreement, means = number_topics(draws, by_topic, self._metric, groups, best)
        draws, means = self._in_words(draws, means)
        self.samples_ = Samples(samples, draws)
        if self.word_counts_ is None:  # Counts in blocks are known only from the assignments.
            self.word_counts_ = self._of_words(chains[0].collapsed.counts.sum(axis=1, dtype=np.float64))
        # Use the reference chain alone: a mean over chains may be a topic that none of them found.
        self.components_ = means[self.reference_chain_] if len(means) == 1 else means[self.reference_chain_].copy()
        self.components_ /= self.components_.sum(axis=1, keepdims=True)

    # Hooks for models in which documents differ in the words of topics.

    def _n_words_of(self, corpus):
        """Number of words of a corpus."""
        return corpus.n_words

    def _of_words(self, counts):
        """Counts of words, summed over the forms that a word may have in a corpus."""
        return counts

    def _in_words(self, draws, means):
        """`TopicDraws` as users read them, and the chains' mean topics."""
        return draws, means

    def _mean_of_words(self, words):
        """The posterior mean of the topics for some words of documents, (n_words, n_topics)."""
        return words_of(self.components_, words)

    def _word_shares(self):
        """The share of each word of the documents in all tokens."""
        return self.word_counts_ / max(self.word_counts_.sum(), 1.0)

    def _prior_in_chain(self, samples, c, chain, data, docs):
        """Mean Dirichlet parameter of documents ``docs`` of ``data`` over the draws of chain ``c``."""
        return samples["doc_topic_prior"][c].mean(axis=0) if "doc_topic_prior" in samples else chain.doc_topic_prior

    def _monitored(self, chains):
        return predictive_draws(chains, self._topic_draws.of_documents, self._prior_of_draw)

    def _checks(self, chains):
        found = super()._checks(chains)
        if chains[0].plan.streams:
            return found
        if self.init == "random":
            found += check_duplicate_topics(self.components_, self._topics_in_use())
        found += check_shares(self._topic_draws.of_documents)
        data = chains[0].data.start
        probe = PredictiveProbe(data)
        prior_of = partial(self._prior_of_draw, data)
        scale = float(self.topic_prior_scale) if self.topic_prior == "normal" else None
        own = check_unigram(self._diagnostics, probe, self._word_shares())
        if not any_fired(own):
            own += check_spread(chains, self._topic_draws.of_documents, probe, prior_of, self.word_counts_, scale)
        return [*found, *own]

    def _doc_prior(self, corpus, draws=None):
        """The documents' Dirichlet prior as `document_completion` takes it: its mean, or its values in ``draws``.

        ``draws`` are indices into the draws of all chains, one chain after the other.
        """
        if draws is None or len(self._doc_priors) == 1:
            return self.doc_topic_prior_
        return self._doc_priors[draws // self._topic_draws.shape[1]][:, None]  # The prior of each draw's chain.

    def _present_doc_prior(self, chain, corpus):
        """The documents' Dirichlet prior in the present state of a chain."""
        return chain.doc_topic_prior

    def merge_topics(self, groups: Sequence[int] | Sequence[Sequence[int]]) -> Self:
        """Join topics into one, in all draws.

        Parameters
        ----------
        groups : list of int, or list of lists of int
            Topics that become one, such as ``[0, 3]`` or ``[[0, 3], [1, 7, 8]]``.

        Returns
        -------
        merged : estimator of this class
            A fitted estimator with fewer topics; this one is unchanged. A new topic has the place of the first of its
            group, and the other topics keep their order. Names set by ``topic_names_`` are joined by " + ". A new topic
            is the mean of its group, weighted by the topics' shares of the fitted tokens. Its ``doc_topic_prior_`` is
            the sum over the group, which is exact: sums of Dirichlet proportions have this Dirichlet distribution. The
            tables infer shares of documents again, so the share of a new topic is not the sum of the shares before.
            `partial_fit` and `resume` are refused after a merger.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import BayesianLDA
        >>> X = np.array(
        ...     [[4, 3, 0, 0], [5, 2, 0, 0], [0, 0, 4, 4], [0, 1, 5, 3]] * 10
        ... )
        >>> lda = BayesianLDA(3, n_iter=60, random_state=0)
        >>> lda = lda.fit(X, feature_names=["sea", "fish", "moon", "star"])
        >>> lda.merge_topics([0, 1]).components_.shape
        (2, 4)
        """
        check_is_fitted(self)
        return merged(self, new_topics(groups, self._n_features_out))

    # -- documents -------------------------------------------------------------------------------------------------

    @lazy_for_dask(lambda self: len(self.components_), dtype=None, draws=())
    def transform(self, X: CountsLike) -> FloatArray:
        """Topic proportions of documents.

        Parameters
        ----------
        X : array-like, sparse, DataFrame, `CountBlocks` or Dask array of shape (n_samples, n_features)
            Counts.

        Returns
        -------
        proportions : ndarray, lazy for a Dask array, of shape (n_samples, n_components)
            Fast approximation of the posterior means given ``components_``: rare topics come out slightly too large and
            the commonest too small. For mean shares use `topic_info` or `topics_over_time`. Rows sum to 1. An empty
            document gets the prior. A document's row does not depend on the other documents or on its position.
        """
        return self._transform(X)

    def _transform(self, X, **given):
        check_is_fitted(self)
        topics = [self._mean_of_words]
        found = [
            doc_topic_proportions(corpus.to_csr(), topics, self._doc_prior(corpus), n_jobs=self.n_jobs)
            for corpus in self._check_X(X, reset=False, **given).corpora()
        ]
        return as_precise_as(X, found[0] if len(found) == 1 else np.concatenate(found))

    def _filled(self, X, **given):
        """The counts, a CSR matrix, and which documents have words."""
        check_is_fitted(self)
        refuse_dask(X)
        counts = self._check_X(X, reset=False, **given).to_csr()
        return counts, np.diff(counts.indptr) > 0

    def _proportion_draws(self, X, n_draws, random_state, *, groups=None, **given):
        """Draws of the documents' proportions, each given a draw of the topics from the reference chain."""
        check_is_fitted(self)
        refuse_dask(X)
        corpus = self._check_X(X, reset=False, **given).in_memory()
        return self._draws_of_corpus(corpus, n_draws, random_state, groups=groups)

    def _draws_of_corpus(self, corpus, n_draws, random_state, *, groups=None):
        n_kept = self._topic_draws.shape[1]
        chosen = self.reference_chain_ * n_kept + chosen_draws(n_kept, n_draws)
        return self._draws_of_chosen(corpus, chosen, random_state, groups)

    def _draws_of_chosen(self, corpus, chosen, random_state, groups=None):
        """A draw of the proportions for each draw of the topics in ``chosen``, indices of the draws of all chains."""
        refuse_too_many_tokens(corpus, 1, "fewer rows at once")
        draws = self._topic_draws.of_documents
        places = [divmod(int(i), draws.shape[1]) for i in chosen]
        topics = [lambda used, c=c, s=s: words_of(draws.kept_draw(c, s), used) for c, s in places]
        prior = self._doc_prior(corpus, chosen)
        return proportion_draws(corpus, topics, prior, random_state=random_state, groups=groups, n_jobs=self.n_jobs)

    def regress(
        self,
        X: CountsLike,
        y: ArrayLike,
        covariates: Any = None,
        *,
        interval: float = 0.9,
        reference: int | None = None,
        **params: Any,
    ) -> Table:
        """Least squares of an outcome on the documents' proportions, the quick alternative to `TopicRegressor`.

        The regressors are posterior means of the proportions, as from `transform`. Standard errors allow for unequal
        variances (HC1), but ignore the uncertainty of topics and proportions. In experiments with planted topics this
        was harmless from 25 words per document on, if the fit had converged and the documents' prior was right;
        otherwise coefficients were biased. Draws of the proportions would shrink the coefficients.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or DataFrame of shape (n_samples, n_features)
            Counts.
        y : array-like of shape (n_samples,)
            Outcomes, numbers.
        covariates : array-like or DataFrame of shape (n_samples, n_covariates), default=None
            Numbers that also influence the outcome.
        interval : float, default=0.9
            Mass of the central confidence interval.
        reference : int, default=None
            A topic with which all topics are compared. If None, they are compared with the mean of all coefficients,
            weighted by the topics' shares of the documents.
        **params
            Further arguments of `transform`, such as ``metadata``.

        Returns
        -------
        table : DataFrame, or Bunch of columns if pandas is not installed
            One row per topic and then per covariate: ``term`` ("topic" or "covariate"), ``topic`` (-1 for covariates),
            ``name``, ``mean``, ``low``, ``high``. There is no intercept, since proportions sum to 1.

        Examples
        --------
        >>> import numpy as np
        >>> from sk_sgmcmc import BayesianLDA
        >>> X = np.array(
        ...     [[14, 13, 0, 0], [15, 12, 0, 0], [0, 0, 14, 14], [0, 1, 15, 13]]
        ...     * 10
        ... )
        >>> y = np.array([1.0, 1.2, 3.1, 2.9] * 10)
        >>> table = BayesianLDA(2, n_iter=60, random_state=0).fit(X).regress(X, y)
        >>> sorted(table["mean"].round(1).tolist())
        [-1.0, 1.0]
        """
        check_is_fitted(self)
        refuse_dask(X)
        tails = interval_tails(interval)
        y, covariates = aligned(X, y=y, covariates=covariates)
        theta = np.asarray(self.transform(X, **params), dtype=np.float64)
        y = checked_outcomes(y, len(theta))
        columns = Covariates.of(covariates, len(theta))
        if reference is not None and reference not in range(theta.shape[1]):
            raise ValueError(f"`reference` must be a topic, 0 to {theta.shape[1] - 1}, or None; got {reference!r}.")
        counts, _ = self._filled(X, **params)
        warn_of_short_documents(np.asarray(counts.sum(axis=1)).ravel())
        names = self.topic_names_, columns.names
        return plug_in_table(theta, y, columns.checked(covariates, len(theta)), names, tails, reference)

    def score(self, X: CountsLike, y: Any = None) -> float:
        r"""Mean log predictive probability of a hidden token by document completion, averaged over draws.

        Parameters
        ----------
        X : array-like, sparse, DataFrame, `CountBlocks` or Dask array of shape (n_samples, n_features)
            Counts of documents. Each token is hidden with probability 1/2, by a random choice that depends on the
            content of its document alone.
        y : ignored

        Returns
        -------
        score : float
            Higher is better; see `sk_sgmcmc.metrics.document_completion` for the equation. Probabilities are averaged
            over at most 10 kept draws, evenly spaced over all chains. This is valid even if chains found different
            topics, since each draw predicts words with its own topics.
        """
        return self._completion(X).score

    def perplexity(self, X: CountsLike) -> float:
        """Perplexity of hidden tokens, ``exp(-score(X))``; lower is better.

        Parameters
        ----------
        X : array-like, sparse, DataFrame, `CountBlocks` or Dask array of shape (n_samples, n_features)
            Counts.

        Returns
        -------
        perplexity : float
        """
        return self._completion(X).perplexity

    def _completion(self, X, **given):
        check_is_fitted(self)
        draws = self._topic_draws.of_documents
        n_chains, n_kept, *_ = draws.shape
        chosen = scored_draws(n_chains * n_kept)
        topics = [partial(draws.mean_of_words, *divmod(i, n_kept)) for i in chosen]
        found = []
        for corpus in self._check_X(X, reset=False, **given).corpora():
            observed, hidden = split_tokens(corpus.to_csr())
            prior = self._doc_prior(corpus, chosen)
            found.append(document_completion(observed, hidden, topics, doc_topic_prior=prior, n_jobs=self.n_jobs))
        return found[0] if len(found) == 1 else joined_results(found)

    def _held_out(self, X, y=None, **given):
        corpus = self._check_X(X, reset=False, **given)
        return corpus, *split_tokens(corpus.to_csr())

    def _present_score(self, held_out):
        (corpus, observed, hidden), chain = held_out, self._chains[0]
        prior = self._present_doc_prior(chain, corpus)
        topics = [partial(words_of, chain.present_topics().T)]
        return document_completion(observed, hidden, topics, doc_topic_prior=prior).score


def _checked_rows(described, n_docs):
    """The encoded metadata; raises unless there is a row of finite numbers for each document."""
    if described.shape[0] != n_docs:
        raise ValueError(f"The metadata have {described.shape[0]} rows, but X has {n_docs} documents; pass one each.")
    if not np.all(np.isfinite(described.data if sparse.issparse(described) else described)):
        raise ValueError("The metadata contain NaN or infinite numbers; replace them, or leave these documents out.")
    return described
