"""Topic models on streams: `partial_fit`, documents counted, words that appear later."""

from copy import copy

import numpy as np
from scipy import sparse

from ...base import all_or_nothing
from ...chains.plans import StreamPlan
from ...samplers._registry import fitting_pair
from ...utils import Corpus, check_counts
from ...utils._warnings import warn_user
from .tokens import TokenData, refuse_too_many_tokens
from .vocabulary import new_names

FRESH_BATCH = 256  # documents in a minibatch whose assignments are drawn afresh
# A stream keeps its documents until they hold this many tokens, and begins anew from them when they have grown so much.
START_TOKENS = 2_000_000
_START_GROWTH = 1.25


class StreamingMixin:
    """`partial_fit` for topic models whose ``_chain`` is a `TopicChain`."""

    @all_or_nothing
    def partial_fit(self, X, y=None):
        """Go on from where the chain is, with one pass over more documents.

        Assignments are drawn afresh and counts scaled to ``total_samples``, or to the documents seen so far. After a
        `fit` with stored assignments these stay as they are, and only the documents since are scaled.

        Other ``n_sweeps``, or another step size, friction or temperature of the sampler, hold from the next call on.
        Another sampler, ``n_components`` or ``n_chains`` is refused. Priors, and what else chains are made with, are
        those of the first call.

        While a stream is young, the estimator keeps its documents (also in a pickle): chains with ``init="soft"`` begin
        anew from all of them each time they have grown by a quarter, topics numbered as they were, and draws from
        before then no longer count. This ends when they hold two million tokens; from then on nothing grows with the
        stream.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or DataFrame of shape (n_samples, n_features)
            Counts of documents, as for `fit`.
        y : ignored

        Returns
        -------
        self : object
            Fitted.
        """
        return self._partial_fit(X)

    def _partial_fit(self, X, **given):
        self._validate_params()
        sampler, pair = self._checked_sampler(streams=True)
        if pair[1] == "conditionals":
            raise ValueError(
                f"{type(sampler).__name__} sweeps over all data and cannot stream; "
                'use sampler="scir" or "sgrld" for partial_fit.'
            )
        n_sweeps = self._checked_sweeps()
        first = not hasattr(self, "_chains")
        if not first:
            self._refuse_other_way(sampler, pair)
            if self.new_features == "extend":
                self._extend_names(X)
        corpus = self._check_X(X, reset=first, **given)
        if self.batch_size == "auto":  # minibatches that share the block without a rest
            n_batch = -(-corpus.n_docs // max(1, round(corpus.n_docs / FRESH_BATCH)))
        else:  # the last block of a stream may be shorter than a minibatch
            n_batch = min(corpus.n_docs, self.batch_size)
        if first:
            self.n_samples_seen_ = self._n_stored = 0
        elif not isinstance(self._chains[0].plan, StreamPlan):
            self._n_stored = self.n_samples_seen_ if self._chains[0].stored else 0
        turns = first or not isinstance(self._chains[0].plan, StreamPlan)
        self.n_samples_seen_ += corpus.n_docs
        new = self.n_samples_seen_ - self._n_stored
        total = self._checked_total(new)
        self._token_args = (n_batch, total)
        # Anew at each call: the user may have set another step, and on flat space N/n limits it.
        resolved = self._resolved_sampler(sampler, pair, corpus, False, total / n_batch)
        plan = StreamPlan(self.burn_in, 4 * self.n_chains * corpus.n_words * self.n_components)
        doc_prior, word_prior = self._priors(corpus.n_words)
        anew = self._keeps_for_start(corpus, first)
        data = self._token_data(corpus)
        # Nothing is refused from here on, and chains are changed.
        self._name_samplers(resolved)
        if first:
            chains = [
                self._chain_of(sampler, pair)(
                    seed, copy(plan), resolved, word_prior, corpus.n_words,
                    self._document_prior(doc_prior, False, plan), n_sweeps=n_sweeps, stored=False, init=self.init,
                    flat=self._flat_arguments(pair),
                )
                for seed in self._chain_seeds()[1:]
            ]  # fmt: skip
        else:
            chains = self._chains
            if self._collapses(chains[0].given_sampler):
                chains = [chain.with_topics(resolved) for chain in chains]
            for chain in chains:
                if chain.n_words < corpus.n_words:
                    chain.extend_vocabulary(word_prior, corpus.n_words)
                if turns:
                    chain.start_streaming(resolved, copy(plan), n_sweeps, **self._streaming_params())
                else:
                    chain.take_sampler(resolved, n_sweeps, **self._streaming_params())
        self._fingerprint = data.fingerprint()
        for chain in chains:
            chain.bind(data).forget_batches()
            chain.begins_anew = anew
        return self._run(chains, chains[0].step + -(-corpus.n_docs // n_batch))

    def _keeps_for_start(self, corpus, first):
        """Add a block to the documents that a young stream keeps; returns whether chains begin anew from them."""
        kept = None if first else getattr(self, "_start_counts", None)
        self._start_counts = None
        is_young = first or (kept is not None and kept.sum() <= START_TOKENS)
        if not is_young or self.init == "random" or corpus.n_tokens > START_TOKENS:
            return False
        if first:
            self._start_counts, self._n_start = corpus.to_csr(), corpus.n_tokens
            return False
        kept = sparse.csr_array((kept.data, kept.indices, kept.indptr), shape=(kept.shape[0], corpus.n_words))
        self._start_counts = sparse.vstack([kept, corpus.to_csr()], format="csr")
        if self._start_counts.sum() < _START_GROWTH * self._n_start:
            return False
        self._n_start = self._start_counts.sum()
        return True

    def _token_data(self, corpus):
        """The documents as chains are bound to them, with those that they start from."""
        refuse_too_many_tokens(corpus, self.n_chains)
        start = self._start_corpus()
        if start is not None:
            start = self._tokens(start, *self._token_args)
        return self._tokens(corpus, *self._token_args, self._threads_per_chain(), start)

    _tokens = TokenData

    def _start_corpus(self):
        """The documents of a young stream; None where there are none."""
        start = getattr(self, "_start_counts", None)
        return None if start is None else Corpus.from_counts(start)

    def _collapses(self, sampler):
        """Whether topics are integrated out of the chains of a sampler."""
        return fitting_pair(sampler, self._offers)[1] == "conditionals"

    def _streaming_params(self):
        """What `DocumentPrior.use` is given when chains go on as a stream."""
        return {}

    def _refuse_other_way(self, sampler, pair):
        """Raise where the chains at hand cannot go on as a stream of this sampler of the topics."""
        present = self._chains[0].given_sampler
        if self._collapses(present):  # their assignments are a start for any sampler on the simplex
            present = sampler if pair[0] == "simplex" else present
        if fitting_pair(present, self._offers) != pair:
            raise ValueError(
                f"The chains of {present!r}, by which this estimator was fitted, cannot go on as a stream of "
                f'{sampler!r}; fit with sampler="{sampler._name}" and the same parameters first, or set the sampler '
                "back."
            )
        self._refuse_other_chains(sampler, present, n_components=self._chains[0].n_topics)

    def _checked_total(self, seen):
        if self.total_samples is None:
            return float(seen)
        if self.total_samples > 10 * seen or seen > 10 * self.total_samples:
            if not getattr(self, "_warned_total", False):
                warn_user(
                    f"total_samples={self.total_samples} is more than ten times off the {seen} documents seen so "
                    "far. Counts are scaled to it, so a wrong number makes topics too sure or too vague; leave it "
                    "at None to count the documents.",
                )
            self._warned_total = True
        return float(self.total_samples)

    def _extend_names(self, X):
        """Add the columns of X that are new, in their order, to those that are known; chains follow later."""
        names = new_names(X, self)
        if not len(names):
            return
        if np.ndim(self.topic_word_prior):
            raise ValueError('new_features="extend" needs one number as topic_word_prior, got an array.')
        check_counts(X, whom=type(self).__name__)
        self.feature_names_in_ = np.concatenate([self.feature_names_in_, names])
        self.n_features_in_ = self.feature_names_in_.size
