"""Convergence of chains: effective sample size, R-hat, Monte Carlo standard error.

All functions take arrays of shape (n_chains, n_draws, ...) and return one number for each entry of the trailing axes.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import fft, special, stats

from ..utils._typing import FloatArray

# Number of entries to process at once, to limit memory use for arrays of many parameters.
_BLOCK = 4_000_000


def _per_column(function, draws):
    """Check draws, call the function on parts (n_chains, n_draws, n_columns), and restore the trailing shape."""
    draws = np.asarray(draws)
    if draws.ndim < 2 or draws.shape[0] < 1 or draws.shape[1] < 4:
        raise ValueError(
            f"draws has shape {draws.shape}; it must be (n_chains, n_draws, ...) with at least 4 draws. "
            "For one chain pass draws[None]; keep more draws with a larger n_iter or a smaller thin."
        )
    if not (np.issubdtype(draws.dtype, np.floating) or np.issubdtype(draws.dtype, np.integer)):
        raise TypeError(f"draws must be real numbers, got dtype {draws.dtype}.")
    n_chains, n_draws = draws.shape[:2]
    flat = draws.reshape(n_chains, n_draws, -1)
    step = max(1, _BLOCK // (n_chains * n_draws))
    out = np.empty(flat.shape[2])
    for lo in range(0, flat.shape[2], step):
        block = flat[:, :, lo : lo + step].astype(np.float64)
        bad = ~np.all(np.isfinite(block), axis=(0, 1))
        block[:, :, bad] = 0.0
        out[lo : lo + step] = np.where(bad, np.nan, function(block))
    out = out.reshape(draws.shape[2:])
    return float(out) if out.ndim == 0 else out


def _split(x):
    """Split each chain in two halves, (2 n_chains, n // 2, m); the middle draw of an odd number is left out."""
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, -half:]])


def _rank_normalize(x):
    """Normal scores of the ranks over all chains and draws, Vehtari et al. (2021), equation 14."""
    ranks = stats.rankdata(x.reshape(-1, x.shape[2]), axis=0)
    return special.ndtri((ranks - 0.375) / (ranks.shape[0] + 0.25)).reshape(x.shape)


