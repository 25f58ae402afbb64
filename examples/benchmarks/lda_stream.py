"""One pass over a stream in blocks: how close `partial_fit` comes to `fit`, beside scikit-learn's online method.

    python examples/benchmarks/lda_stream.py

Perplexity of held-out documents by document completion from the topics. Neither streaming method sees a document in
more than one block; `fit` has all of them and makes its usual sweeps.
"""

import argparse
import time

import numpy as np
from _peers import DOC_PRIOR, WORD_PRIOR, Judge, load
from sklearn.decomposition import LatentDirichletAllocation

from sk_sgmcmc import BayesianLDA

N_DRAWS = 10


def topics_of(model):
    """At most ten draws of the topics."""
    draws = model.samples_["components"].reshape(-1, *model.components_.shape)
    return draws[np.unique(np.linspace(0, len(draws) - 1, N_DRAWS).round().astype(int))]


def stream(model, X, block):
    """Seconds that ``model`` needs for X, block by block."""
    began = time.perf_counter()
    for start in range(0, X.shape[0], block):
        model.partial_fit(X[start : start + block])
    return time.perf_counter() - began


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a synthetic corpus and few topics")
    parser.add_argument("--corpora", default="20newsgroups,docstrings,wikipedia")
    parser.add_argument("--documents", type=int, default=20_000, help="at most")
    parser.add_argument("--topics", type=int, default=100)
    options = parser.parse_args()
    corpora = ["synthetic"] if options.smoke else options.corpora.split(",")
    n_topics = 10 if options.smoke else options.topics
    print(f"{'corpus':14s} {'documents':>9s} {'block':>6s}   perplexity (seconds)", flush=True)
    for corpus in corpora:
        X, held_out = load(corpus)
        X = X[np.random.default_rng(0).permutation(X.shape[0])[: options.documents]]
        judge, block = Judge(held_out), -(-X.shape[0] // 10)

        ours = BayesianLDA(n_topics, topic_word_prior=WORD_PRIOR, random_state=0)
        seconds = [stream(ours, X, block)]
        scores = [judge(topics_of(ours))]
        peer = LatentDirichletAllocation(
            n_topics, doc_topic_prior=DOC_PRIOR, topic_word_prior=WORD_PRIOR, total_samples=X.shape[0],
            learning_offset=64.0, random_state=0,
        )  # fmt: skip
        seconds.append(stream(peer, X, block))
        scores.append(judge([peer.components_ / peer.components_.sum(axis=1, keepdims=True)]))
        began = time.perf_counter()
        fitted = BayesianLDA(n_topics, topic_word_prior=WORD_PRIOR, random_state=0).fit(X)
        seconds.append(time.perf_counter() - began)
        scores.append(judge(topics_of(fitted)))
        cells = [
            f"{name} {score:7.1f} ({spent:5.1f})"
            for name, score, spent in zip(("partial_fit", "scikit-learn", "fit"), scores, seconds, strict=True)
        ]
        print(f"{corpus:14s} {X.shape[0]:9d} {block:6d}   {'   '.join(cells)}", flush=True)
        print(f"  partial_fit / fit: {scores[0] / scores[2]:.3f} (target 1.10)", flush=True)


if __name__ == "__main__":
    main()
