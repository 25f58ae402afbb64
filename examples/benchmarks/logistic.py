"""Logistic regression against blackjax: microseconds per step, and seconds to a posterior mean of a given error.

    python examples/benchmarks/logistic.py
    python examples/benchmarks/logistic.py --data a9a covertype     # the second part as well

First part, synthetic rows at (N = 2,000, d = 2, B = 100) and (N = 500,000, d = 54, B = 500). A step reads one
minibatch. Our time includes drawing the order of minibatches and everything that Python does between two pieces of a
run. blackjax runs inside one ``jax.lax.scan``, compiled before it is timed; its minibatches are B rows drawn with
replacement (as its own examples do), or, as "blocks", one block of neighbouring rows, which reads memory as ours does
but keeps a fixed order of the rows. Its SGHMC makes 10 integration steps on one minibatch; ours reads a minibatch at
each. blackjax computes in float32, ours in float64. Times are the smallest of several runs, in wall time and in
processor time (all threads): on a shared machine, the second is the cost, and the first includes the load of others.

Second part, real data, numeric columns standardised for both (blackjax has no whitening): seconds until the mean of the
draws so far is within 0.1 posterior standard deviations (root mean square over coefficients) of a long exact run, for
our default arguments (but with draws kept from the first tenth of the steps on, to see the mean converge), and for
blackjax's SGLD at the best of several step sizes. scikit-learn's LogisticRegression, which gives only the mode, is
timed for comparison.
"""

import argparse
import time

import numpy as np

from sk_sgmcmc import BayesianLogisticRegression
from sk_sgmcmc.callbacks import Callback
from sk_sgmcmc.chains.chain import DrawPlan
from sk_sgmcmc.samplers import HMC, SGHMC, SGLD, SGNHT

OURS = {"SGLD": SGLD(1e-3), "SGHMC": SGHMC(0.02), "SGNHT": SGNHT(0.02)}
TARGET = 0.2


def synthetic(N, d):
    """Standard normal rows with labels from a random coefficient."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, d))
    p = 1.0 / (1.0 + np.exp(-X @ rng.standard_normal(d) / np.sqrt(d)))
    return X, (rng.random(N) < p).astype(int)


def best(function, repeats):
    """Smallest seconds of several calls: (wall, processor)."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter(), time.process_time()
        function()
        times.append((time.perf_counter() - began[0], time.process_time() - began[1]))
    return np.min(times, axis=0)


def our_steps(X, y, sampler, n_batch, n_steps, repeats):
    """Seconds per step of a chain that is compiled, started and bound to its data."""
    model = BayesianLogisticRegression(
        sampler=sampler, batch_size=n_batch, n_iter=2000, fit_intercept=False, random_state=0
    ).fit(X, y)
    chain = model._chains[0]

    def run():
        chain.plan, chain.step = DrawPlan(n_steps, 0.5, "auto", max_draws=1000), 0
        chain.kept, chain.kept_steps, chain.n_kept = {}, [], 0
        chain.run(n_steps)

    return best(run, repeats) / n_steps


def blackjax_chain(X, y, name, n_batch, step_size, blocks=False, n_integration=10):
    """A compiled blackjax chain: run(state, key, n_steps, keep_every) -> (state, kept positions), and its start."""
    import blackjax
    import jax
    import jax.numpy as jnp

    N, d = X.shape
    data = jnp.asarray(X, jnp.float32), jnp.asarray(y, jnp.float32)

    def log_prior(theta):
        return -0.5 * jnp.sum(theta**2)

    def log_likelihood(theta, row):
        eta = jnp.dot(row[0], theta)
        return row[1] * eta - jnp.logaddexp(0.0, eta)

    gradient = blackjax.sgmcmc.gradients.grad_estimator(log_prior, log_likelihood, N)
    start = jnp.zeros(d)
    if name == "SGHMC":
        algorithm = blackjax.sghmc(gradient, n_integration)
    elif name == "SGNHT":
        algorithm = blackjax.sgnht(gradient)
        start = algorithm.init(start, jax.random.key(0), 0.01)
    else:
        algorithm = blackjax.sgld(gradient)

    def run(state, key, X, y, n_kept, keep_every):
        def one(carry, _):
            state, key = carry
            key, which, noise = jax.random.split(key, 3)
            if blocks:
                lo = jax.random.randint(which, (), 0, N - n_batch)
                batch = jax.lax.dynamic_slice(X, (lo, 0), (n_batch, d)), jax.lax.dynamic_slice(y, (lo,), (n_batch,))
            else:
                some = jax.random.randint(which, (n_batch,), 0, N)
                batch = X[some], y[some]
            return (algorithm.step(noise, state, batch, step_size), key), None

        def several(carry, _):
            carry = jax.lax.scan(one, carry, None, length=keep_every)[0]
            return carry, carry[0][0] if name == "SGNHT" else carry[0]

        (state, _), kept = jax.lax.scan(several, (state, key), None, length=n_kept)
        return state, kept

    compiled = jax.jit(run, static_argnums=(4, 5))

    def go(state, seed, n_kept, keep_every):
        return jax.block_until_ready(compiled(state, jax.random.key(seed), *data, n_kept, keep_every))

    return go, start


