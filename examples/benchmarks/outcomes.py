"""Do intervals of the difference that a topic makes to an outcome cover it? `TopicRegressor`, and plug-in regressions.

    python examples/benchmarks/outcomes.py                                  # 8, 25 and 80 words, 8 corpora of each kind
    python examples/benchmarks/outcomes.py --words 8 --truths logistic --corpora 4
    python examples/benchmarks/outcomes.py --results outcomes.jsonl         # continue from, and append to, this file
    python examples/benchmarks/outcomes.py --part predict                   # blogs of two camps, and years of addresses
    python examples/benchmarks/outcomes.py --smoke                          # seconds: one small corpus of each kind

Each corpus has 2,000 documents and 3 topics. Proportions come from a Dirichlet distribution, or from a correlated
logistic normal, which no model here has as its prior. Outcomes are normal, with coefficients 0, 0.5 and 1 and noise of
0.3; binary, with logits of -1.5, 0 and 1.5; or null: normal without an effect. A line is a kind of corpus, with the
coverage of 90% intervals of the three differences between topics, and in brackets the mean error, towards 0 if it is
negative:

``joint``    `TopicRegressor` or `TopicClassifier`
``cut``      the same with ``feedback=False``: outcomes do not influence the topics
``shared``   the same with ``dispersion="shared"``
``plug-in``  `BayesianLDA.regress`: least squares on posterior means of the proportions
``pooled``   least squares on draws of the proportions, pooled
``topica``   its supervised LDA with its standard errors, for normal outcomes
``tomotopy`` its supervised LDA, which has no intervals: only the mean error

The last two are measured if they are installed; ``--columns`` chooses columns. Then comes the CPU time of ``joint`` as
a multiple of `BayesianLDA`'s.

``--part predict`` prints R² or log loss and accuracy on held-out documents, beside `BayesianLDA` with a regression on
its proportions, a regression on tf-idf, and tomotopy's supervised LDA.
"""

import argparse
import importlib.util
import json
import time
import warnings
from pathlib import Path

import numpy as np
from _peers import fetched
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegressionCV, RidgeCV
from sklearn.metrics import accuracy_score, log_loss, r2_score

from sk_sgmcmc import BayesianLDA, TopicClassifier, TopicRegressor
from sk_sgmcmc.datasets import fetch_corpus, load_sotu
from sk_sgmcmc.metrics import align_topics

N_TOPICS, N_VOCABULARY, MASS = 3, 60, 0.9
SLOPES = {"normal": np.array([0.0, 0.5, 1.0]), "binary": np.array([-1.5, 0.0, 1.5]), "null": np.zeros(3)}
COLUMNS = ("joint", "cut", "shared", "plug-in", "pooled", "topica", "tomotopy")
PAIRS = ((0, 1), (0, 2), (1, 2))


def dirichlet(rng, n_docs):
    """Proportions of documents."""
    return rng.dirichlet(np.full(N_TOPICS, 0.4), n_docs)


def logistic(rng, n_docs):
    """As `dirichlet`, from a logistic normal with correlated topics."""
    factor = rng.standard_normal((N_TOPICS, N_TOPICS)) / np.sqrt(N_TOPICS)
    root = np.linalg.cholesky(factor @ factor.T + 0.5 * np.eye(N_TOPICS))
    eta = 0.5 * rng.standard_normal(N_TOPICS) + 1.2 * rng.standard_normal((n_docs, N_TOPICS)) @ root.T
    theta = np.exp(eta - eta.max(axis=1, keepdims=True))
    return theta / theta.sum(axis=1, keepdims=True)


TRUTHS = {"dirichlet": dirichlet, "logistic": logistic}


def plant(truth, kind, n_words, seed, n_docs):
    """Counts, outcomes and topics of a corpus."""
    rng = np.random.default_rng([seed, n_words])
    topics = rng.dirichlet(np.full(N_VOCABULARY, 0.2), N_TOPICS)
    theta = TRUTHS[truth](rng, n_docs)
    X = np.stack([rng.multinomial(n_words, p / p.sum()) for p in theta @ topics])
    f = theta @ SLOPES[kind]
    if kind == "binary":
        return X, (rng.random(n_docs) < 1.0 / (1.0 + np.exp(-f))).astype(int), topics
    return X, f + 0.3 * rng.standard_normal(n_docs), topics


