"""Which draws are scored, and which chain is the reference."""

import numpy as np
from scipy import sparse

from ...chains.convergence import evenly
from ...metrics import document_completion, split_tokens

# Draws that held-out scores average over, evenly spaced over the kept ones; each costs a fit of all documents.
_SCORED_DRAWS = 10
_REFERENCE_DOCS = 1000  # documents used to choose a reference chain


def scored_draws(n_draws):
    """Indices of the draws that held-out scores average over."""
    return evenly(n_draws, _SCORED_DRAWS)


def best_chain(means, data, doc_prior_of):
    """The chain whose mean topics predict hidden words best, on up to 1000 of the fitted documents.

    Parameters
    ----------
    means : ndarray of shape (n_chains, n_topics, n_words)
    data : TokenData
    doc_prior_of : callable
        Function from the index of a chain and those of documents to the documents' Dirichlet prior.
    """
    some = evenly(data.n_docs, _REFERENCE_DOCS)
    weights = data.weights if data.weights.size else np.ones(data.words.size)
    counts = sparse.csr_array((weights, data.words, data.token_ptr), shape=(data.n_docs, data.n_words))[some]
    counts.sum_duplicates()
    observed, hidden = split_tokens(counts)
    if hidden.nnz == 0:
        return 0
    scores = [
        document_completion(observed, hidden, mean, doc_topic_prior=doc_prior_of(c, some)).score
        for c, mean in enumerate(means)
    ]
    return int(np.argmax(scores))
