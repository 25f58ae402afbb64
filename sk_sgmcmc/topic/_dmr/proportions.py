"""Draws of the proportions of documents given words and metadata, for fitted documents or for others."""

from typing import NamedTuple

import numpy as np

from ...chains.agreement import Agreement
from ...utils import row_keys
from ...utils._seeds import counter_uniforms, keys_of_copies, mix64, salt64
from .._counts.corpus import Described, Shard
from .._results.topics import summed

_FEWEST = 20  # Fewest draws of all documents for which draws from before an update are left out.
_CELLS_AT_ONCE = 4_000_000  # Cells of proportions that are drawn at a time, to limit memory.


class RecordedCounts(NamedTuple):
    """The topic counts of the fitted documents at kept draws, with what their proportions are drawn from.

    Parameters
    ----------
    doc_priors : list of DocumentPrior
        Of each chain.
    draws : list of list of dict
        For each chain and draw, the learnt parameters of the document prior.
    counts : list of list of DocumentCounts
    orders : ndarray of shape (n_chains, n_draws, n_topics)
        Index, among the topics of the chain, of each topic of the model.
    """

    doc_priors: list
    draws: list
    counts: list
    orders: np.ndarray

    @classmethod
    def of_chains(cls, chains, orders):
        """From the chains and the ``orders`` of topics in all kept draws; None if nothing was recorded."""
        if orders is None or any(chain.doc_record is None for chain in chains):
            return None
        steps = [chain.kept_steps[: orders.shape[1]] for chain in chains]
        found = [chain.doc_record.counts for chain in chains]
        places = [s for s in range(orders.shape[1]) if all(own[s] in of for own, of in zip(steps, found, strict=True))]
        places = _over_all(places, [found[0][steps[0][s]].n_docs for s in places])
        if not places:
            return None
        names = [name for name in chains[0].kept if name != "components"]
        return cls(
            [chain.doc_prior for chain in chains],
            [[{name: chain.kept[name][s] for name in names} for s in places] for chain in chains],
            [[of[own[s]] for s in places] for own, of in zip(steps, found, strict=True)],
            orders[:, places],
        )


def _over_all(places, sizes):
    """The draws of all documents, unless updates have left only few of them; otherwise all draws."""
    over_all = [s for s, size in zip(places, sizes, strict=True) if size == max(sizes)]
    return over_all if len(over_all) >= _FEWEST else places


