"""The quantities in ``diagnostics_`` of a count topic model, foremost how well draws predict held-out tokens."""

import numpy as np
from scipy import sparse

from ...chains.convergence import evenly
from ...kernels import completion
from ...metrics import split_tokens
from ...metrics.completion import prior_of_draw

_SEEN_DRAWS = 45  # Evaluated draws of a chain, evenly spaced.
# Share of the tokens that documents of a probe have; its bounds, in tokens. With 4,000 instead of 20,000, 2 of 24
# default fits to addresses of presidents warned of changes that were chance.
_SHARE, _LEAST, _MOST = 0.01, 20_000, 40_000
_FEWEST_DOCS = 20
_UPDATES = 12  # Fixed-point updates of a document's proportions.
_FLOOR = 1e-300


class PredictiveProbe:
    """A sample of documents, each split into observed and hidden tokens.

    Parameters
    ----------
    data : Shard
        Documents to sample from.
    """

    def __init__(self, data):
        self.docs = _some(data)
        start, stop = data.token_ptr[self.docs], data.token_ptr[self.docs + 1]
        ptr = np.concatenate([[0], np.cumsum(stop - start)])
        of_docs = np.arange(ptr[-1]) + np.repeat(start - ptr[:-1], stop - start)
        weights = data.weights[of_docs] if data.weights.size else np.ones(of_docs.size)
        counts = sparse.csr_array((weights, data.words[of_docs], ptr), shape=(self.docs.size, data.n_words))
        counts.sum_duplicates()
        observed, hidden = split_tokens(counts)
        self.words, place = np.unique(np.concatenate([observed.indices, hidden.indices]), return_inverse=True)
        places = np.split(place.astype(np.int32), [observed.nnz])
        self._observed, self._hidden = (
            (part.indptr.astype(np.int64), where, part.data.astype(np.float64))
            for part, where in zip((observed, hidden), places, strict=True)
        )

    @property
    def is_empty(self):
        """Whether no token is hidden."""
        return self._hidden[1].size == 0

    def look(self, phi, alpha):
        """Mean log probability of a hidden token, and the mean proportions of the documents.

        Parameters
        ----------
        phi : ndarray of shape (n_words, n_topics)
            Probabilities of the words ``self.words`` in each topic.
        alpha : ndarray of shape (n_topics,) or (n_docs, n_topics)
            The documents' prior, as `document_completion` takes it.
        """
        phi = np.ascontiguousarray(phi)
        theta = self._proportions(phi, alpha)
        ptr, words, counts = self._hidden
        p = np.empty(words.size)
        completion.word_probabilities(ptr, words, phi, theta, 0, self.docs.size, p)
        return counts @ np.log(np.maximum(p, _FLOOR)) / counts.sum(), theta.mean(axis=0)

    def topic_shares(self, phi, alpha):
        """Each topic's share of the observed tokens, (n_topics,); arguments as for `look`."""
        ptr, _, counts = self._observed
        shares = np.add.reduceat(np.append(counts, 0.0), ptr[:-1]) * (np.diff(ptr) > 0) @ self._proportions(phi, alpha)
        return shares / shares.sum()

    def prior_of(self, alpha, n_topics):
        """The documents' prior as an object, as from `prior_of_draw`."""
        return prior_of_draw(alpha, 0, 1, self.docs.size, n_topics)

    def _proportions(self, phi, alpha):
        """Topic proportions of the documents given their observed tokens, (n_docs, n_topics)."""
        theta = np.empty((self.docs.size, phi.shape[1]))
        prior = self.prior_of(alpha, phi.shape[1])
        prior.proportions(*self._observed, np.ascontiguousarray(phi), _UPDATES, 0, self.docs.size, theta)
        return theta


def log_of_shares(probe, word_shares):
    """Mean log probability of a hidden token of a `PredictiveProbe` if words have probabilities ``word_shares``."""
    if probe.is_empty:
        return -np.inf
    return probe.look(word_shares[probe.words, None], np.ones(1))[0]


def _some(data):
    """Indices of evenly spaced documents, so many that they contain enough tokens."""
    n_tokens = max(1, data.words.size)
    wanted = np.clip(_SHARE * n_tokens, _LEAST, _MOST)
    return evenly(data.n_docs, max(_FEWEST_DOCS, int(np.ceil(data.n_docs * wanted / n_tokens))))


def _spreads(chains):
    """The spread of each chain's particles, as a dict of quantities for `Diagnosis`; empty if it is not known."""
    spreads = [chain.spread() for chain in chains]
    return {} if None in spreads else {"particle_spread": np.array(spreads)[:, None]}


def predictive_draws(chains, draws, prior_of):
    """Monitored quantities at evenly spaced draws, a dict of arrays (n_chains, n_draws) for `Diagnosis`.

    Parameters
    ----------
    chains : list of Chain
        Bound to data.
    draws : TopicDraws
    prior_of : callable
        Called with the data and the indices of a chain, of a draw and of some documents; returns the prior of these
        documents in that draw.
    """
    data = chains[0].data.start
    probe, (n_chains, n_kept, *_) = PredictiveProbe(data), draws.shape
    spreads = _spreads(chains)
    if probe.is_empty:
        return spreads
    seen = evenly(n_kept, _SEEN_DRAWS)
    predictive, entropy, total = np.empty((3, n_chains, seen.size))
    for c, i in np.ndindex(n_chains, seen.size):
        alpha = prior_of(data, c, seen[i], probe.docs)
        predictive[c, i], share = probe.look(draws.mean_of_words(c, seen[i], probe.words), alpha)
        entropy[c, i] = -(share * np.log(np.maximum(share, _FLOOR))).sum()
        total[c, i] = probe.prior_of(alpha, share.size).mean_sum
    found = {"log_predictive": predictive, "topic_entropy": entropy}
    # A prior that is fitted only in burn-in is constant over the kept draws of a chain: there is nothing to monitor.
    found |= {"doc_topic_prior_sum": total} if np.ptp(total, axis=1).any() else {}
    return found | spreads
