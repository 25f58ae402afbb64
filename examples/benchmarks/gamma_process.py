"""The gamma process topic model: what an iteration costs, and held-out perplexity over time beside two peers.

    python examples/benchmarks/gamma_process.py
    python examples/benchmarks/gamma_process.py --part cost

``--part cost``
    Seconds per sweep over all documents, and nanoseconds per token, as words, documents and the maximum number of
    topics grow while the number of topics in use stays the same: documents of 80 tokens from 20 topics.
``--part peers``
    20 Newsgroups (or the docstrings), one thread each, one judge for topics alone (document completion, the same hidden
    tokens): this model and `BayesianLDA` with their defaults and at most 100 topics, and tomotopy's HDPModel, which
    also finds the number of topics. Curves are of single states, without the time for scoring; then the mean of ten
    draws and of as many snapshots of the peer. Every program is scored twice: with the judge's prior on the topics in
    use, and with the document prior that it has learnt.
"""

import argparse
import time

import numpy as np
from _peers import DOC_PRIOR, Curve, Judge, Recorder, load, moments

from sk_sgmcmc import BayesianLDA, GammaProcessTopicModel
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.metrics import document_completion

USED = 1e-4  # share of the weight from which a topic counts as used


def seconds_of_sweep(n_docs, n_words, bound, n_sweeps):
    """Median seconds of a sweep of `Gibbs` with its weights, once superfluous topics are gone; and tokens."""
    counts = make_lda(n_docs, n_words, 20, doc_topic_prior=0.1, topic_word_prior=0.05, random_state=0).counts
    times = []

    def look(model, step):
        times.append(time.process_time())

    # One draw is kept, and not in the median: drawing all cells of all topics is not part of a sweep.
    GammaProcessTopicModel(
        bound, sampler="gibbs", n_iter=n_sweeps, thin=n_sweeps // 2, callbacks=look, random_state=0
    ).fit(counts)  # fmt: skip
    return float(np.median(np.diff(times[len(times) // 2 :]))), counts.sum()


def cost(options):
    """Print the cost tables."""
    base, n_sweeps = ((200, 200, 30), 24) if options.smoke else ((1000, 2000, 100), 40)
    GammaProcessTopicModel(5, sampler="gibbs", n_iter=4).fit(make_lda(20, 20, 2, random_state=0).counts)
    for place, name in enumerate(("documents", "words", "most topics")):
        first = None
        for factor in (1, 4) if options.smoke else (1, 3, 9):
            size = list(base)
            size[place] *= factor
            seconds, tokens = seconds_of_sweep(*size, n_sweeps)
            first = first or seconds / tokens
            print(f"{name:12s} {size[place]:6d}: {seconds:8.4f} s a sweep, {1e9 * seconds / tokens:6.0f} ns a token, "
                  f"{seconds / tokens / first:.2f} of the first row", flush=True)  # fmt: skip


class ProcessorCurve(Curve):
    """Perplexity over processor time, so that other programs on the machine have little effect."""

    def start(self):
        """Start the clock."""
        self.clock = time.process_time()

    def pause(self):
        """Stop the clock."""
        self.spent += time.process_time() - self.clock


class Used(Recorder):
    """Record the topics in use, with the document prior."""

    def record(self, chain, step):
        """Add a point to the curve."""
        prior = chain.doc_topic_prior
        used = prior > USED * prior.sum()
        self.curve.record((chain.present_topics().T[used], prior[used]), f"step {step}, {used.sum()} topics")


class OwnPrior(Judge):
    """The judge with the document prior of the program."""

    def __call__(self, states):
        """Perplexity of a list of (topics, prior), averaged in probability."""
        topics, priors = [state[0] for state in states], [state[1] for state in states]
        return document_completion(
            self.observed, self.hidden, topics, doc_topic_prior=lambda s: priors[s]
        ).perplexity  # fmt: skip

    def common(self, states):
        """The same perplexity with the judge's prior."""
        return super().__call__([state[0] for state in states])


def run_hdp(train, curve, seconds, seed, n_snapshots):
    """tomotopy's HDPModel for about ``seconds``; returns snapshots of the second half."""
    import tomotopy

    model = tomotopy.HDPModel(initial_k=20, alpha=DOC_PRIOR, gamma=1.0, eta=0.05, seed=seed + 1)
    words = np.array([str(w) for w in range(train.shape[1])])
    for d in range(train.shape[0]):
        row = slice(train.indptr[d], train.indptr[d + 1])
        model.add_doc(np.repeat(words[train.indices[row]], train.data[row].astype(int)).tolist())
    model.train(0)
    columns = np.array([int(word) for word in model.used_vocabs])

    def state():
        live = [k for k in range(model.k) if model.is_live_topic(k)]
        phi = np.full((len(live), train.shape[1]), 1e-12)
        phi[:, columns] = [model.get_topic_word_dist(k) for k in live]
        share = np.array([model.get_count_by_topics()[k] for k in live], dtype=float) + 1e-3
        # The document prior: the concentration times the shares of the topics.
        return phi / phi.sum(axis=1, keepdims=True), model.alpha * share / share.sum()

    snapshots, sweep, looks = [], 0, moments(10_000, per_decade=4)
    while curve.spent < seconds:
        curve.start()
        model.train(1, workers=1)
        curve.pause()
        sweep += 1
        if curve.spent > seconds * (0.5 + 0.5 * len(snapshots) / n_snapshots):
            snapshots.append(state())
        if sweep in looks:
            curve.record(state(), f"sweep {sweep}, {model.live_k} topics")
    curve.record(state(), f"sweep {sweep}, {model.live_k} topics")
    return snapshots


def draws_of(model, n=10):
    """Evenly spaced draws with the priors that belong to them."""
    topics, prior = model.samples_["components"][0], model.doc_topic_prior_
    chosen = np.linspace(0, len(topics) - 1, n).round().astype(int)
    priors = model.samples_["weights"][0] if "weights" in model.samples_ else np.tile(prior, (len(topics), 1))
    used = [priors[s] > USED * priors[s].sum() for s in chosen]
    return [(topics[s][u], priors[s][u]) for s, u in zip(chosen, used, strict=True)]


def peers(options):
    """Print perplexity over time."""
    train, test = load("synthetic" if options.smoke else options.corpus)
    judge = OwnPrior(test[::5])
    n_topics, steps = (12, {"n_iter": 30}) if options.smoke else (100, {"n_iter": options.n_iter})
    print(f"{train.shape[0]} documents, {train.shape[1]} words, {train.sum():.0f} tokens")
    curves, last = {}, {}
    for name, model in {
        "ours": GammaProcessTopicModel(n_topics, random_state=options.seed, **steps),
        "ours, scir": GammaProcessTopicModel(n_topics, sampler="scir", random_state=options.seed, **steps),
        "BayesianLDA": BayesianLDA(n_topics, topic_word_prior=0.05, random_state=options.seed, **steps),
    }.items():
        model.set_params(n_iter=8).fit(train[:50])
        model.set_params(n_iter=steps.get("n_iter"))
        curves[name] = ProcessorCurve(name, judge)
        model.callbacks = Used(curves[name], moments(10_000, per_decade=4))
        curves[name].start()
        model.fit(train)
        curves[name].pause()
        last[name] = draws_of(model)
    if not options.smoke:
        curves["HDP"] = ProcessorCurve("tomotopy HDP", judge)
        spent = max(curve.spent for curve in curves.values())
        last["HDP"] = run_hdp(train, curves["HDP"], options.seconds or spent, options.seed, 10)
    names = list(curves)
    print("single states, the program's own prior\n" + f"{'seconds':>8s}" + "".join(f"{name:>14s}" for name in names))
    for seconds in (1, 2, 5, 10, 20, 40, 80, 160):
        if seconds <= 1.3 * max(curve.spent for curve in curves.values()):
            print(f"{seconds:8d}" + "".join(f"{curves[name].at(seconds):14.1f}" for name in names))
    for name in names:
        print(f"{name:14s} ten draws: {judge(last[name]):8.1f} with its own prior, {judge.common(last[name]):8.1f} "
              f"with {DOC_PRIOR} for all, {len(last[name][-1][1])} topics, {curves[name].spent:.1f} s")  # fmt: skip
    if not options.smoke:
        ratio = judge(last["ours"]) / judge(last["HDP"])
        print(f"perplexity over that of tomotopy's HDP at equal time or less: {ratio:.3f}")


def main():
    """Both parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", choices=["20newsgroups", "docstrings"], default="20newsgroups")
    parser.add_argument("--part", choices=["both", "cost", "peers"], default="both")
    parser.add_argument("--seconds", type=float, default=None, help="of tomotopy; default: as long as ours takes")
    parser.add_argument("--n-iter", type=int, default=None, help="passes of ours; default: each model's own")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smoke", action="store_true", help="a few seconds, without tomotopy")
    options = parser.parse_args()
    if options.part != "peers":
        cost(options)
    if options.part != "cost":
        peers(options)


if __name__ == "__main__":
    main()
