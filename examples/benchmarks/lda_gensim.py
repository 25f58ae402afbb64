"""LDA beside gensim: held-out perplexity and processor time of gensim's online variational Bayes and of our defaults.

    python examples/benchmarks/lda_gensim.py    # needs gensim, from `pip install gensim`

One core, and the clock stands while a model is scored. gensim's ``LdaModel`` makes one pass in ten chunks, and then ten
such passes, with the symmetric priors of the other benchmarks. Perplexity of held-out documents by document completion,
from each program's mean topics.
"""

import argparse
import time

import numpy as np
from _peers import DOC_PRIOR, WORD_PRIOR, Judge, counts_of, split
from threadpoolctl import threadpool_limits

from sk_sgmcmc import BayesianLDA


def gensim_topics(X, n_topics, passes):
    """Topics of gensim's model, and the seconds of its fit."""
    from gensim.matutils import Sparse2Corpus
    from gensim.models import LdaModel

    words = {k: str(k) for k in range(X.shape[1])}
    corpus = [document for document in Sparse2Corpus(X.tocsc(), documents_columns=False) if document]
    began = time.process_time()
    model = LdaModel(
        corpus, num_topics=n_topics, id2word=words, alpha=[DOC_PRIOR] * n_topics, eta=WORD_PRIOR, passes=passes,
        chunksize=-(-len(corpus) // 10), random_state=0,
    )  # fmt: skip
    return model.get_topics(), time.process_time() - began


def our_topics(X, n_topics, once):
    """Topics of one pass in ten blocks, or of a default fit, and the seconds of it."""
    began = time.process_time()
    model = BayesianLDA(n_topics, sampler="scir" if once else None, random_state=0)
    if once:
        for rows in np.array_split(np.arange(X.shape[0]), 10):
            model.partial_fit(X[rows])
    else:
        model.fit(X)
    return model.components_, time.process_time() - began


def main():
    """Print a line for each program and corpus."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a synthetic corpus, few topics, no gensim")
    parser.add_argument("--corpora", default="ap,poliblog5k")
    parser.add_argument("--topics", type=int, default=100)
    options = parser.parse_args()
    corpora, n_topics = (["synthetic"], 5) if options.smoke else (options.corpora.split(","), options.topics)
    programs = {
        "gensim, one pass": lambda X: gensim_topics(X, n_topics, 1),
        "gensim, ten passes": lambda X: gensim_topics(X, n_topics, 10),
        "partial_fit, one pass": lambda X: our_topics(X, n_topics, True),
        "fit": lambda X: our_topics(X, n_topics, False),
    }
    with threadpool_limits(1):
        for corpus in corpora:
            X, held_out = split(counts_of(corpus), 0)
            judge = Judge(held_out)
            our_topics(X[:100], n_topics, True)  # compiles, or loads what was compiled
            print(f"{corpus}: {X.shape[0]} documents, {int(X.sum())} tokens, {n_topics} topics", flush=True)
            for name, run in programs.items():
                if options.smoke and name.startswith("gensim"):
                    continue
                topics, seconds = run(X)
                print(f"  {name:22s} {judge([topics]):8.1f} {seconds:8.1f} s", flush=True)


if __name__ == "__main__":
    main()
