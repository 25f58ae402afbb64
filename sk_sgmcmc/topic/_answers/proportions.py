"""Draws of the topic proportions of documents, given draws of the topics."""

import numpy as np

from ...kernels.models.lda import proportions as kernels
from ...metrics.completion import over_documents, prior_of_draw, used_words, word_major
from ...utils import row_keys
from ...utils._seeds import keys_of_copies, mix64, salt64

# Sweeps over a document before its first draw, and between two: topics change little from one draw to the next, so
# that assignments need not be drawn afresh.
_FIRST_SWEEPS, _SWEEPS = 20, 5
_LEAST = 1e-30  # a probability below it counts as this, so that no word is impossible


def proportion_draws(corpus, topics, doc_topic_prior, *, random_state=0, groups=None, n_jobs=None):
    """Draw the proportions of documents once for each draw of the topics.

    Parameters
    ----------
    corpus : Corpus
        Documents.
    topics : list of callable or ndarray
        Draws of the topics, as `document_completion` takes them.
    doc_topic_prior : array or callable
        As for `document_completion`.
    random_state : None, int, RandomState, Generator or SeedSequence, default=0
        Seed. A document's stream depends on it and on the document's content, not on the other documents.
    groups : ndarray of shape (n_docs,), default=None
        Groups of documents over which draws will be averaged. Equal documents then have a stream each; None gives them
        the same one, so that their draws are equal too.
    n_jobs : int or None, default=None
        Threads over documents; change no draw.

    Yields
    ------
    proportions : ndarray of shape (n_docs, n_topics)
        A new array for each draw; rows sum to 1.
    """
    keys = row_keys(corpus.to_csr())
    keys = keys if groups is None else keys_of_copies(keys, groups, *corpus.keys_beside())
    keys = mix64(keys ^ salt64(random_state))
    token_ptr = np.concatenate([[0], np.cumsum(corpus.tokens_per_pair)])
    used, (part,) = used_words(corpus)
    z = np.zeros(token_ptr[-1], dtype=np.uint16)
    for s, draw in enumerate(topics):
        phi = np.maximum(word_major(draw, corpus.n_words, used), _LEAST)
        alpha = prior_of_draw(doc_topic_prior, s, len(topics), corpus.n_docs, phi.shape[1])
        theta, streams = np.empty((corpus.n_docs, phi.shape[1])), mix64(keys + np.uint64(s + 1))
        fresh, n_sweeps = int(s == 0), _FIRST_SWEEPS if s == 0 else _SWEEPS

        def call(start, stop, phi=phi, alpha=alpha, theta=theta, streams=streams, fresh=fresh, n_sweeps=n_sweeps):
            kernels.draw_proportions(
                part.indptr, part.words, part.counts, token_ptr, phi, alpha, streams, fresh, n_sweeps, start, stop, z,
                theta,
            )  # fmt: skip

        over_documents(call, part, phi.shape[1] * n_sweeps, n_jobs)
        yield theta
