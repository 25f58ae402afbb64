"""Topic proportions of new documents: documents a second beside tomotopy's `infer` and scikit-learn's `transform`.

    python examples/benchmarks/lda_transform.py --corpora 20newsgroups,acl_abstracts --topics 20,100

All programs use the same topics and documents' prior, those that tomotopy learnt, so that only inference differs. Each
one infers the proportions of held-out documents, by its default arguments on one core. Then it does so from half of the
tokens of each document, and the perplexity of the other half under these proportions tells how good they are.
`BayesianLDA.score` averages over ten draws of its own topics, for each of which proportions are inferred anew;
scikit-learn's `score` is a variational bound by one set of topics.

The rates are medians over a few repetitions, by processor time; compilation and the preparation of tomotopy's
documents do not count.
"""

import argparse
import time
from copy import copy

import numpy as np
from _peers import DOC_PRIOR, WORD_PRIOR, counts_of, split
from sklearn.decomposition import LatentDirichletAllocation
from threadpoolctl import threadpool_limits

from sk_sgmcmc import BayesianLDA
from sk_sgmcmc.metrics import split_tokens

TRAIN_SWEEPS = 100
REPETITIONS = 3


class Topics:
    """Topics that all programs use.

    Parameters
    ----------
    word_counts : ndarray of shape (n_topics, n_words)
        Tokens of each word in each topic, the prior included.
    doc_prior : ndarray of shape (n_topics,)
    """

    def __init__(self, word_counts, doc_prior):
        self.word_counts, self.doc_prior = word_counts, doc_prior
        self.shares = word_counts / word_counts.sum(axis=1, keepdims=True)


class Tomotopy:
    """LDAModel of tomotopy, trained here."""

    def __init__(self, train, n_topics):
        import tomotopy

        self.model = tomotopy.LDAModel(k=n_topics, alpha=DOC_PRIOR, eta=WORD_PRIOR, seed=1)
        self.words = np.array([str(w) for w in range(train.shape[1])])
        for tokens in self.texts(train):
            self.model.add_doc(tokens)
        self.model.train(TRAIN_SWEEPS, workers=1)
        columns = np.array([int(word) for word in self.model.used_vocabs])
        counts = np.full((n_topics, train.shape[1]), WORD_PRIOR)
        tokens = self.model.get_count_by_topics()
        for k in range(n_topics):
            counts[k, columns] = self.model.get_topic_word_dist(k) * (tokens[k] + WORD_PRIOR * columns.size)
        self.topics = Topics(counts, np.array(self.model.alpha))

    def texts(self, X):
        """Documents as tomotopy takes them."""
        X = X.tocsr()
        for d in range(X.shape[0]):
            row = slice(X.indptr[d], X.indptr[d + 1])
            yield np.repeat(self.words[X.indices[row]], X.data[row].astype(int)).tolist()

    def prepared(self, X):
        """Documents of the model."""
        return [self.model.make_doc(tokens) for tokens in self.texts(X)]

    def proportions(self, documents):
        """By `infer` with its defaults, one document after the other, on one core."""
        return np.array(self.model.infer(documents, workers=1, together=False)[0])


class ScikitLearn:
    """LatentDirichletAllocation, which is given the topics."""

    def __init__(self, train, topics):
        n_topics = len(topics.shares)
        self.model = LatentDirichletAllocation(n_topics, max_iter=1, random_state=0).fit(train[:50])
        self.model.doc_topic_prior_ = topics.doc_prior.mean()  # it takes one number
        self.model.components_ = topics.word_counts
        self.model.exp_dirichlet_component_ = expected_shares(topics.word_counts)

    prepared = staticmethod(lambda X: X)

    def proportions(self, X):
        """By `transform`."""
        return self.model.transform(X)


class Ours:
    """BayesianLDA, which is given the topics."""

    def __init__(self, train, topics):
        self.model = BayesianLDA(len(topics.shares), n_iter=40, random_state=0).fit(train)
        self.given = copy(self.model)
        self.given.components_, self.given.doc_topic_prior_ = topics.shares, topics.doc_prior

    prepared = staticmethod(lambda X: X)

    def proportions(self, X):
        """By `transform`."""
        return self.given.transform(X)


