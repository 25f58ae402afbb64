"""Are warnings about convergence right? Default fits of planted data, and fits that are too short.

    python examples/reproduce/diagnostics.py --fits 200 --results diagnostics.jsonl

Planted data are fitted by default and ten times as long, others far too shortly and ten times as long. Two fits agree
if no mean in ``diagnostics_`` differs by more than half a posterior standard deviation; for topic models, whose log
predictive is what counts, if this differs by at most 1% (of the perplexity of a word; of the cosine for directions).
They disagree if a difference is more than twice as large. Short fits of topic models start at random.

A false alarm is a warning about a default fit that the long one agrees with; a missed one is a short fit that the long
one disagrees with, and that does not warn. Printed for each model: the numbers of default fits, of those that the long
fit agrees with and of false alarms; the numbers of short fits, of those that it disagrees with and of missed ones.

Results are appended to a file as they come, and read from it at the next start: ``--seconds`` ends a part early.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from sk_sgmcmc import (
    BayesianGaussian,
    BayesianLDA,
    BayesianLogisticRegression,
    DMRTopicModel,
    DPCategoricalMixture,
    GammaProcessTopicModel,
    SphericalAdmixtureModel,
    VonMisesFisherMixture,
    sample,
)
from sk_sgmcmc.datasets import make_dmr, make_lda
from sk_sgmcmc.samplers import SGGMC
from sk_sgmcmc.targets import GaussianMean

LONGER = 10
FAR, FAR_TOPICS = 0.5, 0.01
TOPICS = {"lda": "log_predictive", "lda-scir": "log_predictive", "dmr": "log_predictive",
          "gamma-process": "log_predictive", "sam": "mean_cosine"}  # fmt: skip


class Sample:
    """`sample` with the face of an estimator."""

    def __init__(self, n_iter=2000, n_chains=1, random_state=None):
        self.n_iter, self.n_chains, self.random_state = n_iter, n_chains, random_state

    def fit(self, target):
        result = sample(target, n_iter=self.n_iter, n_chains=self.n_chains, random_state=self.random_state)
        self.n_iter_, self.diagnostics_ = result.n_iter_, result.diagnostics_
        return self

    def get_params(self, deep=True):
        return {"n_iter": self.n_iter, "n_chains": self.n_chains, "random_state": self.random_state}


def counts(rng):
    """Documents with planted topics."""
    K = int(rng.integers(3, 9))
    n, V, length = int(rng.integers(150, 500)), int(rng.integers(100, 500)), int(rng.integers(30, 100))
    return K, make_lda(n, V, K, document_length=length, random_state=int(rng.integers(2**31))).counts


def directions(rng):
    """Unit rows about planted directions, and how many these are."""
    K, V, n = int(rng.integers(2, 7)), int(rng.integers(5, 60)), int(rng.integers(100, 800))
    means = rng.standard_normal((K, V))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    X = means[rng.integers(K, size=n)] + rng.uniform(0.3, 1.0) * rng.standard_normal((n, V)) / np.sqrt(V)
    return K, X / np.linalg.norm(X, axis=1, keepdims=True)


def case(kind, i):
    """An estimator with a seed, its data as arguments of ``fit``, and those by name."""
    rng = np.random.default_rng([i, 1])
    seed = int(rng.integers(2**31))
    if kind == "logistic":
        d, n_classes = int(rng.integers(3, 20)), int(rng.integers(2, 4))
        X, y = make_classification(
            int(rng.integers(100, 1500)), d, n_informative=3, n_redundant=0, n_classes=n_classes,
            n_clusters_per_class=1, random_state=seed,
        )  # fmt: skip
        return BayesianLogisticRegression(), (X * 10.0 ** rng.uniform(-1, 1, d), y), {}
    if kind == "gaussian":
        d = int(rng.integers(1, 8))
        X = rng.standard_normal((int(rng.integers(d + 2, 500)), d)) @ rng.standard_normal((d, d)) + rng.normal(0, 9, d)
        return BayesianGaussian(), (X,), {}
    if kind == "sample":
        d = int(rng.integers(1, 8))
        root = 0.2 * rng.standard_normal((d, d)) + np.eye(d)
        rows = rng.standard_normal((int(rng.integers(5, 500)), d))
        return Sample(), (GaussianMean(rows, precision=root @ root.T),), {}
    if kind == "vmf":
        K, X = directions(rng)
        return VonMisesFisherMixture(K), (X,), {}
    if kind == "dp-bernoulli":
        K, D = int(rng.integers(1, 6)), int(rng.integers(8, 40))
        p = rng.beta(0.4, 0.4, (K, D))[rng.integers(K, size=int(rng.integers(60, 600)))]
        return DPCategoricalMixture(likelihood="bernoulli"), ((rng.random(p.shape) < p).astype(float),), {}
    if kind == "dp-multinomial":
        K, D = int(rng.integers(1, 6)), int(rng.integers(8, 40))
        p = rng.dirichlet(np.full(D, 0.5), K)[rng.integers(K, size=int(rng.integers(60, 600)))]
        return DPCategoricalMixture(), (np.array([rng.multinomial(20, each) for each in p]).astype(float),), {}
    if kind == "dmr":
        K = int(rng.integers(3, 6))
        data = make_dmr(int(rng.integers(150, 500)), int(rng.integers(100, 300)), K, random_state=seed)
        return DMRTopicModel(K), (data.counts,), {"metadata": data.metadata}
    K, X = counts(rng)
    models = {
        "lda": BayesianLDA(K),
        "lda-scir": BayesianLDA(K, sampler="scir"),
        "gamma-process": GammaProcessTopicModel(2 * K),
        "sam": SphericalAdmixtureModel(K),
    }
    return models[kind], (X.astype(float),), {}


KINDS = ["logistic", "gaussian", "sample", "vmf", "dp-bernoulli", "dp-multinomial", "lda", "lda-scir", "dmr",
         "gamma-process", "sam"]  # fmt: skip


def fitted(model, args, named, **params):
    """A fitted copy, and the warning about its convergence or None."""
    params = {**model.get_params(deep=False), **params}
    model = Sample(**params) if isinstance(model, Sample) else clone(model).set_params(**params)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*args, **named)
    told = [str(w.message) for w in caught if issubclass(w.category, ConvergenceWarning)]
    return model, " | ".join(told) or None


def apart(kind, model, long):
    """How far a fit is from the long one, in units of what is far."""
    a, b = (dict(zip(m.diagnostics_["quantity"], m.diagnostics_["mean"], strict=True)) for m in (model, long))
    if kind in TOPICS:
        name = TOPICS[kind]
        unit = abs(b[name]) if kind == "sam" else 1.0
        return abs(a[name] - b[name]) / unit / FAR_TOPICS
    table = long.diagnostics_
    spread = np.asarray(table["mcse"]) * np.sqrt(np.asarray(table["ess"]))
    return max(
        (abs(a[name] - b[name]) / s / FAR for name, s in zip(table["quantity"], spread, strict=True)
         if name in a and np.isfinite(s) and s > 0),
        default=0.0,
    )  # fmt: skip


def too_short(kind, model, default_steps):
    """Arguments with which a fit is far too short."""
    fresh = {"assignments": "fresh", "init": "random", "batch_size": 50, "n_iter": 60}
    if kind == "sam":
        return {"init": "random", "sampler": SGGMC(step_size=1e-4), "n_iter": 60}
    if kind == "dmr":  # fresh assignments leave a random start, where topics are alike, only after hundreds of steps
        return {"init": "random", "n_iter": 24}
    if kind in TOPICS:
        return {**fresh, "sampler": "sgrld"} if kind == "lda" else fresh
    if kind == "vmf":
        return {"sampler": SGGMC(step_size=2e-4), "n_inner": 1, "n_iter": 60}
    return {"n_iter": max(40, default_steps // 200)}


def one(phase, i):
    """Fit data set ``i``, by default or too shortly, and ten times as long; returns a record."""
    kind = KINDS[i % len(KINDS)]
    model, args, named = case(kind, i)
    params = {}
    if phase == "short":
        steps = {"logistic": 20_000, "gaussian": 20_000, "sample": 2000}.get(kind, 200)
        params = too_short(kind, model, steps)
    fit, alarm = fitted(model, args, named, random_state=0, **params)
    long, _ = fitted(model, args, named, random_state=1, **{**params, "n_iter": int(LONGER * fit.n_iter_)})
    return {
        "phase": phase, "i": i, "kind": kind, "steps": fit.n_iter_, "apart": apart(kind, fit, long), "alarm": alarm,
    }  # fmt: skip


def table(records):
    """Print the numbers for each model."""
    print("model           default  agreeing  false alarms   short  disagreeing  missed")
    sums = np.zeros(6, dtype=int)
    for kind in [*KINDS, "all"]:
        default, short = (
            [r for r in records if r["kind"] == kind and r["phase"] == phase] for phase in ("default", "short")
        )
        good, bad = [r for r in default if r["apart"] <= 1], [r for r in short if r["apart"] > 2]
        row = [len(default), len(good), sum(r["alarm"] is not None for r in good)]
        row += [len(short), len(bad), sum(r["alarm"] is None for r in bad)]
        sums += row
        row = sums if kind == "all" else row
        print(f"{kind:15s} {row[0]:7d}  {row[1]:8d}  {row[2]:12d}   {row[3]:5d}  {row[4]:11d}  {row[5]:6d}")
    alarms, missed = sums[2] / max(1, sums[1]), sums[5] / max(1, sums[4])
    print(f"false alarms {alarms:.1%} of {sums[1]}, missed {missed:.1%} of {sums[4]}")


def main():
    """Fit what is not in the file yet, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="one small data set, nothing kept")
    parser.add_argument("--fits", type=int, default=200, help="of each kind, default and short")
    parser.add_argument("--phase", choices=["default", "short"], default=None)
    parser.add_argument("--seconds", type=float, default=np.inf, help="end this part after so long")
    parser.add_argument("--results", type=Path, default=None)
    options = parser.parse_args()
    jobs = [(phase, i) for phase in ("short", "default") for i in range(options.fits)]
    if options.smoke:
        jobs = [("short", KINDS.index("lda-scir"))]
    records = []
    if options.results is not None and options.results.exists():
        records = [json.loads(line) for line in options.results.read_text().splitlines()]
    began, known = time.monotonic(), {(r["phase"], r["i"]) for r in records}
    for phase, i in jobs:
        if (phase, i) in known or options.phase not in (None, phase) or time.monotonic() - began > options.seconds:
            continue
        records.append(one(phase, i))
        if options.results is not None:
            with options.results.open("a") as file:
                file.write(json.dumps(records[-1]) + "\n")
    table(records)


if __name__ == "__main__":
    main()
