"""``sample`` beside blackjax's NUTS: means, spreads, R-hat and effective draws a second, on one core.

    python examples/benchmarks/own_density.py                   # seven models of few rows
    python examples/benchmarks/own_density.py --rows 100000     # two regressions of so many
    python examples/benchmarks/own_density.py --models mixture funnel

Eight schools (not centred), a hierarchical logistic regression, a funnel, not centred and centred, a Poisson
regression, a mixture of two normals and a correlated Gaussian of 100 dimensions, in the same coordinates for both.
Chains start between -2 and 2 on the free scale. Each program runs by its defaults: a thousand draws to warm up and a
thousand kept, four chains one after another; blackjax with window adaptation, of a diagonal or a full mass, the better
of which counts. The gradients are compiled, ours by numba and by hand, JAX's by differentiation. Compilation is not
counted, burn-in is. Seconds are processor time, of all threads, the least of three runs; JAX gets one thread.

"z" is the largest difference of a mean, and of a standard deviation, from those of a long run of blackjax (four chains
of 10,000 draws, 2,000 to warm up, target acceptance 0.95), in Monte Carlo standard errors of both; of the 10 to 100
numbers of a model the largest is 2 to 3 by chance. "sd" is the smallest and the largest ratio of standard deviations.

With ``--rows``, `sample` reads minibatches with control variates, which is its default; blackjax reads all rows, and
the run that is timed, once, is also the one to compare with.

Without blackjax, only our half runs. ``--smoke`` takes seconds.
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _densities import SMALL, many_rows

from sk_sgmcmc import sample
from sk_sgmcmc.metrics import effective_sample_size, mcse, split_r_hat

REPEATS = 3


def flat_draws(arrays, model):
    """Draws (n_chains, n_kept, n_numbers) of the parameters, in their order."""
    return np.concatenate([np.asarray(arrays[n]).reshape(*arrays[n].shape[:2], -1) for n in model.parameters], axis=-1)


def moments(draws):
    """Means and standard deviations, and their Monte Carlo standard errors."""
    mean, sd = draws.mean(axis=(0, 1)), draws.std(axis=(0, 1))
    return mean, mcse(draws), sd, mcse((draws - mean) ** 2) / (2.0 * sd)


def report(name, who, draws, seconds, reference):
    """Print a line; returns effective draws a second, of the slowest number."""
    ess, r_hat = effective_sample_size(draws).min(), split_r_hat(draws).max()
    agrees = ""
    if reference is not None:
        mean, mean_error, sd, sd_error = moments(draws)
        long_mean, long_mean_error, long_sd, long_sd_error = reference
        off = np.abs(mean - long_mean) / np.hypot(mean_error, long_mean_error)
        wide = np.abs(sd - long_sd) / np.hypot(sd_error, long_sd_error)
        ratio = sd / long_sd
        agrees = f"  z {off.max():.1f} {wide.max():.1f}  sd {ratio.min():.3f}-{ratio.max():.3f}"
    print(
        f"{name:24}{who:26}{seconds:7.2f} s  ESS {ess:6.0f}  ESS/s {ess / seconds:8.0f}  R-hat {r_hat:.3f}{agrees}",
        flush=True,
    )
    return ess / seconds, draws


def ours(name, model, n_chains, n, repeats, reference):
    """Effective draws a second of `sample`."""
    arguments = {"parameters": model.parameters, "data": model.data, "n_chains": n_chains, "n_jobs": 1}
    seconds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # R-hat and the rest are printed
        sample(model.function, **arguments, n_iter=50, random_state=0)  # compiles
        for _ in range(repeats):
            began = time.process_time()
            result = sample(model.function, **arguments, n_iter=2 * n, random_state=0)
            seconds.append(time.process_time() - began)
    sampler, batch = result.sampler_, ""
    if hasattr(sampler, "n_divergences_"):
        batch = f", {sampler.n_divergences_.sum()} diverge" if sampler.n_divergences_.sum() else ""
    return report(
        name, f"ours, {type(sampler).__name__}{batch}", flat_draws(result.samples_, model), min(seconds), reference
    )


def compiled_chain(model, n_warm, n, dense, target):
    """blackjax's window adaptation and NUTS in one compiled function of a key."""
    import blackjax
    import jax

    jax.config.update("jax_enable_x64", True)
    log_density = model.by_jax()
    warm_up = blackjax.window_adaptation(
        blackjax.nuts, log_density, is_mass_matrix_diagonal=not dense, target_acceptance_rate=target
    )

    @jax.jit
    def chain(key):
        begin, adapt, go = jax.random.split(key, 3)
        keys = jax.random.split(begin, len(model.free))
        first = {
            name: jax.random.uniform(k, shape, minval=-2.0, maxval=2.0)
            for (name, shape), k in zip(model.free.items(), keys, strict=True)
        }
        (state, found), _ = warm_up.run(adapt, first, num_steps=n_warm)
        step = blackjax.nuts(log_density, **found).step

        def one(state, key):
            state, info = step(key, state)
            return state, (state.position, info.is_divergent)

        return jax.lax.scan(one, state, jax.random.split(go, n))[1]

    return lambda seed: jax.block_until_ready(chain(jax.random.key(seed)))


