"""How often do intervals of regressions of overdispersed counts cover, and what does a fit cost?

    python examples/reproduce/overdispersed_counts.py
    python examples/reproduce/overdispersed_counts.py --repeats 100 --rows 200

A data set has rows of four standard normal columns, two of them without an effect, and negative binomial counts. For
each dispersion, with and without exposures, and for small and large means, printed are the shares of 90% intervals of a
default fit of `BayesianNegativeBinomialRegressor` that contain the true coefficients and the true dispersion, and of
predictive intervals that contain new counts. Next to them are the shares of predictive intervals of a
`BayesianPoissonRegressor` on the same data, the posterior mean of the dispersion, and the processor seconds of a fit,
also of scikit-learn's ``PoissonRegressor``. Predictive intervals of small counts cover more than 90%, since counts are
discrete: the column "nominal" shows how often the intervals of the true distribution cover.
"""

import argparse
import itertools
import time
import warnings

import numpy as np
from scipy import stats
from sklearn.linear_model import PoissonRegressor

from sk_sgmcmc import BayesianNegativeBinomialRegressor, BayesianPoissonRegressor

COEF = np.array([0.5, -0.3, 0.0, 0.0])
NEW = 200  # rows on which predictive intervals are checked


def simulated(n, dispersion, mean, has_exposure, rng):
    """Rows, their exposures or None, means and counts."""
    X = rng.normal(size=(n, COEF.size))
    exposure = rng.uniform(0.2, 5.0, n) if has_exposure else None
    means = mean * np.exp(X @ COEF) * (1.0 if exposure is None else exposure)
    return X, exposure, means, rng.poisson(means * rng.gamma(1.0 / dispersion, dispersion, n))


def fitted(model, *args, **more):
    """The fitted model, and the processor seconds of the fit."""
    began = time.process_time()
    model.fit(*args, **more)
    return model, time.process_time() - began


def covered(n, dispersion, mean, has_exposure, seed):
    """Coverage and seconds of one data set, in the order of the printed columns."""
    rng = np.random.default_rng([n, round(100 * dispersion), round(mean), has_exposure, seed])
    X, exposure, _, y = simulated(n, dispersion, mean, has_exposure, rng)
    model, seconds = fitted(BayesianNegativeBinomialRegressor(random_state=seed), X, y, exposure=exposure)
    poisson, of_poisson = fitted(BayesianPoissonRegressor(random_state=seed), X, y, exposure=exposure)
    rates = (y, None) if exposure is None else (y / exposure, exposure)
    _, of_mode = fitted(PoissonRegressor(), X, rates[0], sample_weight=rates[1])
    table = model.coef_table()
    low, high = (np.asarray(table[name])[1:] for name in ("low", "high"))
    of_coef = np.mean((low < COEF) & (high > COEF))
    ends = np.quantile(model._all_samples["dispersion"], [0.05, 0.95])
    Z, exposure, means, new = simulated(NEW, dispersion, mean, has_exposure, rng)
    shares = []
    for each in (model, poisson):
        _, low, high = each.predict_interval(Z, 0.9, exposure=exposure)
        shares.append(np.mean((low <= new) & (new <= high)))
    law = stats.nbinom(1.0 / dispersion, 1.0 / (1.0 + dispersion * means))
    low, high = law.ppf(0.05), law.ppf(0.95)
    nominal = np.mean(law.cdf(high) - law.cdf(low - 1.0))
    of_dispersion = ends[0] < dispersion < ends[1]
    return of_coef, of_dispersion, shares[0], nominal, shares[1], model.dispersion_, seconds, of_poisson, of_mode


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=40, help="data sets for each row of the table")
    parser.add_argument("--rows", type=int, default=500, help="rows of a data set")
    parser.add_argument("--smoke", action="store_true", help="a short setting")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    repeats, n = (1, 40) if args.smoke else (args.repeats, args.rows)
    settings = list(itertools.product((0.2, 0.8, 2.0), (2.0, 50.0), (False, True)))[: 2 if args.smoke else None]
    covered(40, 0.5, 2.0, True, 0)  # compiles
    print("                           negative binomial                           Poisson  seconds of a fit")
    print(
        "dispersion mean exposure   coef   dispersion  new   nominal  estimate   new         NB  Poisson  scikit-learn"
    )
    parts = []
    for dispersion, mean, has_exposure in settings:
        found = np.array([covered(n, dispersion, mean, has_exposure, seed) for seed in range(repeats)])
        parts.append(found)
        a = found.mean(axis=0)
        print(
            f"{dispersion:10} {mean:4.0f} {'yes' if has_exposure else 'no':8}   {a[0]:.3f}  {a[1]:.3f}      {a[2]:.3f}"
            f" {a[3]:.3f}    {a[5]:.3f}      {a[4]:.3f}    {a[6]:5.2f}  {a[7]:5.2f}   {a[8]:.4f}",
            flush=True,
        )
    a = np.concatenate(parts).mean(axis=0)
    error = np.concatenate(parts).std(axis=0) / np.sqrt(repeats * len(parts))
    names = ("coefficients", "dispersion", "new counts", "nominal", "new counts, Poisson")
    print("all:", ", ".join(f"{name} {m:.3f} +- {e:.3f}" for name, m, e in zip(names, a, error, strict=False)))


if __name__ == "__main__":
    main()