def blackjax_steps(X, y, name, n_batch, n_steps, repeats, blocks):
    """Seconds per step, and seconds of the first call, which compiles."""
    go, start = blackjax_chain(X, y, name, n_batch, 1e-6, blocks)
    first = best(lambda: go(start, 0, 1, n_steps), 1)
    return best(lambda: go(start, 1, 1, n_steps), repeats) / n_steps, first[0]


def compare_steps(shapes, repeats):
    """Print the first part; returns the largest ratios, of wall and processor."""
    print("microseconds a step, wall/processor; ratios = ours / blackjax (drawn rows, and blocks); target", TARGET)
    heads = "".join(f"{head:>15s}" for head in ("ours", "drawn rows", "blocks", "ratio", "ratio, blocks"))
    print(f"{'N':>8s}{'d':>4s}{'B':>5s} {'sampler':8s}{heads}{'compiling, s':>14s}")
    worst = np.zeros(2)
    for N, d, n_batch, n_ours, n_theirs in shapes:
        X, y = synthetic(N, d)
        for name, sampler in OURS.items():
            ours = our_steps(X, y, sampler, n_batch, n_ours, repeats)
            drawn, compiling = blackjax_steps(X, y, name, n_batch, n_theirs, repeats, False)
            blocks, _ = blackjax_steps(X, y, name, n_batch, n_theirs, repeats, True)
            times = "".join(f"{1e6 * t[0]:8.2f}/{1e6 * t[1]:6.2f}" for t in (ours, drawn, blocks))
            ratios = "".join(f"{r[0]:8.3f}/{r[1]:6.3f}" for r in (ours / drawn, ours / blocks))
            print(f"{N:8d}{d:4d}{n_batch:5d} {name:8s}{times}{ratios}{compiling:14.2f}", flush=True)
            worst = np.maximum(worst, ours / drawn)
    return worst


# ------------------------------------------------------------------------------------------ time to a fixed error


def real(name, n_rows=None):
    """Dense rows with numeric columns of unit spread and a column of ones, and labels 0 and 1."""
    if name == "synthetic":
        X, y = synthetic(1000, 3)
    else:
        from sk_sgmcmc.datasets import fetch_table

        data = fetch_table(name)
        some = data.get("train", np.arange(len(data.target)))
        X, y = data.data[some], data.target[some]
        X = X.toarray() if hasattr(X, "toarray") else X
        y = (y == 2).astype(int) if name == "covertype" else (y > 0).astype(int)
    X = X[:n_rows]
    # Columns of 0 and 1 stay as they are: on the standardised coefficient of a rare one the prior would have hardly any
    # effect.
    spread, numeric = X.std(axis=0), np.abs(X).max(axis=0) > 1
    X[:, numeric] = ((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0))[:, numeric]
    X = X[:, spread > 0]
    return np.column_stack([X, np.ones(len(X))]), y[:n_rows]


