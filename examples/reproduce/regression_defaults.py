"""Do units change a regression's predictions, and how often do default intervals of a linear regression cover?

    python examples/reproduce/regression_defaults.py                 # both
    python examples/reproduce/regression_defaults.py --part units
    python examples/reproduce/regression_defaults.py --part coverage --repeats 200 --jobs 2

"units": each column of a table is multiplied by 1e-6, 1e-3, 1e3 and 1e6, and shifted by 1e6, one at a time. Printed is
the largest change of a linear predictor's posterior mean, in posterior standard deviations, for logistic, linear and
Poisson regression and both priors, with ``prior_scale="auto"``.

"coverage": data sets of n rows and d columns, with standard normal coefficients scaled so that the columns explain a
share R2 of the variance. Printed is how often the 90% intervals of a default fit contain the true coefficients and the
true standard deviation of the noise, with the standard error over data sets.
"""

import argparse
import itertools
import warnings

import numpy as np
from joblib import Parallel, delayed

from sk_sgmcmc import BayesianLinearRegression, BayesianLogisticRegression, BayesianPoissonRegressor

FACTORS = (1e-6, 1e-3, 1e3, 1e6)
SHIFT = 1e6


def rows_with_outcomes(n=200, d=4, seed=0):
    """Columns, and an outcome of each regression."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    eta = X @ np.linspace(-0.5, 1.0, d)
    return X, {
        BayesianLogisticRegression: (rng.random(n) < 1.0 / (1.0 + np.exp(-eta))).astype(int),
        BayesianLinearRegression: eta + rng.normal(size=n),
        BayesianPoissonRegressor: rng.poisson(np.exp(eta)),
    }


def linear_predictor(model, X):
    """Draws (n_draws, n_samples) of X b + b_0."""
    coef = model.samples_["coef"].reshape(-1, X.shape[1])
    return coef @ X.T + model.samples_["intercept"].reshape(-1, 1)


def changed_columns(X):
    """Name of a change, and the changed table."""
    for j, factor in itertools.product(range(X.shape[1]), FACTORS):
        scaled = X.copy()
        scaled[:, j] *= factor
        yield f"column {j} times {factor:g}", scaled
    for j in range(X.shape[1]):
        shifted = X.copy()
        shifted[:, j] += SHIFT
        yield f"column {j} plus {SHIFT:g}", shifted
    yield "all columns, times 1e-6 to 1e6", X * np.geomspace(1e-6, 1e6, X.shape[1])


def print_units(is_short):
    """The largest change of a prediction for each regression and prior."""
    X, outcomes = rows_with_outcomes(60 if is_short else 200)
    for (estimator, y), prior in itertools.product(outcomes.items(), ("normal", "laplace")):
        args = {"random_state": 0, "prior": prior, "prior_scale": "auto"} | ({"n_iter": 200} if is_short else {})
        reference = linear_predictor(estimator(**args).fit(X, y), X)
        spread = reference.std(axis=0)
        largest, where = 0.0, ""
        for name, changed in itertools.islice(changed_columns(X), 4 if is_short else None):
            draws = linear_predictor(estimator(**args).fit(changed, y), changed)
            change = np.max(np.abs(draws.mean(axis=0) - reference.mean(axis=0)) / spread)
            if change >= largest:
                largest, where = change, name
        print(f"{estimator.__name__:28} {prior:8} largest change {largest:.1e} sd ({where})", flush=True)


def covered(n, d, r2, seed):
    """Shares of coefficients, and whether the noise lies in its interval."""
    rng = np.random.default_rng([n, d, round(1000 * r2), seed])
    X, b = rng.normal(size=(n, d)), rng.normal(size=d)
    b *= np.sqrt(r2 / (1.0 - r2) / (b @ b))
    y = X @ b + rng.normal(size=n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BayesianLinearRegression(random_state=seed).fit(X, y)
    low, high = np.quantile(model.samples_["coef"].reshape(-1, d), [0.05, 0.95], axis=0)
    noise = np.quantile(model.samples_["noise_scale"], [0.05, 0.95])
    return np.mean((low < b) & (b < high)), noise[0] < 1.0 < noise[1]


def print_coverage(repeats, n_jobs, is_short):
    """The table of coverage."""
    sizes = [(15, 3), (15, 8), (30, 3), (30, 8), (300, 3), (300, 8)]
    print("    n  d    R2   coefficients      noise scale")
    for (n, d), r2 in itertools.product(sizes[: 1 if is_short else None], (0.1, 0.5, 0.999)):
        cases = Parallel(n_jobs)(delayed(covered)(n, d, r2, seed) for seed in range(repeats))
        mean, error = np.mean(cases, axis=0), np.std(cases, axis=0) / np.sqrt(repeats)
        shown = "   ".join(f"{m:.3f} +- {e:.3f}" for m, e in zip(mean, error, strict=True))
        print(f"{n:5} {d:2} {r2:5}   {shown}", flush=True)


def main():
    """Print the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("units", "coverage"), nargs="+", default=("units", "coverage"))
    parser.add_argument("--repeats", type=int, default=200, help="data sets for each row of the table")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--smoke", action="store_true", help="a short setting")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # of a table with one column that is far from 0
    if "units" in args.part:
        print_units(args.smoke)
    if "coverage" in args.part:
        print_coverage(4 if args.smoke else args.repeats, args.jobs, args.smoke)


if __name__ == "__main__":
    main()
