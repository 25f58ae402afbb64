"""Corpora of the comparison of topic models: by name, from a folder, or planted."""

import functools
from pathlib import Path

import numpy as np
from _peers import counts_of
from intervals import Design, plant
from scipy import sparse

# Documents, tokens of each, words, topics, the prior of topics' words, and the sum of a document's prior.
DESIGNS = {
    "short-clear": Design(1000, 12, 200, 5, 0.05, 1.0),
    "short-overlapping": Design(1000, 12, 200, 5, 0.5, 2.0),
    "long-clear": Design(300, 150, 300, 5, 0.05, 1.0),
    "long-overlapping": Design(300, 150, 300, 5, 0.5, 2.0),
}
SMALL_DESIGN = Design(60, 20, 50, 3, 0.1, 1.0)


def many_words(n_words, n_docs=20_000, length=80, seed=0, n_topics=50):
    """Documents of two topics each and a common part; each topic's words follow Zipf's law in an order of its own.

    Lengths and topics of documents do not depend on the number of words.
    """
    rng = np.random.default_rng(seed)
    cdf = np.cumsum(1.0 / (np.arange(n_words) + 10.0))
    orders = np.array([rng.permutation(n_words) for _ in range(n_topics)])
    own = np.random.default_rng(seed + 1)
    lengths = own.poisson(length, n_docs) + 1
    doc = np.repeat(np.arange(n_docs), lengths)
    ranks = np.searchsorted(cdf, own.random(doc.size) * cdf[-1])
    topic = own.integers(0, n_topics, (n_docs, 2))[doc, own.integers(0, 2, doc.size)]
    words = np.where(own.random(doc.size) < 0.5, ranks, orders[topic, ranks])
    return sparse.coo_matrix((np.ones(doc.size), (doc, words)), shape=(n_docs, n_words)).tocsr()


def of_folder(folder):
    """Counts of a folder with ``counts.npz``, a matrix of documents and words as `scipy.sparse.save_npz` writes it."""
    file = Path(folder) / "counts.npz"
    if not file.exists():
        raise SystemExit(f"{folder} must contain counts.npz, written by scipy.sparse.save_npz; got no such file.")
    return sparse.load_npz(file).tocsr()


@functools.cache
def corpus_of(name):
    """Counts of a corpus.

    Parameters
    ----------
    name : str
        "docstrings", "synthetic", a name that `fetch_corpus` takes, a path of a folder, a key of `DESIGNS`, or
        "planted-V" for 20,000 documents of V words. "fifth-of-" before a name: a random fifth of the documents.
    """
    if name.startswith("fifth-of-"):
        counts = corpus_of(name.removeprefix("fifth-of-"))
        return counts[np.random.default_rng(0).permutation(counts.shape[0])[: counts.shape[0] // 5]]
    if name in DESIGNS:
        return plant(DESIGNS[name], seed=0).counts.tocsr()
    if name.startswith("planted-"):
        return many_words(int(name.removeprefix("planted-")))
    return of_folder(name) if "/" in name or Path(name).is_dir() else counts_of(name)
