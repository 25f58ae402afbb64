"""Latent classes of planted mixed tables: agreement with the truth and interval coverage, next to peers.

    python examples/benchmarks/latent_classes.py
    python examples/benchmarks/latent_classes.py --rows 1000000 --sets 0     # seconds a sweep and memory alone

Tables have columns of five kinds, a fifth of the cells is missing, and membership of 3 to 6 classes depends on a
covariate. Of each fit it prints

* the adjusted Rand index of the classes, of `LatentClassModel`, of StepMix's expectation-maximisation if it is
  installed (categories, zeros and ones, normal columns; counts as normal), and of scikit-learn's Gaussian mixture with
  diagonal covariances on one-hot columns, missing cells replaced by means;
* the share of 90% intervals that cover the true profiles, and the true effects of the covariate;
* CPU seconds.

The last part prints the seconds of a sweep, and the memory of its data, at growing numbers of rows.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax
from sklearn.metrics import adjusted_rand_score, confusion_matrix
from sklearn.mixture import GaussianMixture

from sk_sgmcmc import LatentClassModel
from sk_sgmcmc.callbacks import Callback

N_CATEGORICAL, N_ORDINAL, N_BINARY, N_COUNT, N_CONTINUOUS = 3, 2, 3, 2, 2
COLUMNS = {f"count{j}": "count" for j in range(N_COUNT)}  # missing cells make their columns floats


class StepClock(Callback):
    """CPU seconds at the end of each sweep."""

    def start(self, estimator):
        """Forget earlier runs."""
        self.seconds = []

    def __call__(self, estimator, step):
        """Record the time."""
        self.seconds.append(time.process_time())


def planted(n, n_classes, seed, missing=0.2):
    """A mixed table, its covariate, its classes, and the true profiles and effects."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    coef = np.column_stack([rng.normal(0.0, 0.5, n_classes), rng.normal(0.0, 0.7, n_classes)])
    proba = softmax(coef[:, 0] + x[:, None] * coef[:, 1], axis=1)
    z = (rng.random((n, 1)) > np.cumsum(proba, axis=1)[:, :-1]).sum(axis=1)
    columns, profiles = {}, {}

    def levels(name, n_levels, is_ordered):
        p = rng.dirichlet(np.ones(n_levels), n_classes)
        codes = (rng.random((n, 1)) > np.cumsum(p[z], axis=1)[:, :-1]).sum(axis=1)
        codes[rng.random(n) < missing] = -1
        names = [f"level{level}" for level in range(n_levels)]
        columns[name] = pd.Categorical.from_codes(codes, names, ordered=is_ordered)
        profiles.update({(name, level, "probability"): p[:, i] for i, level in enumerate(names)})

    for j in range(N_CATEGORICAL):
        levels(f"categorical{j}", 3, False)
    for j in range(N_ORDINAL):
        levels(f"ordinal{j}", 5, True)
    for j in range(N_BINARY):
        p = rng.random(n_classes)
        values = (rng.random(n) < p[z]).astype(object)
        values[rng.random(n) < missing] = None
        columns[f"binary{j}"] = values
        profiles[f"binary{j}", True, "probability"] = p
    for j in range(N_COUNT):
        rate = np.exp(rng.normal(1.0, 0.7, n_classes))
        columns[f"count{j}"] = np.where(rng.random(n) < missing, np.nan, rng.poisson(rate[z]))
        profiles[f"count{j}", "", "mean"] = rate
    for j in range(N_CONTINUOUS):
        mean, sd = rng.normal(50.0, 15.0, n_classes), rng.uniform(5.0, 15.0, n_classes)
        columns[f"continuous{j}"] = np.where(rng.random(n) < missing, np.nan, rng.normal(mean[z], sd[z]))
        profiles[f"continuous{j}", "", "mean"], profiles[f"continuous{j}", "", "sd"] = mean, sd
    effect = softmax(coef.sum(axis=1)) - softmax(coef[:, 0] - coef[:, 1])
    return pd.DataFrame(columns), pd.DataFrame({"x": x}), z, profiles, effect


def one_hot(X):
    """All columns as numbers, missing cells replaced by means."""
    wide = pd.get_dummies(
        X.drop(columns=[c for c in X if c[:5] in ("count", "conti")]).astype("str").astype("category")
    )
    numbers = X[[c for c in X if c[:5] in ("count", "conti")]].astype(float)
    numbers = (numbers - numbers.mean()) / numbers.std()
    return np.column_stack([wide.to_numpy(float), numbers.fillna(0.0)])


def stepmix_classes(X, n_classes, seed):
    """Classes found by StepMix; None if it is not installed."""
    try:
        from stepmix.stepmix import StepMix
    except ImportError:
        return None
    parts, measurement = {}, {}
    for name in X:
        if isinstance(X[name].dtype, pd.CategoricalDtype):
            parts[name] = X[name].cat.codes.replace(-1, np.nan).astype(float)
            measurement[name] = {"model": "categorical_nan", "n_columns": 1}
        elif name.startswith("binary"):
            parts[name] = X[name].astype(float)
            measurement[name] = {"model": "binary_nan", "n_columns": 1}
        else:
            parts[name] = (X[name] - X[name].mean()) / X[name].std()
            measurement[name] = {"model": "gaussian_diag_nan", "n_columns": 1}
    table = pd.DataFrame(parts)
    model = StepMix(n_classes, measurement=measurement, n_init=10, random_state=seed, progress_bar=0, verbose=0)
    return np.asarray(model.fit(table).predict(table))


