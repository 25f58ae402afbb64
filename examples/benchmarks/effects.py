"""Do the intervals of `DMRTopicModel.effects` cover the difference between two populations, whatever made the corpus?

    python examples/benchmarks/effects.py                                    # three truths, 40 and 200 words, 8 corpora
    python examples/benchmarks/effects.py --truths hurdle --words 200 --corpora 4
    python examples/benchmarks/effects.py --results effects.jsonl            # continue from, and append to, this file
    python examples/benchmarks/effects.py --columns population topic topica  # these columns alone
    python examples/benchmarks/effects.py --part real                        # perplexity of both dispersions
    python examples/benchmarks/effects.py --smoke                            # seconds: two small corpora of each truth

Each corpus has 300 documents in two groups and 5 topics. The documents' proportions come from one of three truths:

``dmr``       a Dirichlet-multinomial regression, the model itself
``logistic``  a correlated logistic normal, the prior of structural topic models
``hurdle``    a Dirichlet, but two topics occur in few documents, and fill these

The truth is the difference between the expected proportions of the groups. Each line is one truth and length, with the
coverage of 90% intervals over topics and corpora, its standard error between corpora, and in brackets the root mean
square error of the means:

``population``  the default of ``effects``: draws of the documents' proportions, reweighted in each draw
``topic``       the same of a model with ``dispersion="topic"``
``sampled``     as ``population``, with ``X=``: proportions drawn by Gibbs sweeps given each draw of the topics
``documents``   draws of the documents' proportions with equal weights
``prior``       the mean of the documents' prior
``topica``      topica's structural topic model with the method of composition, 25 draws, if it is installed
``bootstrap``   the true proportions of the documents, reweighted: the best that can be expected

``--part real`` fits 20 topics to nine tenths of four corpora with one column of metadata, and prints the perplexity of
the other documents given their metadata, by document completion, and the processor seconds of the fit.
"""

import argparse
import importlib.util
import json
import time
import warnings
from pathlib import Path

import numpy as np
from _peers import fetched
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import DMRTopicModel
from sk_sgmcmc.datasets import fetch_corpus, load_sotu
from sk_sgmcmc.metrics import align_topics

MASS = 0.9
N_TOPICS, N_VOCABULARY, WORD_PRIOR = 5, 200, 0.1
RARE = 2  # Topics of the hurdle that occur in few documents.


def dmr(rng):
    """A function that draws proportions of documents with given x."""
    base = np.log(1.0 / N_TOPICS) + 0.3 * rng.standard_normal(N_TOPICS)
    alpha = np.exp(base + np.outer([0.0, 1.0], 0.5 * rng.standard_normal(N_TOPICS)))
    return lambda x: np.stack([rng.dirichlet(alpha[each]) for each in x])


def logistic(rng):
    """As `dmr`, from a logistic normal with correlated topics."""
    mean = 0.5 * rng.standard_normal((2, N_TOPICS))
    factor = rng.standard_normal((N_TOPICS, N_TOPICS)) / np.sqrt(N_TOPICS)
    root = np.linalg.cholesky(factor @ factor.T + 0.5 * np.eye(N_TOPICS))

    def drawn(x):
        eta = mean[0] + np.outer(x, mean[1]) + 1.2 * rng.standard_normal((x.size, N_TOPICS)) @ root.T
        theta = np.exp(eta - eta.max(axis=1, keepdims=True))
        return theta / theta.sum(axis=1, keepdims=True)

    return drawn


def hurdle(rng):
    """As `dmr`, but the first `RARE` topics occur in few documents, of which they are most."""
    others = N_TOPICS - RARE
    base = np.log(2.0 / others) + 0.3 * rng.standard_normal(others)
    alpha = np.exp(base + np.outer([0.0, 1.0], 0.4 * rng.standard_normal(others)))
    share = np.clip(np.array([[0.06, 0.12]] * RARE).T * np.exp(0.5 * rng.standard_normal((2, RARE))), 0.02, 0.3)

    def drawn(x):
        theta = np.zeros((x.size, N_TOPICS))
        for d, each in enumerate(x):
            theta[d, RARE:] = rng.dirichlet(alpha[each])
            for k in np.flatnonzero(rng.random(RARE) < share[each]):
                theta[d] *= 1.0 - (part := rng.beta(8.0, 2.0))
                theta[d, k] += part
        return theta

    return drawn


