"""The configuration of a run: the chain class of a sampler, its step size, the batch size and the number of steps."""

from copy import copy
from numbers import Integral
from typing import Any, NamedTuple

from ...chains.chain import DrawPlan, StreamPlan
from ...samplers._base import Sampler
from ...samplers.schedules import ConstantStep
from ...utils._warnings import warn_user
from .._counts.chain import CollapsedChain
from .._counts.word_prior import WordPrior
from .._minibatch.chain import MinibatchChain
from .._minibatch.particles import ParticleTopicChain

# Largest relative increase of posterior variances that the step size of a sampler on flat space may cause: with stored
# assignments, and with fresh ones, where the noise of minibatches adds to it.
_TOLERANCE, _NOISE = 0.05, 0.1
_FRESH_BATCH = 256  # Documents in a minibatch with fresh assignments.
# Tokens in a minibatch with stored assignments, per cell of the topics. Updating a cell costs about a third of sweeping
# a token.
_TOKENS_PER_CELL = 2.5
_MIN_TOKENS = 200_000  # Fewest tokens in a minibatch with stored assignments; in a shorter step overhead dominates.
_PARTICLE_SWEEPS = 60
_FRESH_STEPS = 1000


class ChainConfig(NamedTuple):
    """The configuration that all chains of a run share.

    Parameters
    ----------
    data : TokenCorpus
        The documents.
    plan : DrawPlan or StreamPlan
    sampler : Sampler
        Sampler of the topics, resolved: with ``step_size_``.
    pair : tuple of str
        The geometry and signal that the sampler uses.
    word_prior : float or ndarray
        As for `WordPrior`.
    stored, n_sweeps, init, flat
        As for `MinibatchChain`.
    """

    data: Any
    plan: DrawPlan | StreamPlan
    sampler: Sampler
    pair: tuple
    word_prior: Any
    stored: bool
    n_sweeps: tuple
    init: str
    flat: dict | None

    def new_chain(self, seed, doc_prior, word_prior, *, n_warm=0):
        """A new chain, not yet bound to the documents; its first ``n_warm`` steps are collapsed sweeps."""
        parts = seed, copy(self.plan), self.sampler, word_prior, doc_prior
        if self.pair[1] == "conditionals":
            return CollapsedChain(*parts, init=self.init)
        make = self.sampler._pick_loop({"particles": ParticleTopicChain}, MinibatchChain)
        return make(*parts, init=self.init, stored=self.stored, n_sweeps=self.n_sweeps, n_warm=n_warm, flat=self.flat)

    def continued(self, chain, begins_stream, prior_params):
        """The chain as it continues in `partial_fit`; ``begins_stream`` says whether it has run only in `fit` so far.

        ``prior_params`` are samplers of the parameters of the document prior, by name.
        """
        chain = chain if chain.has_topics else _with_topics(chain, self.sampler)
        if chain.n_words < self.data.n_words:
            n_topics = chain.n_topics
            chain.extend_vocabulary(WordPrior(self.word_prior, self.data.n_words, n_topics), self.data.n_words)
        if begins_stream:
            chain.start_streaming(self.sampler, copy(self.plan), self.n_sweeps, prior_params)
        else:
            chain.take_sampler(self.sampler, self.n_sweeps, prior_params)
        return chain


def _with_topics(chain, sampler):
    """A `MinibatchChain` that continues from a `CollapsedChain`."""
    chain._ensure_started()
    if chain.data is not None and chain.z is not None:
        chain.doc_prior.release(chain._assigned())
    other = chain.shallow_copy(MinibatchChain)
    for name in (
        "round",
        "checkpoint",
        "failure",
        "progress",
        "hottest",
        "searches",
    ):  # attributes of collapsed chains only
        vars(other).pop(name, None)
    other.first_sampler, other.stored, other.flat, other.n_warm, other.z = sampler, True, None, 0, None
    return other


def resolved_sampler(sampler, pair, corpus, scale, whiten):
    """The fitted copy of a sampler, with its step size.

    Parameters
    ----------
    sampler : Sampler
    pair : tuple of str
        Geometry and signal.
    corpus : Corpus
    scale : float
        N/n, the scale of the noise of minibatches; 0 if assignments are stored.
    whiten : bool
        Whether coordinates on flat space are scaled to posterior standard deviations of about 1.
    """
    if not sampler._picks_step:
        return sampler._resolved(None)
    if pair[0] != "euclidean":
        return sampler._resolved(sampler._simplex_schedule(noisy=scale > 0))
    curvature = 1.0
    if not whiten:  # The curvature is largest for the most frequent word, if all its tokens are in one topic.
        curvature += max(1.0, scale) * float(corpus.to_csr().sum(axis=0).max())
    noise = curvature * scale
    return sampler._resolved(
        ConstantStep(float(sampler._stable_step(curvature, noise, share=_NOISE if noise else _TOLERANCE)))
    )


def stores_assignments(sampler, corpus, assignments, total_samples):
    """Whether `fit` stores the assignment of each token, given the parameters ``assignments`` and ``total_samples``."""
    if sampler._reads_all_rows:
        return True
    if assignments != "auto":
        return assignments == "stored"
    return total_samples in (None, corpus.n_docs)


def default_batch(corpus, stored, n_topics):
    """Number of documents in a minibatch of `fit`; it may exceed the number of documents."""
    if not stored:
        return _FRESH_BATCH
    wanted = max(_MIN_TOKENS, _TOKENS_PER_CELL * corpus.n_words * n_topics)
    return max(1, int(corpus.n_docs * wanted / max(1, corpus.n_tokens)))


def stream_batch(corpus):
    """Number of documents in a minibatch of a stream, so that minibatches divide its block about evenly."""
    return -(-corpus.n_docs // max(1, round(corpus.n_docs / _FRESH_BATCH)))


def default_steps(sweeps, sampler, corpus, stored, n_batch):
    """Default number of steps of `fit`; ``sweeps`` are the `DefaultSweeps` of the model."""
    if not stored:
        return _FRESH_STEPS if sampler._draws_in_time else _FRESH_STEPS // 4
    if not sampler._draws_in_time:  # The draws are the final particles, so steps need only reach the posterior.
        return _PARTICLE_SWEEPS * max(1, corpus.n_docs // n_batch)
    return sweeps.of(corpus.n_tokens) * max(1, corpus.n_docs // n_batch)


def checked_sweeps(n_sweeps):
    """The parameter ``n_sweeps`` as a tuple of two int; raises if it is not valid."""
    sweeps = tuple(n_sweeps)
    if len(sweeps) != 2 or not all(isinstance(n, Integral) for n in sweeps) or sweeps[0] < 0 or sweeps[1] < 1:
        raise ValueError(
            f"n_sweeps={n_sweeps!r} must be two whole numbers: sweeps to discard (at least 0) and to average over (at "
            "least 1), for example (5, 5)."
        )
    return int(sweeps[0]), int(sweeps[1])


def checked_total(total_samples, seen, has_warned):
    """The corpus size to scale counts to, and whether a warning was issued that ``total_samples`` is far off.

    The warning is issued once. If ``total_samples`` is None, the size is the number of documents ``seen``.
    """
    if total_samples is None:
        return float(seen), has_warned
    is_far_off = total_samples > 10 * seen or seen > 10 * total_samples
    if is_far_off and not has_warned:
        warn_user(
            f"total_samples={total_samples} is more than ten times off the {seen} documents seen so far. Counts are "
            "scaled to it, so a wrong number makes topics too certain or too vague; leave it at None to count the "
            "documents."
        )
    return float(total_samples), has_warned or is_far_off
