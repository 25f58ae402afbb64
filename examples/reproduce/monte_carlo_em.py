"""Do masses learnt by Monte Carlo EM make samplers better, at no cost?

Tables 1 to 3 of Roychowdhury and Parthasarathy (2017), Adaptive Bayesian sampling with Monte Carlo EM, NeurIPS.

Ten samplers on the paper's two synthetic posteriors, beside the paper's numbers:

Table 1
    Mean and precision of 5,000 draws of N(0, 1), with p(mu, tau | x) proportional to N(x | mu, tau) W(tau | 1, 1).
Table 2
    Logistic regression without intercept on 2,000 rows of an equal mixture of N([1, -1], I) and N([-1, 1], I), prior
    N(0, 10 I). Labels are drawn with probability sigmoid(x_0 - x_1): of the possible readings of the paper's "classify
    with a linear classifier with weights [1, -1]" this is the only one whose posterior lies at (1, -1). (If the label
    is the sign of x_0 - x_1 the mode is at (12, -12); if it is the component of the mixture, at (2, -2).)
Table 3
    Milliseconds per iteration in table 2, and on the Australian credit and Heart data if they are available.

An iteration is ten steps: ten leapfrog steps of HMC, ten minibatches of 100 rows of the stochastic samplers. Half of
the iterations are burn-in, in which the masses are learnt from one momentum per iteration; S_count starts at 300, or at
200 for SG-NPHMC. The two samplers of a pair have the same settings: step size 0.01 everywhere, the one given by the
paper in the first experiment and the largest of its grid in the second (with it the plain samplers' errors of draws in
table 1 come out near the printed ones); A = 10 for SGHMC and 1 for SGNHT, friction 1 for SG-NPHMC. Riemannian samplers
have the metrics diag(N tau, N / 2 tau^2), and the Fisher information plus the prior's precision; a step size of their
own, since a metric makes time scales about 1; and one fixed-point iteration in table 1 and three in table 2. RHMC makes
a tenth of the iterations, which are nearly independent draws.

Minibatches are drawn with replacement. Reading blocks in turn, the package's default, gives noise that is not white: it
cancels over an epoch, which a thermostat cannot detect, so it cools too much.

The root mean square error about the truth, which is (0, 1) or (1, -1), is computed in two ways, since the paper does
not specify which: for the draws after burn-in, and for their running mean. (Draws of the posterior itself have about
0.018 and 0.025 in table 1, so the paper's 0.0115 for HMC-EM cannot be that of draws.) The error of draws rewards a
chain whose spread is too small; hence the spread beside it, relative to HMC's. Every seed has its own data; the two
samplers of a pair share data and seed, so the difference EM - plain has its own error, over seeds.

Takes about a quarter of an hour on one core.
"""

import argparse
import time

import numba
import numpy as np

from sk_sgmcmc import sample
from sk_sgmcmc.samplers import HMC, RHMC, SGHMC, SGNHT, SGNPHMC, SGRNPHMC, MonteCarloEM
from sk_sgmcmc.targets import Density

PAIRS = ("HMC", "SGHMC", "SG-NPHMC", "SGNHT")
NAMES = ("HMC", "HMC-EM", "RHMC", "SGHMC", "SGHMC-EM", "SG-NPHMC", "SG-NPHMC-EM", "SGR-NPHMC", "SGNHT", "SGNHT-EM")
# Root mean square errors and milliseconds per iteration, as printed in the paper.
PAPER = {
    "gaussian": {
        "HMC": (0.0196, 0.0197, 0.417), "HMC-EM": (0.0115, 0.0104, 0.423), "RHMC": (0.0111, 0.0089, 5.748),
        "SGHMC": (0.1590, 0.1646, 0.133), "SGHMC-EM": (0.0713, 0.2243, 0.132), "SG-NPHMC": (0.0326, 0.0433, 0.514),
        "SG-NPHMC-EM": (0.0274, 0.0354, 0.498), "SGR-NPHMC": (0.0240, 0.0308, 3.145), "SGNHT": (0.0344, 0.0335, 0.148),
        "SGNHT-EM": (0.0317, 0.0289, 0.148),
    },
    "logistic": {
        "HMC": (0.0456, 0.1290, 1.435), "HMC-EM": (0.0145, 0.0851, 1.428), "RHMC": (0.0091, 0.0574, 1550.0),
        "SGHMC": (0.2812, 0.2717, 0.200), "SGHMC-EM": (0.2804, 0.2583, 0.203), "SG-NPHMC": (0.4945, 0.4263, 0.731),
        "SG-NPHMC-EM": (0.0990, 0.4229, 0.803), "SGR-NPHMC": (0.1901, 0.1925, 6.720), "SGNHT": (0.2035, 0.1921, 0.302),
        "SGNHT-EM": (0.1983, 0.1729, 0.306),
    },
}  # fmt: skip