TRUTHS = {"dmr": dmr, "logistic": logistic, "hurdle": hurdle}
REAL = {"sotu": "party", "poliblog5k": "rating", "acl_abstracts": "venue", "20newsgroups": "category"}
COLUMNS = ("population", "topic", "sampled", "documents", "prior", "topica", "bootstrap")


def plant(truth, n_words, seed, n_docs):
    """Counts, the group of each document, topics, the documents' proportions, and the true difference."""
    rng = np.random.default_rng([seed, n_words, sorted(TRUTHS).index(truth)])
    topics = rng.dirichlet(np.full(N_VOCABULARY, WORD_PRIOR), size=N_TOPICS)
    drawn, x = TRUTHS[truth](rng), np.arange(n_docs) % 2
    theta = drawn(x)
    words = theta @ topics
    counts = np.stack([rng.multinomial(n_words, p / p.sum()) for p in words])
    every = np.repeat([0, 1], 50_000)
    many = drawn(every)
    return sparse.csr_array(counts), x, topics, theta, many[every == 1].mean(axis=0) - many[every == 0].mean(axis=0)


def bootstrap(theta, x, rng, n_draws=2000):
    """Mean, low and high of the difference between the groups, with Dirichlet(1, ..., 1) weights of the documents."""
    ends = []
    for each in (1, 0):
        rows = theta[x == each]
        ends.append(rng.dirichlet(np.ones(len(rows)), size=n_draws) @ rows)
    draws = ends[0] - ends[1]
    tail = (1.0 - MASS) / 2.0
    return draws.mean(axis=0), *np.quantile(draws, [tail, 1.0 - tail], axis=0)


def topica_effects(counts, x, topics, seed):
    """The same of topica's structural topic model, by the method of composition; in the order of ``topics``."""
    import pandas
    import topica

    names = np.array([f"w{j:03d}" for j in range(N_VOCABULARY)])
    words = [
        np.repeat(names[row.indices], row.data.astype(int)).tolist() for row in (counts[[d]] for d in range(x.size))
    ]
    corpus = topica.Corpus.from_documents(words)
    model = topica.STM(N_TOPICS, seed=seed + 1)
    model.fit(corpus, prevalence=x[:, None].astype(float))
    data = pandas.DataFrame({"x": x.astype(float)})
    found = topica.estimate_effect(model, data=data, formula="~ x", nsims=25, ci=MASS, corpus=corpus)
    phi = np.full((N_TOPICS, N_VOCABULARY), 1e-12)
    phi[:, [int(word[1:]) for word in model.vocabulary]] = model.topic_word
    ends = np.array([[each.coef[1], each.ci_low[1], each.ci_high[1]] for each in found])
    return ends[align_topics(topics, phi / phi.sum(axis=1, keepdims=True))].T


def compared(truth, n_words, seed, n_docs, n_iter, columns):
    """For each column, whether the intervals cover the truth, and the errors of the means, (n_columns, 2, n_topics)."""
    counts, x, topics, theta, difference = plant(truth, n_words, seed, n_docs)
    models = {}
    for dispersion in ["shared", "topic"][: 1 + ("topic" in columns)]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            models[dispersion] = DMRTopicModel(N_TOPICS, n_iter=n_iter, dispersion=dispersion, random_state=seed)
            models[dispersion].fit(counts, metadata={"x": x.astype(float)})
    found = []
    for name in columns:
        if name == "bootstrap":
            mean, low, high = bootstrap(theta, x, np.random.default_rng(seed))
        elif name == "topica":
            mean, low, high = topica_effects(counts, x, topics, seed)
        else:
            model = models["topic" if name == "topic" else "shared"]
            given = {"X": counts} if name == "sampled" else {"of": "population" if name == "topic" else name}
            table = model.effects("x", at=[0.0, 1.0], interval=MASS, **given)
            order = align_topics(topics, model.components_)
            mean, low, high = (np.asarray(table[each])[order] for each in ("difference", "low", "high"))
        found.append([(low <= difference) & (difference <= high), mean - difference])
    return np.array(found, dtype=float)


