"""What does Bayesian logistic regression cost beside scikit-learn's, in seconds and log loss?

    python examples/benchmarks/logistic_table.py                       # australian, heart, a9a, covertype
    python examples/benchmarks/logistic_table.py --rows 8000           # of each table at most

Both fit the same four fifths of the rows, or the published split of a9a, and predict the rest: ours with no arguments,
on columns as they are; scikit-learn's in a pipeline with `StandardScaler`, with at most 1000 iterations. Covertype has
two lines, class 2 against the rest and all 7 classes. Seconds are processor time of the second of two fits, the
first of which compiles. "se" is the standard error of the difference in log loss, over rows held out.

Last, coverage: rows with coefficients drawn from the prior, and how often the 90% intervals cover them.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sk_sgmcmc import BayesianLogisticRegression


def load(name):
    """Rows, labels, and the indices of those to fit and of those held out."""
    if name == "breast cancer":
        from sklearn.datasets import load_breast_cancer

        X, y = load_breast_cancer(return_X_y=True)
    else:
        from sk_sgmcmc.datasets import fetch_table

        data = fetch_table(name.split(",")[0])
        X, y = data.data, data.target
        if name == "a9a":
            return X, y, data.train, data.test
        if name == "covertype, 2 classes":
            y = (y == 2).astype(int)
    order = np.random.default_rng(0).permutation(len(y))
    return X, y, order[: 4 * len(y) // 5], order[4 * len(y) // 5 :]


def fitted(model, X, y, n_fits):
    """The last of some fits, and its seconds of processor time."""
    for _ in range(n_fits):
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
    return time.process_time() - began


def compare(name, n_rows):
    """Print the line of a table."""
    X, y, train, test = load(name)
    train, test = train[:n_rows], test[:n_rows]
    ours = BayesianLogisticRegression(random_state=0)
    scaler = StandardScaler(with_mean=not hasattr(X, "toarray"))
    theirs = make_pipeline(scaler, LogisticRegression(max_iter=1000))
    few = X[train[:200]], y[train[:200]]
    if len(np.unique(few[1])) == len(np.unique(y[train])):
        fitted(ours, *few, 1)  # compiles
    seconds = [fitted(ours, X[train], y[train], 2 if len(train) < 50_000 else 1), fitted(theirs, X[train], y[train], 1)]
    losses, right = [], []
    for model in (ours, theirs):
        p = model.predict_proba(X[test])
        code = np.searchsorted(model.classes_, y[test])
        losses.append(-np.log(np.maximum(p[np.arange(len(code)), code], 1e-300)))
        right.append(np.mean(p.argmax(axis=1) == code))
    off = losses[0] - losses[1]
    print(f"{name:22}{len(train):8} x {X.shape[1]:<4}{seconds[0]:8.2f}{seconds[1]:8.2f}{losses[0].mean():10.4f}"
          f"{losses[1].mean():10.4f}{off.mean():+10.4f} (se {off.std() / np.sqrt(len(off)):.4f}){right[0]:8.4f}"
          f"{right[1]:8.4f}", flush=True)  # fmt: skip


def coverage(n_sets, n_rows=300, d=5):
    """Print how often 90% intervals cover the coefficients that made the rows."""
    inside = []
    for seed in range(n_sets):
        rng = np.random.default_rng(seed)
        X, coef = rng.standard_normal((n_rows, d)), rng.standard_normal(d)
        y = (rng.random(n_rows) < 1.0 / (1.0 + np.exp(-X @ coef))).astype(int)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = BayesianLogisticRegression(prior_scale=1.0, random_state=seed).fit(X, y)
        table = model.coef_table(interval=0.9)
        low, high = np.asarray(table["low"])[-d:], np.asarray(table["high"])[-d:]  # after the intercept
        inside.append((low < coef) & (coef < high))
    share, error = np.mean(inside), np.sqrt(0.09 / np.size(inside))
    print(f"coverage of 90% intervals over {n_sets} simulated sets of {n_rows} rows: {share:.3f} (se {error:.3f})")


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="seconds: a bundled set and few simulated ones")
    parser.add_argument("--rows", type=int, help="to fit, and to predict, at most")
    parser.add_argument("--sets", type=int, default=200, help="simulated ones, for coverage")
    parser.add_argument(
        "--data", nargs="*", default=["australian", "heart", "a9a", "covertype, 2 classes", "covertype"]
    )
    args = parser.parse_args()
    heads = "".join(f"{head:>10}" for head in ("log loss", "sklearn", "apart"))
    print(f"{'':35}{'s, ours':>8}{'sklearn':>8}{heads}{'accuracy':>20}{'sklearn':>8}")
    for name in ["breast cancer"] if args.smoke else args.data:
        try:
            compare(name, args.rows)
        except OSError as error:
            print(f"{name}: {str(error).split('. ')[0]}")
    coverage(5 if args.smoke else args.sets)


if __name__ == "__main__":
    main()
