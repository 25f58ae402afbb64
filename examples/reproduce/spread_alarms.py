"""How often does `sample` call the spread of right draws too narrow or too wide?

    python examples/reproduce/spread_alarms.py                     # 500 normal posteriors, then eight of each model
    python examples/reproduce/spread_alarms.py --normals 500 --models 0
    python examples/reproduce/spread_alarms.py --normals 0 --models 8

Normal posteriors have 2 to 10 coordinates in units from 0.01 to 100 and correlations up to 0.9999; their fits take
the defaults of `sample`. The models are a linear regression with known and with unknown noise, a logistic regression
and a hierarchical model of groups, each with columns whose mean is 0, 5, 50 or 2,000 standard deviations away from 0.
Printed are the numbers of fits, of alarms, and of fits that warn of anything else.
"""

import argparse
import warnings

import numba
import numpy as np

from sk_sgmcmc import sample
from sk_sgmcmc.targets import Positive

MEANS = (0.0, 5.0, 50.0, 2000.0)


@numba.njit
def normal(x, centre, precision, gradient):
    """A correlated normal density."""
    slope = np.dot(precision, centre - x)
    gradient.x[:] = slope
    return 0.5 * np.dot(x - centre, slope)


@numba.njit
def linear(b, columns, outcome, gradient):
    """Normal outcomes with standard deviation 1."""
    residual = outcome - np.dot(columns, b)
    gradient.b[:] = np.dot(columns.T, residual) - 1e-8 * b
    return -0.5 * (residual**2).sum() - 0.5e-8 * (b**2).sum()


@numba.njit
def linear_with_noise(b, noise, columns, outcome, gradient):
    """Normal outcomes with a half-normal prior on their standard deviation."""
    residual = outcome - np.dot(columns, b)
    squares = (residual**2).sum()
    gradient.b[:] = np.dot(columns.T, residual) / noise**2 - 1e-8 * b
    gradient.noise[()] = squares / noise**3 - outcome.size / noise - noise / 25.0
    return -0.5 * squares / noise**2 - outcome.size * np.log(noise) - 0.5e-8 * (b**2).sum() - noise**2 / 50.0


@numba.njit
def logistic(b, columns, outcome, gradient):
    """Outcomes 0 and 1."""
    eta = np.dot(columns, b)
    p = 1.0 / (1.0 + np.exp(-eta))
    gradient.b[:] = np.dot(columns.T, outcome - p) - 1e-8 * b
    total = -0.5e-8 * (b**2).sum()
    for i in range(eta.size):
        total += outcome[i] * eta[i] - max(eta[i], 0.0) - np.log1p(np.exp(-abs(eta[i])))
    return total


@numba.njit
def hierarchical(b, tau, effect, columns, outcome, group, gradient):
    """Groups of rows with intercepts tau * effect, effects standard normal."""
    residual = outcome - np.dot(columns, b)
    gradient.effect[:] = -effect
    gradient.tau[()] = -tau / 25.0
    for i in range(group.size):
        residual[i] -= tau * effect[group[i]]
        gradient.effect[group[i]] += tau * residual[i]
        gradient.tau[()] += effect[group[i]] * residual[i]
    gradient.b[:] = np.dot(columns.T, residual) - 1e-8 * b
    total = -0.5 * (residual**2).sum() - 0.5 * (effect**2).sum() - tau**2 / 50.0
    return total - 0.5e-8 * (b**2).sum()


def correlated(seed):
    """Mean and covariance of a normal distribution, in units of its own."""
    rng = np.random.default_rng(seed)
    d = 2 + seed % 9
    units, rho = 10.0 ** rng.uniform(-2, 2, d), (0.0, 0.9, 0.99, 0.999, 0.9999)[seed % 5]
    apart = np.abs(np.subtract.outer(np.arange(d), np.arange(d)))
    correlation = rho**apart if seed % 2 else np.where(apart > 0, rho, 1.0)
    return units * rng.normal(size=d), correlation * np.outer(units, units)


def normal_case(seed):
    """Arguments of `sample` for a normal posterior."""
    centre, covariance = correlated(seed)
    data = {"centre": centre, "precision": np.linalg.inv(covariance)}
    return normal, {"x": centre.size}, data


def model_case(name, mean, seed, n=200):
    """Arguments of `sample` for a model with columns whose mean is given."""
    rng = np.random.default_rng([seed, int(mean)])
    columns = np.column_stack([np.ones(n), rng.normal(mean, 1.0, n), rng.normal(mean, 1.0, n)])
    eta = 0.5 + 0.7 * (columns[:, 1] - mean) - 0.4 * (columns[:, 2] - mean)
    data = {"columns": columns, "outcome": eta + rng.normal(size=n)}
    if name == "linear":
        return linear, {"b": 3}, data
    if name == "linear, unknown noise":
        return linear_with_noise, {"b": 3, "noise": Positive()}, data
    if name == "logistic":
        data["outcome"] = (rng.random(n) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
        return logistic, {"b": 3}, data
    group = rng.integers(0, 8, n)
    data |= {"outcome": data["outcome"] + rng.normal(size=8)[group], "group": group}
    return hierarchical, {"b": 3, "tau": Positive(), "effect": 8}, data


MODELS = ("linear", "linear, unknown noise", "logistic", "hierarchical")


def fired(case, seed, **args):
    """Whether the checks of the spread fire, and whether any other check does."""
    function, parameters, data = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checks = sample(function, parameters=parameters, data=data, random_state=seed, **args).checks_
    names = [name for name, has_fired in zip(checks["check"], checks["fired"], strict=True) if has_fired]
    of_spread = [name in ("spread_too_narrow", "spread_too_wide") for name in names]
    return any(of_spread), not all(of_spread)


def report(name, cases, **args):
    """Print how many fits raise an alarm."""
    found = np.array([fired(case, seed, **args) for seed, case in enumerate(cases)])
    alarms, others = found.sum(axis=0)
    print(f"{name:42} {len(found):4} fits  {alarms:3} alarms  {others:3} warn of something else", flush=True)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--normals", type=int, default=500, help="normal posteriors")
    parser.add_argument("--models", type=int, default=8, help="data sets of each model and mean")
    parser.add_argument("--smoke", action="store_true", help="a short setting")
    args = parser.parse_args()
    short = {"n_iter": 400} if args.smoke else {}
    n_normals, n_models = (2, 1) if args.smoke else (args.normals, args.models)
    if n_normals:
        report("normal, correlation up to 0.9999", [normal_case(seed) for seed in range(n_normals)], **short)
    for name in MODELS[: 1 if args.smoke else None] if n_models else ():
        for mean in MEANS[: 1 if args.smoke else None]:
            cases = [model_case(name, mean, seed) for seed in range(n_models)]
            report(f"{name}, columns' mean {mean:g}", cases, **short)


if __name__ == "__main__":
    main()
