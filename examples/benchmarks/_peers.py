"""Shared parts of the benchmarks: corpora split for scoring, the judge, peers whose topics are recorded over time."""

import functools
import time
from collections import deque

import numpy as np

from sk_sgmcmc import datasets
from sk_sgmcmc.callbacks import Callback
from sk_sgmcmc.metrics import doc_topic_proportions, document_completion, split_tokens

DOC_PRIOR, WORD_PRIOR = 0.1, 0.01


class Judge:
    """Document completion from topics alone: the same observed and hidden tokens and prior for every program."""

    def __init__(self, held_out):
        self.observed, self.hidden = split_tokens(held_out)

    def __call__(self, topics):
        """Perplexity of a list of topic matrices (n_topics, n_words), averaged in probability."""
        return document_completion(self.observed, self.hidden, list(topics), doc_topic_prior=DOC_PRIOR).perplexity


class SmoothedJudge(Judge):
    """Document completion by the last few matrices of topics, each of which is worked out once.

    Probabilities of the hidden tokens are averaged over the matrices, so the last value returned is that of `Judge` for
    the last ``window`` of them.
    """

    def __init__(self, held_out, window):
        super().__init__(held_out)
        self.last = deque(maxlen=window)

    def __call__(self, topics):
        """Perplexity after the next matrices (n_topics, n_words)."""
        self.last.extend(self._probabilities(phi) for phi in topics)
        mean = np.maximum(np.mean(self.last, axis=0), 1e-12)
        return float(np.exp(-(self.hidden.data @ np.log(mean)) / self.hidden.data.sum()))

    def _probabilities(self, phi):
        proportions, of_word = doc_topic_proportions(self.observed, phi, DOC_PRIOR), np.ascontiguousarray(phi.T)
        words = np.split(self.hidden.indices, self.hidden.indptr[1:-1])
        return np.concatenate([of_word[w] @ theta for w, theta in zip(words, proportions, strict=True)])


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
        data = fetched(datasets.fetch_20newsgroups_counts)
        split = np.asarray(data.metadata["split"])
        train, test = data.counts[split == "train"], data.counts[split == "test"]
    elif corpus == "wikipedia":
        counts = fetched(datasets.fetch_wikipedia).counts
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


@functools.cache
def counts_of(corpus):
    """All counts of a corpus."""
    if corpus == "synthetic":
        return datasets.make_lda(n_samples=150, n_features=200, n_components=10, random_state=0).counts
    if corpus == "docstrings":
        return datasets.load_docstrings().counts
    if corpus == "20newsgroups":
        return fetched(datasets.fetch_20newsgroups_counts).counts
    return fetched(datasets.fetch_corpus, corpus).counts


def fetched(fetch, *name):
    """A data set that does not come with the package; ends the script with what to do where it is missing."""
    try:
        return fetch(*name)
    except OSError as error:
        raise SystemExit(f"{error} Or pass a corpus that comes with the package (see --help).") from None


def split(counts, seed, share=1, n_held_out=1000):
    """Training and held-out documents of a random ``1 / share`` of a corpus, with the words that can be learnt."""
    counts = counts.tocsr()[np.flatnonzero(counts.sum(axis=1))]
    order = np.random.default_rng(seed).permutation(counts.shape[0])[: counts.shape[0] // share]
    n_held_out = min(n_held_out, order.size // 10)
    train, held_out = counts[order[n_held_out:]], counts[order[:n_held_out]]
    words = np.flatnonzero(train.sum(axis=0))
    return train[:, words], held_out[:, words]


class Recorder(Callback):
    """Score the topics after some steps of a fit, with the clock stopped."""

    def __init__(self, curve, steps):
        super().__init__(1)
        self.curve, self.steps = curve, steps

    def start(self, estimator):
        """Start the clock."""
        self.curve.start()

    def next_step(self, step):
        """The next step of the list."""
        return next((s for s in self.steps if s > step), 10**9)

    def __call__(self, estimator, step):
        """Stop the clock and score."""
        self.curve.pause()
        if step in self.steps:
            self.record(estimator._chains[0], step)
        self.curve.start()

    def record(self, chain, step):
        """Add a point to the curve."""
        self.curve.record(chain.present_topics().T, f"step {step} of {chain.plan.n_iter}")


def moments(last, first=1, per_decade=12):
    """Whole numbers from ``first`` to ``last`` at about equal ratios."""
    n = max(2, int(per_decade * np.log10(last / first)) + 1)
    return sorted(set(np.geomspace(first, last, n).round().astype(int).tolist()))


def run_tomotopy(train, n_topics, curve, sweeps, seed):
    """tomotopy's LDAModel, one worker, scored after each of the ``sweeps``.

    It learns the documents' prior, as is its default. Its own preparation counts, handing over the documents does not.
    """
    import tomotopy

    model = tomotopy.LDAModel(k=n_topics, alpha=DOC_PRIOR, eta=WORD_PRIOR, seed=seed + 1)
    words = np.array([str(w) for w in range(train.shape[1])])
    for d in range(train.shape[0]):
        row = slice(train.indptr[d], train.indptr[d + 1])
        model.add_doc(np.repeat(words[train.indices[row]], train.data[row].astype(int)).tolist())
    done = 0
    for sweep in [0, *sweeps]:
        curve.start()
        model.train(sweep - done, workers=1)
        curve.pause()
        done = sweep
        if sweep == 0:
            columns = np.array([int(word) for word in model.used_vocabs])
            continue
        phi = np.full((n_topics, train.shape[1]), 1e-12)
        phi[:, columns] = [model.get_topic_word_dist(k) for k in range(n_topics)]
        curve.record(phi / phi.sum(axis=1, keepdims=True), sweep)


def run_sklearn(train, n_topics, curve, seconds, seed, batch=256):
    """scikit-learn's online variational Bayes: at least one pass, then until it has used ``seconds``."""
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(
        n_topics, doc_topic_prior=DOC_PRIOR, topic_word_prior=WORD_PRIOR, total_samples=train.shape[0],
        random_state=seed,
    )  # fmt: skip
    order, train = np.random.default_rng(seed).permutation(train.shape[0]), train.astype(np.float64)
    blocks = [train[order[i : i + batch]] for i in range(0, train.shape[0], batch)]
    step, next_look = 0, 0.0
    while step < len(blocks) or curve.spent < seconds:
        curve.start()
        model.partial_fit(blocks[step % len(blocks)])
        curve.pause()
        step += 1
        if curve.spent >= next_look or step == len(blocks):
            curve.record(model.components_ / model.components_.sum(axis=1, keepdims=True), step)
            next_look = 1.2 * curve.spent
