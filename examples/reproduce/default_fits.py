"""Which default fits of small data end with a ConvergenceWarning, and would a run of four times the length help?

    python examples/reproduce/default_fits.py
    python examples/reproduce/default_fits.py --only logistic vmf
    python examples/reproduce/default_fits.py --topics               # AP, sentences of addresses, Getting started

Printed are the CPU seconds of a default fit, its number of steps, and the beginning of its first warning, if any. A fit
that warns is followed by one with four times as many steps, and with ``--topics`` every fit. Compilation is not
counted.
"""

import argparse
import re
import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.preprocessing import normalize, scale

from sk_sgmcmc import (
    BayesianGaussian,
    BayesianLDA,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    DPCategoricalMixture,
    GammaProcessTopicModel,
    SphericalAdmixtureModel,
    VonMisesFisherMixture,
)
from sk_sgmcmc.datasets import fetch_corpus, load_sotu, make_lda

SHOWN = 100  # characters of a warning


def regressions(rng):
    """Name, estimator and data of regressions."""
    X, y = load_diabetes(return_X_y=True)
    for n in (30, 100, 442):
        yield f"linear, diabetes, {n} rows", BayesianLinearRegression(), (X[:n], y[:n])
    X, y = load_breast_cancer(return_X_y=True)
    for prior in ("normal", "laplace"):
        for n in (30, 100, 569):
            model = BayesianLogisticRegression(prior=prior, prior_scale="auto")
            yield f"logistic, cancer, {n} rows, {prior}", model, (X[:n], y[:n])
    for name, (X, y) in {"iris": load_iris(return_X_y=True), "wine": load_wine(return_X_y=True)}.items():
        yield f"logistic, {name}", BayesianLogisticRegression(), (X, y)
    X, y = load_digits(return_X_y=True)
    yield "logistic, digits, 500 rows", BayesianLogisticRegression(), (X[:500], y[:500])
    for n, d in ((40, 3), (200, 10), (2000, 30)):
        X = rng.normal(size=(n, d))
        y = rng.poisson(np.exp(X @ rng.normal(size=d) / np.sqrt(d)))
        yield f"poisson, {n} x {d}", BayesianPoissonRegressor(), (X, y)
        yield f"negative binomial, {n} x {d}", BayesianNegativeBinomialRegressor(), (X, y)


def others(rng):
    """Name, estimator and data of densities, mixtures and topics."""
    for n, d in ((30, 2), (200, 5), (1000, 10)):
        yield f"gaussian, {n} x {d}", BayesianGaussian(), (rng.normal(size=(n, d)),)
    tfidf = TfidfTransformer().fit_transform(load_sotu().counts)
    for n, k in ((300, 5), (1000, 10)):
        yield f"directions, addresses, {n} rows, {k} topics", SphericalAdmixtureModel(k), (tfidf[:n],)
    directions = normalize(TruncatedSVD(30, random_state=0).fit_transform(tfidf))
    for n, k in ((200, 5), (500, 10), (2000, 20)):
        yield f"vmf, addresses, {n} rows, {k} clusters", VonMisesFisherMixture(k), (directions[:n],)
    yield "vmf, iris", VonMisesFisherMixture(3), (normalize(load_iris().data),)
    yield "vmf, wine", VonMisesFisherMixture(3), (normalize(scale(load_wine().data)),)
    for n, k in ((100, 3), (300, 5), (1000, 10)):
        counts = make_lda(n, 200, k, 40, 0.1, 0.1, random_state=n).counts
        yield f"gamma process, {n} documents", GammaProcessTopicModel(), (counts,)
    for n in (60, 150, 500):
        levels = (rng.random((n, 8)) < np.where(rng.random(n) < 0.5, 0.2, 0.7)[:, None]).astype(int)
        yield f"dp, {n} rows", DPCategoricalMixture(likelihood="categorical"), (levels,)


def topics():
    """Name, estimator and data of topic models of counts."""
    yield "lda, AP, 100 topics", BayesianLDA(100), (fetch_corpus("ap").counts,)
    sotu = load_sotu(return_text=True)
    sentences = [part for text in sotu.text for part in re.split(r"(?<=[.!?])\s+", text) if len(part.split()) > 3]
    words = CountVectorizer(min_df=5, max_df=0.2, stop_words="english", token_pattern="[a-zA-Z]{3,}")
    yield "lda, sentences of addresses, 50 topics", BayesianLDA(50), (words.fit_transform(sentences),)
    recent = [text for text, year in zip(sotu.text, sotu.metadata["year"], strict=True) if year >= 1945]
    yield "lda, Getting started, 10 topics", BayesianLDA(10), (words.fit_transform(recent),)


def fitted(model, data):
    """The model, CPU seconds, and the beginning of the first ConvergenceWarning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.process_time()
        model.fit(*data)
        seconds = time.process_time() - began
    texts = [str(each.message) for each in caught if issubclass(each.category, ConvergenceWarning)]
    return model, seconds, texts[0][:SHOWN] if texts else "no warning"


def main():
    """Print a line for each fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[""], help="fits whose name contains one of these")
    parser.add_argument("--topics", action="store_true", help="topic models of counts instead")
    parser.add_argument("--smoke", action="store_true", help="two fits")
    args = parser.parse_args()
    only = ("linear, diabetes, 30", "vmf, iris") if args.smoke else args.only
    rng = np.random.default_rng(0)
    n_fits = n_warned = 0
    for name, model, data in topics() if args.topics else [*regressions(rng), *others(rng)]:
        if not any(part in name for part in only):
            continue
        model.set_params(random_state=0)
        fitted(model, data)  # Compile first.
        model, seconds, text = fitted(model, data)
        print(f"{name:44} {seconds:6.1f} s  {model.n_iter_:6} steps  {text}", flush=True)
        n_fits, n_warned = n_fits + 1, n_warned + (text != "no warning")
        if args.topics or text != "no warning":
            model.set_params(n_iter=4 * int(model.n_iter_))
            model, seconds, text = fitted(model, data)
            print(f"{'   four times the length':44} {seconds:6.1f} s  {model.n_iter_:6} steps  {text}", flush=True)
    print(f"{n_warned} of {n_fits} default fits warn")


if __name__ == "__main__":
    main()
