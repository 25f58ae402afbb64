"""Shared parts of the benchmarks: corpora split for scoring, the judge, curves over time, peak memory."""

import functools
import resource
import sys
import time
from collections import deque
from pathlib import Path

import numpy as np

from sk_sgmcmc import datasets
from sk_sgmcmc.callbacks import Callback
from sk_sgmcmc.metrics import document_completion, split_tokens

DOC_PRIOR, WORD_PRIOR = 0.1, 0.01
LARGEST_PRIOR_SUM = 10.0


class Judge:
    """Document completion from topics alone: the same observed and hidden tokens and prior for every program.

    The prior of a document is `DOC_PRIOR` for each topic, and less if its sum would exceed `LARGEST_PRIOR_SUM`.
    """

    def __init__(self, held_out):
        self.observed, self.hidden = split_tokens(held_out)

    def __call__(self, topics):
        """Perplexity of a list of topic matrices (n_topics, n_words), averaged in probability."""
        prior = min(DOC_PRIOR, LARGEST_PRIOR_SUM / len(topics[0]))
        return document_completion(self.observed, self.hidden, list(topics), doc_topic_prior=prior).perplexity


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


def split(counts, seed, n_held_out=1000):
    """Training and held-out documents of a corpus, with the words that can be learnt."""
    counts = counts.tocsr()[np.flatnonzero(counts.sum(axis=1))]
    order = np.random.default_rng(seed).permutation(counts.shape[0])
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


def peak_memory():
    """Highest resident memory of this process so far, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # On Linux getrusage includes the parent's peak; this does not.
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)


class Watch:
    """What happens while a program of `_topic_programs` runs: clock, snapshots of its topics, perplexity, the end.

    Parameters
    ----------
    judge : Judge
    marks : sequence of float
        Seconds after which the topics are scored at the next look; the last one ends the run.
    window : int
        Number of the last snapshots over which a score averages.
    most : float
        Seconds that a default fit may take, as far as can be told before.
    now : callable
        The clock: `time.process_time`, or `time.perf_counter` where several threads work.
    """

    STEPS, SECONDS = 1.08, 1.25  # Ratios of steps with snapshots, and of times with scores.
    PROBE = 20  # Steps of the first fit of a program that is fitted again for each time.

    def __init__(self, judge, marks=(), *, window=1, most=np.inf, now=time.process_time):
        self.judge, self.marks, self.most, self.now = judge, sorted(marks), most, now
        self.snapshots = deque(maxlen=window)
        self.points, self.end, self.top_words = [], None, None
        self.spent, self.next_score, self.running = 0.0, 0.0, False

    def start(self):
        """Start the clock."""
        self.clock, self.running = self.now(), True

    def pause(self):
        """Stop the clock, if it runs."""
        self.spent += self.now() - self.clock if self.running else 0.0
        self.running = False

    def restart(self):
        """Start the clock at zero, for another fit."""
        self.spent = 0.0
        self.start()

    def next_step(self, step):
        """The step after which to look next."""
        return max(step + 1, int(step * self.STEPS))

    def longer(self, steps):
        """Steps of the next fit, given that the last one had so many; None if no mark is left."""
        if not steps:
            return self.PROBE
        left = [mark for mark in self.marks if mark > self.SECONDS * self.spent]
        return int(np.ceil(1.05 * steps * left[0] / self.spent)) if left else None

    def has_time_for(self, steps):
        """Whether a fit of so many steps takes no longer than it may."""
        return steps * self.seconds_per_step <= self.most

    def look(self, step, topics):
        """Keep what the function ``topics`` returns, (n_topics, n_words); returns whether the run is over."""
        self.pause()
        self.snapshots.append(topics())
        self.seconds_per_step = self.spent / step
        if self.spent >= self.next_score:
            self._score(step)
        enough = bool(self.marks) and self.spent >= self.marks[-1]
        self.start()
        return enough

    def finish(self, topics):
        """Score what the function ``topics`` returns as the result of the program's own default fit."""
        self.pause()
        phi = topics()
        window = self.judge(self.snapshots) if len(self.snapshots) else None
        self.end = {"seconds": self.spent, "perplexity": self.judge([phi]), "window": window}
        if self.top_words is None or not self.marks:
            self.top_words = np.argsort(-phi, axis=1)[:, :10].tolist()

    def _score(self, step):
        self.points.append((self.spent, self.judge(self.snapshots), step))
        left = [mark for mark in self.marks if mark > self.spent]
        self.next_score = min(self.SECONDS * self.spent, *left[:1], np.inf)
        if not self.marks or self.spent <= self.SECONDS * self.marks[0]:
            self.top_words = np.argsort(-np.mean(self.snapshots, axis=0), axis=1)[:, :10].tolist()

    def record(self):
        """What was measured, as it is written to a file."""
        points = [[round(seconds, 4), round(float(perplexity), 3), step] for seconds, perplexity, step in self.points]
        return {"points": points, "end": self.end, "top_words": self.top_words}


class Stopwatch(Watch):
    """As `Watch`, but it only notes the time after given steps."""

    def __init__(self, steps, now=time.process_time):
        super().__init__(None, now=now)
        self.steps = sorted(steps)

    def next_step(self, step):
        """The next one of the steps."""
        return next((s for s in self.steps if s > step), 10**9)

    def longer(self, steps):
        """The next one of the steps."""
        return next((s for s in self.steps if s > steps), None)

    def has_time_for(self, steps):
        """A default fit is not wanted."""
        return False

    def look(self, step, topics):
        """Note the time."""
        self.pause()
        if step in self.steps:
            self.points.append((self.spent, np.nan, step))
        self.start()
        return step >= self.steps[-1]

    def finish(self, topics):
        """Note the time."""
        self.pause()
        self.end = {"seconds": self.spent}
