"""What do regressions cost beside scikit-learn, glum and statsmodels, and are their intervals right?

    python examples/benchmarks/regressions.py                        # all parts, each also alone:
    python examples/benchmarks/regressions.py --part tables          # public data
    python examples/benchmarks/regressions.py --part streams --rows 2000000
    python examples/benchmarks/regressions.py --part intervals
    python examples/benchmarks/regressions.py --part grid
    python examples/benchmarks/regressions.py --part coverage --sets 200

"tables": each program fits the same four fifths of the rows (of a9a, the published part) and predicts the others, ours
with no arguments on the columns as they are, the others with their usual penalty on standardised columns. "loss" is
minus the mean log probability of a held-out response; programs without a predictive distribution get that of their
estimates. Each fit has a process of its own, after a fit to 200 rows that compiles. "s" is processor time, "MB" what
the fit adds to the peak of memory.

"streams": rows of a logistic regression, in blocks of 10,000, in random order, sorted by response and by a column.
Printed are processor seconds, the ratio to one `fit` to all rows, the largest distance of a posterior mean from that of
the fit, in posterior standard deviations, and the smallest and largest ratio of the standard deviations. The errors of
both Monte Carlo averages are included. With ``--memory``, rows in memory are limited to so many numbers.

"intervals": seconds of `predict_interval` and of ``return_std`` for 20,000 rows, beside the fit.

"grid": a grid search of 27 fits of 6,000 rows, beside scikit-learn's.

"coverage": how often 90% intervals of default fits cover coefficients drawn from the prior.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings

import numpy as np
from scipy import sparse, special, stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from sk_sgmcmc import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
)

DATA = ("breast cancer", "australian", "heart", "affairs", "a9a", "covertype", "doctor visits", "diabetes")
OURS = {
    "classes": {"ours": BayesianLogisticRegression},
    "counts": {"ours, Poisson": BayesianPoissonRegressor, "ours, neg. binomial": BayesianNegativeBinomialRegressor},
    "numbers": {"ours": BayesianLinearRegression},
}
PEERS = {
    "classes": ("scikit-learn", "glum", "statsmodels"),
    "counts": ("scikit-learn", "glum", "statsmodels", "statsmodels, NB"),
    "numbers": ("scikit-learn", "statsmodels"),
}


def load(name, n_rows):
    """Kind of the responses, X, y, and the rows to fit and to predict."""
    from sklearn.datasets import load_breast_cancer, load_diabetes

    if name in ("breast cancer", "diabetes"):
        X, y = {"breast cancer": load_breast_cancer, "diabetes": load_diabetes}[name](return_X_y=True)
        kind = "numbers" if name == "diabetes" else "classes"
    elif name in ("affairs", "doctor visits"):
        from statsmodels import datasets

        source = datasets.fair if name == "affairs" else datasets.randhie
        table = source.load_pandas().data
        response = "affairs" if name == "affairs" else "mdvis"
        X, y = table.drop(columns=response).to_numpy(float), table[response].to_numpy()
        kind, y = ("classes", (y > 0).astype(int)) if name == "affairs" else ("counts", y)
    else:
        from sk_sgmcmc.datasets import fetch_table

        data = fetch_table(name)
        kind, X, y = "classes", data.data, np.unique(data.target, return_inverse=True)[1]
        if name == "a9a":
            return kind, X, y, data.train[:n_rows], data.test[:n_rows]
    order = np.random.default_rng(0).permutation(len(y))
    return kind, X, y, order[: 4 * len(y) // 5][:n_rows], order[4 * len(y) // 5 :][:n_rows]


def log_mean(log_p):
    """Logarithm of the mean over draws (n_draws, n)."""
    return special.logsumexp(log_p, axis=0) - np.log(len(log_p))


def of_codes(p, y, classes):
    """Log probability of each response under probabilities (n, n_classes)."""
    return np.log(np.maximum(p[np.arange(len(y)), np.searchsorted(classes, y)], 1e-300))


def our_log_densities(model, X, y):
    """Log posterior predictive probability of each response."""
    if hasattr(model, "predict_proba"):
        return of_codes(model.predict_proba(X), y, model.classes_)
    draws = {name: value.reshape(-1, *value.shape[2:]) for name, value in model.samples_.items()}
    eta = draws["coef"] @ np.asarray(X).T + draws["intercept"][:, None]
    if "noise_scale" in draws:
        return log_mean(stats.norm.logpdf(y, eta, draws["noise_scale"][:, None]))
    if "dispersion" in draws:
        size = 1.0 / draws["dispersion"][:, None]
        return log_mean(stats.nbinom.logpmf(y, size, size / (size + np.exp(eta))))
    return log_mean(stats.poisson.logpmf(y, np.exp(eta)))


def sklearn_fit(kind, X, y):
    """A fit, and a function that returns log probabilities of responses."""
    from sklearn.linear_model import BayesianRidge, LogisticRegression, PoissonRegressor

    if kind == "classes":
        model = LogisticRegression(max_iter=1000).fit(X, y)
        return lambda X, y: of_codes(model.predict_proba(X), y, model.classes_)
    if kind == "counts":
        model = PoissonRegressor(alpha=1.0 / len(y), max_iter=1000).fit(X, y)
        return lambda X, y: stats.poisson.logpmf(y, model.predict(X))
    model = BayesianRidge().fit(X, y)
    return lambda X, y: stats.norm.logpdf(y, *model.predict(X, return_std=True))


def glum_fit(kind, X, y):
    """As `sklearn_fit`, with the same penalty."""
    from glum import GeneralizedLinearRegressor

    family = {"classes": "binomial", "counts": "poisson"}[kind]
    model = GeneralizedLinearRegressor(family=family, alpha=1.0 / len(y), max_iter=1000)
    model.fit(X, np.asarray(y, dtype=float))
    if kind == "counts":
        return lambda X, y: stats.poisson.logpmf(y, model.predict(X))
    return lambda X, y: np.log(np.where(y > 0, model.predict(X), 1.0 - model.predict(X)))


def statsmodels_fit(kind, X, y, overdispersed=False):
    """As `sklearn_fit`, without a penalty."""
    from statsmodels import api

    def given(X):
        return api.add_constant(X, has_constant="add")

    if kind == "classes":
        model = api.Logit(y, given(X)).fit(disp=0, maxiter=200)
        return lambda X, y: np.log(np.where(y > 0, model.predict(given(X)), 1.0 - model.predict(given(X))))
    if kind == "numbers":
        model = api.OLS(y, given(X)).fit()
        return lambda X, y: stats.norm.logpdf(y, model.predict(given(X)), np.sqrt(model.scale))
    model = (api.NegativeBinomial if overdispersed else api.Poisson)(y, given(X)).fit(disp=0, maxiter=500)
    if not overdispersed:
        return lambda X, y: stats.poisson.logpmf(y, model.predict(given(X)))
    size = 1.0 / model.params[-1]
    return lambda X, y: stats.nbinom.logpmf(y, size, size / (size + model.predict(given(X))))


def fit_by(program, kind, X, y):
    """Fit, and return a function that returns log probabilities of responses."""
    if program in OURS[kind]:
        model = OURS[kind][program](random_state=0).fit(X, y)
        return lambda X, y: our_log_densities(model, X, y)
    # Peers get columns of the same spread.
    scaler = StandardScaler(with_mean=not sparse.issparse(X)).fit(X)
    fit = {"scikit-learn": sklearn_fit, "glum": glum_fit}.get(program, statsmodels_fit)
    more = {"overdispersed": True} if program == "statsmodels, NB" else {}
    log_densities = fit(kind, scaler.transform(X), y, **more)
    return lambda X, y: log_densities(scaler.transform(X), y)


def one(name, program, n_rows):
    """Seconds, loss and megabytes of one program, in a process of its own."""
    kind, X, y, train, test = load(name, n_rows)
    if program not in OURS[kind] and program != "scikit-learn":
        if kind == "classes" and len(np.unique(y)) > 2:
            raise ValueError("two classes only")
        if program == "statsmodels" and sparse.issparse(X):
            raise ValueError("dense columns only")
    few = train[np.unique(np.concatenate([np.unique(y[train], return_index=True)[1], np.arange(200)]))]
    fit_by(program, kind, X[few], y[few])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    log_densities = fit_by(program, kind, X[train], y[train])
    seconds = time.process_time() - began
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    found = {"s": seconds, "loss": -float(np.mean(log_densities(X[test], y[test]))), "MB": more / 1024}
    return {"rows": len(train), "columns": X.shape[1], **found}


def tables(names, n_rows):
    """Print a line for each data set and program."""
    print(f"{'':36}{'rows':>8}{'columns':>8}{'s':>9}{'loss':>9}{'MB':>7}")
    for name in names:
        try:
            kind = load(name, n_rows)[0]
        except (OSError, ImportError) as error:
            print(f"{name}: {str(error).split('. ')[0]}")
            continue
        for program in (*OURS[kind], *PEERS[kind]):
            command = [sys.executable, "-W", "ignore", __file__, "--one", name, program, "--rows", str(n_rows)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            line = f"{name:16}{program:20}"
            if done.returncode:
                print(f"{line}  no result: {done.stderr.strip().splitlines()[-1][:70]}", flush=True)
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            print(f"{line}{found['rows']:8}{found['columns']:8}{found['s']:9.2f}{found['loss']:9.4f}{found['MB']:7.0f}",
                  flush=True)  # fmt: skip


def cpu_seconds(function):
    """Processor seconds of a call."""
    began = time.process_time()
    function()
    return time.process_time() - began


def logistic_rows(n, d=10, seed=0):
    """Normal rows, and binary responses."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (rng.random(n) < special.expit(X @ rng.normal(size=d) * 0.5)).astype(int)


