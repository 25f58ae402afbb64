"""Document-term counts: their validation, and the `Corpus` of arrays that kernels read."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from ._containers import refuse_containers
from ._fingerprint import digest
from ._numbers import holds_texts
from ._seeds import row_keys
from ._sparse import well_formed
from ._warnings import warn_user

BASE = np.uint64(0x9E3779B97F4A7C15)
_LARGEST = 2.0**53
# Search for values that are not counts: number of entries examined, minimum number of entries, and share of whole
# numbers below which hardly any entry is whole.
_SEEN, _FEWEST, _HARDLY = 10_000, 10, 0.05
_RAW_COUNTS = "Pass raw counts, for example from sklearn.feature_extraction.text.CountVectorizer."


def check_counts(X, *, input_name="X", whom="a count model"):
    """Check a document-term matrix and return it in one canonical form.

    Parameters
    ----------
    X : array-like, sparse matrix, sparse array or DataFrame of shape (n_samples, n_features)
        Counts, non-negative and finite, not necessarily whole numbers. Dense arrays, any sparse format with either
        index type, read-only memory maps, and pandas DataFrames, also sparse ones, are accepted. Not modified.
    input_name : str, default="X"
        The name used in errors.
    whom : str, default="a count model"
        The caller's name in errors; an estimator passes its class name.

    Returns
    -------
    counts : scipy.sparse.csr_array of float64, shape (n_samples, n_features)
        With sorted column indices in each row, no duplicates, and no stored zeros. It shares memory with X if X is
        already in that form, so do not write into it.

    Raises
    ------
    ValueError
        For negative, non-finite or complex entries, strings that are not numbers, a wrong number of dimensions, no rows
        or no columns, and index arrays that do not describe a matrix; the message names a remedy.
    """
    X = well_formed(X, input_name)
    if sparse.issparse(X) and X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {input_name} is of type {X.dtype}; pass {input_name}.real.")
    X = check_array(
        X,
        accept_sparse=True,
        dtype=np.float64,
        ensure_all_finite=False,
        input_name=input_name,
        estimator=whom,
    )
    # A new container over the same arrays, since the check of its format sets a flag, which the user's object must not
    # get.
    counts = sparse.csr_array(X)
    _refuse_bad_values(counts.data, input_name, whom)
    if not counts.has_canonical_format or np.any(counts.data == 0):
        counts = counts.copy()
        counts.sum_duplicates()  # sorts as well
        counts.eliminate_zeros()
    return counts


def _refuse_bad_values(values, input_name, whom):
    """Raise for NaN, infinity, negative and huge numbers; messages start as scikit-learn's estimator checks expect."""
    with np.errstate(invalid="ignore", over="ignore"):
        total = values.sum()
    if not np.isfinite(total):  # so that valid data are searched only once
        if np.isnan(values).any():
            raise ValueError(
                f"Input {input_name} contains NaN. {whom} needs finite counts; put 0 for a missing count, "
                f"for example with numpy.nan_to_num({input_name}), or drop the row."
            )
        if np.isinf(values).any():
            raise ValueError(
                f"Input {input_name} contains infinity or a value too large for float64. {whom} needs finite counts."
            )
    if values.size and values.max() > _LARGEST:
        raise ValueError(
            f"The largest entry of {input_name} is {values.max():g}; {whom} accepts counts up to 2**53, above which "
            f"float64 cannot represent steps of 1. {_RAW_COUNTS}"
        )
    lowest = values.min() if values.size else 0.0
    if lowest < 0:
        raise ValueError(
            f"Negative values in data passed to {whom}: the smallest entry of {input_name} is {lowest:g}, "
            f"but counts cannot be negative. {_RAW_COUNTS}"
        )


TRANSFORM_TEXTS = "vectorizer.transform(X), with the vectorizer whose counts were passed to `fit`."


def refuse_texts(X, whom, is_fitted=False):
    """Raise if X contains texts, which a model of counts cannot read."""
    refuse_containers(X)
    if holds_texts(X):
        remedy = "sklearn.feature_extraction.text.CountVectorizer().fit_transform(X)."
        raise ValueError(
            f"X holds texts (strings), but {whom} reads counts of words, in 2D; pass "
            f"{TRANSFORM_TEXTS if is_fitted else remedy}"
        )


def warn_if_empty(corpus):
    """Warn if all documents are empty."""
    if corpus.n_tokens == 0:
        warn_user("X holds no words, so all draws are from the prior; pass counts of documents with words.")


