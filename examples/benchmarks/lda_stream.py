"""A stream over time: `partial_fit` by SCIR beside scikit-learn's online method and our own `fit`.

    python examples/benchmarks/lda_stream.py --passes 3

Both streaming methods get a corpus in ten blocks, several times over; `fit` has all of it and makes its usual sweeps.
Perplexity of held-out documents by document completion, from the mean topics after each block. Time is processor time
without scoring. "above" is the largest ratio of our perplexity to scikit-learn's at the same moment, from our first
answer on; "one pass" and "end" are the ratios of our perplexity after one pass and after all to that of `fit`.
"""

import argparse
import time

import numpy as np
from _peers import DOC_PRIOR, WORD_PRIOR, Curve, Judge, counts_of, split
from sklearn.decomposition import LatentDirichletAllocation
from threadpoolctl import threadpool_limits

from sk_sgmcmc import BayesianLDA

CORPORA = "docstrings,ap,poliblog5k,acl_abstracts,reuters21578,sotu_paragraphs,20newsgroups,wikipedia"
N_BLOCKS = 10
TARGETS = 1.0, 1.03  # of "above" and of "end"


def run(name, model, X, judge, n_passes):
    """The curve of a streaming model over all passes."""
    curve = Curve(name, judge, quiet=True, now=time.process_time)
    for _ in range(n_passes):
        for rows in np.array_split(np.arange(X.shape[0]), N_BLOCKS):
            curve.start()
            model.partial_fit(X[rows])
            curve.pause()
            curve.record(model.components_ / model.components_.sum(axis=1, keepdims=True))
    return curve


def compare(corpus, X, held_out, n_topics, n_passes):
    """Print the curves of a corpus; returns ("above", "one pass", "end")."""
    judge = Judge(held_out)
    BayesianLDA(n_topics, sampler="scir", random_state=0).partial_fit(
        X[:50]
    )  # loads or compiles all that a stream uses
    ours = run("partial_fit", BayesianLDA(n_topics, sampler="scir", random_state=0), X, judge, n_passes)
    peer = LatentDirichletAllocation(
        n_topics, doc_topic_prior=DOC_PRIOR, topic_word_prior=WORD_PRIOR, total_samples=X.shape[0],
        learning_offset=64.0, random_state=0,
    )  # fmt: skip
    theirs = run("scikit-learn", peer, X.astype(np.float64), judge, n_passes)
    fitted = Curve("fit", judge, quiet=True, now=time.process_time)
    fitted.start()
    model = BayesianLDA(n_topics, random_state=0).fit(X)
    fitted.pause()
    fitted.record(model.components_)
    print(f"{corpus}: {X.shape[0]} documents, {int(X.sum())} tokens, {n_topics} topics", flush=True)
    for curve in (ours, theirs, fitted):
        points = [f"{s:.1f} s {p:.1f}" for s, p in zip(curve.seconds, curve.perplexity, strict=True)]
        shown = (
            points if len(points) == 1 else [points[0], points[N_BLOCKS // 2 - 1], *points[N_BLOCKS - 1 :: N_BLOCKS]]
        )
        print(f"  {curve.name:14s} {'   '.join(shown)}", flush=True)
    moments = [s for s in (*ours.seconds, *theirs.seconds) if s >= ours.seconds[0]]
    above = max(ours.at(s) / theirs.at(s) for s in moments if np.isfinite(theirs.at(s)))
    level = fitted.perplexity[-1]
    found = above, ours.perplexity[N_BLOCKS - 1] / level, ours.perplexity[-1] / level
    print("  above {:.3f}   one pass {:.3f}   end {:.3f}".format(*found), flush=True)
    return found


def main():
    """Print the curves and the largest ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a synthetic corpus and few topics")
    parser.add_argument("--corpora", default=CORPORA)
    parser.add_argument("--documents", type=int, default=20_000, help="at most")
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--passes", type=int, default=3)
    options = parser.parse_args()
    corpora = ["synthetic"] if options.smoke else options.corpora.split(",")
    n_topics, found = 10 if options.smoke else options.topics, []
    with threadpool_limits(1):
        for corpus in corpora:
            X, held_out = split(counts_of(corpus), 0)
            found.append(compare(corpus, X[: options.documents], held_out, n_topics, options.passes))
    above, once, end = (max(ratios) for ratios in zip(*found, strict=True))
    print(
        f"largest: above {above:.3f} (target {TARGETS[0]}), one pass {once:.3f}, end {end:.3f} (target {TARGETS[1]})",
        flush=True,
    )


if __name__ == "__main__":
    main()