def streams(n, n_block, memory):
    """Print what a stream costs, and how far its posterior is from that of one fit."""
    if memory:
        from sk_sgmcmc.linear_model import _stream

        _stream._MAX_NUMBERS_KEPT = memory
    X, y = logistic_rows(n)
    new = BayesianLogisticRegression(random_state=0)
    clone(new).fit(X[:2000], y[:2000])
    whole = clone(new)
    seconds = cpu_seconds(lambda: whole.fit(X, y))
    spread = whole._all_samples["coef"].std(axis=(0, 1))
    print(f"{n:,} rows, one fit: {seconds:.2f} s\n{'order':12}{'s':>8}{'ratio':>8}{'mean apart':>12}{'sd ratios':>14}")
    orders = {"random": np.arange(n), "by response": np.argsort(y, kind="stable"), "by column": np.argsort(X[:, 0])}
    for name, order in orders.items():
        rows, labels, model = X[order], y[order], clone(new)

        def stream(rows=rows, labels=labels, model=model):
            for start in range(0, n, n_block):
                model.partial_fit(rows[start : start + n_block], labels[start : start + n_block], classes=[0, 1])
            model.coef_

        spent = cpu_seconds(stream)
        apart = np.abs((model.coef_ - whole.coef_) / spread).max()
        ratios = model._all_samples["coef"].std(axis=(0, 1)) / spread
        warned = " (warns)" if np.asarray(model.checks_["fired"]).any() else ""
        print(f"{name:12}{spent:8.2f}{spent / seconds:8.2f}{apart:12.3f}{ratios.min():8.2f}{ratios.max():6.2f}{warned}",
              flush=True)  # fmt: skip


