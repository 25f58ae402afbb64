"""LDA against tomotopy and scikit-learn: perplexity over time, one thread each, side by side in one run.

    python examples/benchmarks/lda.py --corpus 20newsgroups
    python examples/benchmarks/lda.py --corpus wikipedia

Every program returns topics, and one judge (document completion, the same hidden tokens) scores them. The curves are of
single matrices: the conditional mean of the topics given the current assignments for ours and for tomotopy, the
variational mean for scikit-learn. Then the same number of draws of ours and snapshots of tomotopy are averaged. Kernels
are compiled beforehand, which is reported separately. The last line is the ratio of times to tomotopy's perplexity
after 100 sweeps.
"""

import argparse
import time

import numpy as np
from _peers import WORD_PRIOR, Curve, Judge, load, moments, run_sklearn, run_tomotopy

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.callbacks import Callback


class Recorder(Callback):
    """Record the current topics at a list of steps."""

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
            chain = estimator._chains[0]
            self.curve.record(chain.present_topics().T, f"step {step} of {chain.plan.n_iter}")
        self.curve.start()


def run_ours(train, n_topics, curve, seed, **params):
    """BayesianLDA with its defaults; returns the fitted estimator."""
    model = BayesianLDA(
        n_topics, doc_topic_prior=params.pop("doc_topic_prior", "auto"), topic_word_prior=WORD_PRIOR,
        random_state=seed, **params,
    )  # fmt: skip
    model.callbacks = Recorder(curve, moments(10_000, per_decade=15))
    began = time.perf_counter()
    curve.start()
    model.fit(train)
    curve.pause()
    print(f"  fit in all, with the scores on the way: {time.perf_counter() - began:.1f} s", flush=True)
    return model


def main():
    """Run all three and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", choices=["20newsgroups", "wikipedia", "docstrings"], default="docstrings")
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--sweeps", type=int, default=100, help="sweeps of tomotopy")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smoke", action="store_true", help="a few seconds, without peers")
    options = parser.parse_args()
    corpus = "synthetic" if options.smoke else options.corpus
    n_topics = 10 if options.smoke else options.topics
    train, test = load(corpus)
    judge = Judge(test)
    unigram = np.asarray(train.sum(axis=0)).ravel() + WORD_PRIOR
    print(f"{corpus}: {train.shape[0]} documents, {train.shape[1]} words, {train.sum():.0f} tokens, {n_topics} topics")
    print(f"one unigram for all: {judge([unigram[None] / unigram.sum()]):.1f}", flush=True)

    began = time.perf_counter()
    BayesianLDA(n_topics, n_iter=8, random_state=0).fit(train[:50])
    print(f"first fit of 50 documents (loads or compiles kernels): {time.perf_counter() - began:.1f} s", flush=True)

    ours = Curve("ours", judge)
    model = run_ours(train, n_topics, ours, options.seed, **({"n_iter": 40} if options.smoke else {}))
    draws = model.samples_["components"][0]
    chosen = np.linspace(0, len(draws) - 1, 10).round().astype(int)
    print(f"  ours, 10 draws averaged: {judge(draws[chosen]):.1f} after {ours.spent:.1f} s", flush=True)
    if options.smoke:
        print("smoke: ours alone; the ratio needs tomotopy")
        return

    peer = Curve("tomotopy", judge)
    snapshots, speed = run_tomotopy(train, n_topics, peer, options.sweeps, options.seed, n_snapshots=10)
    print(f"  tomotopy, 10 snapshots averaged: {judge(snapshots):.1f} after {peer.spent:.1f} s")
    variational = Curve("scikit-learn", judge)
    run_sklearn(train, n_topics, variational, peer.spent, options.seed)

    print(f"\n{'seconds':>9s} {'ours':>9s} {'tomotopy':>9s} {'sklearn':>9s}")
    for seconds in [1, 2, 5, 10, 20, 40, 80, 160]:
        if seconds <= 2 * peer.spent:
            print(f"{seconds:9d} {ours.at(seconds):9.1f} {peer.at(seconds):9.1f} {variational.at(seconds):9.1f}")
    end = min(ours.spent, peer.spent)
    late = [s for s in {*ours.seconds, *peer.seconds, *variational.seconds} if 5 <= s <= end]
    above = [s for s in late if ours.at(s) > min(peer.at(s), variational.at(s))]
    print(f"moments from 5 s on at which ours is above a peer: {len(above)} of {len(late)}")
    mark, mark_time = peer.perplexity[-1], peer.spent
    print(f"tomotopy: {speed / 1e6:.1f} M tokens/s; after {options.sweeps} sweeps {mark:.1f} at {mark_time:.1f} s")
    print(f"ratio of times to that perplexity, ours / tomotopy: {ours.time_to(mark) / mark_time:.3f} (target 0.5)")


if __name__ == "__main__":
    main()