def expected_shares(counts):
    """exp(E[log phi]) of Dirichlet rows, as scikit-learn keeps them."""
    from scipy.special import psi

    return np.exp(psi(counts) - psi(counts.sum(axis=1, keepdims=True)))


def perplexity(proportions, topics, hidden):
    """Perplexity of hidden tokens under proportions (n_docs, n_topics)."""
    of_word = np.ascontiguousarray(topics.shares.T)
    words = np.split(hidden.indices, hidden.indptr[1:-1])
    p = np.concatenate([of_word[w] @ theta for w, theta in zip(words, proportions, strict=True)])
    return float(np.exp(-(hidden.data @ np.log(p)) / hidden.data.sum()))


def seconds(call, *args):
    """Median seconds of processor time of a call."""
    spent = []
    for _ in range(REPETITIONS):
        began = time.process_time()
        call(*args)
        spent.append(time.process_time() - began)
    return np.median(spent)


def compare(X, held_out, n_topics, with_tomotopy=True):
    """By name, documents a second and perplexity of each program, and documents a second of the scores."""
    if with_tomotopy:
        programs = {"tomotopy": Tomotopy(X, n_topics)}
        topics = programs["tomotopy"].topics
    else:
        programs = {}
        fitted = BayesianLDA(n_topics, n_iter=40, random_state=1).fit(X)
        topics = Topics(fitted.components_ * X.sum() / n_topics + WORD_PRIOR, fitted.doc_topic_prior_)
    programs |= {"scikit-learn": ScikitLearn(X, topics), "ours": Ours(X, topics)}
    observed, hidden = split_tokens(held_out)
    both = np.flatnonzero((observed.sum(axis=1) > 0) & (hidden.sum(axis=1) > 0))  # tomotopy refuses empty documents
    observed, hidden = observed[both], hidden[both]
    table = {}
    for name, program in programs.items():
        documents = program.prepared(held_out)
        program.proportions(documents[:2])
        rate = held_out.shape[0] / seconds(program.proportions, documents)
        table[name] = rate, perplexity(program.proportions(program.prepared(observed)), topics, hidden)
    scores = {}
    for name in ("scikit-learn", "ours"):
        score = programs[name].model.score
        score(held_out[:50])
        scores[name] = held_out.shape[0] / seconds(score, held_out)
    return table, scores


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a synthetic corpus, without tomotopy")
    parser.add_argument("--corpora", default="20newsgroups,acl_abstracts", help="docstrings needs no files")
    parser.add_argument("--topics", default="20,100")
    options = parser.parse_args()
    corpora, topics = options.corpora.split(","), [int(k) for k in options.topics.split(",")]
    if options.smoke:
        corpora, topics = ["synthetic"], [5]
    for corpus in corpora:
        counts_of(corpus)  # a corpus that is missing ends the script before anything is fitted
    print(f"{'corpus':14s} {'K':>4s} {'program':>13s} {'documents a second':>19s} {'perplexity':>11s}")
    ratios = []
    for corpus in corpora:
        train, held_out = split(counts_of(corpus), 0)
        held_out = held_out[np.flatnonzero(held_out.sum(axis=1))]
        for n_topics in topics:
            table, scores = compare(train, held_out, n_topics, with_tomotopy=not options.smoke)
            for name, (rate, quality) in table.items():
                print(f"{corpus:14s} {n_topics:4d} {name:>13s} {rate:19.0f} {quality:11.1f}", flush=True)
            for name, rate in scores.items():
                print(f"{corpus:14s} {n_topics:4d} {name:>13s} {rate:19.0f}       score", flush=True)
            best = max(rate for name, (rate, _) in table.items() if name != "ours")
            ratios.append((table["ours"][0] / best, scores["ours"] / scores["scikit-learn"], scores["ours"] / best))
    transform, score, both = np.min(ratios, axis=0)
    print(
        f"ours / the faster peer, least: transform {transform:.1f} (target 1), our score / its score {score:.1f} "
        f"(target 1), our score / its transform {both:.2f}"
    )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