def theirs(name, model, n_chains, n, dense, repeats, reference):
    """Effective draws a second of blackjax."""
    chain = compiled_chain(model, n, n, dense, 0.8)
    chain(99)
    seconds = []
    for _ in range(repeats):
        began = time.process_time()
        chains = [chain(c) for c in range(n_chains)]
        seconds.append(time.process_time() - began)
    diverged = sum(int(each[1].sum()) for each in chains)
    who = f"blackjax, {'full' if dense else 'diagonal'}{f', {diverged} diverge' if diverged else ''}"
    return report(name, who, draws_of(chains, model), min(seconds), reference)


def draws_of(chains, model):
    """Draws of the parameters from what blackjax returned."""
    return flat_draws(model.numbers({k: np.stack([np.asarray(c[0][k]) for c in chains]) for k in model.free}), model)


def long_run(model, n):
    """Moments of a long run of blackjax, and its R-hat."""
    chain = compiled_chain(model, max(200, n // 5), n, len(model.free) > 1 or model.data is not None, 0.95)
    draws = draws_of([chain(1000 + c) for c in range(4)], model)
    return moments(draws), split_r_hat(draws).max()


def main():
    """Run both halves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="seconds, and no peer package needed")
    parser.add_argument("--models", nargs="*", help="some of: " + ", ".join(SMALL))
    parser.add_argument("--rows", type=int, help="regressions of so many rows instead: logistic, Poisson")
    parser.add_argument("--long", type=int, default=10_000, help="draws of a chain of the long run; 0 leaves it out")
    args = parser.parse_args()
    n_chains, n, repeats = (2, 100, 1) if args.smoke else (4, 1000, REPEATS)
    models = many_rows(args.rows) if args.rows else SMALL | (many_rows(2000) if args.smoke else {})
    models = {name: model for name, model in models.items() if not args.models or name.split(", ")[0] in args.models}
    try:
        import blackjax  # noqa: F401
    except ImportError:
        args.smoke = True
        print("blackjax is not installed: pip install blackjax")
    for name, model in models.items():
        reference, best = None, None
        if args.rows and not args.smoke:
            best, draws = theirs(name, model, n_chains, n, False, 1, None)
            reference = moments(draws)
        elif args.long and not args.smoke:
            began = time.perf_counter()
            reference, r_hat = long_run(model, args.long)
            print(f"{name:24}the long run: {time.perf_counter() - began:.0f} s, R-hat {r_hat:.3f}", flush=True)
        own, _ = ours(name, model, n_chains, n, repeats, reference)
        if not args.smoke:
            if best is None:
                best = max(theirs(name, model, n_chains, n, dense, repeats, reference)[0] for dense in (False, True))
            print(f"{name:24}effective draws a second, ours over blackjax's better: {own / best:.2f}", flush=True)


if __name__ == "__main__":
    main()
