"""A corpus as tokens, to which chains of count topic models are bound."""

import zlib

import numpy as np

from ...utils._memory import available_memory
from ...utils._numbers import summable

# Counts with no more tokens than this are not checked.
_MANY_TOKENS = 2 * 10**7
# Tokens per stored entry above which counts are refused: text has a few, and expanding so many takes hours for what
# scaled counts show as well.
_TOKENS_PER_ENTRY = 1000
_WORD, _TOPIC, _WEIGHT = 4, 2, 24  # bytes per token; making weights takes two temporary copies


def refuse_too_many_tokens(corpus, n_chains, instead="parts of its rows to partial_fit"):
    """Raise if tokens would not fit in memory, or if few entries stand for very many tokens.

    ``instead`` says what to pass so that there are fewer tokens at once.
    """
    n_tokens = float(corpus.n_tokens)
    if n_tokens <= _MANY_TOKENS:
        return
    needed = n_tokens * (_WORD + n_chains * _TOPIC + (0 if corpus.is_whole else _WEIGHT))
    what = f"X holds {n_tokens:.3g} tokens, its largest entry being {corpus.counts.max():.3g}"
    _refuse(what, n_tokens, corpus.counts.size, needed, available_memory(), instead)


def refuse_too_many_tokens_in_blocks(blocks, n_chains, *, here):
    """Raise if few entries of all blocks, or of one, stand for very many tokens, or one would not fit in memory.

    Parameters
    ----------
    blocks : CountBlocks
        Checked.
    n_chains : int
    here : bool
        Whether this process makes tokens of blocks.
    """
    # All tokens lie on disk, whose room is checked when their files are made; those of a block are made in memory.
    there = available_memory() if here else np.inf
    for i, each in enumerate(blocks.sizes):
        needed = each.n_tokens * (_WORD + (0 if each.is_whole else _WEIGHT))
        _refuse(f"{blocks.name_of(i)} holds {each.n_tokens:.3g} tokens", each.n_tokens, each.n_entries, needed, there)
    needed = blocks.n_tokens * (_WORD + n_chains * _TOPIC)
    n_entries = sum(each.n_entries for each in blocks.sizes)
    _refuse(f"X holds {blocks.n_tokens:.3g} tokens", blocks.n_tokens, n_entries, needed, np.inf)


def _refuse(what, n_tokens, n_entries, needed, there, instead="smaller blocks"):
    if n_tokens <= _MANY_TOKENS:
        return
    if needed > there:
        why = f"but only {there / 2**30:.3g} GiB are free"
        how = f"Pass {instead}, or scale its counts down"
    elif n_tokens > _TOKENS_PER_ENTRY * n_entries:
        why = f"for only {n_entries} entries that are not zero, and hours"
        how = "Scale its counts down"
    else:
        return
    factor = 10.0 ** np.floor(np.log10(_MANY_TOKENS / n_tokens))
    raise ValueError(
        f"{what}; giving every token a topic takes at least {needed / 2**30:.3g} GiB, {why}. {how}: X * {factor:.0e} "
        "has the same proportions, and the wider posterior of so many fewer tokens."
    )


class TokenData:
    """A corpus as tokens, document after document; shared by all chains.

    Parameters
    ----------
    corpus : Corpus
    n_batch : int
        Documents in a minibatch.
    total_samples : float
        Number of documents behind the posterior: N in the scale N/n.
    n_threads : int
        Threads over the documents of a minibatch; changes no draw.
    start : TokenData or None
        Documents from which chains start, if they differ.
    """

    def __init__(self, corpus, n_batch, total_samples, n_threads=1, start=None):
        self.token_ptr, self.words, weights = corpus.expand_tokens()
        self.weights = summable(weights)
        self.n_words = corpus.n_words
        self.n_batch = n_batch
        self.total_samples = total_samples
        self.n_threads = n_threads
        self.start = start
        self.group = np.zeros(self.n_docs, dtype=np.int64)  # documents of one group share their prior

    @property
    def n_docs(self):
        """Number of documents."""
        return self.token_ptr.size - 1

    @property
    def n_tokens(self):
        """Number of tokens, whatever they weigh."""
        return self.words.size

    def fingerprint(self):
        """A checksum by which to recognise the data."""
        return zlib.crc32(self.words, zlib.crc32(self.token_ptr, zlib.crc32(self.weights)))


def total_of(data):
    """Tokens in all."""
    return float(data.weights.sum() if data.weights.size else data.words.size)


def lengths_of(data):
    """Tokens of each document, (n_docs,)."""
    weights = data.weights if data.weights.size else np.ones(data.words.size)
    docs = np.repeat(np.arange(data.n_docs), np.diff(data.token_ptr))
    return np.bincount(docs, weights, minlength=data.n_docs).astype(np.float64)