# -------------------------------------------------------------------------------------------------------------- models


@numba.njit
def gaussian(theta, rows, scale, gradient):
    """Mean and precision, flat prior on the mean, W(tau | 1, 1) on the precision."""
    mean, tau = theta[0], theta[1]
    if not tau > 0.0:
        return -np.inf
    first, second = 0.0, 0.0
    for i in range(rows.shape[0]):
        residual = rows[i, 0] - mean
        first += residual
        second += residual * residual
    n = scale * rows.shape[0]
    gradient[0] = tau * scale * first
    gradient[1] = 0.5 * (n - 1.0) / tau - 0.5 * scale * second - 0.5
    return 0.5 * (n - 1.0) * np.log(tau) - 0.5 * tau * scale * second - 0.5 * tau


@numba.njit
def gaussian_metric(theta, rows, scale, G, dG):
    """Fisher information and the prior's Hessian."""
    n, tau = scale * rows.shape[0], theta[1]
    G[0], G[1] = n * tau, 0.5 * (n - 1.0) / tau**2
    dG[:] = 0.0
    dG[1, 0], dG[1, 1] = n, -(n - 1.0) / tau**3


@numba.njit
def logistic(theta, rows, scale, gradient):
    """Logistic regression, the label in the last column; prior N(0, 10 I)."""
    D = theta.shape[0]
    value = 0.0
    gradient[:] = 0.0
    for i in range(rows.shape[0]):
        eta = 0.0
        for j in range(D):
            eta += rows[i, j] * theta[j]
        small = np.exp(-abs(eta))
        residual = rows[i, D] - (1.0 if eta > 0.0 else small) / (1.0 + small)
        value += rows[i, D] * eta - max(eta, 0.0) - np.log1p(small)
        for j in range(D):
            gradient[j] += residual * rows[i, j]
    value *= scale
    for j in range(D):
        gradient[j] = scale * gradient[j] - theta[j] / 10.0
        value -= theta[j] ** 2 / 20.0
    return value


@numba.njit
def logistic_metric(theta, rows, scale, G, dG):
    """Fisher information plus the prior's precision."""
    D = theta.shape[0]
    G[:] = 0.0
    dG[:] = 0.0
    for i in range(rows.shape[0]):
        eta = 0.0
        for j in range(D):
            eta += rows[i, j] * theta[j]
        p = 1.0 / (1.0 + np.exp(-eta))
        c = scale * p * (1.0 - p)
        for j in range(D):
            for k in range(j + 1):
                x = c * rows[i, j] * rows[i, k]
                G[j, k] += x
                for m in range(D):
                    dG[m, j, k] += x * (1.0 - 2.0 * p) * rows[i, m]
    for j in range(D):
        for k in range(j):
            G[k, j] = G[j, k]
            for m in range(D):
                dG[m, k, j] = dG[m, j, k]
        G[j, j] += 0.1


PLAIN = {"control_variates": False}  # as in the paper


def gaussian_target(seed):
    """Table 1: the target of one seed's data."""
    rows = np.random.default_rng([seed, 1]).standard_normal((5000, 1))
    return Density(gaussian, 2, rows, [0.1, 0.8], metric=gaussian_metric, metric_is_diagonal=True, **PLAIN)


def logistic_target(seed):
    """Table 2: the target of one seed's data."""
    rng = np.random.default_rng([seed, 2])
    X = rng.standard_normal((2000, 2)) + np.where(rng.random(2000) < 0.5, 1.0, -1.0)[:, None] * [1.0, -1.0]
    y = rng.random(2000) < 1.0 / (1.0 + np.exp(X[:, 1] - X[:, 0]))
    return Density(logistic, 2, np.column_stack([X, y]), metric=logistic_metric, **PLAIN)


BATCHES = {"batch_size": 100, "with_replacement": True}
TABLES = {"gaussian": (gaussian_target, ("mu", "tau")), "logistic": (logistic_target, ("W0", "W1"))}
TRUTH = {"gaussian": np.array([0.0, 1.0]), "logistic": np.array([1.0, -1.0])}


