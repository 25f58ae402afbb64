"""The prior of words that differ between groups of documents, and sweeps under it."""

from copy import copy

import numpy as np

from ...kernels.math import lanes
from ...kernels.models import group_words
from ...kernels.models.lda import any_tokens, assignments
from .._counts.forms import groups_of_documents, in_words
from .._counts.word_prior import FittedWordPrior, WordPrior
from .record import GroupedCountRecord, GroupedRecord
from .shards import GroupedShardCounts
from .spread import GRID, SpreadState

_SHARED = 0.6  # Share of burn-in in which groups have the same words, so that chains start from the topics of LDA.
# Passes from one update of the prior to the next, as a multiple of cells per token, so that updates take at most about
# as long as sweeps; most such passes in burn-in, which needs many updates, and later.
_PASSES_PER_CELL, _MOST_IN_BURN_IN, _MOST_PASSES = 12.0, 2, 10


class GroupedWordPrior(WordPrior):
    """Words that differ between groups of documents: in each topic, every word has a concentration of its own.

    It is the prior of counts of forms (see `forms`). In the first part of burn-in, groups share their words, under the
    prior ``shared``.

    Parameters
    ----------
    value, n_topics
        As for `WordPrior`, of words.
    n_forms : int
    n_groups : int
    is_fitted : bool
        Whether the base of the prior is fitted, while groups share their words.
    """

    def __init__(self, value, n_forms, n_topics, n_groups, is_fitted=False):
        self.n_words, self.n_topics, self.n_groups = n_forms, n_topics, n_groups
        self.shared = (FittedWordPrior if is_fitted else WordPrior)(value, n_forms // n_groups, n_topics)
        self.is_shared = True
        self.which = self.log_mean = self.pulls = self.weight = None

    @property
    def value(self):
        """The base of the prior, as for `WordPrior`."""
        return self.shared.value

    def start(self):
        self.shared.start()

    def begin(self, n_tokens):
        self.shared.begin(n_tokens)

    def table(self):
        return np.broadcast_to(self.shared.common(), (self.n_words, self.n_topics))

    def seed_shares(self, is_normal=False):
        return self.shared.seed_shares(is_normal)

    def common(self):
        return self.shared.common()

    def sweeps(self, shard, z, doc_prior):
        return GroupedSweeps(shard, z, self, doc_prior)

    def shard_counts(self, is_whole):
        return GroupedShardCounts(self, is_whole)

    def topics_of_pass(self, collapsed, rng, pool):
        return collapsed.drawn_topics(rng).astype(np.float32)

    def rejoin(self, collapsed, z):
        collapsed.rejoin(z, self)

    def record(self, seed):
        return GroupedRecord(seed)

    def count_record(self, seed):
        return GroupedCountRecord(seed)

    def follow(self, collapsed, progress):
        collapsed.finish(progress.rng)
        if self.is_shared:
            if progress.burns_in and self.shared.update(collapsed.counts_of_words, progress.n_passes):
                collapsed.set_topic_word_prior(self.shared.table())
            if self.n_groups > 1 and progress.step + 1 >= _SHARED * progress.n_burn:
                self.separate(collapsed)
        elif progress.n_passes % self.passes_per_update(progress, collapsed.n_tokens) == 0:
            self.redraw(collapsed, progress.rng)

    def passes_per_update(self, progress, n_tokens):
        """Number of passes from one update of the prior to the next."""
        most = _MOST_IN_BURN_IN if progress.burns_in else _MOST_PASSES
        return int(np.clip(round(_PASSES_PER_CELL * self.n_words * self.n_columns / max(1, n_tokens)), 1, most))

    def separate(self, collapsed):
        """Let the words of groups differ, beginning with a prior under which they hardly do."""
        base = self.base()
        counts = collapsed.counts_of_columns + base
        self.log_mean = _logarithm(counts / counts.sum(axis=0) * base.sum(axis=0))
        self.which = np.full(counts.shape, GRID.size - 1, dtype=np.uint8)
        self.weight, self.is_shared = np.full(GRID.size, 1.0 / GRID.size), False
        collapsed.lay()
        self.pulls = np.where(collapsed.masses > 0, collapsed.masses, 1.0)
        self.pulls[:, : self.n_columns] /= base.sum(axis=0)
        collapsed.set_weights()

    def redraw(self, collapsed, rng):
        """Redraw means, concentrations and auxiliary variables given the counts."""
        group_words.draw_prior(
            collapsed.tables, collapsed.masses, self.base(), GRID, self.which, self.log_mean, self.pulls, self.weight,
            rng,
        )  # fmt: skip
        collapsed.set_weights()

    @property
    def n_columns(self):
        """Number of distributions of words in each group, one for each topic."""
        return self.n_topics

    def base(self):
        """Shapes of the means, (n_words, n_columns)."""
        return np.ascontiguousarray(self.shared.table(), dtype=np.float64)

    def state(self, counts):
        return self.spread(counts)

    def spread(self, counts):
        """The `SpreadState` of the prior, given counts of forms in columns."""
        n_columns = self.n_columns
        mass = counts.reshape(-1, self.n_groups, n_columns).sum(axis=0, dtype=np.float64)
        if self.is_shared:  # For looking at a chain in burn-in.
            base = self.base()
            own = counts.reshape(-1, self.n_groups, n_columns).sum(axis=1) + base
            mean = own / own.sum(axis=0) * base.sum(axis=0)
            return SpreadState(np.full(own.shape, GRID.size - 1, np.uint8), _logarithm(mean), mass / base.sum(axis=0))
        pull = np.where(mass > group_words.NOTHING, self.pulls[:, :n_columns], 0.0)
        return SpreadState(self.which.copy(), self.log_mean.astype(np.float32), pull)

    def shapes(self, counts):
        return self.mean(counts)

    def mean(self, counts):
        """Means of the words of topics; see `SpreadState.mean`."""
        return self.state(counts).mean(counts)

    def drawn(self, counts, rng):
        return self.state(counts).drawn(counts, rng)

    def extended(self, value, n_words):
        wider = copy(self)
        wider.n_words, n_plain = n_words, n_words // self.n_groups
        wider.shared = self.shared.extended(value, n_plain)
        if not self.is_shared and n_plain > len(self.which):
            # Most likely under the prior: as the words of the same topics that groups share.
            new = wider.base()[len(self.which) :]
            wider.which = np.vstack([self.which, np.full(new.shape, GRID.size - 1, dtype=np.uint8)])
            wider.log_mean = np.vstack([self.log_mean, _logarithm(new)])
        return wider


def _logarithm(values):
    """Logarithms of numbers, minus infinity for 0."""
    return np.log(values, out=np.full(values.shape, -np.inf), where=values > 0.0)


def counts_of_forms(sweeps):
    """Tokens of each form in each topic, (n_forms, n_topics), counted from the assignments of sweeps."""
    prior = sweeps.word_prior
    group = np.repeat(sweeps.group, np.diff(sweeps.token_ptr)).astype(np.int32)
    counts = np.zeros((prior.n_words, prior.n_topics))
    assignments.count_assignments(sweeps.words * np.int32(prior.n_groups) + group, sweeps.weights, sweeps.z, counts)
    return counts


def counted_by_group(words, weights, columns, group, n_words, n_groups, n_columns):
    """Counts of tokens in columns by the ``group`` of each token, and their sums over words.

    Returns tables (n_groups, n_words, width) of padded rows, uint16 if the counts fit and float64 otherwise; and
    (n_groups, width).
    """
    counts = np.zeros((n_groups, n_words, n_columns))
    for g in range(n_groups):
        own = group == g
        assignments.count_assignments(words[own], weights[own] if weights.size else weights, columns[own], counts[g])
    few = counts.sum(axis=2).max(initial=0.0) < any_tokens.SHORT and not weights.size
    shape = n_groups, n_words, lanes.padded(n_columns)
    tables = np.zeros(shape, dtype=np.uint16 if few else np.float64)
    tables[:, :, :n_columns] = counts
    return tables, tables.sum(axis=1, dtype=np.float64)


class GroupedSweeps:
    """Counts of all assignments by groups of documents, and sweeps under a `GroupedWordPrior`.

    As long as groups share their words, other sweeps do the work.

    Parameters
    ----------
    shard : Shard
        Of forms.
    z : ndarray of uint16, shape (n_tokens,)
    word_prior : GroupedWordPrior
    doc_prior : DocumentPrior

    Attributes
    ----------
    tables : ndarray of shape (n_groups, n_words, width)
        Counts in padded rows, uint16 if they fit and float64 otherwise.
    masses : ndarray of shape (n_groups, width)
        Sums of the counts over words.
    """

    def __init__(self, shard, z, word_prior, doc_prior):
        self.z, self.word_prior = z, word_prior
        self.token_priors = doc_prior.token_priors
        self.words, self.group = (
            in_words(shard, word_prior.n_groups).words,
            groups_of_documents(shard, word_prior.n_groups),
        )
        self.token_ptr, self.weights = shard.token_ptr, shard.weights
        self.inner = self.tables = self.masses = None
        if word_prior.is_shared:
            plain = in_words(shard, word_prior.n_groups)
            self.inner = doc_prior.sweeps(plain, z, word_prior.shared.table())
        else:
            self.lay()
            self.set_weights()

    def __getstate__(self):
        unpickled = ("z", "word_prior", "kappa", "scales", "entries")
        return {name: value for name, value in self.__dict__.items() if name not in unpickled}

    def rejoin(self, z, word_prior):
        """Share the chain's arrays again, after unpickling."""
        self.z, self.word_prior = z, word_prior
        if self.inner is not None:
            self.inner.rejoin(z, word_prior.shared.table())
        else:
            self.set_weights()

    def lay(self):
        """Count the assignments by groups, and end the sweeps of groups that share their words."""
        n_groups, n_topics = self.word_prior.n_groups, self.word_prior.n_topics
        n_words = self.word_prior.n_words // n_groups
        self.tables, self.masses = counted_by_group(
            self.words, self.weights, self.z, np.repeat(self.group, np.diff(self.token_ptr)), n_words, n_groups,
            n_topics,
        )  # fmt: skip
        self.topics = np.full(self.masses.shape[1], -1, dtype=np.int32)
        self.topics[:n_topics] = np.arange(n_topics)
        self.row = np.arange(n_words, dtype=np.int32)
        self.inner = None

    def set_weights(self):
        """Compute what the kernel takes of the prior."""
        prior, shape = self.word_prior, self.tables.shape
        self.kappa, self.scales = np.zeros(shape[1:], dtype=np.float32), np.zeros(shape, dtype=np.float32)
        self.entries = np.zeros(self.masses.shape)
        group_words.token_weights(
            prior.base(), GRID, prior.which, prior.log_mean, prior.pulls, self.kappa, self.scales, self.entries
        )

    @property
    def counts(self):
        """Tokens of each form in each topic, (n_forms, n_topics)."""
        prior = self.word_prior
        if self.inner is None:
            counts = self.tables[:, :, : prior.n_topics].transpose(1, 0, 2)
            return counts.reshape(prior.n_words, prior.n_topics)
        return counts_of_forms(self)

    @property
    def counts_of_words(self):
        """Tokens of each word in each topic, (n_words, n_topics)."""
        if self.inner is not None:
            return self.inner.counts
        return self.tables[:, :, : self.word_prior.n_topics].sum(axis=0, dtype=np.float64)

    counts_of_columns = counts_of_words

    @property
    def n_tokens(self):
        """Number of tokens."""
        return self.words.size

    def finish(self, rng):
        """Do nothing after a pass, which leaves nothing open."""

    # What a chain asks of sweeps.

    is_fast, temperature = False, 1.0

    def set_topic_word_prior(self, topic_word_prior):
        """Set another prior of the words that groups share."""
        self.inner.set_topic_word_prior(topic_word_prior)

    def n_parts(self, shard):
        """As `CollapsedSweeps.n_parts`."""
        return 1 if self.inner is None else self.inner.n_parts(self._plain(shard))

    def sweep_parts(self, shard, doc_topic_prior, group, rng, pool):
        """As `CollapsedSweeps.sweep_parts`."""
        self.inner.sweep_parts(self._plain(shard), doc_topic_prior, group, rng, pool)

    def _plain(self, shard):
        return shard._replace(words=self.words, n_words=self.word_prior.n_words // self.word_prior.n_groups)

    def sweep(self, shard, start, stop, doc_topic_prior, group, rng):
        """Redraw the tokens of documents start:stop, whose priors are the rows ``group`` of ``doc_topic_prior``."""
        if self.inner is not None:
            self.inner.sweep(self._plain(shard), start, stop, doc_topic_prior, group, rng)
            return
        alpha, more = self.token_priors(doc_topic_prior, group, shard, start, stop, self.z, rng)
        any_tokens.sweep_groups(
            start, stop, self.token_ptr, self.words, self.weights, self.z, self.tables, self.masses, self.topics,
            alpha, group, self.group, self.kappa, self.row, self.scales, self.word_prior.pulls, self.entries, rng,
            **more,
        )  # fmt: skip
