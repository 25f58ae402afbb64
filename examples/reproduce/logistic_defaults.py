"""What does BayesianLogisticRegression().fit(X, y) give with no arguments at all?

    python examples/reproduce/logistic_defaults.py                      # heart, australian, a9a, covertype
    python examples/reproduce/logistic_defaults.py --data covertype --hmc-rows 50000

On unscaled tables: posterior means against long HMC, in posterior standard deviations; the ratio of the spreads; the
largest difference of a correlation; the effective number of draws; all from the draws on which means and predictions
are based. Then log loss and accuracy on rows held out, beside scikit-learn's LogisticRegression on standardised
columns, over 10 x 5 folds (heart, australian), on the published split (a9a), or on the last fifth of the rows, which
are in random order (covertype, class 2 against the rest); "se" is the standard error of the difference, over the
repetitions or over the rows. Last, for each tenth of the predicted probability, how often its rows are of the second
class.

HMC is run on the same rows, with trajectories of a quarter of a period in whitened coordinates: longer ones turn back,
which makes means exact but leaves spreads and correlations unchanged for hundreds of trajectories. Its own errors are
printed: the largest standard error of a mean, in posterior standard deviations, the effective draws of its squares, and
the largest difference of a correlation between its two halves. Without a data folder everything runs on scikit-learn's
bundled breast cancer set.
"""

import argparse
import time

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sk_sgmcmc import BayesianLogisticRegression
from sk_sgmcmc.metrics import effective_sample_size, mcse
from sk_sgmcmc.samplers import HMC

BARS = {"mean": 0.1, "spread": (0.85, 1.18), "correlation": 0.15, "log loss": 0.01}


def load(name):
    """Rows to fit, and rows held out or None."""
    if name == "breast cancer":
        from sklearn.datasets import load_breast_cancer

        return load_breast_cancer(return_X_y=True), None
    from sk_sgmcmc.datasets import fetch_table

    data = fetch_table(name)
    X, y = data.data, data.target
    if name == "covertype":
        y, n = (y == 2).astype(int), 4 * len(y) // 5
        return (X[:n], y[:n]), (X[n:], y[n:])
    if name == "a9a":
        return (X[data.train], y[data.train]), (X[data.test], y[data.test])
    return (X, y), None


def all_draws(model):
    """Coefficients and intercept of every draw used for predictions, (n_draws, d + 1)."""
    samples = model._all_samples
    return np.column_stack([samples["coef"][0, :, 0], samples["intercept"][0, :, 0]])


def compare_laws(X, y, n_trajectories):
    """Fit with defaults and by HMC, print the comparison; returns the default fit."""
    began = time.perf_counter()
    model = BayesianLogisticRegression(random_state=0).fit(X, y)
    seconds = time.perf_counter() - began
    ours = all_draws(model)
    ess = effective_sample_size(ours[None])
    print(f"  fit {seconds:.1f} s: {model.sampler_!r}, step {model.sampler_.step_size_(0):g}, batch "
          f"{model.batch_size_}, {model.n_iter_} steps, {len(ours)} draws; effective: smallest {ess.min():.0f}, median "
          f"{np.median(ess):.0f}", flush=True)  # fmt: skip
    if not n_trajectories:
        return model
    began = time.perf_counter()
    exact = BayesianLogisticRegression(
        sampler=HMC(step_size=0.4, n_leapfrog=4, vary_length=False),
        n_iter=n_trajectories,
        burn_in=0.1,
        thin=1,
        random_state=1,
    ).fit(X, y)
    theirs = np.column_stack([exact.samples_["coef"][0, :, 0], exact.samples_["intercept"][0, :, 0]])
    sd = theirs.std(axis=0)
    varies = sd > 0
    own = (mcse(theirs[None])[varies] / sd[varies]).max()
    squares = effective_sample_size(((theirs - theirs.mean(axis=0)) ** 2)[None, :, varies])
    halves = [np.corrcoef(half[:, varies].T) for half in np.array_split(theirs, 2)]
    print(f"  HMC, {n_trajectories} trajectories, {time.perf_counter() - began:.0f} s: its own error is {own:.3f} sd; "
          f"effective draws of squares {squares.min():.0f} or more; correlations of its halves apart by "
          f"{np.abs(halves[0] - halves[1]).max():.3f}")  # fmt: skip
    off = np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) / sd
    ratio = ours.std(axis=0) / sd
    apart = np.abs(np.corrcoef(ours[:, varies].T) - np.corrcoef(theirs[:, varies].T)).max()
    print(f"  means: largest difference {off.max():.3f} sd (bar {BARS['mean']}), root mean square "
          f"{np.sqrt(np.mean(off**2)):.3f}; spreads {ratio.min():.3f} to {ratio.max():.3f} (bar {BARS['spread']}); "
          f"correlations within {apart:.3f} (bar {BARS['correlation']})", flush=True)  # fmt: skip
    return model