def print_real(n_topics=20):
    """Print held-out perplexities and seconds of models with both dispersions on real corpora."""
    for name, column in REAL.items():
        corpus = load_sotu() if name == "sotu" else fetched(fetch_corpus, name)
        values = np.asarray(corpus.metadata[column]).astype(str)
        common, count = np.unique(values, return_counts=True)
        values[~np.isin(values, common[count >= 50])] = "other"
        X, order = corpus.counts.tocsr(), np.random.default_rng(0).permutation(values.size)
        fit, held_out = np.sort(order[values.size // 10 :]), np.sort(order[: values.size // 10])
        for dispersion in ("shared", "topic"):
            model, began = DMRTopicModel(n_topics, dispersion=dispersion, random_state=0), time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X[fit], metadata={column: values[fit]})
            seconds = time.process_time() - began
            perplexity = model.perplexity(X[held_out], metadata={column: values[held_out]})
            print(f"{name:<14}{column:<10}{dispersion:<8}{perplexity:>8.1f}{seconds:>8.1f} s", flush=True)


def line_of(found):
    """The line of the table for the results of some corpora, (n_corpora, n_columns, 2, n_topics)."""
    inside, errors = found[:, :, 0].mean(axis=2), np.sqrt((found[:, :, 1] ** 2).mean(axis=(0, 2)))
    spread = inside.std(axis=0, ddof=1) / np.sqrt(len(inside)) if len(inside) > 1 else np.full(found.shape[1], np.nan)
    return "  ".join(f"{m:.2f} ±{s:.2f} ({e:.3f})" for m, s, e in zip(inside.mean(axis=0), spread, errors, strict=True))


def main():
    """Print a line for each truth and length."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["planted", "real"], default="planted")
    parser.add_argument("--truths", nargs="+", choices=TRUTHS, default=list(TRUTHS))
    parser.add_argument("--words", nargs="+", type=int, default=[40, 200], help="words of a document")
    parser.add_argument("--corpora", type=int, default=8)
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--n-iter", type=int, help="steps of each fit; the default of the model if left out")
    parser.add_argument("--columns", nargs="+", choices=COLUMNS, help="all that are installed, if left out")
    parser.add_argument("--results", type=Path, help="file of JSON lines, one for each corpus that is done")
    parser.add_argument("--smoke", action="store_true", help="two small corpora of each truth")
    options = parser.parse_args()
    if options.part == "real":
        return print_real()
    installed = [name for name in COLUMNS if name != "topica" or importlib.util.find_spec("topica")]
    columns = options.columns or installed
    if options.smoke:
        options.words, options.corpora, options.documents, options.n_iter = [10], 2, 40, 40
    records = {}
    if options.results is not None and options.results.exists():
        lines = map(json.loads, options.results.read_text(encoding="utf-8").splitlines())
        records = {(*key[:-1], tuple(key[-1])): found for key, found in lines}
    cells = [(truth, n_words) for n_words in options.words for truth in options.truths]
    for seed in range(options.corpora):  # Outermost, so that an interrupted run has about as many corpora in each cell.
        for cell in cells:
            key = (*cell, seed, options.documents, options.n_iter, tuple(columns))
            if key not in records:
                records[key] = compared(*key).tolist()
                if options.results is not None:
                    with options.results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps([key, records[key]]) + "\n")
    print(f"{'':17}" + "  ".join(f"{name:<18}" for name in columns))
    of_cell = [[records[key] for key in records if key[:2] == cell and key[-1] == tuple(columns)] for cell in cells]
    for (truth, n_words), found in zip(cells, of_cell, strict=True):
        print(f"{truth:<9}{n_words:>4}{len(found):>3} {line_of(np.array(found))}")
    print(f"{'all':<17}{line_of(np.concatenate([each for each in of_cell if each]))}")
    return None


if __name__ == "__main__":
    main()