class RecordedProportions:
    """Draws of the proportions of the fitted documents, given the topics of their tokens at kept draws.

    Parameters
    ----------
    recorded : RecordedCounts
    encoder : MetadataEncoder
    observed : ObservedMetadata
        Of the documents, in the order in which they were passed.
    agreement : Agreement
    n_words : int
    random_state : seed
    new : ndarray of shape (n_topics,), default=None
        As for `doc_priors`, if topics were merged.

    Attributes
    ----------
    shape : tuple
        Numbers of chains, of draws, and of topics.
    keys : ndarray of uint64, shape (n_docs,)
        Where the stream of each document's weights begins.
    """

    def __init__(self, recorded, encoder, observed, agreement, n_words, random_state, new=None):
        self.recorded, self.observed, self.agreement, self.new = recorded, observed, agreement, new
        n_chains, n_draws, n_topics = recorded.orders.shape
        self.shape = n_chains, n_draws, n_topics if new is None else int(new.max() + 1)
        self.salt = salt64(random_state)
        self.keys = mix64(np.arange(observed.place.size, dtype=np.uint64) ^ self.salt)
        self.at_once = max(1, _CELLS_AT_ONCE // n_topics)
        encoded, self.shards = encoder.encoded_table(observed.table), []
        for start in range(0, observed.place.size, self.at_once):
            used, group = np.unique(observed.place[start : start + self.at_once], return_inverse=True)
            given = encoded[used]
            described = Described(group.ravel().astype(np.int64), given, encoder.rows(given))
            ptr = np.zeros(group.size + 1, dtype=np.int64)
            self.shards.append(Shard(ptr, np.zeros(0, np.int32), np.zeros(0), start, n_words, described))

    def n_docs(self, c, s):
        """Number of documents in a draw: those that had been passed when it was made."""
        return self.recorded.counts[c][s].n_docs

    def parts(self):
        """Yield the chain, the draw, a slice of the documents, and the draw of their proportions (n_docs, n_topics)."""
        for c, s in np.ndindex(*self.shape[:2]):
            prior, draw = self.recorded.doc_priors[c], self.recorded.draws[c][s]
            seeds = np.random.SeedSequence([int(self.salt), c, s]).generate_state(len(self.shards), np.uint64)
            tables = self.recorded.counts[c][s].tables(self.at_once)
            for counts, shard, seed in zip(tables, self.shards, seeds, strict=False):
                documents = _first(shard, len(counts))
                theta = prior.draw_proportions(draw, documents, counts, seed)[:, self.recorded.orders[c, s]]
                theta = theta.astype(np.float64)
                theta /= theta.sum(axis=1, keepdims=True)
                theta = theta if self.new is None else summed(theta, self.new, -1)
                yield c, s, slice(shard.first_doc, shard.first_doc + len(counts)), theta


def _first(shard, n):
    """The first ``n`` documents of a shard without words."""
    if n == shard.n_docs:
        return shard
    described = shard.described._replace(group=shard.group[:n])
    return shard._replace(token_ptr=shard.token_ptr[: n + 1], described=described)


class SampledProportions:
    """Draws of the proportions of documents given each kept draw of the reference chain, by Gibbs sweeps.

    Parameters
    ----------
    model : DMRTopicModel
    corpus : MatrixCorpus or BlockCorpus
        The documents, with encoded metadata.
    observed : ObservedMetadata
        Of the documents.
    random_state : seed

    Attributes
    ----------
    shape, keys
        As for `RecordedProportions`. The draws and weights of a document depend on its content, not on its place.
    """

    def __init__(self, model, corpus, observed, random_state):
        self.model, self.corpus, self.observed = model, corpus, observed
        self.shape = 1, model._topic_draws.shape[1], len(model.components_)
        self.agreement = Agreement.of_one_chain(self.shape[2])
        self.salt = salt64(random_state)
        keys = [row_keys(each.to_csr()) for each in corpus.corpora()]
        beside = [each.keys_beside()[0] for each in corpus.corpora()]
        self.keys = mix64(keys_of_copies(np.concatenate(keys), np.concatenate(beside)) ^ self.salt)

    def n_docs(self, c, s):
        """Number of documents."""
        return self.corpus.n_docs

    def parts(self):
        """As for `RecordedProportions`."""
        start = 0
        for part in self.corpus.corpora():
            docs, seed = slice(start, start + part.n_docs), int(self.salt)
            every = self.model._draws_of_corpus(part, None, seed, groups=np.zeros(part.n_docs))
            for s, theta in enumerate(every):
                yield 0, s, docs, theta
            start += part.n_docs


class Weights:
    """Weights of documents in each draw: Dirichlet(1, ..., 1) times their number, up to a factor, or all 1.

    Parameters
    ----------
    draws : RecordedProportions or SampledProportions
    reweights : bool
        Whether weights are drawn.
    cluster : ndarray of int, shape (n_docs,), default=None
        Documents with equal numbers have one weight together.
    """

    def __init__(self, draws, reweights, cluster=None):
        self.reweights, self.n_draws, self.keys, self.cluster = reweights, draws.shape[1], draws.keys, cluster
        if cluster is not None:
            self.keys = mix64(np.arange(cluster.max() + 1, dtype=np.uint64) ^ mix64(draws.salt))

    def of_draw(self, c, s, n_docs):
        """Weights of the first ``n_docs`` documents in a draw, (n_docs,)."""
        if not self.reweights:
            return np.ones(n_docs)
        weights = -np.log1p(-counter_uniforms(self.keys, np.array([c * self.n_draws + s])))
        return (weights if self.cluster is None else weights[self.cluster])[:n_docs]


def clusters_of(groups, n_docs):
    """Numbers of the clusters of documents, (n_docs,), from labels; raises for other lengths and missing labels."""
    if groups is None:
        return None
    labels = np.asarray(groups)
    if labels.shape != (n_docs,):
        raise ValueError(
            f"`groups` must contain a label for each of the {n_docs} documents; got an array of shape {labels.shape}."
        )
    if labels.dtype.kind == "O":
        labels = np.array([None if each is None or each != each else str(each) for each in labels], dtype=object)
        missing = sum(each is None for each in labels)
    else:
        missing = int(np.sum(labels != labels))
    if missing:
        raise ValueError(f"`groups` has {missing} missing labels. Give these documents a label of their own.")
    return np.unique(labels.astype(str) if labels.dtype.kind == "O" else labels, return_inverse=True)[1].ravel()
