"""Is the bias that ``diagnostics_`` states the bias that long chains have, and what is its order in the step size?

    python examples/reproduce/stationary_bias.py                     # ten models, four batch sizes, four steps
    python examples/reproduce/stationary_bias.py --samplers sgnht    # of another sampler
    python examples/reproduce/stationary_bias.py --part slopes       # order of the bias, for each order of minibatches
    python examples/reproduce/stationary_bias.py --smoke             # seconds: one model, short chains

"table": each model has 1,000 rows. Its coefficients are drawn by `HMC`, which has no bias, and by samplers with fixed
step and batch sizes: 10, 50, 200 and 1,000 rows, and 1/8, 1/4, 1/2 and 1 times the automatic step for all rows. The
column ``bias`` of ``diagnostics_`` predicts how far the standard deviation of their draws is above that of HMC, as a
share of it. A line is a model and a sampler, with the largest relative error of a predicted variance, in brackets as a
multiple of its Monte Carlo error, the same among fits whose bias is at most 0.25, the largest bias, and the share of
fits whose bias is not known. The last line has the share of variances with an error above 5%, the largest error as a
multiple of its Monte Carlo error, and the share of fits whose bias is not known.

"slopes": two coefficients with a Gaussian posterior, and four rows that are read one at a time. A step is a linear map
that depends on the row. The mean and the covariance of the stationary distribution are therefore known exactly, as the
fixed point of the average over all orders in which an epoch may read the rows. Rows are drawn with replacement, in one
fixed order, in a new random order in each epoch, or in a palindrome: each second epoch in the reverse order of the one
before. Printed are the largest bias of a posterior mean, in posterior standard deviations, and of a posterior variance,
as a share of it, averaged over the positions in the epoch, each with the slope of its logarithm between the two
smallest steps. The last column compares the variances of long chains of `sample` at the largest step with the exact
ones, as the largest difference in Monte Carlo errors. A fixed order is not offered by `sample`.
"""

import argparse
import itertools
import time
import warnings

import numba
import numpy as np

from sk_sgmcmc import BayesianLinearRegression, BayesianLogisticRegression, BayesianPoissonRegressor, sample
from sk_sgmcmc.metrics import effective_sample_size
from sk_sgmcmc.samplers import HMC, SGHMC, SGLD, SGNHT
from sk_sgmcmc.targets import Density

N_ROWS, N_COLUMNS = 1000, 4
SAMPLERS = {"sgld": SGLD, "sghmc": SGHMC, "euler": lambda h: SGHMC(h, scheme="euler"),
            "ubu": lambda h: SGHMC(h, scheme="ubu"), "sgnht": SGNHT}  # fmt: skip
BATCHES, STEPS = (10, 50, 200, 1000), (0.125, 0.25, 0.5, 1.0)
BURN_IN = 20.0  # in units of the time in which a posterior with unit curvature is forgotten


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


def table(options):
    """Print a line for each model and sampler."""
    batches, steps = BATCHES, STEPS
    if options.smoke:
        options.models, options.draws, batches, steps = ["binary"], 500, (200,), (1.0,)
    print(f"{'':28}largest error   where bias <= 0.25  largest bias  unknown  CPU seconds")
    all_errors, all_scores, all_unknown = [], [], []
    for name in options.models:
        make, params, data = MODELS[name]
        X, y = data(options.seed)
        exact, exact_error = spread(
            make(sampler=HMC(), n_iter=3 * options.draws + 500, burn_in=500, thin=1, random_state=0, **params).fit(X, y)
        )
        for sampler in options.samplers:
            began = time.process_time()
            auto = make(sampler=SAMPLERS[sampler]("auto"), batch_size=N_ROWS, n_iter=40, random_state=0, **params)
            largest = float(auto.fit(X, y).sampler_.step_size_(0))
            errors, scores, biases, unknown = [], [], [], []
            for n_batch, share in itertools.product(batches, steps):
                h = share * largest
                every, burn_in = apart(0.5 / h), int(BURN_IN / h)
                model = make(
                    sampler=SAMPLERS[sampler](h), batch_size=n_batch, n_iter=burn_in + int(options.draws / h),
                    burn_in=burn_in, thin=every, random_state=1, **params,
                ).fit(X, y)  # fmt: skip
                seen, error = spread(model)
                bias = stated(model)
                unknown.append(np.isnan(bias).all())
                wrong = (1.0 + bias) ** 2 / (seen / exact) ** 2 - 1.0
                if options.verbose:
                    print(name, sampler, n_batch, f"{h:.3g}", bias.round(3), (seen / exact - 1.0).round(3))
                if not unknown[-1]:
                    errors.append(np.abs(wrong))
                    scores.append(np.abs(wrong / (2.0 * np.hypot(error, exact_error))))
                    biases.append(np.abs(bias).max())
            small = np.array(biases) <= 0.25
            shown = f"{largest_error(errors, scores)}  {largest_error(errors, scores, small)}"
            rest = f"{max(biases, default=np.nan):>14.3f}{np.mean(unknown):>9.2f}{time.process_time() - began:>9.0f}"
            print(f"{name:<20}{sampler:<8}{shown}{rest}", flush=True)
            all_errors, all_scores, all_unknown = all_errors + errors, all_scores + scores, all_unknown + unknown
    above, score = np.mean(np.concatenate(all_errors) > 0.05), np.concatenate(all_scores).max()
    print(f"all: {above:.1%} of errors above 5%; largest error {score:.1f} Monte Carlo errors; ", end="")
    print(f"{np.mean(all_unknown):.1%} of fits with an unknown bias")


