"""The prior of topics of which some have keywords, and sweeps under it."""

import numpy as np

from ...kernels.models import group_words, keyword_words
from .._counts.forms import groups_of_documents, in_words
from .._counts.word_prior import WordPrior
from .keywords import DirichletState, KeywordState
from .shards import KeywordShardCounts
from .spread import GRID
from .word_prior import GroupedWordPrior, counted_by_group, counts_of_forms

# The beta distribution of the share of a topic's tokens that come from its keywords: of keywords, and of all words.
STRENGTH = 1.0, 1.0
# In the first part of burn-in, the share is about one half. Keywords then stay in their topics, and attract the words
# that occur with them. Otherwise, some topics lose their keywords at the start and never recover them.
_HELD, _HELD_STRENGTH = 0.5, (1e7, 1e7)
# A token then comes from each column of a topic with this weight, where a topic without keywords has 1. With one half,
# topics without keywords take all words of planted topics; with 1, topics with keywords take words of others.
_HELD_WEIGHT = 0.65
_ENOUGH_DOCS = 20  # What fewer documents with a keyword, or without it, are about is mostly chance.


class KeywordWordPrior(GroupedWordPrior):
    """Topics of which the first have keywords; words may differ between groups of documents.

    A topic with keywords has two columns: a distribution of all words, and one of its keywords. Each column has the
    prior that a topic has under `GroupedWordPrior`, or with one group a Dirichlet prior.

    Parameters
    ----------
    value, n_forms, n_topics, n_groups, is_fitted
        As for `GroupedWordPrior`.
    places : KeywordPlaces
    """

    distinguishes_topics = True
    starts_at_random = True  # A streaming pass may place keywords in topics of which they are a small part.

    def __init__(self, value, n_forms, n_topics, n_groups, places, is_fitted=False):
        super().__init__(value, n_forms, n_topics, n_groups, is_fitted)
        self.places = places
        self.counts = np.zeros((places.word.size, n_groups))
        self.share = np.full(places.word.size, 0.5)  # Of the tokens of each keyword in its topic, from its column.
        self.rate = np.full(places.n_topics, 0.5)
        self.strength = _HELD_STRENGTH
        self._known = None

    @property
    def n_columns(self):
        return self.n_topics + self.places.n_topics

    @property
    def is_held(self):
        """Whether the rates are still held at one number."""
        return self.strength == _HELD_STRENGTH

    @property
    def boost(self):
        """What multiplies the weights of topics with keywords; 1 after the rates have been held."""
        return _HELD_WEIGHT / 0.5 if self.is_held else 1.0

    def base(self):
        n_words = self.n_words // self.n_groups
        if self._known is None or self._known[0] is not self.value or len(self._known[1]) != n_words:
            self._known = self.value, np.hstack([super().base(), self.places.base(n_words)])
        return self._known[1]  # Kept draws share it.

    def strengths(self, width):
        """The parameter of each column in the beta distribution of its topic, (width,)."""
        strength = np.full(width, self.strength[1])
        strength[self.n_topics : self.n_columns] = self.strength[0]
        return strength

    def seed_shares(self, is_normal=False):
        seeds = self.places.as_seeds(self.common(), self.n_words // self.n_groups, self.n_topics)
        return WordPrior(seeds, *seeds.shape).seed_shares()

    def exchangeable_groups(self, of_documents):
        own = np.zeros(self.n_topics)
        own[: self.places.n_topics] = 1 + np.arange(self.places.n_topics)
        return np.unique(np.vstack([of_documents, own]), axis=1, return_inverse=True)[1].ravel()

    def sweeps(self, shard, z, doc_prior):
        return KeywordSweeps(shard, z, self, doc_prior)

    def shard_counts(self, is_whole):
        return KeywordShardCounts(self, is_whole)

    def follow(self, collapsed, progress):
        super().follow(collapsed, progress)
        if self.is_held and progress.step + 1 >= _HELD * progress.n_burn:
            self.strength = STRENGTH
            collapsed.strength = self.strengths(collapsed.total.size)
            collapsed.set_weights()
        self.observe(collapsed, progress.rng)

    def observe(self, collapsed, rng):
        """Remember which tokens come from keywords, and draw the rates given their number."""
        self.counts, of_place = collapsed.counts_of_keywords()
        self.share = (self.counts.sum(axis=1) + 0.5) / (of_place + 1.0)
        own, rest = collapsed.total[self.n_topics : self.n_columns], collapsed.total[: self.places.n_topics]
        self.rate = rng.beta(own + self.strength[0], rest + self.strength[1])

    def state(self, counts):
        if self.n_groups == 1:
            columns = DirichletState(self.base())
        else:
            columns = self.spread(self.places.in_columns(counts, self.counts))
        return KeywordState(columns, self.places, self.counts, self.strength, self.rate)


class KeywordSweeps:
    """Counts of all assignments to topics and their columns, and sweeps under a `KeywordWordPrior`.

    Parameters
    ----------
    shard : Shard
        Of forms.
    z : ndarray of uint16, shape (n_tokens,)
    word_prior : KeywordWordPrior
    doc_prior : DocumentPrior

    Attributes
    ----------
    columns : ndarray of uint16, shape (n_tokens,)
        Column of each token: its topic, or the number of topics plus its topic if it comes from the keywords.
    tables, masses : ndarray of shape (n_groups, n_words, width) and (n_groups, width)
        Counts of columns, and their sums over words. While groups share their words, there is one group.
    total : ndarray of shape (width,)
        Sums of the masses over groups.
    """

    is_fast, temperature = False, 1.0

    def __init__(self, shard, z, word_prior, doc_prior):
        self.z, self.word_prior, self.token_priors = z, word_prior, doc_prior.token_priors
        n_groups = word_prior.n_groups
        self.words, self.group = in_words(shard, n_groups).words, groups_of_documents(shard, n_groups)
        self.token_ptr, self.weights = shard.token_ptr, shard.weights
        # Where chains start or continue with other documents, columns are drawn from their shares in earlier passes.
        place = self._places_of_tokens()
        is_keyword = np.flatnonzero(place >= 0)
        chosen = is_keyword[np.random.default_rng(0).random(is_keyword.size) < word_prior.share[place[is_keyword]]]
        self.columns = z.copy()
        self.columns[chosen] += np.uint16(word_prior.n_topics)
        self.lay()
        self.set_weights()

    def __getstate__(self):
        unpickled = ("z", "word_prior", "kappa", "row", "scales", "offset", "pulls", "entries")
        return {name: value for name, value in self.__dict__.items() if name not in unpickled}

    def rejoin(self, z, word_prior):
        """Share the chain's arrays again, after unpickling."""
        self.z, self.word_prior = z, word_prior
        self.set_weights()

    def _places_of_tokens(self):
        """Index of the keyword that each token is in its topic, (n_tokens,); -1 for other tokens."""
        places = self.word_prior.places
        place = np.full(self.z.size, -1, dtype=np.int32)
        may = np.flatnonzero(self.z < places.n_topics)
        place[may] = places.index(self.word_prior.n_words // self.word_prior.n_groups)[self.words[may], self.z[may]]
        return place

    def lay(self):
        """Count the assignments, by groups unless they share their words."""
        prior = self.word_prior
        n_groups = 1 if prior.is_shared else prior.n_groups
        self.word_group = np.zeros_like(self.group) if prior.is_shared else self.group
        self.tables, self.masses = counted_by_group(
            self.words, self.weights, self.columns, np.repeat(self.word_group, np.diff(self.token_ptr)),
            prior.n_words // prior.n_groups, n_groups, prior.n_columns,
        )  # fmt: skip
        self.total = self.masses.sum(axis=0)
        width, n_topics, n_keyword_topics = self.total.size, prior.n_topics, prior.places.n_topics
        with_keywords = np.arange(n_keyword_topics, dtype=np.int32)
        self.topic = np.full(width, -1, dtype=np.int32)
        self.topic[: prior.n_columns] = np.concatenate([np.arange(n_topics, dtype=np.int32), with_keywords])
        self.twin = np.arange(width, dtype=np.int32)
        self.twin[:n_keyword_topics] += n_topics
        self.twin[n_topics : prior.n_columns] = with_keywords
        self.strength = prior.strengths(width)

    def set_weights(self):
        """Compute what the kernel takes of the prior."""
        prior, shape = self.word_prior, self.tables.shape
        base, n_columns = prior.base(), prior.n_columns
        self.entries, self.row = np.zeros(self.masses.shape), np.arange(shape[1], dtype=np.int32)
        if prior.is_shared:
            first = self.row
            if np.ndim(prior.value) == 0:  # All words but the keywords have the same prior, in one row.
                first, self.row = prior.places.rows(shape[1])
            self.kappa = np.zeros((first.size, shape[2]), dtype=np.float32)
            self.kappa[:, :n_columns] = base[first]
            self.scales = np.ones((shape[0], *self.kappa.shape), dtype=np.float32)
            self.pulls = np.where(self.twin == np.arange(self.twin.size), np.ones(self.masses.shape), prior.boost)
            self.offset = np.ones(self.total.size)
            self.offset[:n_columns] = base.sum(axis=0)
            self.entries[:] = 1.0 / self.offset
            return
        self.kappa, self.scales = np.zeros(shape[1:], dtype=np.float32), np.zeros(shape, dtype=np.float32)
        self.pulls = prior.pulls
        self.offset = np.zeros(self.total.size)
        group_words.token_weights(
            base, GRID, prior.which, prior.log_mean, prior.pulls, self.kappa, self.scales, self.entries
        )

    def set_topic_word_prior(self, topic_word_prior):
        """Take over the prior of the words that groups share."""
        self.set_weights()

    @property
    def counts(self):
        """Tokens of each form in each topic, (n_forms, n_topics)."""
        return counts_of_forms(self)

    @property
    def counts_of_columns(self):
        """Tokens of each word in each column, (n_words, n_columns)."""
        return self.tables[:, :, : self.word_prior.n_columns].sum(axis=0, dtype=np.float64)

    @property
    def counts_of_words(self):
        """Tokens of each word in each topic that do not come from its keywords, (n_words, n_topics)."""
        return self.counts_of_columns[:, : self.word_prior.n_topics]

    def counts_of_keywords(self):
        """Tokens of each keyword from the keyword column of its topic, (n_places, n_groups), and in the topic."""
        places, n_topics = self.word_prior.places, self.word_prior.n_topics
        of_columns = self.counts_of_columns
        own, rest = of_columns[places.word, n_topics + places.topic], of_columns[places.word, places.topic]
        if len(self.tables) == self.word_prior.n_groups:
            by_group = self.tables[:, places.word, n_topics + places.topic].T.astype(np.float64)
        else:  # While groups share their words, in proportion to their tokens.
            n_tokens = np.bincount(self.group, np.diff(self.token_ptr), self.word_prior.n_groups)
            by_group = np.outer(own, n_tokens)
            by_group /= max(1, self.words.size)
        return by_group, own + rest

    @property
    def n_tokens(self):
        """Number of tokens."""
        return self.words.size

    def company(self):
        """Whether keywords occur with the other words of their topics.

        Returns
        -------
        ratios : ndarray of shape (n_places,)
            Share of the topic in the words other than its keywords, in documents with the keyword, divided by the same
            share in all documents; infinite for topics without other words, and for keywords that few documents have,
            or few do not have.
        """
        places, n_docs = self.word_prior.places, self.token_ptr.size - 1
        doc = np.repeat(np.arange(n_docs), np.diff(self.token_ptr))
        weights, ratios = self.weights if self.weights.size else np.ones(doc.size), np.full(places.word.size, np.inf)
        for k in range(places.n_topics):
            other = ~np.isin(self.words, places.word[places.topic == k])
            of_doc = np.bincount(doc, weights * other, n_docs)
            of_topic = np.bincount(doc, weights * (other & (self.z == k)), n_docs)
            for i in np.flatnonzero(places.topic == k):
                own = np.unique(doc[self.words == places.word[i]])
                if min(own.size, n_docs - own.size) >= _ENOUGH_DOCS and of_topic.any() and of_doc[own].any():
                    ratios[i] = of_topic[own].sum() / of_doc[own].sum() * (of_doc.sum() / of_topic.sum())
        return ratios

    def finish(self, rng):
        """As for `GroupedSweeps`."""

    def n_parts(self, shard):
        """1: as `CollapsedSweeps.n_parts`, without parts."""
        return 1

    def sweep(self, shard, start, stop, doc_topic_prior, group, rng):
        """Redraw the tokens of documents start:stop, whose priors are the rows ``group`` of ``doc_topic_prior``."""
        alpha, more = self.token_priors(doc_topic_prior, group, shard, start, stop, self.z, rng)
        keyword_words.sweep(
            start, stop, self.token_ptr, self.words, self.weights, self.z, self.columns, self.tables, self.masses,
            self.total, self.topic, self.twin, self.strength, alpha, group, self.word_group, self.kappa, self.row,
            self.scales, self.offset, self.pulls, self.entries, rng, **more,
        )  # fmt: skip