def differences(coef, order):
    """Draws of the differences between aligned topics, (n_draws, 3)."""
    return np.stack([coef[:, order[b]] - coef[:, order[a]] for a, b in PAIRS], axis=1)


def summary(draws, truth):
    """Whether intervals cover the truth, and the errors of the means."""
    low, high = np.quantile(draws, [(1.0 - MASS) / 2.0, (1.0 + MASS) / 2.0], axis=0)
    return [((low <= truth) & (truth <= high)).tolist(), (draws.mean(axis=0) - truth).tolist()]


def normal_draws(theta, y, order, rng):
    """Draws from the normal approximation of least squares, with errors that allow for unequal variances."""
    inverse = np.linalg.pinv(theta.T @ theta)
    coef = inverse @ (theta.T @ y)
    scores = theta * (y - theta @ coef)[:, None]
    covariance = inverse @ (scores.T @ scores) @ inverse
    return differences(rng.multivariate_normal(coef, covariance, 4000), order)


def words_of(X):
    """The words of each document, as lists of strings."""
    names = np.array([f"w{j:05d}" for j in range(X.shape[1])])
    rows = (np.asarray(X[d].todense()).ravel() if hasattr(X, "todense") else X[d] for d in range(X.shape[0]))
    return [np.repeat(names, row.astype(int)).tolist() for row in rows]


def full_topics(topics, vocabulary, n_words):
    """Topics of a program that has seen only some words, (n_topics, n_words)."""
    full = np.full((len(topics), n_words), 1e-12)
    full[:, [int(word[1:]) for word in vocabulary]] = topics
    return full / full.sum(axis=1, keepdims=True)


def of_topica(X, y, topics, kind, seed, rng, n_iter):
    """Draws of the differences from the normal approximation that topica reports; None for binary outcomes."""
    import topica

    if kind == "binary":
        return None
    model = topica.SupervisedLDA(N_TOPICS, seed=seed + 1)
    model.fit(topica.Corpus.from_documents(words_of(X)), y.tolist(), **({} if n_iter is None else {"iters": n_iter}))
    order = align_topics(topics, full_topics(np.asarray(model.topic_word), model.vocabulary, X.shape[1]))
    spread = np.asarray(model.coefficient_se) * rng.standard_normal((4000, N_TOPICS))
    return differences(np.asarray(model.coefficients) + spread, order)


def tomotopy_outcomes(X, y, n_topics, kind, seed, n_iter):
    """tomotopy's supervised LDA after 1,000 sweeps."""
    import tomotopy

    model = tomotopy.SLDAModel(k=n_topics, vars="b" if kind == "binary" else "l", seed=seed + 1)
    for words, value in zip(words_of(X), y, strict=True):
        model.add_doc(words, [float(value)])
    model.train(n_iter or 1000, workers=1)
    return model


def of_tomotopy(X, y, topics, kind, seed, rng, n_iter):
    """One draw: its estimates of the differences."""
    model = tomotopy_outcomes(X, y, N_TOPICS, kind, seed, n_iter)
    found = np.array([model.get_topic_word_dist(k) for k in range(N_TOPICS)])
    order = align_topics(topics, full_topics(found, model.used_vocabs, X.shape[1]))
    return differences(np.array(model.get_regression_coef(0))[None], order)