def seconds_to_error(moments, exact_mean, exact_sd, error):
    """First time at which the mean over the later half of the draws so far is within the error."""
    for seconds, draws in moments:
        half = np.asarray(draws)[len(draws) // 2 :]
        if np.sqrt(np.mean(((half.mean(axis=0) - exact_mean) / exact_sd) ** 2)) < error:
            return seconds
    return np.inf


class Clock(Callback):
    """The time and the draws so far, every few steps."""

    def start(self, estimator):
        """Begin."""
        self.moments = []

    def __call__(self, estimator, step):
        """Record the draws kept so far; before there are any, the current state."""
        chain = estimator._chains[0]
        theta = chain.kept["theta"][: chain.n_kept, :, 0] if chain.n_kept else chain.theta[None, :, 0]
        self.moments.append((time.perf_counter(), estimator._design.coefficients(theta)[0][:, 0]))
        return False


def our_time(X, y, exact_mean, exact_sd, error):
    """Seconds until a default fit is within the error, with the mode and all tuning, and seconds of the whole fit."""
    clock = Clock(500)
    began = time.perf_counter()
    BayesianLogisticRegression(fit_intercept=False, random_state=0, burn_in=0.1, callbacks=clock).fit(X, y)
    whole = time.perf_counter() - began
    return seconds_to_error([(t - began, d) for t, d in clock.moments], exact_mean, exact_sd, error), whole


def blackjax_time(X, y, exact_mean, exact_sd, error, seconds, n_batch=500):
    """The same for blackjax's SGLD from the origin, at the best of several step sizes, without compilation."""
    out = {}
    for step_size in 10.0 ** np.arange(-1.0, -3.1, -0.5) / (0.25 * len(X)):
        go, state = blackjax_chain(X, y, "SGLD", n_batch, float(step_size))
        go(state, 0, 20, 50)
        spent, draws, moments, seed = 0.0, [], [], 0
        while spent < seconds:
            began = time.perf_counter()
            state, kept = go(state, seed, 20, 50)
            spent += time.perf_counter() - began
            seed += 1
            draws.extend(np.asarray(kept, dtype=float))
            if seed % 5 == 0:
                moments.append((spent, list(draws)))
        out[step_size] = seconds_to_error(moments, exact_mean, exact_sd, error)
    return min(out.items(), key=lambda pair: pair[1])


def compare_times(name, seconds, n_exact, error=0.1):
    """Print the second part for one data set."""
    from sklearn.linear_model import LogisticRegression

    X, y = real(name)
    exact = BayesianLogisticRegression(
        sampler=HMC(n_leapfrog=5), n_iter=n_exact, burn_in=0.2, thin=1, fit_intercept=False, random_state=1
    ).fit(X, y).samples_["coef"][0, :, 0]  # fmt: skip
    mean, sd = exact.mean(axis=0), exact.std(axis=0)
    ours, whole = our_time(X, y, mean, sd, error)
    step_size, theirs = blackjax_time(X, y, mean, sd, error, seconds)
    began = time.perf_counter()
    LogisticRegression(max_iter=1000, fit_intercept=False).fit(X, y)
    mode = time.perf_counter() - began
    print(f"{name}: {X.shape[0]} rows, {X.shape[1]} coefficients; seconds to a mean within {error} sd of {n_exact} "
          f"HMC trajectories: ours {ours:.2f} (whole fit {whole:.2f}), blackjax SGLD {theirs:.2f} (of {seconds:g}) "
          f"at step {step_size:.2g}, scikit-learn's mode {mode:.2f}", flush=True)  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a few seconds: small data and few steps")
    parser.add_argument("--data", nargs="*", default=[], help="a9a, covertype: time to a fixed error")
    parser.add_argument("--seconds", type=float, default=60.0, help="of blackjax at each step size")
    parser.add_argument("--skip-steps", action="store_true", help="leave out the first part")
    args = parser.parse_args()
    try:
        import blackjax  # noqa: F401
    except ImportError:
        print("blackjax is not installed; pip install blackjax jax for the comparison.")
        return
    if args.smoke:
        worst = compare_steps([(2000, 2, 100, 2000, 200)], 1)
        compare_times("synthetic", 0.5, 500, error=0.3)
    else:
        shapes = [(2000, 2, 100, 100_000, 20_000), (500_000, 54, 500, 10_000, 1000)]
        worst = np.zeros(2) if args.skip_steps else compare_steps(shapes, 5)
        for name in args.data:
            compare_times(name, args.seconds, 2000)
    print(f"largest ratio to blackjax with drawn rows: {worst[0]:.3f} wall, {worst[1]:.3f} processor (target {TARGET})")


if __name__ == "__main__":
    main()