def intervals(n=20_000, d=10):
    """Print seconds of prediction intervals beside those of the fit."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    eta = X @ (0.3 * rng.normal(size=d))
    models = {
        BayesianLinearRegression: eta + rng.normal(size=n),
        BayesianLogisticRegression: (rng.random(n) < special.expit(eta)).astype(int),
        BayesianPoissonRegressor: rng.poisson(np.exp(1.0 + eta)),
        BayesianNegativeBinomialRegressor: rng.poisson(np.exp(1.0 + eta) * rng.gamma(2.0, 0.5, size=n)),
    }
    print(f"{n:,} rows x {d}{'':22}{'fit':>8}{'interval':>10}{'of means':>10}{'std':>8}")
    for kind, y in models.items():
        model = kind(random_state=0)
        few = clone(model).fit(X[:2000], y[:2000])  # compiles, as do the next lines
        few.predict_interval(X[:100])
        times = [cpu_seconds(lambda model=model, y=y: model.fit(X, y))]
        if hasattr(model, "predict_proba"):
            times += [np.nan, cpu_seconds(lambda model=model: model.predict_interval(X)), np.nan]
        else:
            few.predict_interval(X[:100], of="mean"), few.predict(X[:100], return_std=True)
            times.append(cpu_seconds(lambda model=model: model.predict_interval(X)))
            times.append(cpu_seconds(lambda model=model: model.predict_interval(X, of="mean")))
            times.append(cpu_seconds(lambda model=model: model.predict(X, return_std=True)))
        print(f"{kind.__name__:36}" + "".join(f"{each:9.2f}" for each in times), flush=True)


def grid(n=6000):
    """Print seconds of a search over nine settings by three folds."""
    from sklearn.linear_model import LogisticRegression

    X, y = logistic_rows(n)
    ours = GridSearchCV(BayesianLogisticRegression(random_state=0), {"prior_scale": np.geomspace(0.01, 100, 9)}, cv=3)
    theirs = GridSearchCV(LogisticRegression(), {"C": np.geomspace(1e-4, 1e4, 9)}, cv=3)
    BayesianLogisticRegression(random_state=0).fit(X[:2000], y[:2000])
    seconds = [cpu_seconds(lambda search=search: search.fit(X, y)) for search in (ours, theirs)]
    scores = [search.best_score_ for search in (ours, theirs)]
    print(f"27 fits of {n:,} rows: {seconds[0]:.1f} s, accuracy {scores[0]:.3f}; scikit-learn {seconds[1]:.1f} s, "
          f"{scores[1]:.3f}", flush=True)  # fmt: skip


def drawn_rows(kind, rng, n=300, d=5):
    """Rows with responses from coefficients drawn from the prior, and these coefficients, (n_predictors, d)."""
    n_predictors = 4 if kind == "four classes" else 1
    size = 0.4 if kind in ("Poisson", "negative binomial") else 1.0  # the scale is learnt for counts
    X, coef = rng.normal(size=(n, d)), size * rng.normal(size=(n_predictors, d))
    eta = X @ coef.T
    if kind == "four classes":
        return X, (eta + rng.gumbel(size=eta.shape)).argmax(axis=1), coef
    eta = eta[:, 0]
    y = {
        "two classes": lambda: (rng.random(n) < special.expit(eta)).astype(int),
        "normal": lambda: eta + rng.normal(size=n),
        "Poisson": lambda: rng.poisson(np.exp(eta)),
        "negative binomial": lambda: rng.poisson(np.exp(eta) * rng.gamma(2.0, 0.5, size=n)),
    }[kind]()
    return X, y, coef


def coverage(n_sets):
    """Print how often 90% intervals cover the coefficients that made the rows."""
    models = {
        "two classes": BayesianLogisticRegression,
        "four classes": BayesianLogisticRegression,
        "normal": BayesianLinearRegression,
        "Poisson": BayesianPoissonRegressor,
        "negative binomial": BayesianNegativeBinomialRegressor,
    }
    print(f"coverage of 90% intervals, {n_sets} sets of 300 rows and 5 columns")
    for kind, model in models.items():
        inside = []
        for seed in range(n_sets):
            X, y, coef = drawn_rows(kind, np.random.default_rng(seed))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = model(random_state=seed).fit(X, y)
            draws = fitted._all_samples["coef"].reshape(-1, coef.size)
            low, high = np.quantile(draws, (0.05, 0.95), axis=0)
            inside.append(np.mean((low < coef.ravel()) & (coef.ravel() < high)))
        print(f"{kind:20}{np.mean(inside):.3f} (se {np.std(inside) / np.sqrt(n_sets):.3f})", flush=True)


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["tables", "streams", "intervals", "grid", "coverage"])
    parser.add_argument("--data", nargs="*", default=list(DATA))
    parser.add_argument("--rows", type=int, help="of each table at most (20,000), or of a stream (200,000)")
    parser.add_argument("--memory", type=int, help="numbers of a stream that stay in memory")
    parser.add_argument("--sets", type=int, default=200, help="simulated ones, for coverage")
    parser.add_argument("--smoke", action="store_true", help="seconds: a bundled set, and few rows of the others")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one(*args.one, args.rows)))
        return
    warnings.simplefilter("ignore")
    small = args.smoke
    parts = {
        "tables": lambda: tables(["breast cancer"] if small else args.data, args.rows or 20_000),
        "streams": lambda: streams(20_000 if small else args.rows or 200_000, 10_000, args.memory),
        "intervals": lambda: intervals(1000 if small else 20_000),
        "grid": lambda: grid(1000 if small else 6000),
        "coverage": lambda: coverage(2 if small else args.sets),
    }
    for name, run in parts.items():
        if args.part in (None, name):
            run()


if __name__ == "__main__":
    main()
