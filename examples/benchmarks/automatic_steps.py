"""Does any automatic step size diverge, whatever the sampler, the model and the minibatch?

    python examples/benchmarks/automatic_steps.py              # every sampler of every estimator, six small data sets
    python examples/benchmarks/automatic_steps.py --smoke      # seconds: one data set, one sampler of each estimator

Each line is one estimator with one sampler, at its default step size. A cell counts fits that raised
`ChainDivergedError` or kept a draw that is not finite, out of all fits with that batch size. Each fit makes four chains
from different seeds. Samplers that read all rows at every step have one fit per data set, in the last column.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from sk_sgmcmc import (
    BayesianGaussian,
    BayesianLDA,
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
    DMRTopicModel,
    DPCategoricalMixture,
    GammaProcessTopicModel,
    SphericalAdmixtureModel,
    VonMisesFisherMixture,
)
from sk_sgmcmc.datasets import fetch_table
from sk_sgmcmc.exceptions import ChainDivergedError
from sk_sgmcmc.samplers._registry import make_sampler, names_fitting

BATCHES = 8, 32, 128
N_CHAINS = 4


def standardised(X):
    """Columns of mean 0 and standard deviation 1."""
    return (X - X.mean(axis=0)) / X.std(axis=0)


def data_sets():
    """Rows and labels by name: correlated, small, with three classes, with hardly any rows, badly scaled, separable."""
    rng = np.random.default_rng(0)
    try:
        heart = fetch_table("heart")
        first = standardised(np.asarray(heart.data)), np.asarray(heart.target)
    except OSError:
        X, y = load_breast_cancer(return_X_y=True)
        first = standardised(X), y
    diabetes, progress = load_diabetes(return_X_y=True)
    iris, species = load_iris(return_X_y=True)
    few = rng.standard_normal((50, 5))
    scaled = rng.standard_normal((200, 4)) * [1e-3, 1.0, 50.0, 1e3] + [0.0, 5.0, 0.0, 1e4]
    apart = rng.standard_normal((160, 2)) + np.repeat([[-3.0], [3.0]], 80, axis=0)
    return {
        "heart": first,
        "diabetes": (diabetes, (progress > np.median(progress)).astype(int)),
        "iris": (iris, species),
        "50 rows": (few, (few[:, 0] + rng.standard_normal(50) > 0.0).astype(int)),
        "scales": (scaled, (standardised(scaled).sum(axis=1) > 0.0).astype(int)),
        "separable": (apart, np.repeat([0, 1], 80)),
    }


def counts_of(X):
    """Counts of about 20 tokens a row that follow the columns, each split into a high and a low word."""
    Z = np.clip(standardised(X), -3.0, 3.0)
    rates = np.exp(0.7 * np.concatenate([Z, -Z], axis=1))
    return np.random.default_rng(1).poisson(20.0 * rates / rates.sum(axis=1, keepdims=True)).astype(float)


def unit_rows(X):
    """Directions."""
    rows = standardised(X) + 2.0
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def response_of(X, y):
    """Counts that follow the labels."""
    return np.random.default_rng(2).poisson(np.exp(0.5 * y))


# What each estimator is made with, and what it is fitted to, from rows and labels.
MODELS = {
    BayesianLogisticRegression: ({"prior_scale": 10**0.5, "fit_intercept": False}, lambda X, y: (standardised(X), y)),
    BayesianPoissonRegressor: ({}, lambda X, y: (X, response_of(X, y))),
    BayesianNegativeBinomialRegressor: ({}, lambda X, y: (X, response_of(X, y))),
    BayesianLinearRegression: ({}, lambda X, y: (X, standardised(X)[:, 0] + response_of(X, y))),
    BayesianGaussian: ({}, lambda X, y: (X,)),
    BayesianLDA: ({"n_components": 3, "assignments": "fresh"}, lambda X, y: (counts_of(X),)),
    GammaProcessTopicModel: ({"n_components": 6}, lambda X, y: (counts_of(X),)),
    DPCategoricalMixture: ({"assignments": "fresh"}, lambda X, y: (counts_of(X),)),
    SphericalAdmixtureModel: ({"n_components": 3}, lambda X, y: (unit_rows(X),)),
    VonMisesFisherMixture: ({"n_components": 2}, lambda X, y: (unit_rows(X),)),
}
SWEEPS = BayesianLDA, GammaProcessTopicModel, DPCategoricalMixture, SphericalAdmixtureModel, VonMisesFisherMixture


def moves_by_steps(name):
    """Whether a sampler has an automatic step size."""
    return hasattr(make_sampler(name), "step_size")


def diverges(model, data, keywords):
    """Whether a fit fails, or keeps anything that is not finite."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(*data, **keywords)
        except ChainDivergedError as error:
            print(f"  {model}: {error}", flush=True)
            return True
    return not all(np.all(np.isfinite(draws)) for draws in model.samples_.values())