def _r_hat(x):
    """R-hat of (m chains, n draws, columns) without splitting; NaN if nothing varies, inf if only chains differ."""
    n = x.shape[1]
    between = n * x.mean(axis=1).var(axis=0, ddof=1)
    within = x.var(axis=1, ddof=1).mean(axis=0)
    # Test for equal draws directly, since rounding of the mean gives them a tiny variance.
    still = np.all(x == x[:, :1], axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.sqrt((n - 1) / n + np.where(still, np.where(between > 0, np.inf, np.nan), between / within) / n)
    same = np.all(x == x[:1, :1], axis=(0, 1))
    return np.where(same, np.nan, out)


def _ess(x):
    """Effective sample size of (m chains, n draws, columns) without splitting; Geyer's initial monotone sequence."""
    m, n, _ = x.shape
    centred = x - x.mean(axis=1, keepdims=True)
    size = fft.next_fast_len(2 * n, real=True)
    spectrum = fft.rfft(centred, size, axis=1)
    autocovariance = fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :n].mean(axis=0) / n
    within = autocovariance[0] * n / (n - 1)
    total = within * (n - 1) / n
    if m > 1:
        total = total + x.mean(axis=1).var(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1.0 - (within - autocovariance) / total
    rho[0] = 1.0
    # Sums of neighbouring pairs, up to the first negative one, made non-increasing.
    n_pairs = n // 2
    pairs = rho[: 2 * n_pairs].reshape(n_pairs, 2, -1).sum(axis=1)
    kept = np.logical_and.accumulate(pairs > 0, axis=0)
    monotone = np.minimum.accumulate(pairs, axis=0)
    tau = -1.0 + 2.0 * np.where(kept, monotone, 0.0).sum(axis=0)
    # The effective sample size of an antithetic chain may exceed its length, but at most by the factor of Stan.
    tau = np.maximum(tau, 1.0 / np.log10(m * n))
    same = np.all(x == x[:1, :1], axis=(0, 1))
    return np.where(same, np.nan, m * n / tau)


def effective_sample_size(draws: ArrayLike, kind: Literal["bulk", "mean", "tail"] = "bulk") -> float | FloatArray:
    r"""Number of independent draws that would give the same Monte Carlo error.

    The autocorrelation :math:`\hat\rho_t` is estimated from the m split chains of n draws together. Then

    .. math:: \mathrm{ESS} = \frac{mn}{\hat\tau}, \qquad \hat\tau = -1 + 2 \sum_{t=0}^{T} (\hat\rho_{2t} +
              \hat\rho_{2t+1}),

    where T is the last index before the sum of a pair becomes negative, and the sums are made non-increasing.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws, ...)
        At least four draws. One chain is enough: it is split in two.
    kind : {"bulk", "mean", "tail"}, default="bulk"
        "bulk": effective sample size of rank-normalised draws, which is also valid for distributions without variance.
        "mean": of the draws themselves, as `mcse` requires. "tail": the smaller one of the effective sample sizes for
        the 5% and the 95% quantile.

    Returns
    -------
    float, or ndarray of the trailing shape
        Effective sample size; NaN if all draws are equal, or if a draw is not finite.

    References
    ----------
    A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Bürkner (2021), Rank-normalization, folding, and
    localization: an improved R-hat for assessing convergence of MCMC, Bayesian Analysis 16, sections 3.2 and 4.
    C. J. Geyer (1992), Practical Markov chain Monte Carlo, Stat. Sci. 7, section 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc.metrics import effective_sample_size
    >>> draws = np.random.default_rng(0).normal(size=(4, 1000))
    >>> effective_sample_size(draws) > 3000 > effective_sample_size(
    ...     draws.cumsum(axis=1)
    ... )
    True
    """
    if kind == "mean":
        return _per_column(lambda x: _ess(_split(x)), draws)
    if kind == "bulk":
        return _per_column(lambda x: _ess(_rank_normalize(_split(x))), draws)
    if kind == "tail":

        def tail(x):
            low, high = np.quantile(x, [0.05, 0.95], axis=(0, 1))
            return np.fmin(*(_ess(_split((x <= q).astype(np.float64))) for q in (low, high)))

        return _per_column(tail, draws)
    raise ValueError(f'kind must be "bulk", "mean" or "tail", got {kind!r}.')


def split_r_hat(draws: ArrayLike, rank_normalized: bool = True) -> float | FloatArray:
    r"""Potential scale reduction of split chains, which is near 1 if chains agree with each other and over time.

    With variances B between and W within the split chains of n draws,
    :math:`\hat R = \sqrt{(\tfrac{n-1}{n} W + \tfrac1n B) / W}`. The rank-normalised form is the larger of two values:
    :math:`\hat R` of the normal scores of the draws, and of the normal scores of their absolute distances from the
    median.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws, ...)
        At least four draws.
    rank_normalized : bool, default=True
        Whether to return the rank-normalised form. False: split R-hat of the draws themselves.

    Returns
    -------
    float, or ndarray of the trailing shape
        Split R-hat; NaN if all draws are equal or if a draw is not finite, inf if each half chain is constant and they
        differ. Run longer if it is above 1.01 (Vehtari et al.).

    References
    ----------
    Vehtari et al. (2021), as in `effective_sample_size`, sections 3.1 and 4.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc.metrics import split_r_hat
    >>> draws = np.random.default_rng(0).normal(size=(4, 500))
    >>> (
    ...     bool(split_r_hat(draws) < 1.01),
    ...     bool(split_r_hat(draws + [[0], [0], [5], [5]]) > 1.5),
    ... )
    (True, True)
    """
    if not rank_normalized:
        return _per_column(lambda x: _r_hat(_split(x)), draws)

    def ranked(x):
        x = _split(x)
        folded = np.abs(x - np.median(x, axis=(0, 1)))
        # fmax ignores NaN: the folded draws may all be equal although the draws are not, for example with two values.
        return np.fmax(_r_hat(_rank_normalize(x)), _r_hat(_rank_normalize(folded)))

    return _per_column(ranked, draws)


def mcse(draws: ArrayLike) -> float | FloatArray:
    r"""Monte Carlo standard error of the mean, :math:`\mathrm{sd} / \sqrt{\mathrm{ESS}}`.

    Parameters
    ----------
    draws : array-like of shape (n_chains, n_draws, ...)
        At least four draws.

    Returns
    -------
    float, or ndarray of the trailing shape
        Standard error, with the effective sample size of kind "mean"; NaN where that is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc.metrics import mcse
    >>> draws = np.random.default_rng(0).normal(
    ...     size=(4, 2500)
    ... )  # independent: 1 / sqrt(10,000)
    >>> bool(0.008 < mcse(draws) < 0.012)
    True
    """
    return _per_column(lambda x: x.reshape(-1, x.shape[2]).std(axis=0, ddof=1) / np.sqrt(_ess(_split(x))), draws)
