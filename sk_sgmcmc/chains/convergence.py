"""Convergence of the draws of `sk_sgmcmc.sample`: agreement of chains, and a spread that fits the curvature."""

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..metrics import effective_sample_size, split_r_hat
from ..utils._warnings import warn_user

R_HAT = 1.1
FEW_DRAWS = 10  # effective draws, for each of up to four chains
# Bounds of a variance over that implied by the curvature: half and 1.4 times the standard deviation.
NARROW, WIDE = 0.25, 2.0
_MIN_KEPT = 20
_PROBES = 100  # gradients on all rows to compare the spread with, fewer if rows are many
_MIN_PROBES = 20
_CELLS = 5e8  # rows times entries that all of these gradients may read


def warn_if_not_converged(samples, remedies, ratios=None):
    """Warn if draws have not converged, with the number, its meaning and a remedy.

    Parameters
    ----------
    samples : dict of ndarray of shape (n_chains, n_kept, ...)
        The draws returned to the user. Logarithms and velocities beside other draws are ignored.
    remedies : dict of str to str
        Remedies for draws that are "unsettled", "narrow" or "wide".
    ratios : ndarray of shape (D,), default=None
        From `spread_ratios`, for samples of one array (n_chains, n_kept, D).
    """
    name, at, r_hat, ess = _worst(samples)
    n_chains = next(iter(samples.values())).shape[0]
    found = []
    if name is not None and (r_hat > R_HAT or ess < FEW_DRAWS * min(n_chains, 4)):
        stuck = f"{_entry(name, at)} never moved. {remedies['unsettled']}"
        found.append(
            f"split R-hat of {_entry(name, at)} is {r_hat:.4g} (1 if chains agree with each other and over time, "
            f"{R_HAT} at most), and all draws together are worth {ess:.0f} independent ones. "
            f"{remedies['unsettled']}"
            if np.isfinite(r_hat)
            else stuck
        )
    if ratios is not None and np.all(np.isfinite(ratios)):
        name = next(iter(samples))
        for kind, at, bad in (
            ("narrow", np.argmin(ratios), ratios.min() < NARROW),
            # Chains that lie apart are jointly wide, whatever the spread of each.
            ("wide", np.argmax(ratios), ratios.max() > WIDE and not found),
        ):
            if bad:
                found.append(
                    f"the draws of {_entry(name, (at,))} are too {kind}: their standard deviation is "
                    f"{np.sqrt(max(ratios[at], 0.0)):.2g} times that implied by the curvature of the log density (1 is "
                    f"right). {remedies[kind]}"
                )
    if found:
        warn_user("The draws have not converged: " + " Also, ".join(found), ConvergenceWarning)


def _worst(samples):
    """Name and index of the entry with the largest R-hat, that R-hat, and the smallest effective sample size."""
    worst, fewest = (None, (), 0.0), np.inf
    for name, draws in samples.items():
        if name == "velocity" or name.startswith("log_") or draws.shape[1] < _MIN_KEPT:
            continue
        r_hat = np.atleast_1d(split_r_hat(draws))
        moves = np.any(draws != draws[:1, :1], axis=(0, 1)).reshape(r_hat.shape)
        if not moves.any():  # no entry has moved at all
            return name, (0,) * (draws.ndim - 2), np.inf, 0.0
        fewest = min(fewest, np.nanmin(np.where(moves, effective_sample_size(draws), np.inf), initial=np.inf))
        at = np.unravel_index(int(np.nanargmax(np.where(moves, r_hat, -np.inf))), r_hat.shape)
        if worst[0] is None or r_hat[at] > worst[2]:
            worst = name, at, float(r_hat[at])
    return *worst, fewest


def _entry(name, at):
    return f"{name}[{', '.join(str(k) for k in at)}]" if at else name


def spread_ratios(gradient, draws, temperature=1.0):
    r"""Variance of draws over that implied by the curvature of the log density, for each entry: 1 at convergence.

    For any density :math:`p^{1/T}` on flat space that decays, integration by parts gives
    :math:`E[-(\theta_i - c) \, \partial_i \log p(\theta)] = T` for every entry and every constant :math:`c`. For a
    normal density the left side is the variance of the draws times the precision. Chains that have hardly moved have
    ratios near 0, chains heated by the noise of minibatches or by long steps above 1.

    Parameters
    ----------
    gradient : DenseGradient
        Gradient on all rows.
    draws : ndarray of shape (n_chains, n_kept, D)
    temperature : float

    Returns
    -------
    ndarray of shape (D,), or None
        None if draws are too few.
    """
    n_chains, n_kept, D = draws.shape
    if n_chains * n_kept < _MIN_KEPT:
        return None
    n = int(np.clip(_CELLS / (D * gradient.dense.n_rows), _MIN_PROBES, _PROBES))
    each = min(n_kept, -(-n // n_chains))
    centre = draws.mean(axis=(0, 1))
    chosen = draws[:, np.linspace(0, n_kept - 1, each).round().astype(int)].reshape(-1, D)
    return np.mean([(centre - theta) * gradient(theta)[1] for theta in chosen], axis=0) / temperature
