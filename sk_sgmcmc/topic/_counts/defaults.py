"""Defaults of the minibatch size and of the number of steps."""

from numbers import Integral

from ...utils._warnings import warn_user

_FRESH_BATCH = 256  # documents in a minibatch whose assignments are drawn afresh
# Tokens in a minibatch of a chain with stored assignments, per cell of the topics: a cell costs about a third of what a
# token costs.
_TOKENS_PER_CELL = 2.5
_MIN_TOKENS = 200_000  # with fewer, a step is too short for minibatches to pay
_STORED_SWEEPS, _LARGE_STORED_SWEEPS, _LARGE = 200, 100, 5_000_000
# Samplers that move topics by small steps forget slowly: with 200 sweeps, 90 % intervals of a small
# corpus held .4 (SGRLD), .6 (SGLD) and .8 (SGHMC) of the truth, with 2000 they held .8 to .9.
_SLOW_SWEEPS, _SLOW_TOKENS = 2000, 50_000_000
_PARTICLE_SWEEPS = 60
_FRESH_STEPS = 1000


def stores_assignments(sampler, corpus, assignments, total_samples):
    """Whether `fit` keeps the assignment of each token, for parameters as given."""
    if sampler._reads_all_rows:
        return True
    if assignments != "auto":
        return assignments == "stored"
    return total_samples in (None, corpus.n_docs)


def default_batch(corpus, stored, n_topics):
    """Documents in a minibatch of `fit`; perhaps more than there are."""
    if not stored:
        return _FRESH_BATCH
    wanted = max(_MIN_TOKENS, _TOKENS_PER_CELL * corpus.n_words * n_topics)
    return max(1, int(corpus.n_docs * wanted / max(1, corpus.n_tokens)))


def stream_batch(corpus):
    """Documents in a minibatch of a stream's block, which minibatches divide about evenly."""
    return -(-corpus.n_docs // max(1, round(corpus.n_docs / _FRESH_BATCH)))


def default_steps(sampler, corpus, stored, n_batch):
    """Steps of `fit`."""
    if not stored:
        return _FRESH_STEPS if sampler._draws_in_time else _FRESH_STEPS // 4
    if not sampler._draws_in_time:  # its draws are the particles at the end
        return _PARTICLE_SWEEPS * max(1, corpus.n_docs // n_batch)
    sweeps = _STORED_SWEEPS if corpus.n_tokens < _LARGE else _LARGE_STORED_SWEEPS
    if not sampler._forgets:
        sweeps = max(sweeps, min(_SLOW_SWEEPS, int(_SLOW_TOKENS / max(1, corpus.n_tokens))))
    return sweeps * max(1, corpus.n_docs // n_batch)


def checked_sweeps(n_sweeps):
    """The parameter as two whole numbers; raises if it is not."""
    sweeps = tuple(n_sweeps)
    if len(sweeps) != 2 or not all(isinstance(n, Integral) for n in sweeps) or sweeps[0] < 0 or sweeps[1] < 1:
        raise ValueError(
            f"n_sweeps={n_sweeps!r} must be two whole numbers: sweeps to discard (at least 0) and to average over (at "
            "least 1), for example (5, 5)."
        )
    return int(sweeps[0]), int(sweeps[1])


def checked_total(total_samples, seen, has_warned):
    """The number of documents behind the posterior, and whether a warning has said that ``total_samples`` is far off.

    It warns once, and stands for the documents ``seen`` if it is None.
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
