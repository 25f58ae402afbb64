"""Shared parts of the benchmarks: corpora split for scoring, the judge, peers whose topics are recorded over time."""

import time

import numpy as np

from sk_sgmcmc import datasets
from sk_sgmcmc.metrics import document_completion, split_tokens

DOC_PRIOR, WORD_PRIOR = 0.1, 0.01


class Judge:
    """Document completion from topics alone: the same observed and hidden tokens and prior for every program."""

    def __init__(self, held_out):
        self.observed, self.hidden = split_tokens(held_out)

    def __call__(self, topics):
        """Perplexity of a list of topic matrices (n_topics, n_words), averaged in probability."""
        return document_completion(self.observed, self.hidden, list(topics), doc_topic_prior=DOC_PRIOR).perplexity


class Curve:
    """Perplexity over fitting time; the time spent on scoring does not count.

    ``now`` is the clock: wall time, or `time.process_time` if other load on the machine must not count.
    """

    def __init__(self, name, judge, quiet=False, now=time.perf_counter):
        self.name, self.judge, self.quiet, self.now = name, judge, quiet, now
        self.seconds, self.perplexity, self.note = [], [], []
        self.spent = 0.0
        self.clock = now()

    def start(self):
        self.clock = self.now()

    def pause(self):
        self.spent += self.now() - self.clock

    def record(self, topics, note=""):
        """Score a matrix of topics; call between `pause` and `start`."""
        self.seconds.append(self.spent)
        self.perplexity.append(self.judge([topics]))
        self.note.append(note)
        if not self.quiet:
            print(f"  {self.name:14s} {self.spent:8.2f} s  {self.perplexity[-1]:8.1f}  {note}", flush=True)

    def time_to(self, level):
        """First time at which the curve is at or below a perplexity; inf if never."""
        reached = np.flatnonzero(np.array(self.perplexity) <= level)
        return self.seconds[reached[0]] if reached.size else np.inf

    def at(self, seconds):
        """Perplexity at a given time: the last one recorded before it; inf before the first."""
        before = np.flatnonzero(np.array(self.seconds) <= seconds)
        return self.perplexity[before[-1]] if before.size else np.inf


def load(corpus):
    """Training and held-out counts."""
    if corpus == "20newsgroups":
        data = datasets.fetch_20newsgroups_counts()
        split = np.asarray(data.metadata["split"])
        train, test = data.counts[split == "train"], data.counts[split == "test"]
    elif corpus == "wikipedia":
        counts = datasets.fetch_wikipedia().counts
        train, test = counts[:-1000], counts[-1000:]
    elif corpus == "docstrings":
        counts = datasets.load_docstrings().counts
        order = np.random.default_rng(0).permutation(counts.shape[0])
        train, test = counts[order[500:]], counts[order[:500]]
    else:
        counts = datasets.make_lda(n_samples=600, n_features=300, n_components=10, random_state=0).counts
        train, test = counts[:500], counts[500:]
    keep = np.asarray(train.sum(axis=1)).ravel() > 0
    return train.tocsr()[keep], test.tocsr()


def moments(last, first=1, per_decade=12):
    """Whole numbers from ``first`` to ``last`` at about equal ratios."""
    n = max(2, int(per_decade * np.log10(last / first)) + 1)
    return sorted(set(np.geomspace(first, last, n).round().astype(int).tolist()))


def run_tomotopy(train, n_topics, curve, n_sweeps, seed, n_snapshots=0):
    """tomotopy's LDAModel, one worker; returns snapshots of the second half, for averaging, and tokens per second."""
    import tomotopy

    model = tomotopy.LDAModel(k=n_topics, alpha=DOC_PRIOR, eta=WORD_PRIOR, seed=seed + 1)
    words = np.array([str(w) for w in range(train.shape[1])])
    for d in range(train.shape[0]):
        row = slice(train.indptr[d], train.indptr[d + 1])
        model.add_doc(np.repeat(words[train.indices[row]], train.data[row].astype(int)).tolist())
    model.train(0)
    columns = np.array([int(word) for word in model.used_vocabs])

    def topics():
        phi = np.full((n_topics, train.shape[1]), 1e-12)
        phi[:, columns] = [model.get_topic_word_dist(k) for k in range(n_topics)]
        return phi / phi.sum(axis=1, keepdims=True)

    half = n_sweeps // 2
    snapshots = np.linspace(half, n_sweeps, n_snapshots + 1).round().astype(int)[1:].tolist() if n_snapshots else []
    taken, done = [], 0
    for sweep in sorted({*moments(n_sweeps), *snapshots, n_sweeps}):
        curve.start()
        model.train(sweep - done, workers=1)
        curve.pause()
        done = sweep
        now = topics()
        if sweep in snapshots:
            taken.append(now)
        curve.record(now, f"sweep {sweep}")
    return taken, train.sum() * n_sweeps / curve.spent


def run_sklearn(train, n_topics, curve, seconds, seed, batch=256):
    """scikit-learn's online variational Bayes, on one core, for about ``seconds``."""
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        n_topics,
        doc_topic_prior=DOC_PRIOR,
        topic_word_prior=WORD_PRIOR,
        batch_size=batch,
        total_samples=train.shape[0],
        learning_method="online",
        random_state=seed,
    )
    order = np.random.default_rng(seed).permutation(train.shape[0])
    blocks = [order[i : i + batch] for i in range(0, train.shape[0], batch)]
    train = train.astype(np.float64)
    step, next_look = 0, 1.0
    while curve.spent < seconds:
        block = train[blocks[step % len(blocks)]]
        curve.start()
        model.partial_fit(block)
        curve.pause()
        step += 1
        if curve.spent >= next_look:
            curve.record(model.components_ / model.components_.sum(axis=1, keepdims=True), f"batch {step}")
            next_look = curve.spent * 1.3
    curve.record(model.components_ / model.components_.sum(axis=1, keepdims=True), f"batch {step}")
