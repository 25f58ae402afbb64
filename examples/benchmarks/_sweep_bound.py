"""The least time of a collapsed sweep on this machine: what any exact sampler of one token after the other has to do.

For each token it reads the word, takes the token out of its topic, reads the counts of the word in the topics of the
document, and draws one of these topics with one random number. Only the counts of the document are updated, because
the next token depends on them. Topics outside the document are left out.
"""

import time

import numba
import numpy as np


@numba.njit(cache=True)
def _stream(token_ptr, words, table, of_doc, n_doc, factor, drawn):
    """Draw a topic of its document for each token; ``drawn`` numbers the topics within the row of ``of_doc``."""
    running, own = np.empty(of_doc.shape[1], np.float32), np.empty(of_doc.shape[1], np.float32)
    counter = np.uint64(1)
    for d in range(token_ptr.size - 1):
        own[:] = np.float32(5.0)
        for i in range(token_ptr[d], token_ptr[d + 1]):
            w = words[i]
            own[drawn[i]] -= np.float32(1.0)
            total = np.float32(0.0)
            for j in range(n_doc[d]):
                k = of_doc[d, j]
                total += own[j] * factor[k] * (np.float32(table[w, k]) + np.float32(0.01))
                running[j] = total
            counter = counter * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            u = np.float32(np.int64(counter >> np.uint64(40))) * np.float32(2.0**-24) * total
            at = 0
            for j in range(n_doc[d] - 1):
                at += running[j] < u
            own[at] += np.float32(1.0)
            drawn[i] = at


def bound_ns(X, topics_per_document, n_topics, seed=0):
    """Nanoseconds a token of the least work of a sweep, the smallest of three runs.

    Parameters
    ----------
    X : sparse matrix of shape (n_samples, n_features)
        Counts of words.
    topics_per_document : float or ndarray of shape (n_samples,)
        Number of topics that the tokens of a document belong to, say in a fitted model.
    n_topics : int
    seed : int

    Returns
    -------
    float
    """
    rng, X = np.random.default_rng(seed), X.tocsr()
    counts = X.data.astype(np.int64)
    token_ptr = np.concatenate([[0], np.cumsum(counts)])[X.indptr]
    words = np.repeat(X.indices.astype(np.int32), counts)
    n_doc = np.broadcast_to(np.rint(topics_per_document), X.shape[:1]).astype(np.int64).clip(1, n_topics)
    of_doc = rng.integers(n_topics, size=(X.shape[0], n_doc.max())).astype(np.uint16)
    table = np.zeros((X.shape[1], n_topics), dtype=np.uint16)
    docs = np.repeat(np.arange(X.shape[0]), np.diff(token_ptr))
    drawn = (rng.random(words.size) * n_doc[docs]).astype(np.uint16)
    np.add.at(table, (words, of_doc[docs, drawn]), 1)
    factor = rng.random(n_topics).astype(np.float32)
    arguments = token_ptr, words, table, of_doc, n_doc, factor, drawn
    _stream(token_ptr[:2], *arguments[1:])
    seconds = []
    for _ in range(3):
        began = time.process_time()
        _stream(*arguments)
        seconds.append(time.process_time() - began)
    return 1e9 * min(seconds) / words.size