def timed(function, *args):
    """The result of a call, and its CPU seconds."""
    began = time.process_time()
    result = function(*args)
    return result, time.process_time() - began


def covered(model, z, profiles, effect, n_classes):
    """Whether intervals cover the true profiles, and the true effects, of the classes matched to the true ones."""
    counts = confusion_matrix(z, model.labels_, labels=np.arange(n_classes))
    match = linear_sum_assignment(-counts)[1]  # class of the model for each true class
    table = model.profile_table()
    rows = {
        (k, f, level, s): (low, high)
        for k, f, level, s, low, high in zip(
            *(table[name] for name in ("class", "feature", "level", "statistic", "low", "high")), strict=True
        )
    }
    of_profiles = [
        rows[match[k], *key][0] <= value <= rows[match[k], *key][1]
        for key, values in profiles.items()
        for k, value in enumerate(values)
    ]
    found = model.effects("x", at=[-1.0, 1.0]).set_index("class")
    of_effects = [found["low"][match[k]] <= effect[k] <= found["high"][match[k]] for k in range(n_classes)]
    return np.mean(of_profiles), np.mean(of_effects)


def compare(n_sets, n, n_iter):
    """Print a line for each number of classes, and the means of all."""
    print(f"{n} rows, {n_sets} tables each; coverage of 90% intervals")
    print(f"{'classes':8s}{'ARI':>7s}{'StepMix':>9s}{'Gaussian':>10s}{'profiles':>10s}{'effects':>9s}"
          f"{'R-hat':>7s}{'CPU s':>8s}{'StepMix':>9s}{'Gaussian':>10s}")  # fmt: skip
    every = []
    for n_classes in (3, 4, 5, 6):
        records = []
        for seed in range(n_sets):
            X, metadata, z, profiles, effect = planted(n, n_classes, [n_classes, seed])
            model = LatentClassModel(n_classes, columns=COLUMNS, n_iter=n_iter, random_state=seed)
            _, seconds = timed(lambda model=model, X=X, metadata=metadata: model.fit(X, metadata=metadata))
            of_peer, of_stepmix = timed(stepmix_classes, X, n_classes, seed)
            gaussian = GaussianMixture(n_classes, covariance_type="diag", n_init=10, reg_covar=1e-2, random_state=seed)
            of_gaussian, by_gaussian = timed(gaussian.fit_predict, one_hot(X))
            peer = np.nan if of_peer is None else adjusted_rand_score(z, of_peer)
            records.append([
                adjusted_rand_score(z, model.labels_), peer, adjusted_rand_score(z, of_gaussian),
                *covered(model, z, profiles, effect, n_classes), np.nanmax(model.diagnostics_["r_hat"]), seconds,
                of_stepmix, by_gaussian,
            ])  # fmt: skip
        every += records
        show(n_classes, np.mean(records, axis=0))
    show("all", np.mean(every, axis=0))
    error = np.std([record[3] for record in every]) / np.sqrt(len(every))
    print(f"standard error of the coverage of profiles over all tables: {error:.3f}")
    if np.isnan(np.asarray(every)[:, 1]).all():
        print("StepMix is not installed.")


def show(name, means):
    """Print a line of the table."""
    a, b, c, profiles, effects, r_hat, *seconds = means
    print(f"{name!s:8s}{a:7.3f}{b:9.3f}{c:10.3f}{profiles:10.3f}{effects:9.3f}{r_hat:7.2f}{seconds[0]:8.1f}"
          f"{seconds[1]:9.1f}{seconds[2]:10.1f}", flush=True)  # fmt: skip


def grow(sizes):
    """Print the seconds of a sweep and the size of its data for numbers of rows."""
    for n in sizes:
        X, clock = planted(n, 3, 0)[0], StepClock(1)
        model = LatentClassModel(3, columns=COLUMNS, n_iter=10, burn_in=1, callbacks=clock, random_state=0)
        seconds = timed(model.fit, X)[1]
        cells = model._chains[0].data.cells.nbytes / 2**20
        a_sweep = np.median(np.diff(clock.seconds))
        print(f"{n} rows, {X.shape[1]} columns, 3 classes: {a_sweep:.3f} CPU seconds a sweep, "
              f"{seconds - clock.seconds[-1] + clock.seconds[0]:.1f} for all else, {cells:.0f} MiB of cells",
              flush=True)  # fmt: skip


def main():
    """Print what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="one small table of each size")
    parser.add_argument("--sets", type=int, default=25, help="tables for each number of classes")
    parser.add_argument("--size", type=int, default=500, help="rows of each table")
    parser.add_argument("--n-iter", type=int, default=None, help="sweeps; the default of the estimator")
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 100_000], help="sizes of the timed tables")
    options = parser.parse_args()
    if options.smoke:
        options.sets, options.size, options.n_iter, options.rows = 1, 120, 60, [500]
    warnings.simplefilter("ignore")
    if options.sets:
        compare(options.sets, options.size, options.n_iter)
    grow(options.rows)


if __name__ == "__main__":
    main()
