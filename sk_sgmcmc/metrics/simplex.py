"""Distance of draws on the simplex from a Dirichlet distribution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ..utils._typing import FloatArray

# Below this argument, the leading term of the incomplete beta function is exact in float64 for practical shapes.
_TINY = 1e-16


def rosenblatt_transform(draws: ArrayLike, concentration: ArrayLike, *, log: bool = False) -> FloatArray:
    r"""Rosenblatt transform, which maps draws from a Dirichlet distribution to independent uniform variables.

    For :math:`\omega \sim \mathrm{Dir}(a)`, the stick-breaking ratios are independent beta variables. Their
    distribution functions give the uniform variables

    .. math:: z_j = F_{\mathrm{Beta}}\Bigl(\frac{\omega_j}{\sum_{l \ge j} \omega_l};\; a_j, \sum_{l > j} a_l\Bigr),
              \qquad j = 1, \ldots, d - 1.

    Parameters
    ----------
    draws : array-like of shape (n_draws, d)
        Points on the simplex, or positive numbers that are not divided by their sum. The latter are preferable if
        available, since the division loses precision.
    concentration : array-like of shape (d,)
        Positive parameter a of the Dirichlet distribution.
    log : bool, default=False
        Whether the draws are logarithms, for components that would underflow.

    Returns
    -------
    z : ndarray of shape (n_draws, d - 1)
        Transformed draws, between 0 and 1.

    Notes
    -----
    The tail :math:`\sum_{l \ge j} \omega_l` is computed as a sum, since :math:`1 - \sum_{l < j} \omega_l` cancels
    catastrophically for sparse draws. For the same reason the ratio and its complement are both computed from tails,
    and the smaller of the two is passed to the incomplete beta function. If even this underflows, the leading term
    :math:`x^a / (a B(a, b))` is computed in logarithms. A component that has underflowed to 0 has z = 0.

    References
    ----------
    M. Rosenblatt (1952), Remarks on a multivariate transformation, Ann. Math. Stat. 23. J. Baker, P. Fearnhead, E. Fox
    and C. Nemeth (2018), Large-scale stochastic sampling from the probability simplex, NeurIPS, section 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc.metrics import ks_distance, rosenblatt_transform
    >>> draws = np.random.default_rng(0).dirichlet([0.2, 1.0, 3.0], 2000)
    >>> bool(
    ...     np.all(
    ...         ks_distance(rosenblatt_transform(draws, [0.2, 1.0, 3.0])) < 0.05
    ...     )
    ... )
    True
    """
    draws = np.asarray(draws, dtype=np.float64)
    a = np.asarray(concentration, dtype=np.float64)
    if draws.ndim != 2 or a.shape != draws.shape[1:] or a.size < 2:
        raise ValueError(
            f"draws has shape {draws.shape} and concentration {a.shape}; give (n_draws, d) and (d,) with d >= 2."
        )
    if not np.all((a > 0) & np.isfinite(a)):
        raise ValueError(f"concentration must be positive and finite, but its smallest entry is {a.min():g}.")
    if log:
        logs = draws
    else:
        if np.any(draws < 0):
            raise ValueError(f"draws must not be negative, got {draws.min():g}; pass log=True if these are logarithms.")
        with np.errstate(divide="ignore"):
            logs = np.log(draws)
    if np.isnan(logs).any() or np.any(logs == np.inf) or np.any(np.max(logs, axis=1) == -np.inf):
        raise ValueError("draws must be finite, with at least one positive component in each row.")
    # log of the sum over l >= j, for each j
    tails = np.logaddexp.accumulate(logs[:, ::-1], axis=1)[:, ::-1]
    b = np.cumsum(a[::-1])[::-1][1:]
    with np.errstate(invalid="ignore"):  # -inf - (-inf) is NaN where the whole tail has underflowed
        log_x = logs[:, :-1] - tails[:, :-1]
        log_y = tails[:, 1:] - tails[:, :-1]  # log(1 - x), without a subtraction
    lower = _log_beta_cdf(log_x, a[:-1], b)
    upper = _log_beta_cdf(log_y, b, a[:-1])
    z = np.where(log_x < log_y, np.exp(lower), -np.expm1(upper))
    # A ratio inside a tail of zeros is undefined. Set to 0, such failures stay visible as many equal values.
    return np.clip(np.where(np.isnan(log_x), 0.0, z), 0.0, 1.0)


def _log_beta_cdf(log_x, a, b):
    """Log of the regularised incomplete beta function I_x(a, b), from log x (n, d), a (d,) and b (d,)."""
    x = np.exp(np.minimum(log_x, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        leading = a * log_x - np.log(a) - special.betaln(a, b)
        return np.where(x < _TINY, np.minimum(leading, 0.0), np.log(special.betainc(a, b, x)))


def ks_distance(sample: ArrayLike, cdf: Callable[[FloatArray], FloatArray] | None = None) -> float | FloatArray:
    r"""Kolmogorov-Smirnov distance :math:`\sup_u |\hat F_n(u) - F(u)|` of a sample from a distribution.

    Parameters
    ----------
    sample : array-like of shape (n,) or (n, m)
        Sample; columns are treated separately.
    cdf : callable, default=None
        Vectorised distribution function. None: the uniform distribution on [0, 1].

    Returns
    -------
    float, or ndarray of shape (m,)
        Distance, between 0 and 1.

    Examples
    --------
    >>> from sk_sgmcmc.metrics import ks_distance
    >>> float(ks_distance([0.125, 0.375, 0.625, 0.875]))
    0.125
    """
    sample = np.asarray(sample, dtype=np.float64)
    if sample.ndim not in (1, 2) or sample.shape[0] == 0 or np.isnan(sample).any():
        raise ValueError(f"sample must be (n,) or (n, m) with n >= 1 and without NaN; got shape {sample.shape}.")
    u = np.sort(sample, axis=0)
    u = np.clip(u, 0.0, 1.0) if cdf is None else np.asarray(cdf(u))
    n = u.shape[0]
    below = np.arange(n).reshape(-1, *[1] * (u.ndim - 1)) / n
    distance = np.maximum(np.abs(u - below), np.abs(u - below - 1 / n)).max(axis=0)
    return float(distance) if sample.ndim == 1 else distance


def rosenblatt_ks(draws: ArrayLike, concentration: ArrayLike, *, log: bool = False) -> float:
    """Distance of draws from a Dirichlet distribution, by the Kolmogorov-Smirnov distance of their transform.

    Parameters
    ----------
    draws, concentration, log
        As for `rosenblatt_transform`.

    Returns
    -------
    float
        Mean of `ks_distance` over the d - 1 coordinates. It is about 0.87 / sqrt(n_draws) for exact independent draws.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc.metrics import rosenblatt_ks
    >>> a = np.array([800.1, 100.1, 0.1, 0.1])
    >>> draws = np.random.default_rng(0).dirichlet(a, size=1000)
    >>> rosenblatt_ks(draws, a) < 0.04 < rosenblatt_ks(draws + 1e-6, a)
    True

    References
    ----------
    J. Baker, P. Fearnhead, E. Fox and C. Nemeth (2018), Large-scale stochastic sampling from the probability simplex,
    NeurIPS, section 4.1 and figure 2.
    """
    return float(np.mean(ks_distance(rosenblatt_transform(draws, concentration, log=log))))