def compared(truth, kind, n_words, seed, n_docs, n_iter, columns):
    """What each column finds, and the CPU seconds of the joint fit and of plain topics."""
    X, y, topics = plant(truth, kind, n_words, seed, n_docs)
    expected = np.array([SLOPES[kind][b] - SLOPES[kind][a] for a, b in PAIRS])
    make, rng = (TopicClassifier if kind == "binary" else TopicRegressor), np.random.default_rng(seed)
    found, seconds = {}, {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, params in {"joint": {}, "cut": {"feedback": False}, "shared": {"dispersion": "shared"}}.items():
            if name not in columns:
                continue
            began = time.process_time()
            model = make(N_TOPICS, n_iter=n_iter, random_state=seed, **params).fit(X, y)
            seconds[name] = time.process_time() - began
            order = align_topics(topics, model.components_)
            found[name] = summary(differences(model.samples_["coef"][0], order), expected)
        began = time.process_time()
        lda = BayesianLDA(N_TOPICS, n_iter=n_iter, random_state=seed).fit(X)
        seconds["lda"] = time.process_time() - began
        if kind != "binary" and "pooled" in columns:
            order = align_topics(topics, lda.components_)
            found["plug-in"] = summary(normal_draws(lda.transform(X), y, order, rng), expected)
            draws = lda.transform_draws(X, min(20, lda.samples_["components"].shape[1]))
            pooled = np.concatenate([normal_draws(each, y, order, rng) for each in draws])
            found["pooled"] = summary(pooled, expected)
        for name, function in {"topica": of_topica, "tomotopy": of_tomotopy}.items():
            if name in columns and (draws := function(X, y, topics, kind, seed, rng, n_iter)) is not None:
                found[name] = summary(draws, expected)
    return {"found": found, "seconds": seconds}


def print_coverage(options):
    """Print a line for each kind of corpus."""
    records = {}
    if options.results is not None and options.results.exists():
        lines = map(json.loads, options.results.read_text(encoding="utf-8").splitlines())
        records = {(*key[:-1], tuple(key[-1])): found for key, found in lines}
    cells = [(t, kind, n) for n in options.words for kind in options.kinds for t in options.truths]
    for seed in range(options.corpora):  # Outermost, so that an interrupted run has about as many corpora in each cell.
        for cell in cells:
            key = (*cell, seed, options.documents, options.n_iter, tuple(options.columns))
            if key not in records:
                records[key] = compared(*key)
                if options.results is not None:
                    with options.results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps([key, records[key]]) + "\n")
    print(f"{'':29}" + "  ".join(f"{name:<14}" for name in options.columns) + "  times LDA")
    for cell in [*cells, None]:
        own = [found for key, found in records.items() if cell in (None, key[:3])]
        parts = []
        for name in options.columns:
            of = [each["found"][name] for each in own if name in each["found"]]
            kinds = "of all" if cell is None else cell[1]
            inside, errors = (np.array([each[i] for each in of], dtype=float) for i in (0, 1))
            covers = f"{inside.mean():.2f} " if of and name != "tomotopy" else ""
            shown = f"{covers}({errors.mean():+.3f})" if of and kinds else ""
            parts.append(f"{shown:<14}")
        ratio = np.median([each["seconds"].get("joint", np.nan) / each["seconds"]["lda"] for each in own])
        label = "all" if cell is None else f"{cell[0]:<10}{cell[1]:<7}{cell[2]:>3} words"
        print(f"{label:<25}{len(own):>3} " + "  ".join(parts) + f"  {ratio:.1f}")