def count(make, name, sets, batches, n_iter):
    """Print the line of one estimator with one sampler; returns the number of fits that diverged."""
    parameters, data_of = MODELS[make]
    cells = {batch: [0, 0] for batch in (*batches, None)}
    steps = n_iter // 10 if make in SWEEPS else n_iter
    began = time.process_time()
    for X, y in sets:
        sizes = [batch for batch in batches if batch <= len(X)]
        if make_sampler(name)._rows_read(len(X), batches[0]) == len(X):
            sizes, steps = [None], min(steps, max(20, n_iter // 20))
        for batch in sizes:
            size = {} if batch is None else {"batch_size": batch}
            model = make(**parameters, **size, sampler=name, n_iter=steps, n_chains=N_CHAINS, random_state=0)
            cells[batch][0] += diverges(model, data_of(X, y), {})
            cells[batch][1] += 1
    shown = "".join(f"{f'{bad}/{all_}':>8}" if all_ else f"{'':8}" for bad, all_ in cells.values())
    print(f"{make.__name__:28}{name:14}{shown}{time.process_time() - began:8.1f}", flush=True)
    return sum(bad for bad, _ in cells.values())


def coefficients(sets, batches, n_iter):
    """Print a line for each sampler of the coefficients of a Dirichlet-multinomial regression."""
    bad = 0
    for name in ("sgld", "sghmc", "sgnht", "sg-nphmc"):
        n_fits = 0
        for X, y in sets:
            for batch in (batch for batch in batches if batch <= len(X)):
                model = DMRTopicModel(3, coef_sampler=name, assignments="fresh", batch_size=batch,
                                      n_iter=n_iter // 10, n_chains=N_CHAINS, random_state=0)  # fmt: skip
                bad += diverges(model, (counts_of(X),), {"metadata": np.column_stack([X, y])})
                n_fits += 1
        print(f"{'DMRTopicModel, coefficients':28}{name:14}{f'{bad}/{n_fits}':>8}", flush=True)
    return bad


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="seconds: one data set, one sampler of each estimator")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--estimators", nargs="*", help="names of classes; all by default")
    parser.add_argument("--samplers", nargs="*", help="names; all that fit by default")
    args = parser.parse_args()
    sets = data_sets()
    sets = [sets["50 rows"]] if args.smoke else list(sets.values())
    batches, n_iter = (BATCHES[:1], 100) if args.smoke else (BATCHES, args.steps)
    print(f"{'estimator':28}{'sampler':14}{''.join(f'{batch:>8}' for batch in BATCHES)}{'all rows':>8}{'s':>8}")
    bad = 0
    for make in (make for make in MODELS if args.estimators is None or make.__name__ in args.estimators):
        names = [name for name in names_fitting(make._offers) if moves_by_steps(name)]
        names = [name for name in names if args.samplers is None or name in args.samplers]
        for name in names[-1:] if args.smoke else names:
            bad += count(make, name, sets, batches, n_iter)
    if not args.smoke and args.samplers is None and "DMRTopicModel" in (args.estimators or ["DMRTopicModel"]):
        bad += coefficients(sets, batches, n_iter)
    print(f"{bad} fits diverged")


if __name__ == "__main__":
    main()