def losses(model, X, y):
    """Log loss and error of each row."""
    p = model.predict_proba(X)
    code = np.searchsorted(model.classes_, y)
    return -np.log(p[np.arange(len(y)), code]), p.argmax(axis=1) == code, p[:, 1], code


def compare_predictions(X, y, held_out, model, n_repeats):
    """Print log loss and accuracy beside scikit-learn's; returns probabilities and labels of held-out rows."""
    pairs, p, label = [], [], []
    if held_out is None:
        folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=n_repeats, random_state=0)
        for train, test in folds.split(X, y):
            ours = BayesianLogisticRegression(random_state=0).fit(X[train], y[train])
            theirs = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(X[train], y[train])
            a, b = losses(ours, X[test], y[test]), losses(theirs, X[test], y[test])
            pairs.append([a[0].mean(), b[0].mean(), a[1].mean(), b[1].mean()])
            p.append(a[2])
            label.append(a[3])
        # Folds of one repetition share training rows, but each repetition averages over all rows.
        pairs = np.array(pairs).reshape(n_repeats, 5, 4).mean(axis=1)
        spread = pairs[:, 2].std(ddof=1) if n_repeats > 1 else np.nan
        binomial = np.sqrt(pairs[:, 2].mean() * (1 - pairs[:, 2].mean()) / len(y))
        what = f"{n_repeats} x 5 folds, accuracy spreads by {spread:.4f} over repetitions"
    else:
        scaler = StandardScaler(with_mean=not hasattr(X, "toarray"))
        theirs = make_pipeline(scaler, LogisticRegression(max_iter=1000)).fit(X, y)
        a, b = losses(model, *held_out), losses(theirs, *held_out)
        pairs = np.column_stack([a[0], b[0], a[1], b[1]]).astype(float)
        binomial = np.sqrt(a[1].mean() * (1 - a[1].mean()) / len(a[1]))
        p, label, what = [a[2]], [a[3]], f"{len(held_out[1])} rows held out, one split"
    mean = pairs.mean(axis=0)
    print(f"  {what}: log loss ours {mean[0]:.4f}, scikit-learn {mean[1]:.4f}, difference {mean[0] - mean[1]:+.4f} "
          f"(bar {BARS['log loss']}); accuracy {mean[2]:.4f}, {mean[3]:.4f}, difference {mean[2] - mean[3]:+.4f} "
          f"(bar: se {binomial:.4f})", flush=True)  # fmt: skip
    return np.concatenate(p), np.concatenate(label)


def print_calibration(p, label):
    """Shares of the second class among rows by tenth of the predicted probability."""
    tenth = np.minimum((10 * p).astype(int), 9)
    print("  calibration, mean predicted / share found (rows):", end=" ")
    cells = [(p[tenth == i].mean(), label[tenth == i].mean(), np.sum(tenth == i)) for i in range(10) if i in tenth]
    print("  ".join(f"{a:.2f}/{b:.2f} ({n})" for a, b, n in cells))
    error = sum(n * abs(a - b) for a, b, n in cells) / len(p)
    print(f"  expected calibration error {error:.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a few seconds: bundled set, one repetition, short HMC")
    parser.add_argument("--data", nargs="*", default=["heart", "australian", "a9a", "covertype"])
    parser.add_argument("--trajectories", type=int, default=None, help="of HMC; 0 leaves it out")
    parser.add_argument("--hmc-rows", type=int, default=None, help="compare the laws on the first rows only")
    parser.add_argument("--repeats", type=int, default=10)
    args = parser.parse_args()
    for name in ["breast cancer"] if args.smoke else args.data:
        try:
            (X, y), held_out = load(name)
        except OSError as error:
            print(f"{name}: {str(error).split('. ')[0]}")
            continue
        print(f"{name}: {X.shape[0]} x {X.shape[1]}", flush=True)
        n = args.trajectories
        if n is None:
            n = 200 if args.smoke else 20_000 if X.shape[0] < 10_000 else 3000
        some = slice(args.hmc_rows)
        model = compare_laws(X[some], y[some], n)
        if args.hmc_rows and held_out is not None:
            model = BayesianLogisticRegression(random_state=0).fit(X, y)
        p, label = compare_predictions(X, y, held_out, model, 1 if args.smoke else args.repeats)
        print_calibration(p, label)


if __name__ == "__main__":
    main()