def largest_error(errors, scores, chosen=slice(None)):
    """The largest of the chosen errors, and how many Monte Carlo errors it is."""
    errors, scores = (np.array(each)[chosen].ravel() for each in (errors, scores))
    return f"{errors.max():>8.3f} ({scores[errors.argmax()]:>4.1f})" if errors.size else f"{'':>15}"


# ------------------------------------------------------------------------------------------------------ order of bias

ROWS = np.array([[0.6, 0.1], [-0.2, 0.7], [0.5, 0.5], [0.3, -0.4]])
RESPONSES = np.array([1.0, -0.8, 0.9, 0.1])
PRIOR = 0.5  # precision of each coefficient
M, D, FRICTION = len(ROWS), ROWS.shape[1], 1.0
H_OF_ROWS = M * ROWS[:, :, None] * ROWS[:, None, :] + PRIOR * np.eye(D)
PULL_OF_ROWS = M * ROWS * RESPONSES[:, None]
LENGTHS = (0.2, 0.1, 0.05, 0.025, 0.0125)
SCHEMES = {
    "SGLD": lambda h: SGLD(h),
    "SGHMC, Euler": lambda h: SGHMC(h, scheme="euler"),
    "SGHMC, baoab": lambda h: SGHMC(h),
    "SGHMC, ubu": lambda h: SGHMC(h, scheme="ubu"),
}
ORDERS = ("replacement", "fixed", "shuffled", "palindromic")


@numba.njit
def four_rows(theta, rows, scale, gradient):
    """Log density of the two coefficients."""
    value = 0.0
    for j in range(D):
        gradient[j] = -PRIOR * theta[j]
        value -= 0.5 * PRIOR * theta[j] ** 2
    for i in range(rows.shape[0]):
        rest = rows[i, D]
        for j in range(D):
            rest -= rows[i, j] * theta[j]
        for j in range(D):
            gradient[j] += scale * rest * rows[i, j]
        value -= 0.5 * scale * rest**2
    return value


def moment_maps(name, h):
    """For each row, the map of the moments E[(s, 1) (s, 1)^T] of the state s over a step, (M, n, n)."""
    momentum = 0 if name == "SGLD" else 1
    n = D * (1 + momentum)
    eye, zero = np.eye(D), np.zeros((D, D))

    def part(A, b=None, noise=None):
        B, Q = np.eye(n + 1), np.zeros((n + 1, n + 1))
        B[:n, :n] = A
        B[:n, n] = 0.0 if b is None else b
        Q[:n, :n] = 0.0 if noise is None else np.kron(noise, eye)
        return np.kron(B, B) + np.outer(Q.ravel(), np.eye((n + 1) ** 2)[-1])

    def drift(t):
        return part(np.block([[eye, t * eye], [zero, eye]]))

    def friction(t):
        c = np.exp(-FRICTION * t)
        return part(np.block([[eye, zero], [zero, c * eye]]), noise=np.diag([0.0, 1.0 - c * c]))

    def free(t):
        x = FRICTION * t
        tau = drift(np.tanh(0.5 * x) / FRICTION)
        rest = part(np.eye(n), noise=np.diag([(2.0 * x - 4.0 * np.tanh(0.5 * x)) / FRICTION**2, 0.0]))
        return rest @ tau @ friction(t) @ tau

    maps = []
    for H, pull in zip(H_OF_ROWS, PULL_OF_ROWS, strict=True):
        if name == "SGLD":
            maps.append(part(eye - h * H, h * pull, np.eye(1) * 2.0 * h))
            continue
        factor = 1.0 - h * FRICTION if name == "SGHMC, Euler" else 1.0
        noise = np.diag([0.0, 2.0 * h * FRICTION]) if name == "SGHMC, Euler" else None
        kick = part(np.block([[eye, zero], [-h * H, factor * eye]]), np.concatenate([0.0 * pull, h * pull]), noise)
        maps.append(
            {
                "SGHMC, Euler": lambda kick: drift(h) @ kick,
                "SGHMC, baoab": lambda kick: drift(0.5 * h) @ friction(h) @ drift(0.5 * h) @ kick,
                "SGHMC, ubu": lambda kick: free(0.5 * h) @ kick @ free(0.5 * h),
            }[name](kick)
        )
    return np.array(maps)


