"""Effective draws a second of ``sample`` and of blackjax's NUTS, side by side in one run.

Eight schools (ten parameters, without centring) and a correlated Gaussian of 100 dimensions, on one core, each with its
defaults: a thousand draws to warm up and a thousand kept, four chains one after another. Compilation is not counted.
blackjax is compiled by JAX and has JAX's gradients; ours are jitted by numba. Without blackjax, only our half runs.

Run with ``python examples/benchmarks/own_density.py``; ``--smoke`` takes seconds.
"""

import argparse
import time
import warnings

import numba
import numpy as np

from sk_sgmcmc import sample
from sk_sgmcmc.metrics import effective_sample_size, split_r_hat
from sk_sgmcmc.targets import Positive

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
D = 100
PRECISION = np.linalg.inv(0.9 ** np.abs(np.subtract.outer(np.arange(D), np.arange(D))) * 1.0)


@numba.njit
def eight_schools(mu, tau, eta, gradient):
    error = (EFFECTS - mu - tau * eta) / ERRORS
    pull = error / ERRORS
    gradient.mu[()] = pull.sum() - mu / 25.0
    gradient.tau[()] = (pull * eta).sum() - 2.0 * tau / (25.0 + tau**2)
    gradient.eta[:] = tau * pull - eta
    return -0.5 * ((error**2).sum() + (eta**2).sum() + mu**2 / 25.0) - np.log(1.0 + tau**2 / 25.0)


@numba.njit
def correlated(x, gradient):
    gradient.x[:] = -np.dot(PRECISION, x)
    return 0.5 * np.dot(x, gradient.x)


MODELS = {
    "eight schools": (eight_schools, {"mu": (), "tau": Positive(), "eta": (8,)}),
    "Gaussian, 100-d": (correlated, {"x": (D,)}),
}


def by_jax():
    """The same log densities for JAX, in free coordinates, with where they start."""
    import jax.numpy as jnp

    def schools(q):
        tau = jnp.exp(q["log_tau"])
        error = (EFFECTS - q["mu"] - tau * q["eta"]) / ERRORS
        value = -0.5 * ((error**2).sum() + (q["eta"] ** 2).sum() + q["mu"] ** 2 / 25.0)
        return value - jnp.log(1.0 + tau**2 / 25.0) + q["log_tau"]

    def gaussian(q):
        return -0.5 * q["x"] @ jnp.asarray(PRECISION) @ q["x"]

    zeros = {"mu": np.zeros(()), "log_tau": np.zeros(()), "eta": np.zeros(8)}
    return {"eight schools": (schools, zeros), "Gaussian, 100-d": (gaussian, {"x": np.zeros(D)})}


def report(name, who, arrays, seconds):
    """Print means over entries of what matters, and return effective draws a second, of the slowest entry."""
    flat = np.concatenate([a.reshape(*a.shape[:2], -1) for a in arrays.values()], axis=-1)
    ess, r_hat = effective_sample_size(flat).min(), split_r_hat(flat).max()
    first = next(iter(arrays.values()))
    print(
        f"{name:16} {who:24} {seconds:7.2f} s  least ESS {ess:6.0f}  ESS/s {ess / seconds:8.0f}  R-hat {r_hat:.3f}  "
        f"first {first.mean():.2f} +- {first.std():.2f}",
        flush=True,
    )
    return ess / seconds


def ours(name, n_chains, n):
    """Effective draws a second of `sample`."""
    function, parameters = MODELS[name]
    arguments = {"parameters": parameters, "n_chains": n_chains, "n_jobs": 1, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so short a run only compiles
        sample(function, **arguments, n_iter=50)
    began = time.perf_counter()
    result = sample(function, **arguments, n_iter=2 * n)
    return report(name, f"ours, {result.sampler_!r}"[:24], result.samples_, time.perf_counter() - began)


def theirs(name, n_chains, n, dense):
    """Effective draws a second of blackjax's NUTS after its window adaptation."""
    import blackjax
    import jax

    jax.config.update("jax_enable_x64", True)
    log_density, start = by_jax()[name]
    warmup = blackjax.window_adaptation(blackjax.nuts, log_density, is_mass_matrix_diagonal=not dense)

    @jax.jit
    def chain(key):
        begin, adapt, go = jax.random.split(key, 3)
        keys = jax.random.split(begin, len(start))
        first = {
            name: jax.random.uniform(k, value.shape, minval=-2.0, maxval=2.0)
            for (name, value), k in zip(start.items(), keys, strict=True)
        }
        (state, found), _ = warmup.run(adapt, first, num_steps=n)
        step = blackjax.nuts(log_density, **found).step

        def one(state, key):
            state, _ = step(key, state)
            return state, state.position

        return jax.lax.scan(one, state, jax.random.split(go, n))[1]

    jax.block_until_ready(chain(jax.random.key(99)))
    began = time.perf_counter()
    chains = [jax.block_until_ready(chain(jax.random.key(c))) for c in range(n_chains)]
    seconds = time.perf_counter() - began
    arrays = {name: np.stack([np.asarray(each[name]) for each in chains]) for name in start}
    return report(name, f"blackjax, {'dense' if dense else 'diagonal'} mass", arrays, seconds)


def main():
    """Run both halves."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="seconds, and no peer package needed")
    smoke = parser.parse_args().smoke
    n_chains, n = (2, 100) if smoke else (4, 1000)
    for name in MODELS:
        own = ours(name, n_chains, n)
        if smoke:
            continue
        try:
            import blackjax  # noqa: F401
        except ImportError:
            print("blackjax is not installed: pip install blackjax")
            continue
        best = max(theirs(name, n_chains, n, dense) for dense in (False, True))
        print(f"{name:16} ours over blackjax's better: {own / best:.2f}", flush=True)


if __name__ == "__main__":
    main()
