"""Is the bias that ``diagnostics_`` states the bias that long chains have?

    python examples/reproduce/stationary_bias.py                     # ten models, four batch sizes, four steps
    python examples/reproduce/stationary_bias.py --samplers sgld     # of one sampler
    python examples/reproduce/stationary_bias.py --smoke             # seconds: one model

Each model has 1,000 rows. Its coefficients are drawn by `HMC`, which has no bias, and by samplers with fixed step and
batch sizes: 10, 50, 200 and 1,000 rows, and 1/8, 1/4, 1/2 and 1 times the automatic step for all rows. The column
``bias`` of ``diagnostics_`` predicts how far the standard deviation of their draws is above that of HMC, as a share of
it. A line is a model and a sampler, with the largest relative error of a predicted variance, in brackets as a multiple
of its Monte Carlo error, the same among fits whose bias is at most 0.25, the largest bias, and the share of fits whose
bias is not known.
"""

import argparse
import time
import warnings

import numpy as np

from sk_sgmcmc import BayesianLinearRegression, BayesianLogisticRegression, BayesianPoissonRegressor
from sk_sgmcmc.metrics import effective_sample_size
from sk_sgmcmc.samplers import HMC, SGHMC, SGLD, SGNHT

N_ROWS, N_COLUMNS = 1000, 4
SAMPLERS = {"sgld": SGLD, "sghmc": SGHMC, "euler": lambda h: SGHMC(h, scheme="euler"), "sgnht": SGNHT}
BATCHES, STEPS = (10, 50, 200, 1000), (0.125, 0.25, 0.5, 1.0)


def rows(seed):
    """Correlated columns, and linear predictors."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, N_COLUMNS)) @ (np.eye(N_COLUMNS) + 0.4 * rng.normal(size=(N_COLUMNS, N_COLUMNS)))
    return rng, X, X @ rng.normal(size=N_COLUMNS)


def normal(seed):
    rng, X, eta = rows(seed)
    return X, eta + rng.normal(size=N_ROWS)


def binary(seed, level=0.0, size=1.0):
    rng, X, eta = rows(seed)
    return X, (rng.random(N_ROWS) < 1.0 / (1.0 + np.exp(-(level + size * eta)))).astype(int)


def counts(seed, level=0.0, size=0.3):
    rng, X, eta = rows(seed)
    return X, rng.poisson(np.exp(level + size * eta))


def classes(seed):
    rng, X, eta = rows(seed)
    return X, np.digitize(eta + rng.logistic(size=N_ROWS), [-1.0, 1.0])


MODELS = {
    "normal": (BayesianLinearRegression, {}, normal),
    "normal, all noise": (BayesianLinearRegression, {"control_variates": False}, normal),
    "binary": (BayesianLogisticRegression, {}, binary),
    "binary, all noise": (BayesianLogisticRegression, {"control_variates": False}, binary),
    "binary, rare": (BayesianLogisticRegression, {}, lambda seed: binary(seed, -4.0, 0.5)),
    "binary, Laplace": (BayesianLogisticRegression, {"prior": "laplace"}, binary),
    "binary, wide": (BayesianLogisticRegression, {"prior_scale": 10.0}, lambda seed: binary(seed, 0.0, 3.0)),
    "three classes": (BayesianLogisticRegression, {}, classes),
    "counts": (BayesianPoissonRegressor, {}, counts),
    "large counts": (BayesianPoissonRegressor, {}, lambda seed: counts(seed, 3.0, 0.3)),
}


def spread(model):
    """Standard deviations of the draws of the coefficients, and their relative Monte Carlo errors."""
    draws = model.samples_["coef"]
    draws = draws.reshape(*draws.shape[:2], -1)
    away = (draws - draws.mean(axis=(0, 1))) ** 2
    error = away.std(axis=(0, 1)) / away.mean(axis=(0, 1)) / np.sqrt(effective_sample_size(away))
    return np.sqrt(away.mean(axis=(0, 1))), 0.5 * error


def stated(model):
    """The column ``bias`` of the coefficients."""
    table = model.diagnostics_
    chosen = [str(name).startswith("coef") for name in table["quantity"]]
    return np.asarray(table["bias"])[chosen]


def apart(n_steps):
    """About this number of steps between draws, without a factor in common with the minibatches of an epoch."""
    return next(n for n in range(max(1, round(n_steps)), 2**30) if np.gcd(n, 10) == 1)


def main():
    """Print a line for each model and sampler."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=["sgld", "sghmc"])
    parser.add_argument("--draws", type=int, default=30_000, help="nearly independent draws to aim at")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="a line for each fit")
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    batches, steps = BATCHES, STEPS
    if options.smoke:
        options.models, options.draws, batches, steps = ["binary"], 500, (200,), (1.0,)
    warnings.simplefilter("ignore")
    print(f"{'':28}largest error   where bias <= 0.25  largest bias  unknown  CPU seconds")
    for name in options.models:
        make, params, data = MODELS[name]
        X, y = data(options.seed)
        exact, exact_error = spread(
            make(sampler=HMC(), n_iter=2 * options.draws, thin=1, random_state=0, **params).fit(X, y)
        )
        for sampler in options.samplers:
            began = time.process_time()
            auto = make(sampler=SAMPLERS[sampler]("auto"), batch_size=N_ROWS, n_iter=40, random_state=0, **params)
            largest = float(auto.fit(X, y).sampler_.step_size_(0))
            errors, scores, biases, unknown = [], [], [], []
            for n_batch in batches:
                for share in steps:
                    h = share * largest
                    every = apart(1.0 / h)
                    model = make(
                        sampler=SAMPLERS[sampler](h), batch_size=n_batch, n_iter=2 * every * options.draws,
                        thin=every, random_state=1, **params,
                    ).fit(X, y)  # fmt: skip
                    seen, error = spread(model)
                    bias = stated(model)
                    unknown.append(np.isnan(bias).all())
                    wrong = (1.0 + bias) ** 2 / (seen / exact) ** 2 - 1.0
                    if options.verbose:
                        print(name, sampler, n_batch, f"{h:.3g}", bias.round(3), (seen / exact - 1.0).round(3))
                    if not unknown[-1]:
                        errors.append(np.abs(wrong).max())
                        scores.append(np.abs(wrong / (2.0 * np.hypot(error, exact_error))).max())
                        biases.append(np.abs(bias).max())
            shown = f"{largest_error(errors, scores)}  {largest_error(errors, scores, np.array(biases) <= 0.25)}"
            rest = f"{max(biases, default=np.nan):>14.3f}{np.mean(unknown):>9.2f}{time.process_time() - began:>9.0f}"
            print(f"{name:<20}{sampler:<8}{shown}{rest}", flush=True)


def largest_error(errors, scores, chosen=slice(None)):
    """The largest of the chosen errors, and how many Monte Carlo errors it is."""
    errors, scores = np.array(errors)[chosen], np.array(scores)[chosen]
    return f"{errors.max():>8.3f} ({scores[errors.argmax()]:>4.1f})" if errors.size else f"{'':>15}"


if __name__ == "__main__":
    main()
