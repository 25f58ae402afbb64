"""Checks of the draws that `sample` returns."""

import numpy as np

from ..chains.checks import (
    DIVERGED,
    EXCEPTIONS,
    LOST_AT_BOUND,
    NOT_CONVERGED,
    TOO_FAST,
    TOO_NARROW,
    TOO_WIDE,
    WRONG_GRADIENT,
    any_fired,
    convergence_checks,
    curvature_checks,
)
from ..chains.convergence import FAST, MIN_KEPT, NARROW, VERY_WIDE, WIDE, clearly_above

DEFINITIONS = (
    NOT_CONVERGED, TOO_NARROW, TOO_WIDE, TOO_FAST, DIVERGED, LOST_AT_BOUND, WRONG_GRADIENT, EXCEPTIONS,
)  # fmt: skip


def checks_of_draws(target, sampler, diagnosis, spread, samples, draws, remedies):
    """The checks of successive draws of chains, in the order in which their warnings are issued."""
    moving = [name for name in diagnosis.names if name != "log_density"]
    has_settled, name = diagnosis.unsettled(moving) is None, target._labels() or next(iter(samples))
    wide, narrow = ({kind: remedies[kind]} for kind in ("wide", "narrow"))
    # If chains drift or lie far apart, their pooled draws are wide although each chain may not be.
    if has_settled:
        found = curvature_checks(spread.ratios, wide, name, spread.limits, spread.given)
    else:
        found = curvature_checks(spread.of_changes, wide, name, (NARROW, VERY_WIDE))
    found += _velocity_checks(target, sampler, draws, has_settled, remedies["wide"])
    found += _exact_checks(target, samples, has_settled, remedies["wide"])
    longer = remedies["unsettled"]
    if any_fired(found):  # a longer run does not correct a spread that is too large
        longer = f"Reduce the spread first. Then {longer[0].lower()}{longer[1:]}"
    found += convergence_checks(diagnosis, lambda _: longer, moving)
    found += curvature_checks(spread.ratios, narrow, name, spread.limits, spread.given)
    return [*found, *_divergence_checks(sampler, spread.bounded, name)]


def _velocity_checks(target, sampler, draws, has_settled, remedy):
    """The check that velocities on manifolds are not too large."""
    right = target._mean_square_velocity()
    if not (right and sampler._keeps_velocity):
        return []
    squares = (draws["aux"].reshape(*draws["aux"].shape[:2], -1) ** 2).sum(axis=-1, keepdims=True) / right
    if squares.size < MIN_KEPT:
        return []
    limit = FAST if has_settled else VERY_WIDE
    ratio = float(clearly_above(limit, squares)[0])
    if not ratio > 1.0:
        return [TOO_FAST.passed(ratio, limit)]
    meaning = (
        f"The velocities are too fast: their mean square is {ratio:.3g} times what it should be ({limit:.3g} at most), "
        "so the draws are spread too widely."
    )
    return [TOO_FAST.fired(ratio, meaning, remedy, limit)]


def _exact_checks(target, samples, has_settled, remedy):
    """The check that draws are not too wide for an exactly known posterior."""
    exact = target._exact(samples)
    if exact is None or not exact[2].sum() > 0:  # the probability of a single category is constant
        return []
    values, mean, variance = exact
    # As for draws on flat space: unlike squares, second differences are not inflated by a start far from the mean.
    squares = (values - mean) ** 2 if has_settled else np.diff(values, 2, axis=1) ** 2 / 6.0
    squares = squares.sum(axis=-1, keepdims=True) / variance.sum()
    if squares.size < MIN_KEPT:
        return []
    limit = WIDE if has_settled else VERY_WIDE
    ratio, most = clearly_above(limit, squares)[0], np.sqrt(limit)
    if not ratio > 1.0:
        return [TOO_WIDE.passed(np.sqrt(ratio), most)]
    meaning = (
        f"The draws of {next(iter(samples))} are too wide: their root mean square distance from the exact mean is "
        f"{np.sqrt(ratio):.2g} times the exact standard deviation ({most:.2g} at most)."
    )
    return [TOO_WIDE.fired(np.sqrt(ratio), meaning, remedy, most)]


def _divergence_checks(sampler, bounded, name):
    """The check of divergences; at a bound of the density they waste trajectories, but do not bias the draws."""
    n = sampler._n_diverged
    if n is None:
        return []
    if n == 0:
        return [DIVERGED.passed(0)]
    if bounded:
        entry = f"{name}[{bounded[0]}]" if isinstance(name, str) else name[bounded[0]]
        meaning = f"Trajectories are lost at a bound of {entry}, beyond which the log density is not finite."
        remedy = (
            "Move within the bound: use a Positive() parameter, or between two bounds the first number p of a "
            "Simplex(2), and low + (high - low) * p."
        )
        return [LOST_AT_BOUND.fired(len(bounded), meaning, remedy)]
    counted = "1 trajectory" if n == 1 else f"{n} trajectories"
    meaning = (
        f"{counted} after burn-in diverged: the chains miss a part of the posterior that is too curved for their step."
    )
    return [DIVERGED.fired(n, meaning, sampler._fewer_divergences())]


def described_exceptions(n, steps, first):
    """Text about exceptions of a user's density: their number, the number of steps, and the first exception."""
    times = "once" if n == 1 else f"{n} times"
    return (
        f"The log density raised an exception {times} in {steps} trajectories, first {first}. Each exception counted "
        "as a log density of minus infinity, and ended its trajectory."
    )


def exception_checks(n, steps, first):
    """The check that a user's density rarely raises exceptions; an empty list if it never does."""
    if not n:
        return []
    if n <= EXCEPTIONS.limit * steps:
        return [EXCEPTIONS.passed(n / steps)]
    remedy = (
        "Correct the function, start (init) where it is defined, or declare its domain by Positive, Simplex or Ordered "
        "parameters."
    )
    return [
        EXCEPTIONS.fired(n / steps, f"{described_exceptions(n, steps, first)} The draws cannot be trusted.", remedy)
    ]


def remedies_of(target, sampler, picks_step, dense, n_iter):
    """Texts of the remedies for draws that have not settled, or are too narrow or too wide."""
    longer, less_noise = f"n_iter={10 * n_iter}", ""
    if dense.n_batch < dense.n_rows:
        less_noise = f", a larger batch_size than {dense.n_batch}{target._less_noise(dense)}"
    if not hasattr(sampler, "step_size_"):
        return dict.fromkeys(("unsettled", "narrow", "wide"), f"Try {longer}{less_noise}.")
    h, tunes = f"{float(sampler.step_size_(0)):.3g}", picks_step and sampler._tunes_step
    step = "" if picks_step else f', a step_size other than {h}, or "auto"'
    return {
        "unsettled": f"Try {longer}{step}{less_noise}, or starts (init) where the density is higher.",
        # A sampler that tunes its step would reject more often with a larger one.
        "narrow": f"Try {longer if tunes else f'a larger step_size than {h}, or {longer}'}{less_noise}.",
        "wide": f"Try a smaller step_size than {h}{less_noise}.",
    }