def split(n, seed=0):
    """Documents to fit, and held-out ones."""
    order = np.random.default_rng(seed).permutation(n)
    return order[: n // 2], order[n // 2 :]


def print_predictions(options):
    """Print how well camps of blogs, and years of addresses, are predicted from held-out words."""
    K, n_iter = (4, 20) if options.smoke else (options.topics, None)
    blogs, sotu = fetched(fetch_corpus, "poliblog5k"), load_sotu()
    tasks = {
        "camps of blogs": (TopicClassifier, blogs.counts, np.asarray(blogs.metadata["rating"]) == "Liberal"),
        "years of addresses": (TopicRegressor, sotu.counts, np.asarray(sotu.metadata["year"], dtype=float)),
    }
    for name, (make, X, y) in tasks.items():
        some = np.arange(X.shape[0])[:: 20 if options.smoke else 1]
        X, y = X[some], y[some]
        fitted, held = split(X.shape[0])
        is_class = make is TopicClassifier
        y = y.astype(int) if is_class else y
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answers = {}
            for title, n_chains in {make.__name__: 1, f"{make.__name__}, four chains": 4}.items():
                began = time.process_time()
                model = make(K, n_chains=n_chains, n_iter=n_iter, random_state=0).fit(X[fitted], y[fitted])
                answers[title] = predicted(model, X[held], is_class), time.process_time() - began
            for title, topics in {
                "BayesianLDA": BayesianLDA(K, n_iter=n_iter, random_state=0),
                "LatentDirichletAllocation": LatentDirichletAllocation(K, random_state=0),
            }.items():
                began = time.process_time()
                shares = topics.fit_transform(X[fitted])
                own = regression(is_class).fit(shares, y[fitted])
                answers[f"{title} + regression"] = (
                    predicted(own, topics.transform(X[held]), is_class),
                    time.process_time() - began,
                )
            began = time.process_time()
            tfidf = TfidfTransformer(sublinear_tf=True).fit(X[fitted])
            own = regression(is_class).fit(tfidf.transform(X[fitted]), y[fitted])
            answers["tf-idf + regression"] = (
                predicted(own, tfidf.transform(X[held]), is_class),
                time.process_time() - began,
            )
            if importlib.util.find_spec("tomotopy"):
                began, kind = time.process_time(), "binary" if is_class else "normal"
                centre, scale = (
                    (0.0, 1.0) if is_class else (y[fitted].mean(), y[fitted].std())
                )  # Its prior has no units.
                peer = tomotopy_outcomes(X[fitted], (y[fitted] - centre) / scale, K, kind, 0, n_iter)
                docs = [peer.make_doc(words) for words in words_of(X[held])]
                peer.infer(docs, workers=1)
                found = centre + scale * np.array([peer.estimate(doc)[0] for doc in docs])
                answers["tomotopy SLDAModel"] = found, time.process_time() - began
        print(f"{name}: {fitted.size} documents fitted, {held.size} held out, {K} topics")
        for title, (answer, seconds) in answers.items():
            quality = f"R² {r2_score(y[held], answer):.3f}"
            if is_class:
                accuracy = accuracy_score(y[held], answer > 0.5)
                quality = f"log loss {log_loss(y[held], answer):.3f}, accuracy {accuracy:.3f}"
            print(f"  {title:<40}{quality}  {seconds:.0f} s")


def regression(is_class):
    """A regression whose penalty is chosen by cross-validation."""
    return LogisticRegressionCV(cv=3, max_iter=1000) if is_class else RidgeCV(np.logspace(-4, 4, 17))


def predicted(model, X, is_class):
    """Expected outcomes, or probabilities of the second class."""
    return model.predict_proba(X)[:, 1] if is_class else model.predict(X)


def main():
    """Print the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("coverage", "predict"), default="coverage")
    parser.add_argument("--truths", nargs="+", choices=TRUTHS, default=list(TRUTHS))
    parser.add_argument("--kinds", nargs="+", choices=SLOPES, default=list(SLOPES))
    parser.add_argument("--columns", nargs="+", choices=COLUMNS, help="all that are installed, if left out")
    parser.add_argument("--words", nargs="+", type=int, default=[8, 25, 80], help="words of a document")
    parser.add_argument("--corpora", type=int, default=8)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--topics", type=int, default=20, help="topics of --part predict")
    parser.add_argument("--n-iter", type=int, default=None)
    parser.add_argument("--results", type=Path, help="file of JSON lines, one for each corpus that is done")
    parser.add_argument("--smoke", action="store_true", help="one small corpus of each kind")
    options = parser.parse_args()
    missing = {name for name in ("topica", "tomotopy") if importlib.util.find_spec(name) is None}
    options.columns = options.columns or [name for name in COLUMNS if name not in missing]
    if options.smoke:
        options.words, options.corpora, options.documents, options.n_iter = [8], 1, 60, 40
    (print_coverage if options.part == "coverage" else print_predictions)(options)


if __name__ == "__main__":
    main()