def warn_of_other_values(corpus, whom):
    """Warn if values look like tf-idf or log-normalised values instead of counts."""
    if corpus.is_whole:
        return
    if corpus.has_unit_rows:
        warn_user(
            f"All rows of X have length 1, as tf-idf rows do, so {whom} takes each document for about one token. "
            "Pass raw counts, for example from sklearn.feature_extraction.text.CountVectorizer; tf-idf rows are "
            "modelled by SphericalAdmixtureModel."
        )
    elif corpus.is_hardly_whole:
        warn_user(
            f"Hardly any entry of X is a whole number, or they are logarithms or roots of whole numbers, so X looks "
            f"normalised; {whom} takes its entries for counts. Pass raw counts, for example from CountVectorizer, or "
            'adata.layers["counts"] of single-cell data.'
        )


def _read_only(array, dtype):
    """A read-only, C-contiguous view of a dtype; the array is copied only if its dtype or layout is another."""
    view = np.ascontiguousarray(array, dtype=dtype).view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, eq=False)
class Corpus:
    """A document-term matrix as read-only arrays for kernels.

    Build it with `Corpus.from_counts`.

    Parameters
    ----------
    indptr : ndarray of int64, shape (n_docs + 1,)
        The distinct (document, word) pairs of document d are ``indptr[d]:indptr[d + 1]``; the first entry is 0.
    words : ndarray of int32, shape (n_pairs,)
        Column of each pair, ascending within a document.
    counts : ndarray of float64, shape (n_pairs,)
        Count of each pair, positive.
    n_words : int
        Number of columns.
    described : ndarray or csr_array of shape (n_docs, n_columns), or None
        Numbers that belong to documents besides their words, such as metadata.

    Notes
    -----
    A count x that is not whole represents floor(x) tokens of weight 1 and one of weight x - floor(x); see
    `expand_tokens`.
    """

    indptr: np.ndarray
    words: np.ndarray
    counts: np.ndarray
    n_words: int
    described: object = None

    def __post_init__(self):
        for name, dtype in (("indptr", np.int64), ("words", np.int32), ("counts", np.float64)):
            object.__setattr__(self, name, _read_only(getattr(self, name), dtype))

    def __reduce__(self):
        # Copies are made by the constructor, so that they are read-only like the original.
        return type(self), (self.indptr, self.words, self.counts, self.n_words, self.described)

    def __repr__(self):
        return f"Corpus(n_docs={self.n_docs}, n_words={self.n_words}, n_pairs={self.words.size})"

    def __len__(self):
        return self.n_docs

    @classmethod
    def from_counts(cls, X, **check_params):
        """Build from any document-term matrix that `check_counts` accepts; ``check_params`` are passed on to it."""
        X = check_counts(X, **check_params)
        if X.shape[1] > np.iinfo(np.int32).max:
            raise ValueError(f"X has {X.shape[1]} columns; at most {np.iinfo(np.int32).max} words can be handled.")
        return cls(X.indptr, X.indices, X.data, X.shape[1])

    def with_described(self, described):
        """The same documents with other values of ``described``."""
        return replace(self, described=described)

    def corpora(self):
        """Iterate over parts of the documents that fit in memory; here this corpus itself, the only part."""
        yield self

    def in_memory(self):
        """Return this corpus; the same method raises for a corpus in blocks."""
        return self

    @property
    def n_docs(self):
        """Number of documents."""
        return self.indptr.size - 1

    @cached_property
    def doc_lengths(self):
        """Sum of the counts of each document, float64 of shape (n_docs,)."""
        # Summed row by row, not as differences of running sums, whose rounding would depend on other documents.
        rows = np.repeat(np.arange(self.n_docs), np.diff(self.indptr))
        return _read_only(np.bincount(rows, weights=self.counts, minlength=self.n_docs), np.float64)

    @cached_property
    def tokens_per_pair(self):
        """Number of tokens that each pair represents, ceil(count), int64 of shape (n_pairs,)."""
        return _read_only(np.ceil(self.counts), np.int64)

    @property
    def word_counts(self):
        """Count of each word, float64 of shape (n_words,)."""
        return np.bincount(self.words, self.counts, self.n_words)

    @property
    def n_tokens(self):
        """Number of tokens; a fractional part of a count is one token."""
        return int(np.ceil(self.counts).sum())  # summed as floats, since integers could overflow

    def digest(self, *more):
        """A digest (16 bytes) of the documents and of ``more`` arrays, by which they are recognised."""
        return digest(self.indptr, self.words, self.counts, *self.keys_beside(), *more)

    @property
    def checksum(self):
        """A checksum of the documents: a polynomial in `BASE`, modulo 2^64, whose coefficients are hashes of the rows.

        Checksums of blocks can therefore be joined; see `joined_checksums`.
        """
        keys = row_keys(self.to_csr())
        powers = np.full(keys.size, BASE)
        powers[-1:] = 1
        return int((keys * np.cumprod(powers[::-1])[::-1]).sum(dtype=np.uint64))

    def keys_beside(self):
        """Hashes of the rows of ``described``: a tuple of one array (n_docs,), or empty if there is none."""
        return () if self.described is None else (row_keys(sparse.csr_array(self.described)),)

    def rows(self, start, stop):
        """The documents start:stop as a Corpus, whose words and counts are views.

        Parameters
        ----------
        start, stop : int, 0 <= start <= stop <= n_docs

        Returns
        -------
        Corpus
        """
        if not 0 <= start <= stop <= self.n_docs:
            raise IndexError(f"rows {start}:{stop} are not within the corpus's rows 0:{self.n_docs}.")
        lo, hi = self.indptr[start], self.indptr[stop]
        described = None if self.described is None else self.described[start:stop]
        indptr = self.indptr[start : stop + 1] - lo
        return replace(self, indptr=indptr, words=self.words[lo:hi], counts=self.counts[lo:hi], described=described)

    def take(self, order):
        """The documents in the given order, which may select or repeat some, as a copy.

        Parameters
        ----------
        order : array-like of int, shape (n_taken,)

        Returns
        -------
        Corpus
        """
        order = np.asarray(order, dtype=np.int64)
        sizes = np.diff(self.indptr)[order]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        source = np.arange(indptr[-1]) + np.repeat(self.indptr[:-1][order] - indptr[:-1], sizes)
        described = None if self.described is None else self.described[order]
        words, counts = self.words[source], self.counts[source]
        return replace(self, indptr=indptr, words=words, counts=counts, described=described)

    def joined(self, other):
        """The documents of this corpus, followed by the documents of another.

        Parameters
        ----------
        other : Corpus
            A corpus with the same words, and possibly more columns after them.

        Returns
        -------
        Corpus
        """
        if other.n_words < self.n_words:
            raise ValueError(f"other has {other.n_words} words; it needs at least the {self.n_words} of this corpus.")
        indptr = np.concatenate([self.indptr, self.indptr[-1] + other.indptr[1:]])
        words, counts = (np.concatenate([getattr(c, name) for c in (self, other)]) for name in ("words", "counts"))
        described = self.described
        if described is not None:
            stack = sparse.vstack if sparse.issparse(described) or sparse.issparse(other.described) else np.vstack
            described = stack((described, other.described))
            described = sparse.csr_array(described) if sparse.issparse(described) else described
        return type(self)(indptr, words, counts, other.n_words, described)

    @cached_property
    def is_whole(self):
        """Whether every count is a whole number, so that every token weighs 1."""
        return bool(np.all(self.counts == np.floor(self.counts)))

    @property
    def is_hardly_whole(self):
        """Whether hardly any count is a whole number, or all are logarithms or roots of whole numbers."""
        some = self.counts[:: max(1, self.counts.size // _SEEN)]
        share = np.mean(some == np.floor(some)) if some.size else 1.0
        if some.size < _FEWEST or share > 1.0 - _HARDLY:
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            back = (f(some) for f in (np.expm1, lambda x: np.exp2(x) - 1, lambda x: 10**x - 1, np.square))
            return share < _HARDLY or any(np.all(np.abs(x - np.rint(x)) <= 1e-4 * np.maximum(x, 1.0)) for x in back)

    @property
    def has_unit_rows(self):
        """Whether all rows that are not empty have Euclidean length 1, or all have sum 1."""
        first = self.indptr[np.flatnonzero(np.diff(self.indptr))]
        return not first.size or any(
            np.allclose(np.add.reduceat(values, first), 1.0, atol=1e-5) for values in (self.counts, self.counts**2)
        )

    def expand_tokens(self):
        """The tokens of the documents, one entry for each.

        Returns
        -------
        indptr : ndarray of int64, shape (n_docs + 1,)
            The tokens of document d are ``indptr[d]:indptr[d + 1]``.
        words : ndarray of int32, shape (n_tokens,)
            Column of each token, ascending within a document.
        weights : ndarray of float64, shape (n_tokens,), or (0,) if every token weighs 1
            1, or x - floor(x) for the last token of a pair whose count x is not whole.
        """
        repeats = self.tokens_per_pair
        ends = np.concatenate([[0], np.cumsum(repeats)])
        words = np.repeat(self.words, repeats)
        if self.is_whole:
            return ends[self.indptr], words, np.empty(0)
        weights = np.ones(ends[-1])
        weights[ends[1:] - 1] = self.counts - (repeats - 1)
        return ends[self.indptr], words, weights

    def to_csr(self):
        """The counts as scipy.sparse.csr_array of shape (n_docs, n_words), a copy."""
        # With copy=True, SciPy chooses the index type.
        return sparse.csr_array((self.counts, self.words, self.indptr), shape=(self.n_docs, self.n_words), copy=True)
