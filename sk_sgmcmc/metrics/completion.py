"""Document completion, the measure of held-out quality of topic models of counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import Bunch

from ..kernels import completion as kernels
from ..utils import Corpus, check_counts, rng_from_key, row_keys
from ..utils._numbers import check_n_jobs
from ..utils._seeds import counter_uniforms, mix64, salt64
from ..utils._typing import FloatArray, MatrixLike, Seed

# From this count on, the tokens of an entry are split by one binomial draw instead of one coin for each token.
_MANY = 4096
# Number of coins to toss at once, so that memory use does not grow with the corpus.
_BLOCK = 4_000_000


def split_tokens(
    X: MatrixLike, fraction: float = 0.5, random_state: Seed = 0
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Split each document at random into observed and hidden tokens.

    Parameters
    ----------
    X : array-like or sparse of shape (n_samples, n_features)
        Counts, as ``sk_sgmcmc.utils.check_counts`` accepts them. A fractional entry x consists of floor(x) tokens and
        one token of weight x - floor(x).
    fraction : float, default=0.5
        Probability that a token is observed, in [0, 1].
    random_state : None, int, RandomState, Generator or SeedSequence, default=0
        Seed of the split.

    Returns
    -------
    observed, hidden : scipy.sparse.csr_array of float64, shape (n_samples, n_features)
        Their sum is X (exactly for whole numbers, otherwise up to rounding). They store no zeros.

    Notes
    -----
    The random numbers of a row depend only on the row's content and the seed. The split of a document therefore depends
    neither on the other documents nor on their order, and scores of two models on the same document are always
    comparable. Equal documents are split equally.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc.metrics import split_tokens
    >>> X = np.array([[8, 6, 0, 0], [0, 0, 7, 9]])
    >>> observed, hidden = split_tokens(X)
    >>> bool(np.all((observed + hidden).toarray() == X))
    True
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"fraction must lie in [0, 1], got {fraction!r}; 0.5 is the usual choice.")
    X = check_counts(X, whom="split_tokens")
    keys = mix64(row_keys(X) ^ salt64(random_state))
    kept = np.empty(X.nnz)
    indptr = X.indptr.astype(np.int64)
    whole = np.floor(X.data)
    coins = np.where(whole < _MANY, np.ceil(X.data), 0.0).astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(coins)])
    start = 0
    while start < X.shape[0]:
        stop = int(np.searchsorted(ends[indptr], ends[indptr[start]] + _BLOCK, side="right")) - 1
        stop = min(max(stop, start + 1), X.shape[0])
        _toss_coins(kept, X, start, stop, indptr, whole, coins, ends, keys, fraction)
        start = stop
    for pair in np.flatnonzero(whole >= _MANY):
        row = np.searchsorted(indptr, pair, side="right") - 1
        rng = rng_from_key(keys[row], X.indices[pair])
        kept[pair] = rng.binomial(int(whole[pair]), fraction)
        kept[pair] += (X.data[pair] - whole[pair]) * (rng.random() < fraction)
    hidden = X.data - kept
    return _same_pattern(X, kept), _same_pattern(X, hidden)


def _toss_coins(kept, X, start, stop, indptr, whole, coins, ends, keys, fraction):
    """Write the observed counts of the rows start:stop to ``kept``, with one coin for each token."""
    lo, hi = indptr[start], indptr[stop]
    if lo == hi:
        return
    tokens_of_row = ends[indptr[start + 1 : stop + 1]] - ends[indptr[start:stop]]
    # The position of a token within its row is its position in the row's stream.
    first = np.repeat(ends[indptr[start:stop]], tokens_of_row)
    counters = np.arange(ends[lo], ends[hi]) - first
    heads = counter_uniforms(np.repeat(keys[start:stop], tokens_of_row), counters) < fraction
    weights = np.ones(heads.size)
    some = coins[lo:hi] > 0
    last = (ends[lo + 1 : hi + 1] - ends[lo] - 1)[some]
    leftover = (X.data[lo:hi] - whole[lo:hi])[some]
    weights[last[leftover > 0]] = leftover[leftover > 0]
    kept[lo:hi] = 0.0
    kept[lo:hi][some] = np.add.reduceat(heads * weights, (ends[lo:hi] - ends[lo])[some]) if heads.size else 0.0


def _same_pattern(X, data):
    """A matrix with the sparsity pattern of X and new values; zeros are dropped."""
    out = sparse.csr_array((data, X.indices.copy(), X.indptr.copy()), shape=X.shape)
    out.eliminate_zeros()
    return out


# Smallest probability of a hidden token, so that the score is finite if a token is impossible under every draw.
FLOOR = 1e-12
# Pair-topic updates in one kernel call, about half a second of work, so that Ctrl-C takes effect between calls.
_WORK_PER_CALL = 1_000_000_000
_WORDS_AT_ONCE = 10_000  # words to transpose at once, so that no second copy of the topics is made


def document_completion(
    observed: MatrixLike,
    hidden: MatrixLike,
    topics: ArrayLike | Sequence[ArrayLike],
    *,
    doc_topic_prior: float | ArrayLike | Callable[..., Any] = 0.1,
    n_updates: int = 50,
    average: Literal["draws", "running", "window"] = "draws",
    window: int | None = None,
    n_jobs: int | None = None,
) -> Bunch:
    r"""Mean log predictive probability of hidden tokens, given the observed tokens of the same document.

    For draw s with topics :math:`\phi^{(s)}` and prior :math:`\alpha`, the proportions :math:`\theta^{(s)}_d` of
    document d are fitted to its observed counts :math:`n_{dw}`. Starting from :math:`m_k = n_{d\cdot} / K`, there are
    exactly ``n_updates`` fixed-point steps:

    .. math:: m_k \leftarrow (m_k + \alpha_k)
              \sum_w n_{dw} \frac{\phi_{kw}}{\sum_l (m_l + \alpha_l) \phi_{lw}},
              \qquad \theta^{(s)}_{dk} = \frac{m_k + \alpha_k}{\sum_l (m_l + \alpha_l)}.

    The hidden counts :math:`h_{dw}` are scored with probabilities that are averaged over draws:

    .. math:: \mathrm{score} = \frac{\sum_{dw} h_{dw} \log \bar p_{dw}}{\sum_{dw} h_{dw}}, \qquad
              \bar p_{dw} = \max\Bigl(\frac1S \sum_s \sum_k \theta^{(s)}_{dk} \phi^{(s)}_{kw}, 10^{-12}\Bigr).

    Parameters
    ----------
    observed, hidden : array-like or sparse of shape (n_samples, n_features)
        The two parts of the documents, see `split_tokens`.
    topics : array of shape (..., n_components, n_features), or list of (n_components, n_features)
        Word probabilities of the topics; rows sum to 1. Leading axes, (n_draws,) or (n_chains, n_draws), are draws over
        which to average, in this order. In a list, draws may differ in their number of topics.
    doc_topic_prior : float, array or callable, default=0.1
        The Dirichlet parameter alpha. Pass an array of shape (n_components,) for all documents,
        (n_samples, n_components) for each document, or (n_draws, 1 or n_samples, 1 or n_components) for each draw.
        To save memory, pass a callable that maps the index of a draw to a number or one of the first two arrays.
    n_updates : int, default=50
        Number of fixed-point steps.
    average : {"draws", "running", "window"}, default="draws"
        "draws" scores the average over all draws, as defined above. The others also return a score after each draw, as
        in papers that plot scores during sampling. They average over all draws up to that draw ("running"), or over the
        last ``window`` draws ("window").
    window : int, default=None
        Number of draws in the window. Required by ``average="window"``.
    n_jobs : int, default=None
        Number of threads over documents, as in joblib. The result is bitwise the same for every number.

    Returns
    -------
    result : sklearn.utils.Bunch
        ``score`` : float, mean log predictive probability of a hidden token, higher is better.
        ``perplexity`` : float, exp(-score).
        ``standard_error`` : float, standard error of the score over documents; NaN for fewer than two documents.
        ``log_predictive`` : ndarray (n_samples,), sum of the log probabilities of each document's hidden tokens.
        ``n_hidden`` : ndarray (n_samples,), number of hidden tokens of each document.
        ``scores`` : ndarray (n_draws,), for "running" and "window": the score after each draw (``score`` is the last).

    See Also
    --------
    paired_difference : Compare two models on the same documents.
    completion_perplexity : Return only the perplexity.

    Notes
    -----
    The score of a document does not depend on the other documents, on their order or on ``n_jobs``. Documents without
    hidden tokens are ignored. All steps but the last are made in single precision, which changes proportions by less
    than 1e-6 and a score of many documents by about 1e-9. The standard error is that of a ratio of two means (delta
    method): :math:`\sqrt{\tfrac{D}{D-1} \sum_d (\ell_d - \mathrm{score} \cdot h_d)^2} / \sum_d h_d` over the D
    documents with hidden tokens.

    References
    ----------
    H. Wallach, I. Murray, R. Salakhutdinov and D. Mimno (2009), Evaluation methods for topic models, ICML, section 5.1
    (document completion). J. Baker, P. Fearnhead, E. Fox and C. Nemeth (2018), Large-scale stochastic sampling from
    the probability simplex, NeurIPS, section 4.2 (running average).

    Examples
    --------
    >>> from sk_sgmcmc.datasets import make_lda
    >>> from sk_sgmcmc.metrics import (
    ...     document_completion,
    ...     paired_difference,
    ...     split_tokens,
    ... )
    >>> data = make_lda(random_state=0)
    >>> observed, hidden = split_tokens(data.data)
    >>> five = document_completion(observed, hidden, data.components)
    >>> four = document_completion(observed, hidden, data.components[:4])
    >>> five.perplexity < four.perplexity
    True
    >>> paired_difference(five, four).z > 5
    True
    """
    observed = Corpus.from_counts(observed, input_name="observed", whom="document_completion")
    hidden = Corpus.from_counts(hidden, input_name="hidden", whom="document_completion")
    if (observed.n_docs, observed.n_words) != (hidden.n_docs, hidden.n_words):
        raise ValueError(
            f"observed has shape {(observed.n_docs, observed.n_words)} and hidden {(hidden.n_docs, hidden.n_words)}; "
            "they must be two parts of the same documents, as split_tokens returns them."
        )
    if hidden.words.size == 0:
        raise ValueError(
            f"None of the {hidden.n_docs} documents has a hidden token, so there is nothing to score; "
            "pass documents with at least a few tokens each."
        )
    if average not in ("draws", "running", "window"):
        raise ValueError(f'average must be "draws", "running" or "window", got {average!r}.')
    if average == "window" and (window is None or window < 1):
        raise ValueError(f'average="window" needs window=<number of draws>, at least 1; got window={window!r}.')
    topics = as_draws(topics)
    used, (observed, hidden) = used_words(observed, hidden)
    last = []  # probabilities under the draws in the window
    total, scores = np.zeros(hidden.words.size), []
    for s, draw in enumerate(topics):
        phi = word_major(draw, observed.n_words, used)
        prior = prior_of_draw(doc_topic_prior, s, len(topics), observed.n_docs, phi.shape[1])
        p = _draw_probabilities(observed, hidden, phi, prior, n_updates, n_jobs)
        if average == "window":
            last = [*last[-(window - 1) :], p] if window > 1 else [p]
            total, n_averaged = np.sum(last, axis=0), len(last)
        else:
            total += p
            n_averaged = s + 1
        if average != "draws":
            log_predictive = _log_predictive(hidden, total / n_averaged)
            scores.append(math.fsum(log_predictive) / math.fsum(hidden.doc_lengths))
    result = _summary(_log_predictive(hidden, total / n_averaged), np.array(hidden.doc_lengths))
    if average != "draws":
        result.scores = np.array(scores)
    return result


def joined_results(results):
    """Combine results of `document_completion` for several sets of documents into the result for all documents."""
    return _summary(*(np.concatenate([each[name] for each in results]) for name in ("log_predictive", "n_hidden")))


def completion_perplexity(
    observed: MatrixLike, hidden: MatrixLike, topics: ArrayLike | Sequence[ArrayLike], **params: Any
) -> float:
    """Perplexity of hidden tokens, exp of minus the score of `document_completion`; lower is better.

    Parameters
    ----------
    observed, hidden, topics, **params
        As for `document_completion`.

    Returns
    -------
    float
        Perplexity; an ndarray of shape (n_draws,) if ``average`` is "running" or "window".

    Examples
    --------
    >>> from sk_sgmcmc.metrics import completion_perplexity, split_tokens
    >>> observed, hidden = split_tokens([[8, 6, 0, 0], [0, 0, 7, 9]])
    >>> topics = [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    >>> bool(
    ...     2.0 <= completion_perplexity(observed, hidden, topics) < 2.1
    ... )  # two words are as likely
    True
    """
    result = document_completion(observed, hidden, topics, **params)
    return np.exp(-result.scores) if "scores" in result else result.perplexity


def paired_difference(a: Bunch, b: Bunch) -> Bunch:
    r"""Difference of the scores of two models on the same hidden tokens, with its standard error.

    Scores differ far more between documents than between two models on the same document. The standard error of the
    difference is therefore much smaller than the standard errors of the two scores suggest:

    .. math:: \Delta = \frac{\sum_d (\ell^a_d - \ell^b_d)}{\sum_d h_d}, \qquad
              \mathrm{se} = \frac{\sqrt{\tfrac{D}{D-1} \sum_d (\ell^a_d - \ell^b_d - \Delta h_d)^2}}{\sum_d h_d}.

    Parameters
    ----------
    a, b : results of `document_completion`
        Results for the same observed and hidden tokens.

    Returns
    -------
    result : sklearn.utils.Bunch
        ``difference`` : float, score of a minus score of b, positive if a is better.
        ``standard_error`` : float, standard error of the difference.
        ``z`` : float, ratio of difference and standard error (0 if both are 0).
        ``n_documents`` : int, number of documents with hidden tokens.

    Examples
    --------
    >>> from sk_sgmcmc.metrics import (
    ...     document_completion,
    ...     paired_difference,
    ...     split_tokens,
    ... )
    >>> halves = split_tokens([[8, 6, 0, 0], [0, 0, 7, 9], [5, 5, 0, 1]])
    >>> good = document_completion(
    ...     *halves, [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    ... )
    >>> flat = document_completion(*halves, [[0.25, 0.25, 0.25, 0.25]] * 2)
    >>> bool(paired_difference(good, flat).difference > 0)
    True
    """
    if a.n_hidden.shape != b.n_hidden.shape or not np.array_equal(a.n_hidden, b.n_hidden):
        raise ValueError(
            "a and b were scored on different hidden tokens; call split_tokens once and pass the same "
            "observed and hidden matrices to document_completion for both models."
        )
    summary = _summary(a.log_predictive - b.log_predictive, a.n_hidden)
    difference, error = summary.score, summary.standard_error
    if error == 0:
        z = 0.0 if difference == 0 else math.copysign(math.inf, difference)
    else:
        z = difference / error
    return Bunch(difference=difference, standard_error=error, z=z, n_documents=int((a.n_hidden > 0).sum()))


def doc_topic_proportions(
    X: MatrixLike,
    topics: ArrayLike,
    doc_topic_prior: float | ArrayLike = 0.1,
    n_updates: int = 50,
    *,
    n_jobs: int | None = None,
) -> FloatArray:
    """Topic proportions of documents given topics, by the fixed-point steps of `document_completion`.

    Parameters
    ----------
    X : array-like or sparse of shape (n_samples, n_features)
        Counts.
    topics : array of shape (..., n_components, n_features)
        Topics as for `document_completion`. Proportions are averaged over draws, so all draws must have their topics in
        the same order (see `align_draws`).
    doc_topic_prior : float, array or callable, default=0.1
        As for `document_completion`.
    n_updates : int, default=50
        Number of fixed-point steps.
    n_jobs : int, default=None
        Number of threads over documents. The result is bitwise the same for every number.

    Returns
    -------
    proportions : ndarray of shape (n_samples, n_components)
        Rows sum to 1. The row of a document without tokens is the mean of the prior.

    Examples
    --------
    >>> from sk_sgmcmc.metrics import doc_topic_proportions
    >>> topics = [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    >>> doc_topic_proportions([[8, 6, 0, 0], [3, 3, 3, 3]], topics).round(
    ...     2
    ... ).tolist()
    [[0.99, 0.01], [0.5, 0.5]]
    """
    corpus = Corpus.from_counts(X, whom="doc_topic_proportions")
    topics = as_draws(topics)
    used, (corpus,) = used_words(corpus)
    total = 0.0
    for s, draw in enumerate(topics):
        phi = word_major(draw, corpus.n_words, used)
        prior = prior_of_draw(doc_topic_prior, s, len(topics), corpus.n_docs, phi.shape[1])
        total = total + _proportions(corpus, phi, prior, n_updates, n_jobs)
    return total / total.sum(axis=1, keepdims=True)


def as_draws(topics):
    """Convert a matrix (n_components, n_features) or a stack of matrices to a sequence of matrices, one per draw.

    Fitted models pass a list of functions instead, which map indices of words to the words' probabilities (n_used,
    n_components). A few documents use only few of the words, so this avoids making and checking whole matrices.
    """
    if isinstance(topics, (list, tuple)) and len(topics) and (callable(topics[0]) or np.ndim(topics[0]) == 2):
        return topics
    topics = np.asarray(topics)
    if topics.ndim == 2:
        topics = topics[None]
    if topics.ndim < 3 or topics.shape[0] == 0:
        raise ValueError(
            f"topics must be a matrix (n_components, n_features) or a non-empty stack of them, got an array of shape "
            f"{topics.shape}."
        )
    return topics.reshape(-1, *topics.shape[-2:])


def used_words(*corpora):
    """The words that occur, and the corpora with word indices into these; n_words stays the full width for checks."""
    n_words = corpora[0].n_words
    occurs = np.zeros(n_words, dtype=bool)
    for corpus in corpora:
        occurs[corpus.words] = True
    used = np.flatnonzero(occurs)
    place = np.cumsum(occurs) - 1
    return used, [Corpus(c.indptr, place[c.words], c.counts, n_words) for c in corpora]


def word_major(topics, n_words, used):
    """Check one draw, and return its probabilities of the used words, (n_used, n_components) float64, C-contiguous."""
    if callable(topics):
        return topics(used)
    topics = np.asarray(topics)
    if topics.ndim != 2 or topics.shape[1] != n_words:
        raise ValueError(
            f"topics has shape {topics.shape}, but the documents have {n_words} columns; "
            f"each draw must have shape (n_components, {n_words})."
        )
    sums = topics.sum(axis=1, dtype=np.float64)
    if not np.all(np.abs(sums - 1.0) < 1e-3) or topics.min() < 0:
        raise ValueError(
            "topics must be non-negative with rows that sum to 1; here the sums run from "
            f"{sums.min():g} to {sums.max():g} and the smallest entry is {topics.min():g}. "
            "Pass topics / topics.sum(axis=1, keepdims=True)."
        )
    return words_of(topics, used)


def words_of(topics, used):
    """Columns ``used`` of topics (n_components, n_features), transposed: float64 (n_used, n_components)."""
    out = np.empty((used.size, topics.shape[0]))
    for start in range(0, used.size, _WORDS_AT_ONCE):
        part = slice(start, start + _WORDS_AT_ONCE)
        out[part] = topics[:, used[part]].T
    return out


class DirichletPrior:
    """Dirichlet distributions of the proportions of documents.

    Fitted models with another prior pass an object with the same methods in place of the parameters.

    Parameters
    ----------
    alpha : ndarray of shape (1, n_topics) or (n_docs, n_topics)
        C-contiguous; one row for all documents, or one for each.
    """

    def __init__(self, alpha):
        self.alpha = alpha

    @property
    def mean_sum(self):
        """Sum of the parameters, averaged over the rows."""
        return self.alpha.sum(axis=1).mean()

    def proportions(self, indptr, words, counts, phi, n_updates, start, stop, theta):
        """Write the proportions of documents start:stop given topics ``phi`` into ``theta``; see the kernel."""
        kernels.proportions(indptr, words, counts, phi, self.alpha, n_updates, start, stop, theta)


def prior_of_draw(prior, s, n_draws, n_docs, n_topics, make=DirichletPrior):
    """The prior of the documents in draw s: ``make`` of its Dirichlet parameters, or the object that a model passes."""
    prior = prior(s) if callable(prior) else prior
    if hasattr(prior, "proportions"):
        return prior
    prior = alpha = np.asarray(prior, dtype=np.float64)
    if alpha.ndim == 3:
        if alpha.shape[0] != n_draws:
            raise ValueError(
                f"doc_topic_prior has shape {prior.shape}, whose first axis counts draws, but topics has "
                f"{n_draws} draws; the first axis must have that length."
            )
        alpha = alpha[s]
    if alpha.ndim < 2:
        alpha = alpha.reshape(1, -1)
    if alpha.ndim > 2 or alpha.shape[0] not in (1, n_docs) or alpha.shape[1] not in (1, n_topics):
        raise ValueError(
            f"doc_topic_prior has shape {prior.shape}; it must be a number, ({n_topics},) for all documents, "
            f"({n_docs}, {n_topics}) for each document, or a leading axis of draws before that."
        )
    if not (np.all(alpha > 0) and np.all(np.isfinite(alpha))):
        raise ValueError(f"doc_topic_prior must be positive and finite, but its smallest entry is {alpha.min():g}.")
    return make(np.ascontiguousarray(np.broadcast_to(alpha, (alpha.shape[0], n_topics))))


def over_documents(call, corpus, cost_per_pair, n_jobs):
    """Run ``call(start, stop)`` over ranges that cover the documents, in up to ``n_jobs`` threads."""
    n_threads = check_n_jobs(n_jobs)
    work = corpus.words.size * cost_per_pair
    n_ranges = max(n_threads, math.ceil(work / _WORK_PER_CALL))
    # Ranges of about equal numbers of pairs; with few documents, some ranges are empty.
    cuts = np.searchsorted(corpus.indptr, np.linspace(0, corpus.words.size, n_ranges + 1)[1:-1])
    cuts = np.unique(np.concatenate([[0], np.minimum(cuts, corpus.n_docs), [corpus.n_docs]])).tolist()
    ranges = list(itertools.pairwise(cuts))
    if n_threads == 1:
        for start, stop in ranges:
            call(start, stop)
    else:
        Parallel(n_jobs=n_threads, require="sharedmem")(delayed(call)(start, stop) for start, stop in ranges)


def _proportions(corpus, phi, prior, n_updates, n_jobs):
    """Proportions under one draw, ndarray of shape (n_docs, n_components)."""
    if n_updates < 1:
        raise ValueError(f"n_updates must be at least 1, got {n_updates}.")
    theta = np.empty((corpus.n_docs, phi.shape[1]))

    def call(start, stop):
        prior.proportions(corpus.indptr, corpus.words, corpus.counts, phi, int(n_updates), start, stop, theta)

    over_documents(call, corpus, phi.shape[1] * n_updates, n_jobs)
    return theta


def _draw_probabilities(observed, hidden, phi, prior, n_updates, n_jobs):
    """Probability of each distinct hidden (document, word) pair under one draw, ndarray of shape (n_pairs,)."""
    theta = _proportions(observed, phi, prior, n_updates, n_jobs)
    p = np.empty(hidden.words.size)

    def call(start, stop):
        kernels.word_probabilities(hidden.indptr, hidden.words, phi, theta, start, stop, p)

    over_documents(call, hidden, phi.shape[1], n_jobs)
    return p


def _log_predictive(hidden, p):
    """Sum over each document's hidden tokens of log p, ndarray of shape (n_docs,)."""
    rows = np.repeat(np.arange(hidden.n_docs), np.diff(hidden.indptr))
    terms = hidden.counts * np.log(np.maximum(p, FLOOR))
    return np.bincount(rows, weights=terms, minlength=hidden.n_docs)


def _summary(log_predictive, n_hidden):
    """Score and standard error, with exactly rounded sums so that they do not depend on the order of documents."""
    total = math.fsum(n_hidden)
    score = math.fsum(log_predictive) / total
    scored = n_hidden > 0
    n_docs = int(scored.sum())
    if n_docs > 1:
        residual = (log_predictive - score * n_hidden)[scored]
        error = math.sqrt(n_docs / (n_docs - 1) * math.fsum(residual**2)) / total
    else:
        error = math.nan
    return Bunch(
        score=score,
        perplexity=math.exp(-score) if score > -700 else math.inf,
        standard_error=error,
        log_predictive=log_predictive,
        n_hidden=n_hidden,
    )