def table_target(name):
    """Table 3: a target on real data, standardised; None if the data are not available."""
    from sk_sgmcmc.datasets import fetch_table

    try:
        table = fetch_table(name)
    except (OSError, ValueError):
        return None
    X = np.asarray(table.data, dtype=float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = np.unique(table.target, return_inverse=True)[1]
    return Density(logistic, X.shape[1], np.column_stack([X, y]), metric=logistic_metric, **PLAIN)


# ------------------------------------------------------------------------------------------------------------ samplers


def make(name, table):
    """The sampler with a name from the tables."""
    plain = name.removesuffix("-EM")
    mass = MonteCarloEM(n_momenta=200 if plain == "SG-NPHMC" else 300) if name.endswith("-EM") else None
    n_fixed_point = 1 if table == "gaussian" else 3
    if plain == "HMC":
        return HMC(step_size=0.01, n_leapfrog=10, mass=mass, vary_length=False)
    if plain == "RHMC":
        return RHMC(step_size=0.3, n_leapfrog=10, n_fixed_point=n_fixed_point, tolerance=0.0)
    if plain == "SGHMC":
        return SGHMC(step_size=0.01, friction=10.0, mass=mass)
    if plain == "SGNHT":
        return SGNHT(step_size=0.01, noise=1.0, mass=mass)
    if plain == "SG-NPHMC":
        return SGNPHMC(step_size=0.01, mass=mass)
    return SGRNPHMC(step_size=0.1, n_fixed_point=n_fixed_point)


def draw(name, target, sampler, n_iter, seed):
    """Draws of one chain after burn-in, one per iteration, and the fitted sampler."""
    steps = 1 if name.removesuffix("-EM") in ("HMC", "RHMC") else 10
    n_iter = max(4, n_iter // 10) if name == "RHMC" else n_iter
    result = sample(
        target, sampler, n_iter=steps * n_iter, burn_in=steps * (n_iter // 2), thin=steps, random_state=seed, **BATCHES
    )
    return result.samples_["theta"][0], result.sampler_


def errors(draws, truth):
    """Root mean square error about the truth, of draws and of their running mean: (2, n_parameters)."""
    running = np.cumsum(draws, axis=0) / np.arange(1, len(draws) + 1)[:, None]
    return np.sqrt([((each - truth) ** 2).mean(axis=0) for each in (draws, running)])


def milliseconds(table, target, options):
    """Milliseconds per iteration, all in burn-in, where masses are learnt; samplers take turns, the fastest counts."""
    best, n_iter = {}, dict.fromkeys(NAMES, 4)
    for turn in range(options.rounds + 2):
        for name in NAMES if turn % 2 else NAMES[::-1]:
            steps = 1 if name.removesuffix("-EM") in ("HMC", "RHMC") else 10
            n_steps = steps * n_iter[name]
            began = time.thread_time()
            sample(target, make(name, table), n_iter=n_steps + 1, burn_in=n_steps, random_state=0, **BATCHES)
            spent = 1e3 * (time.thread_time() - began) / n_iter[name]
            if turn == 0:  # compiles
                n_iter[name] = 10 * n_iter[name]
            elif turn == 1:  # from here on so many that the overhead of a call is negligible
                n_iter[name] = int(np.clip(1e3 * options.timed / spent, 4, 1_000_000))
            else:
                best[name] = min(best.get(name, np.inf), spent)
    return best


# --------------------------------------------------------------------------------------------------------------- study


def study(table, options):
    """One of tables 1 and 2: run every seed, print; errors (n_seeds, 2, 2) of each sampler."""
    target_of, columns = TABLES[table]
    print(f"\nTable {1 + (table == 'logistic')}, {table}: {options.iterations} iterations, {options.seeds} seeds")
    found, spreads, traces = {name: [] for name in NAMES}, {name: [] for name in NAMES}, {}
    for seed in range(options.seeds):
        target = target_of(seed)
        for name in NAMES:
            draws, fitted = draw(name, target, make(name, table), options.iterations, seed)
            found[name].append(errors(draws, TRUTH[table]))
            spreads[name].append(draws.std(axis=0))
            if name.endswith("-EM") and seed == 0:
                traces[name] = fitted.e_step_sizes_[0], fitted.inverse_mass_[0]
    found = {name: np.array(values) for name, values in found.items()}
    heads = ("of draws", "of running means", "printed", "spread / HMC's")
    print(f"{'':12s}  " + "  ".join(f"{head:>16s}" for head in heads))
    print(f"{'':12s}  " + "  ".join(f"{columns[0]:>7s}  {columns[1]:>7s}" for _ in heads))
    for name in NAMES:
        spread = np.mean(np.divide(spreads[name], spreads["HMC"]), axis=0)
        cells = [*found[name].mean(axis=0).ravel(), *PAPER[table][name][:2], *spread]
        print(f"{name:12s}  " + "  ".join(f"{value:7.4f}" for value in cells))
    print("adaptive size of the E-step, seed 0, and the inverse mass at the end of burn-in:")
    for name, (sizes, inverse_mass) in traces.items():
        print(f"  {name:12s} {' '.join(map(str, sizes))};  W = {np.array2string(inverse_mass, precision=3)}")
    return found


def differences(results):
    """Print the difference EM - plain of each cell with its error over seeds; returns the largest in these errors."""
    worst = {}
    for k, label in enumerate(("of draws", "of running means")):
        print(f"\nError {label}, EM - plain, +- standard error over seeds (cells that are worse by more than two: *)")
        values = []
        for table, found in results.items():
            for name in PAIRS:
                gap = found[name + "-EM"][:, k] - found[name][:, k]
                mean, error = gap.mean(axis=0), gap.std(axis=0, ddof=1) / np.sqrt(len(gap))
                cells = [f"{m:+.5f} +- {e:.5f}{'*' if m > 2.0 * e else ' '}" for m, e in zip(mean, error, strict=True)]
                print(f"  {table:9s} {name:9s}  " + "   ".join(cells))
                values.extend(mean / error)
        worst[label] = max(values)
        n_better, n_worse = sum(v < -2.0 for v in values), sum(v > 2.0 for v in values)
        print(f"  {n_better} of {len(values)} cells better by more than two errors, {n_worse} worse")
    return worst


def times(options):
    """Print table 3 and the relevant ratios."""
    targets = {"gaussian": gaussian_target(0), "logistic": logistic_target(0)}
    if not options.smoke:
        targets |= {name: table_target(name) for name in ("australian", "heart")}
    found = {}
    for name, target in targets.items():
        if target is None:
            print(f"{name}: not there, see sk_sgmcmc.datasets.fetch_table")
            continue
        table = "gaussian" if name == "gaussian" else "logistic"
        found[name] = milliseconds(table, target, options)
    print("\nTable 3, milliseconds an iteration (printed in brackets; the first column is the time of table 1)")
    print(f"{'':12s}  " + "  ".join(f"{name:>17s}" for name in found))
    for name in NAMES:
        cells = []
        for data, best in found.items():
            printed = f"({PAPER[data][name][2]:g})" if data in PAPER else ""
            cells.append(f"{best[name]:8.4f} {printed:>8s}")
        print(f"{name:12s}  " + "  ".join(cells))
    for data, best in found.items():
        ratios = ", ".join(f"{name} {best[name + '-EM'] / best[name]:.3f}" for name in PAIRS)
        print(f"{data}: EM / plain {ratios}")
        print(f"{data}: RHMC / HMC {best['RHMC'] / best['HMC']:.1f}, SGR-NPHMC / SG-NPHMC "
              f"{best['SGR-NPHMC'] / best['SG-NPHMC']:.1f}")  # fmt: skip
    return found


def main(argv=None):
    """Run the study with the options given on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=None, help="None: the paper's 10,000 and 20,000")
    parser.add_argument("--rounds", type=int, default=15, help="of timing")
    parser.add_argument("--timed", type=float, default=0.5, help="seconds of a timing")
    parser.add_argument("--tables", nargs="+", default=["gaussian", "logistic"], choices=list(TABLES))
    parser.add_argument("--smoke", action="store_true", help="a few seconds")
    options = parser.parse_args(argv)
    if options.smoke:
        options.seeds, options.iterations, options.rounds, options.timed = 2, 100, 1, 0.01
    began, given = time.perf_counter(), options.iterations
    results = {}
    for table in options.tables:
        options.iterations = given or {"gaussian": 10_000, "logistic": 20_000}[table]
        results[table] = study(table, options)
    differences(results)
    if len(options.tables) == 2:
        times(options)
    print(f"\n{time.perf_counter() - began:.0f} s in all")
    return results


if __name__ == "__main__":
    main()
