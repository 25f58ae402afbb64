"""The function `sample`, which runs a sampler on a target, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from ..base import BaseSGMCMC
from ..chains.chain import DrawPlan, stacked_draws
from ..chains.checks import EXCEPTIONS, checks_table, warn_if_fired
from ..chains.convergence import MIN_KEPT, Diagnosis, Spread, spread_of
from ..chains.minibatches import BATCH_ORDERS, refuse_palindrome
from ..chains.run import run_chains
from ..dense.bias import bias_under
from ..dense.chain import DenseData, make_chains
from ..dense.tuning import DenseGradient
from ..metrics import effective_sample_size, split_r_hat
from ..samplers._base import Sampler
from ..samplers._registry import check_fits, fitting_pair, make_sampler
from ..utils._numbers import plain_integer, real_array
from ..utils._seeds import seed_sequence
from ..utils._sklearn import Interval, StrOptions, validate_params
from ..utils._tables import as_table
from ..utils._typing import FloatArray, Seed, Table
from ..utils._warnings import warn_user
from ._base import Target
from ._checks import checks_of_draws, described_exceptions, exception_checks, remedies_of
from ._named import NamedDensity

_MOST = 1000  # largest number of entries of an array that `summary` lists


class SampleResult(Bunch):
    """Result of `sample`, which documents the attributes: draws, diagnostics and the sampler."""

    samples_: dict[str, FloatArray]
    sampler_: Sampler
    n_iter_: int
    diagnostics_: Table
    checks_: Table
    log_density_: FloatArray

    def summary(self, quantiles: Sequence[float] | FloatArray = (0.05, 0.5, 0.95)) -> Table:
        """Posterior mean, standard deviation and quantiles of each entry, and the convergence of its chains.

        Parameters
        ----------
        quantiles : sequence of float, default=(0.05, 0.5, 0.95)
            Probabilities of the quantiles.

        Returns
        -------
        table : pandas.DataFrame, or Bunch of columns if pandas is not installed
            One row for each entry of each array, up to 1,000 of an array. The columns are ``quantity``, ``mean``,
            ``sd``, one for each quantile such as ``q5``, split ``r_hat`` and ``ess``.
        """
        quantiles = np.atleast_1d(real_array("quantiles", quantiles))
        if not np.all((quantiles >= 0) & (quantiles <= 1)):
            raise ValueError(f"quantiles={quantiles} must be probabilities, from 0 to 1.")
        names, parts = [], []
        for name, values in self.samples_.items():
            values = np.asarray(values, dtype=float)
            index = list(np.ndindex(values.shape[2:]))[:_MOST]
            names += [f"{name}[{', '.join(map(str, at))}]" if at else name for at in index]
            parts.append(values.reshape(*values.shape[:2], -1)[..., : len(index)])
        draws = np.concatenate(parts, axis=-1)
        pooled = draws.reshape(-1, draws.shape[-1])
        columns = {"quantity": np.array(names, dtype=object), "mean": pooled.mean(axis=0)}
        columns["sd"] = pooled.std(axis=0, ddof=1) if len(pooled) > 1 else np.full(len(names), np.nan)
        for q, values in zip(quantiles, np.quantile(pooled, quantiles, axis=0), strict=True):
            columns[f"q{100 * q:g}"] = values
        enough = self.sampler_._draws_in_time and draws.shape[1] >= MIN_KEPT
        columns["r_hat"] = split_r_hat(draws) if enough else np.full(len(names), np.nan)
        columns["ess"] = effective_sample_size(draws) if enough else np.full(len(names), np.nan)
        return as_table(columns)

    def __repr__(self):
        shapes = ", ".join(f"{name} {value.shape[2:]}" for name, value in self.samples_.items())
        n_chains, n_kept = next(iter(self.samples_.values())).shape[:2]
        chains = f"{n_chains} chain{'s' if n_chains > 1 else ''} of {n_kept} draws"
        n = int(np.sum(getattr(self.sampler_, "n_divergences_", 0)))
        diverged = f"; {n} divergence{'s' if n > 1 else ''}" if n else ""
        gradient = f"; gradient: {self.gradient_}" if "gradient_" in self else ""
        return f"<{type(self).__name__}: {chains} of {shapes}, by {type(self.sampler_).__name__}{diverged}{gradient}>"


_N_POINTS = 3  # draws of a normal approximation that, with its mode, determine the step size
_DEFAULTS = ("scir", "exponential-ou", "sghmc", "sggmc")
_SHARED = ("burn_in", "thin", "n_chains", "n_jobs", "verbose")  # not random_state: `seed_sequence` accepts more kinds
_CONSTRAINTS = {
    **{name: BaseSGMCMC._parameter_constraints[name] for name in _SHARED},
    "n_iter": [Interval(Integral, 1, None, closed="left")],
    "batch_size": [Integral, StrOptions({"auto"})],
    "with_replacement": ["boolean", StrOptions({"auto"})],
    "batch_order": [StrOptions(set(BATCH_ORDERS))],
}


@validate_params(_CONSTRAINTS, prefer_skip_nested_validation=True)
def sample(
    target: Callable[..., Any] | Target,
    sampler: str | Sampler | None = None,
    *,
    parameters: Mapping[str, Any] | None = None,
    data: Any = None,
    gradient: Literal["jax", "autograd", "differences"] | None = None,
    log_likelihood: Callable[..., Any] | None = None,
    geometry: str | Sequence[tuple[str, int]] | None = None,
    n_iter: int = 2000,
    burn_in: float = 0.5,
    thin: int | Literal["auto"] = 1,
    batch_size: int | Literal["auto"] = "auto",
    with_replacement: bool | Literal["auto"] = "auto",
    batch_order: Literal["shuffled", "palindromic"] = "shuffled",
    n_chains: int = 1,
    n_jobs: int | None = None,
    random_state: Seed = None,
    verbose: int = 0,
    init: ArrayLike | Mapping[str, Any] | None = None,
) -> SampleResult:
    """Draw from a log density of named parameters, or from a target object, with a sampler.

    Parameters
    ----------
    target : callable or target object
        A function for a log density, up to a constant, or a target such as `sk_sgmcmc.targets.DirichletCategorical`.
        The arguments of a function are the names of ``parameters`` and, where it needs them: names of ``data``, or
        ``rows`` for all of the data or a minibatch; ``scale``, which is N/n, by which to multiply sums over rows and
        nothing else; and ``gradient``, see below.
    sampler : str, sampler object or None, default=None
        Sampler that fits the target's geometry and signal. For your own density on flat space, None is `NUTS` if the
        density has no rows, or has up to 10,000 and ``batch_size`` is "auto"; otherwise it is `SGHMC`. For other
        targets, None is `SCIR` for counts, `ExponentialOU` for locations of logarithms, `SGHMC` on other flat space and
        `SGGMC` on other manifolds.
    parameters : dict of str to shape, Positive, Simplex or Ordered, default=None
        Parameters of a function by name, for example ``{"mu": (), "tau": Positive(), "eta": (8,), "p": Simplex(4),
        "cut": Ordered(3)}``; see `sk_sgmcmc.targets.Positive`, `sk_sgmcmc.targets.Simplex` and
        `sk_sgmcmc.targets.Ordered`. The function receives numbers and arrays that have these shapes and satisfy the
        constraints. `sample` adds the log volume elements of the coordinates in which chains move.
    data : dict of numbers and arrays, DataFrame or array-like of shape (n_samples, n_columns), default=None
        Data of a function. It receives those names of a dict, or columns of a table, that are among its arguments:
        whole numbers as int64, others as float64. Numbers and arrays of any shape are allowed. Minibatches consist of
        rows of the observations, which are the arrays that share the length of their first axis; if there are several
        lengths, the one with the most rows in total. Everything else is a constant, which each minibatch receives
        unchanged. If the data are a matrix or a table of numbers, the function can take ``rows`` instead.
    gradient : {"jax", "autograd", "differences"} or None, default=None
        Where the derivatives of a function come from. If the function has an argument ``gradient``, it writes them
        itself, into arrays named and shaped like the parameters: ``gradient.eta[:] = -eta``, and
        ``gradient.mu[()] = -mu`` for a number. None: from this argument; else from JAX or autograd if the function uses
        one of them; else from central differences. Each coordinate then costs two evaluations per step, with a warning
        above 30 coordinates. Numba compiles the function if it can, whether it is jitted or not. Otherwise compiled
        code calls it, for one chain at a time. ``gradient_`` of the result describes the gradient and its cost.
    log_likelihood : callable, default=None
        Function that returns an array, the log likelihood of each observation, given parameters and data by name. It is
        evaluated in Python at each kept draw, for ``log_likelihood_`` of the result. Use it to compare models in ArviZ:
        ``arviz.loo(to_arviz(result))``, see `~sk_sgmcmc.inspection.to_arviz`.
    geometry : str or list of (str, int), default=None
        Geometry ("sphere", "simplex", "stiefel", ...) of a target that is defined on several. None: the first that
        fits. A list is a product of manifolds: ``[("stiefel", 2), ("sphere", 1)]`` makes the first two rows of the
        state a frame and the third a point of a sphere.
    n_iter : int, default=2000
        Number of steps.
    burn_in : float or int, default=0.5
        Steps to discard at the start, as a fraction (float) or a number (int). The draws of particle samplers are their
        particles after the last step, whatever ``burn_in`` and ``thin``.
    thin : int or "auto", default=1
        Keep every ``thin``-th step after burn-in.
    batch_size : int or "auto", default="auto"
        Number of rows in a minibatch. "auto": all rows; but 500 if ``sampler`` is None and your own density has more
        than 10,000 rows.
    with_replacement : bool or "auto", default="auto"
        Whether to draw each row of a minibatch independently instead of reading shuffled rows in turn. Shuffled rows
        are less noisy, but their noise is not white, since it cancels over an epoch. "auto": True for samplers that use
        the variance of the noise (``gradient_noise`` of `SGGMC` and `GSGNHT`) and therefore need white noise; False for
        others.
    batch_order : {"shuffled", "palindromic"}, default="shuffled"
        Order in which an epoch reads the minibatches of shuffled rows. "shuffled": a new random order in each epoch.
        "palindromic": each second epoch reads the minibatches of the epoch before in reverse order.
    n_chains : int, default=1
        Number of independent chains. A single chain cannot reveal that it misses a mode of the density, so run four.
    n_jobs : int or None, default=None
        Number of chains to run in parallel. The draws do not depend on it.
    random_state : int, RandomState, Generator, SeedSequence or None, default=None
        Seed. An int or a SeedSequence gives the same draws in each call.
    verbose : int, default=0
        Pass 1 for a progress bar.
    init : dict, or array-like of shape (n_rows, width), (dim,) or (n_chains, ...), default=None
        Start of every chain in the sampler's coordinates, or one start for each chain. None: chosen by the target. If
        the target is a function, pass a dict of arrays for some or all parameters, of their shapes or (n_chains, ...).
        Other parameters start at random between -2 and 2, in logarithms if they are positive. For particle samplers,
        (n_particles, n_rows, width) or (n_particles, dim) are also allowed. R-hat detects chains that still depend on
        their starts only if the starts are more dispersed than the posterior.

    Returns
    -------
    result : SampleResult
        A Bunch with a method ``summary()``, which returns a table of means, standard deviations, quantiles, ``r_hat``
        and ``ess``. Its fields are:

        ``samples_``
            Dict of arrays of shape (n_chains, n_kept, ...).
        ``sampler_``
            The sampler in use, with its step size and, if it is a Metropolis sampler, its ``acceptance_rate_`` in each
            chain.
        ``n_iter_``
            Number of steps made.
        ``diagnostics_``
            A table (DataFrame, or Bunch of columns if pandas is not installed) with the columns ``quantity``, ``mean``,
            split ``r_hat``, ``ess`` and ``mcse``, and on flat space ``bias``, the predicted error of the sampler in
            standard deviations (NaN: not known). Its rows are up to 20 entries of each array, whose means over tenths
            of each chain differ most, and on flat space the log density.
        ``checks_``
            A table of the checks of the draws: ``check`` (its name), ``value``, ``limit``, and ``fired``, whether the
            value is beyond the limit.
        ``log_density_``
            On flat space: the log density at draws, including the log volume element of the chains' coordinates. With
            `NUTS` at every draw, (n_chains, n_kept); with other samplers at up to 100 draws in all, evenly spaced.
        ``sample_stats_``
            With `NUTS`: a dict of ``energy``, ``acceptance_rate``, ``tree_depth``, ``n_steps``, ``diverging`` and
            ``step_size`` of the trajectory of each draw, (n_chains, n_kept).
        ``gradient_``
            If the target is a function: where its derivatives come from, and the time of a call.
        ``n_exceptions_``
            For each chain, how often the log density raised an exception after the start. The log density then counts
            as minus infinity. Metropolis samplers such as `NUTS` and `HMC` reject the state, and a warning reports the
            number of exceptions and the first message. Others, such as `SGHMC`, cannot reject a state and stop with an
            error.
        ``log_likelihood_``
            If ``log_likelihood`` was passed: its values at all draws, (n_chains, n_kept, n_observations).

    Raises
    ------
    ValueError
        If the sampler does not fit the target, or an argument is out of range.
    ChainDivergedError
        If a chain becomes infinite or NaN, or if a log density raises an exception that the sampler cannot reject.

    Warns
    -----
    ConvergenceWarning
        If a check of the draws fires; the warning, of ``sklearn.exceptions``, contains the value and a remedy. Checks
        are made of split R-hat and effective sample size, of the spread of the draws, and of the gradient at some of
        the draws. The spread is compared with the curvature of the log density on flat space, with the velocities of
        `SGGMC` and `GSGNHT` on manifolds, or with the exact posterior if it is known. The user guide lists the limits.
        With fewer than 20 draws, only the gradient is checked.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import sample
    >>> from sk_sgmcmc.targets import DirichletCategorical
    >>> target = DirichletCategorical(
    ...     np.repeat([0, 1, 2], [80, 15, 5]), concentration=0.1, n_categories=5
    ... )
    >>> draws = sample(
    ...     target, "scir", batch_size=50, n_iter=5000, random_state=0
    ... )
    >>> draws.samples_["omega"].shape
    (1, 2500, 5)

    A user-defined density:

    >>> from sk_sgmcmc.targets import Positive
    >>> def log_density(mu, tau, y):
    ...     value = -np.log(tau) * y.size - 0.5 * mu**2 / 100 - tau
    ...     return value - 0.5 * (((y - mu) / tau) ** 2).sum()
    >>> data = {"y": np.random.default_rng(0).normal(3.0, 2.0, size=200)}
    >>> result = sample(
    ...     log_density,
    ...     parameters={"mu": (), "tau": Positive()},
    ...     data=data,
    ...     n_chains=2,
    ...     random_state=0,
    ... )
    >>> {
    ...     name: round(float(draws.mean()), 1)
    ...     for name, draws in result.samples_.items()
    ... }
    {'mu': 3.0, 'tau': 1.9}
    """
    n_iter, burn_in, thin, batch_size, n_chains, n_jobs = map(
        plain_integer, (n_iter, burn_in, thin, batch_size, n_chains, n_jobs)
    )
    target = _as_target(target, parameters, data, gradient, log_likelihood)
    offers = _offers_on(target, geometry)
    if sampler is None:
        sampler, batch_size = target._choice(batch_size)
    sampler = make_sampler(_default_sampler(offers) if sampler is None else sampler, offers, type(target).__name__)
    sampler._validate_params()
    name, signal = check_fits(sampler, offers, type(target).__name__)
    target = target._with_geometry(name if geometry is None else geometry)
    X, params, shape = target._rows()
    n_batch = _check_batch_size(batch_size, X.shape[0], sampler)
    target._check_batches(n_batch, X.shape[0])
    noise = getattr(sampler, "gradient_noise", 0.0)
    if isinstance(noise, str) and not target._estimates_noise:
        raise ValueError(
            f'gradient_noise="estimated" needs a target that estimates it, and {type(target).__name__} does not; give '
            "its variance as a number, or use GSGNHT(gradient_noise=0), whose thermostat learns it."
        )
    if isinstance(with_replacement, str):
        with_replacement = bool(isinstance(noise, str) or noise)
    refuse_palindrome(batch_order, with_replacement)
    plan = DrawPlan(n_iter, burn_in, thin, bytes_per_draw=16 * n_chains * int(np.prod(shape)))
    metric = target._metric() if signal == "gradient-metric" else None
    dense = DenseData(
        X,
        np.zeros((X.shape[0], 0)),
        np.ones(X.shape[0]),
        params,
        target._signal(),
        n_batch,
        with_replacement,
        metric=metric,
    )
    shuffle_seed, *chain_seeds, start_seed = seed_sequence(random_state).spawn(n_chains + 2)
    start_rng = np.random.default_rng(start_seed)
    if init is None:
        starts = target._starts(sampler, n_chains, dense, start_rng)
    else:
        starts = target._given_starts(init, sampler, n_chains, dense, start_rng)
    states = [start[0] if start.ndim == 3 else start for start in starts]
    target._check(dense, states)
    gradient = DenseGradient(dense, shape)
    dense, approximation = target._prepared(dense, states[0], sampler)
    points = states[:1]
    if approximation is not None:
        mode = approximation.mode.reshape(shape)
        starts = starts if init is not None else target._dispersed_starts(approximation, n_chains, start_rng)
        points = [mode, *approximation.draws(_N_POINTS, np.random.default_rng(0)).reshape(-1, *shape)]
    picks_step = sampler._picks_step
    if picks_step and approximation is not None:
        sampler = sampler._in_units_of(approximation.precision)
    elif picks_step and metric is None:
        sampler = sampler._learning_units(int(np.prod(shape)), plan.n_burn)
    fitted = sampler._resolved(target._step_size(sampler, dense, points) if picks_step else None)
    if isinstance(noise, str) and with_replacement and n_batch < X.shape[0]:
        # The target estimates the noise of rows read without replacement, whose variance is smaller by (1 - n/N).
        fitted._estimate_scale = 1.0 / (1.0 - n_batch / X.shape[0])
    space = target._space(name)
    starts = starts if len(starts) == n_chains else starts * n_chains
    chains = make_chains(chain_seeds, plan, fitted, space, starts, shuffle_seed, dense, batch_order)
    chains, interrupted = run_chains(chains, n_iter, n_jobs=n_jobs, verbose=verbose)
    if interrupted and max(chain.n_kept for chain in chains) == 0:
        raise KeyboardInterrupt
    draws = stacked_draws(chains)
    fitted._report([chain.state for chain in chains])
    samples = target._public(draws["theta"], draws.get("aux", np.empty(0)), fitted)
    spread, in_time = Spread(), sampler._draws_in_time
    if target._offers[0][0] == "euclidean" and in_time:
        spread = spread_of(DenseGradient(dense, shape), draws["theta"][..., 0], fitted.temperature)
    stats = fitted._statistics(draws["statistics"]) if "statistics" in draws else {}
    log_density = stats.pop("lp", spread.log_density)
    diagnosis = _diagnosis({k: v for k, v in samples.items() if not target._hidden(k)}, log_density, in_time)
    if target._offers[0][0] == "euclidean":
        diagnosis.add_bias(bias_under(fitted, chains))
    checks = []
    if in_time:
        remedies = remedies_of(target, fitted, picks_step, dense, n_iter)
        checks += checks_of_draws(target, fitted, diagnosis, spread, samples, draws, remedies)
    checks += target._gradient_checks(gradient, draws["theta"].reshape(-1, int(np.prod(shape))))
    failures = (
        sum(chain.n_failures for chain in chains),
        sum(chain.step for chain in chains),
        next((chain.first_failure for chain in chains if chain.n_failures), None),
    )
    checks += exception_checks(*failures)
    warn_if_fired(checks)
    _warn_of_exceptions(*failures)
    found = {"samples_": samples, "sampler_": fitted, "n_iter_": chains[0].step, **target._more_results(samples)}
    found["checks_"] = as_table(checks_table(checks))
    found["n_exceptions_"] = np.array([chain.n_failures for chain in chains])
    if log_density is not None:
        found["log_density_"] = log_density
    if stats:
        found["sample_stats_"] = stats
    return SampleResult(**found, diagnostics_=as_table(diagnosis.columns))


def _as_target(target, parameters, data, gradient, log_likelihood):
    """The target object for the argument ``target``: the target itself, or a `NamedDensity` of a function."""
    of_function = {"parameters": parameters, "data": data, "gradient": gradient, "log_likelihood": log_likelihood}
    if isinstance(target, Target):
        given = [name for name, value in of_function.items() if value is not None]
        if given:
            raise ValueError(
                f"{', '.join(given)} belong to a function as target; {type(target).__name__} has its own parameters."
            )
        return target
    if not callable(target):
        raise TypeError(
            "target must be a function for a log density, with parameters=, or a target object from "
            f"sk_sgmcmc.targets; got {target!r} of type {type(target).__name__}."
        )
    if parameters is None:
        raise TypeError(
            f"target={getattr(target, '__name__', target)} is a function: give its parameters by name, such as "
            'parameters={"mu": (), "tau": Positive(), "eta": (8,)}; or pass a Density.'
        )
    return NamedDensity(target, parameters, data, gradient, log_likelihood)


def _offers_on(target, geometry):
    """The pairs (geometry, signal) that a target offers on the requested geometry; raises if there are none."""
    name = geometry if geometry is None or isinstance(geometry, str) else "product"
    offers = [pair for pair in target._offers if name in (None, pair[0])]
    if not offers:
        known = [pair[0] for pair in target._offers]
        known = sorted({"a list of these" if each == "product" and len(known) > 1 else each for each in known})
        raise ValueError(f"geometry={geometry!r} is not available for {type(target).__name__}: use {', '.join(known)}.")
    return offers


def _warn_of_exceptions(n, steps, first):
    """Warn of ``n`` exceptions of a user's density, unless so many that the check of exceptions fires."""
    if 0 < n <= EXCEPTIONS.limit * steps:
        warn_user(described_exceptions(n, steps, first), RuntimeWarning)


def _diagnosis(samples, log_density, in_time):
    """The `Diagnosis` of the draws and, if it varies, of the log density."""
    monitored = dict(samples)
    if log_density is not None and np.ptp(log_density) > 0:
        monitored["log_density"] = log_density
    return Diagnosis(monitored, in_time)


def _default_sampler(offers):
    """The name of the first sampler of `_DEFAULTS` that fits the offers of a target."""
    return next(name for name in _DEFAULTS if fitting_pair(make_sampler(name), offers))


def _check_batch_size(batch_size, n_rows, sampler):
    if batch_size == "auto":
        return n_rows
    if not 1 <= batch_size <= n_rows:
        raise ValueError(
            f"batch_size={batch_size} must lie between 1 and the {n_rows} rows of the data; "
            'use batch_size="auto" for all of them.'
        )
    return sampler._rows_read(n_rows, int(batch_size))