def stationary(name, order, h):
    """Exact mean and covariance of theta, averaged over the positions in an epoch or a pair of epochs."""
    maps = moment_maps(name, h)
    ways = {
        "replacement": [(i,) for i in range(M)],
        "fixed": [tuple(range(M))],
        "shuffled": list(itertools.permutations(range(M))),
        "palindromic": [way + way[::-1] for way in itertools.permutations(range(M))],
    }[order]
    so_far = np.zeros((len(ways[0]), *maps.shape[1:]))  # the map from the start of an epoch to each position in it
    for way in ways:
        total = np.eye(maps.shape[1])
        for position, row in enumerate(way):
            total = maps[row] @ total
            so_far[position] += total / len(ways)
    values, vectors = np.linalg.eig(so_far[-1])
    fixed = np.real(vectors[:, np.abs(values - 1.0).argmin()])
    moments = so_far.mean(axis=0) @ (fixed / fixed[-1])
    moments = moments.reshape(2 * [round(np.sqrt(moments.size))])
    mean = moments[:D, -1]
    return mean, moments[:D, :D] - np.outer(mean, mean)


def chains_apart(name, order, h, n_iter):
    """Largest difference of a variance of long chains of `sample` from the exact one, in Monte Carlo errors."""
    mean, covariance = stationary(name, order, h)
    given = {"with_replacement": True} if order == "replacement" else {"batch_order": order}
    target = Density(four_rows, D, np.column_stack([ROWS, RESPONSES]), control_variates=False)
    draws = sample(
        target, SCHEMES[name](h), batch_size=1, n_iter=n_iter, burn_in=1000, thin=1, n_chains=4, random_state=0, **given
    ).samples_["theta"]
    square = (draws - mean) ** 2
    error = square.std(axis=(0, 1)) / np.sqrt(effective_sample_size(square))
    return np.abs((square.mean(axis=(0, 1)) - np.diag(covariance)) / error).max()


def slopes(options):
    """Print a line for each scheme and order of minibatches."""
    precision = H_OF_ROWS.mean(axis=0)
    exact, spreads = np.linalg.inv(precision), np.sqrt(np.diag(np.linalg.inv(precision)))
    centre = exact @ PULL_OF_ROWS.mean(axis=0)
    print(f"{'step size':28}" + "".join(f"{h:>9}" for h in LENGTHS) + "   slope   chains")
    for name, order in itertools.product(SCHEMES, ORDERS):
        found = [stationary(name, order, h) for h in LENGTHS]
        means = np.array([np.abs((mean - centre) / spreads).max() for mean, _ in found])
        variances = np.array([np.abs(np.diag(covariance) / np.diag(exact) - 1.0).max() for _, covariance in found])
        apart = "" if order == "fixed" else f"{chains_apart(name, order, LENGTHS[0], options.n_iter):>9.1f}"
        for of, bias, more in (("mean", means, ""), ("variance", variances, apart)):
            known = bias[-1] > 1e-8
            slope = f"{np.log2(bias[-2] / bias[-1]):>8.2f}" if known else f"{'':>8}"
            print(f"{name:<14}{order:<12}{of:<9}" + "".join(f"{b:>9.5f}" for b in bias) + slope + more, flush=True)


def main():
    """Print what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("table", "slopes"), default="table")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=["sgld", "sghmc"])
    parser.add_argument("--draws", type=int, default=20_000, help="nearly independent draws to aim at")
    parser.add_argument("--n-iter", type=int, default=100_000, help="steps of each of the four chains of --part slopes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="a line for each fit")
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.smoke:
        options.n_iter = 5000
    {"table": table, "slopes": slopes}[options.part](options)


if __name__ == "__main__":
    main()
