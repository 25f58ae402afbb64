"""What topic models share whose tokens are assigned to topics: fitting, streams, and choices made for them."""

from numbers import Integral, Real

from ...base import all_or_nothing
from ...chains.plans import DrawPlan
from ...utils._sklearn import Interval, StrOptions
from .answers import BaseTopicModel
from .samplers import SamplersMixin
from .stream import FRESH_BATCH, StreamingMixin

# Tokens in a minibatch of a chain with stored assignments, for each cell of the topics: drawing a cell costs about as
# much as a third of a token.
_TOKENS_PER_CELL = 2.5
_MIN_TOKENS = 200_000  # below this a step is too short to be worth a minibatch
_STORED_SWEEPS, _LARGE_STORED_SWEEPS, _LARGE = 200, 100, 5_000_000
_PARTICLE_SWEEPS = 60
_FRESH_STEPS = 1000
# Share of burn-in made of collapsed sweeps, see TopicChain.
_WARM_SHARE = 0.7


class AssignedTopicModel(StreamingMixin, SamplersMixin, BaseTopicModel):
    """Base of topic models whose chain is a `TopicChain`.

    A subclass has the parameters named in ``_parameter_constraints`` and those of `BaseSGMCMC`, and implements

    ``_priors(n_words)``
        The documents' prior to start with, (n_topics,), and the topics', as `TopicChain` takes them; checked.
    ``_document_prior(alpha, stored, plan)``
        A `DocumentPrior` for a chain.
    ``_set_fitted(chains)``
        See `BaseSGMCMC`.
    """

    _parameter_constraints = {
        **BaseTopicModel._parameter_constraints,
        "n_components": [Interval(Integral, 1, 65535, closed="both")],
        "topic_word_prior": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "assignments": [StrOptions({"auto", "stored", "fresh"})],
        "n_sweeps": [tuple, list],
        "init": [StrOptions({"soft", "random"})],
        "total_samples": [Interval(Real, 1, None, closed="left"), None],
        "new_features": [StrOptions({"error", "extend"})],
    }

    # -- fitting -------------------------------------------------------------------------------------------------

    @all_or_nothing
    def fit(self, X, y=None):
        """Draw topics given documents.

        Parameters
        ----------
        X : array-like, sparse matrix, sparse array or DataFrame of shape (n_samples, n_features)
            Counts. An entry x that is not whole counts as floor(x) tokens and one of weight x - floor(x).
        y : ignored

        Returns
        -------
        self : object
            Fitted.

        Raises
        ------
        ValueError
            For negative or non-finite counts, parameters out of range, a sampler that does not fit, or a batch
            larger than the data.
        KeyboardInterrupt
            After Ctrl-C; the estimator is then fitted with the draws made so far.
        """
        return self._fit(X)

    def _fit(self, X, **given):
        self._validate_params()
        sampler, pair = self._checked_sampler()
        corpus = self._check_X(X, reset=True, **given)
        doc_prior, word_prior = self._priors(corpus.n_words)
        n_sweeps = self._checked_sweeps()
        stored = self._stores(sampler, corpus)
        n_batch = self._n_batch(sampler, corpus, stored)
        n_iter = self._n_steps(sampler, corpus, stored, n_batch)
        self._warned_total = False
        total = self._checked_total(corpus.n_docs)
        resolved = self._resolved_sampler(sampler, pair, corpus, stored, total / n_batch)
        self._name_samplers(resolved)
        plan = DrawPlan(n_iter, self.burn_in, self.thin, 4 * self.n_chains * corpus.n_words * self.n_components)
        self._token_args = (n_batch, total)
        self._start_counts = None
        data = self._token_data(corpus)
        self._fingerprint = data.fingerprint()
        chains = [
            self._chain_of(sampler, pair)(
                seed,
                plan,
                resolved,
                word_prior,
                corpus.n_words,
                self._document_prior(doc_prior, stored, plan),
                stored=stored,
                n_sweeps=(0, 1) if stored else n_sweeps,
                n_warm=int(_WARM_SHARE * plan.n_burn),
                init=self.init,
                flat=self._flat_arguments(pair),
            ).bind(data)
            for seed in self._chain_seeds()[1:]
        ]
        self.n_samples_seen_, self._n_stored = corpus.n_docs, 0
        return self._run(chains, n_iter)

    def _bound_data(self, X, y=None, **given):
        corpus = self._check_X(X, reset=False, **given)
        data = self._token_data(corpus)
        if data.fingerprint() != self._fingerprint:
            raise ValueError(
                f"resume goes on with the data that were being fitted, but X of shape {corpus.n_docs, corpus.n_words} "
                "holds other counts; pass the same X again, or new documents to partial_fit."
            )
        return data

    def _name_samplers(self, resolved):
        """Set the fitted attributes that name samplers, given that of the topics."""
        self.sampler_ = resolved

    # -- choices -------------------------------------------------------------------------------------------------

    def _checked_sweeps(self):
        sweeps = tuple(self.n_sweeps)
        if len(sweeps) != 2 or not all(isinstance(n, Integral) for n in sweeps) or sweeps[0] < 0 or sweeps[1] < 1:
            raise ValueError(
                f"n_sweeps={self.n_sweeps!r} must be two whole numbers: sweeps thrown away (at least 0) and sweeps "
                "averaged (at least 1), for example (5, 5)."
            )
        return int(sweeps[0]), int(sweeps[1])

    def _stores(self, sampler, corpus):
        if self.assignments != "auto":
            return self.assignments == "stored" or sampler._full_batch
        return sampler._full_batch or self.total_samples in (None, corpus.n_docs)

    def _n_batch(self, sampler, corpus, stored):
        if isinstance(self.batch_size, Integral):
            self._refuse_large_batch(corpus.n_docs, "documents")
            return corpus.n_docs if sampler._full_batch else int(self.batch_size)
        if sampler._full_batch:
            return corpus.n_docs
        if not stored:
            return min(corpus.n_docs, FRESH_BATCH)
        wanted = max(_MIN_TOKENS, _TOKENS_PER_CELL * corpus.n_words * self.n_components)
        return min(corpus.n_docs, max(1, int(corpus.n_docs * wanted / max(1, corpus.n_tokens))))

    def _n_steps(self, sampler, corpus, stored, n_batch):
        if self.n_iter is not None:
            return int(self.n_iter)
        if not stored:
            return _FRESH_STEPS if sampler._runner != "particles" else _FRESH_STEPS // 4
        if sampler._runner == "particles":  # its draws are not spread over time
            return _PARTICLE_SWEEPS * max(1, corpus.n_docs // n_batch)
        sweeps = _STORED_SWEEPS if corpus.n_tokens < _LARGE else _LARGE_STORED_SWEEPS
        return sweeps * max(1, corpus.n_docs // n_batch)
