"""Statistics of the convergence and the spread of the draws of a finished run, which `checks` compares with limits."""

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import linalg, stats

from ..metrics import effective_sample_size, mcse, split_r_hat

R_HAT = 1.1
FEW_DRAWS = 10  # minimum effective sample size, for each of up to four chains
_FEW_SHARE = 12  # an effective sample size above a twelfth of the kept draws passes, however few draws there are
_LEVEL = 1e-3  # probability that independent draws exceed a limit, over all quantities that are compared with it
MIN_KEPT = 20  # with fewer draws of a chain, its convergence is not checked
MOST_ENTRIES = 20  # entries of an array that the table contains: those with the largest plain R-hat
_PIECES = 10  # parts of a chain whose means are compared for the plain R-hat
_BLOCK = 4_000_000  # numbers converted to float64 at a time
# Limits of the change of a mean between thirds of the kept draws: relative to its unit, and in standard errors.
MOVE, ERRORS = 0.01, 3.0
_MIN_THIRD = 4  # draws
_LEAST_MORE, _MOST_MORE = 2.0, 20.0  # bounds of the factor by which a longer run is recommended
# The factor is at least the first number if the change to the last third exceeds the second number times the change
# before it. This ratio is 0.6 where the distance to the limit falls as 1 / steps.
_AT_FULL_PACE, _PACE = 10.0, 0.8
# Limits of a variance over the one that the curvature implies: standard deviations of half and 1.4 times.
NARROW, WIDE = 0.25, 2.0
FAST = 1.5  # limit of the mean square of a velocity over its exact value
_PROBES = 100  # number of gradients on all rows for the check of the spread; fewer if there are many rows
_MIN_PROBES = 20
_MOST_WHITENED = 200  # with more entries, the draws are not whitened, and each entry is checked by itself
_PER_ENTRY = 10  # effective draws for each entry that the covariance matrix for whitening requires
_MOST_SERIES = 2000  # draws, over all chains, from which effective sample sizes are estimated
_DETERMINED = 0.5  # share of its variance that an entry has given the entries before; below it, messages say so
# A density has a wall if its log falls by more than this within a standard deviation beyond the outermost draws.
_WALL = 5.0
CELLS = 5e8  # rows times entries that the gradients of the check may read
# For chains that have not converged: a ratio of variances that slow chains alone do not reach (twice the standard
# deviation), and the number of standard errors by which the ratio must exceed it.
VERY_WIDE, _SURE = 4.0, 2.0


@dataclass(frozen=True)
class Unsettled:
    """The quantities whose draws agree least between chains or over time, if they are beyond the limits.

    Parameters
    ----------
    name : str
        The quantity whose R-hat exceeds its limit most.
    r_hat, limit : float
        Its R-hat and its limit.
    slowest : str
        The quantity with the smallest effective sample size relative to its minimum.
    ess, least : float
        Its effective sample size and its minimum.
    """

    name: str
    r_hat: float
    limit: float
    slowest: str
    ess: float
    least: float


@dataclass(frozen=True)
class Drift:
    """The change of the mean of a quantity during a run.

    Parameters
    ----------
    change, error : float
        Largest difference between the means of thirds of the kept draws, and its standard error.
    limit : float
        The larger of `MOVE` and `ERRORS` standard errors.
    factor : float
        Factor by which a longer run would probably suffice.
    """

    change: float
    error: float
    limit: float
    factor: float

    @property
    def is_large(self):
        """Whether the change exceeds its limit."""
        return self.change > self.limit


class Diagnosis:
    """Convergence statistics of the draws of some quantities.

    Parameters
    ----------
    monitored : dict of str to ndarray of shape (n_chains, n_kept, ...)
        Quantities that cannot switch labels. The table contains at most `MOST_ENTRIES` entries of an array: those whose
        means over tenths of chains differ most, relative to their spread within tenths.
    in_time : bool
        Whether the draws of a chain follow one another in time. Particles do not, and have no R-hat.

    Attributes
    ----------
    names : list of str
        Names of the arrays.
    columns : dict of str to ndarray
        The table, with the columns ``quantity``, ``mean``, ``r_hat``, ``ess`` and ``mcse``.
    """

    def __init__(self, monitored, in_time=True):
        names, self._draws, self._limits, self._few = [], [], [], []
        self._still = {}
        for name, values in monitored.items():
            values = np.asarray(values)
            self._still[name] = bool(np.all(values == values[:1, :1]))
            for at in _shown(values):
                names.append(f"{name}[{', '.join(map(str, at))}]" if at else name)
                self._draws.append(values[(..., *at)].astype(np.float64))
                n_chains, n_kept = values.shape[:2]
                self._limits.append(r_hat_limit(n_chains, n_kept, int(np.prod(values.shape[2:]))))
                self._few.append(min(FEW_DRAWS * min(n_chains, 4), n_chains * n_kept / _FEW_SHARE))
        statistics = np.full((3, len(names)), np.nan)
        for shape in {draws.shape for draws in self._draws if in_time and draws.shape[1] >= MIN_KEPT}:
            alike = [i for i, draws in enumerate(self._draws) if draws.shape == shape]
            together = np.stack([self._draws[i] for i in alike], axis=-1)
            statistics[:, alike] = split_r_hat(together), effective_sample_size(together), mcse(together)
        self._in_time = in_time
        self.names = list(monitored)
        self.columns = {
            "quantity": np.array(names, dtype=object),
            "mean": np.array([draws.mean() for draws in self._draws], dtype=np.float64),
            **dict(zip(("r_hat", "ess", "mcse"), statistics, strict=True)),
        }

    def add_bias(self, bias_of):
        """Add the column ``bias``; ``bias_of`` maps the draws of a quantity, (n_chains, n_kept), to its bias."""
        self.columns["bias"] = np.array([bias_of(draws) for draws in self._draws], dtype=np.float64)

    def unsettled(self, moving=()):
        """An `Unsettled` if the R-hat of a quantity is too large or its effective sample size too small; else None.

        It also reports an array named in ``moving`` whose draws are all equal, and any array if no array has changed.
        """
        names, r_hat, ess = (self.columns[name] for name in ("quantity", "r_hat", "ess"))
        if not self._in_time or all(draws.shape[1] < MIN_KEPT for draws in self._draws):
            return None
        for name in self._still if all(self._still.values()) else moving:
            if self._still[name]:
                first = next(i for i, entry in enumerate(names) if entry == name or entry.startswith(f"{name}["))
                return Unsettled(names[first], np.inf, R_HAT, name, 0.0, self._few[first])
        excess = self._excess()
        share = np.where(np.isnan(ess), np.inf, ess / self._few)
        if not (excess.max() > 0 or share.min() < 1):
            return None
        worst, slowest = int(np.argmax(excess)), int(np.argmin(share))
        of_slowest = names[slowest], ess[slowest], self._few[slowest]
        return Unsettled(names[worst], r_hat[worst], self._limits[worst], *of_slowest)

    def _excess(self):
        """R-hat minus its limit for each quantity; minus infinity where R-hat is NaN."""
        r_hat = self.columns["r_hat"]
        return np.where(np.isnan(r_hat), -np.inf, r_hat - self._limits)

    def worst_r_hat(self):
        """The R-hat that exceeds its limit most, or comes closest to it, and the limit; None if all R-hats are NaN."""
        excess = self._excess()
        if not np.isfinite(excess).any():
            return None
        worst = int(np.argmax(excess))
        return self.columns["r_hat"][worst], self._limits[worst]

    def drift(self, name, unit=1.0):
        """The `Drift` of the mean of a quantity over thirds of the kept draws; None if there are too few draws.

        The change is measured in ``unit``, or relative to the mean absolute value if that is None. R-hat does not suit
        a quantity that approaches its limit more and more slowly.
        """
        names = list(self.columns["quantity"])
        if not self._in_time or name not in names:
            return None
        draws = self._draws[names.index(name)].mean(axis=0)
        size, n = np.abs(draws).mean() if unit is None else unit, draws.size // 3
        if n < _MIN_THIRD or not (size > 0 and np.all(np.isfinite(draws))):
            return None
        draws = draws / size
        means = draws[-3 * n :].reshape(3, n).mean(axis=1)
        # The residuals of a quadratic trend give the variance of the noise and its autocorrelation at lag 1.
        t = np.linspace(-1.0, 1.0, draws.size)
        noise = draws - np.polynomial.polynomial.polyval(t, np.polynomial.polynomial.polyfit(t, draws, 2))
        square = max((noise**2).sum(), 1e-300)
        correlation = (noise[1:] * noise[:-1]).sum() / square + 3.0 / draws.size  # the fitted trend lowers it
        correlation = np.clip(correlation, 0.0, 0.9)
        error = np.sqrt(2.0 / n * square / (draws.size - 3) * (1.0 + correlation) / (1.0 - correlation))
        change = float(np.ptp(means))
        # The distance to the limit, and so the change between thirds, is inversely proportional to the run's length.
        factor = max(change / MOVE, _AT_FULL_PACE if means[2] - means[1] > _PACE * (means[1] - means[0]) > 0 else 0.0)
        factor = float(np.clip(factor, _LEAST_MORE, _MOST_MORE))
        return Drift(change, float(error), float(max(MOVE, ERRORS * error)), factor)


def r_hat_limit(n_chains, n_kept, n_quantities):
    """The limit of R-hat: at least `R_HAT`, and large enough for independent draws of ``n_quantities``.

    At most a share of `_LEVEL` of runs with independent draws exceeds it for any of the quantities.
    """
    n_pieces, n = 2 * n_chains, n_kept // 2
    if n < 2:
        return np.inf
    ratio = stats.f.isf(_LEVEL / (2 * n_quantities), n_pieces - 1, n_pieces * (n - 1))
    return float(max(R_HAT, np.sqrt((n - 1 + ratio) / n)))


def _shown(values):
    """Indices of the entries of an array (n_chains, n_kept, ...) that the table contains."""
    shape = values.shape[2:]
    n_entries = int(np.prod(shape))
    if n_entries <= MOST_ENTRIES:
        return list(product(*map(range, shape)))
    worst = np.argsort(-_plain_r_hat(values.reshape(*values.shape[:2], -1)), kind="stable")[:MOST_ENTRIES]
    return [tuple(int(i) for i in np.unravel_index(k, shape)) for k in np.sort(worst)]


def _plain_r_hat(values):
    """Variance between parts of chains over the variance within them, (n_entries,), to screen many entries quickly."""
    n_chains, n_kept, n_entries = values.shape
    n_pieces = max(1, min(_PIECES, n_kept // 4))
    n = n_kept // n_pieces
    out, step = np.empty(n_entries), max(1, _BLOCK // (n_chains * n_kept))
    for start in range(0, n_entries, step):
        part = values[:, n_kept - n * n_pieces :, start : start + step]
        pieces = part.reshape(n_chains * n_pieces, n, -1).astype(np.float64)
        within = pieces.var(axis=1).mean(axis=0)
        out[start : start + step] = pieces.mean(axis=1).var(axis=0) / np.maximum(within, 1e-300)
    return out


def evenly(n, most):
    """At most ``most`` of the indices below ``n``, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))


def rounded_up(n):
    """``n`` rounded up to two significant digits, an int."""
    unit = 10 ** max(0, len(str(int(np.ceil(n)))) - 2)
    return int(-(-n // unit) * unit)


def limits_of_spread(n_effective, n_entries):
    """The smallest and the largest ratio of variances that lead to no warning, for each entry.

    They are `NARROW` and `WIDE`, or further from 1 where chance alone could exceed these: a ratio from ``n_effective``
    independent normal draws is a chi-squared number over its degrees of freedom. With correct draws, each limit is
    exceeded at any of ``n_entries`` entries in a share of at most `_LEVEL` of all runs.

    Parameters
    ----------
    n_effective : ndarray of shape (n,)
        Effective numbers of independent normal draws, positive.
    n_entries : int
        Number of entries that are compared.

    Returns
    -------
    narrow, wide : ndarray of shape (n,)
    """
    level, n_effective = _LEVEL / n_entries, np.asarray(n_effective, dtype=np.float64)
    narrow, wide = (tail(level, n_effective) / n_effective for tail in (stats.chi2.ppf, stats.chi2.isf))
    return np.minimum(NARROW, narrow), np.maximum(WIDE, wide)


class Spread(NamedTuple):
    """Spread of draws on Euclidean space compared with the curvature; attributes are None if there are too few draws.

    Parameters
    ----------
    ratios : ndarray of shape (D,)
        Variance of draws over the variance that the curvature of the log density implies, for each entry: about 1 at
        convergence. Small ratios are set to 1 where the density ends at a bound, or is a plateau between walls, since
        they do not show narrow draws there.
    of_changes : ndarray of shape (D,)
        The same ratios from differences of successive draws, which neither a drift nor chains in different places
        enlarge; 1 unless a ratio is clearly above `VERY_WIDE`.
    log_density : ndarray of shape (n_chains, n_probes)
        Log density at the evenly spaced draws at which gradients were computed.
    bounded : tuple of int
        Entries with small ratios, where the log density is not finite just beyond the outermost draws.
    n_effective : ndarray of shape (D,)
        Number of independent normal draws from which the ratio would be as precise.
    given : ndarray of bool of shape (D,)
        Entries whose ratio is mostly about their conditional variance, given the entries before.
    error : ndarray of shape (D,)
        Standard errors of the ratios.
    """

    ratios: np.ndarray | None = None
    of_changes: np.ndarray | None = None
    log_density: np.ndarray | None = None
    bounded: tuple[int, ...] = ()
    n_effective: np.ndarray | None = None
    given: np.ndarray | None = None
    error: np.ndarray | None = None

    @property
    def limits(self):
        """The smallest and the largest ratio that lead to no warning, for each entry."""
        if self.ratios is None:
            return NARROW, WIDE
        narrow, wide = limits_of_spread(self.n_effective, self.ratios.size)
        below, above = (self.ratios + sign * ERRORS * self.error for sign in (1.0, -1.0))
        return np.where(below < 1.0, narrow, -np.inf), np.where(above > 1.0, wide, np.inf)


def spread_of(gradient, draws, temperature=1.0, cells=CELLS):
    r"""The `Spread` of draws on Euclidean space.

    For any density :math:`p^{1/T}` on Euclidean space that decays, integration by parts gives
    :math:`E[-a^\top(\theta - c) \, b^\top \nabla \log p(\theta)] = T a^\top b` for all vectors and every constant
    :math:`c`. For a normal density with precision :math:`P` and draws with covariance :math:`S`, the left side is
    :math:`a^\top S P b`. Chains that have hardly moved have ratios near 0. The noise of minibatches and long steps lead
    to ratios above 1.

    With :math:`a = b = e_i`, the mean over n independent draws has the variance
    :math:`(1 + 1 / (1 - R_i^2)) / n`, where :math:`R_i` is the correlation of an entry with all others. For strongly
    correlated entries, the mean is therefore too imprecise to be useful. We use coordinates in which the draws are
    uncorrelated instead, :math:`w = L^{-1}(\theta - c)` with :math:`L L^\top = S`. There :math:`R_i = 0`, the variance
    is :math:`2 / n`, and a ratio is a chi-squared number with n degrees of freedom, divided by n. With the Cholesky
    factor, each coordinate still belongs to an entry: :math:`w_i` is the part of entry i that the entries before do not
    predict, and its ratio is about the conditional variance of the entry. All :math:`w_i` together form a basis, so no
    direction is left out.

    Draws of a chain depend on each other and need not be normal. The number of independent normal draws that would give
    a ratio of the same precision is

    .. math:: n_i = \frac{2}{v_i} \min(n, \mathrm{ESS}(w_i), \mathrm{ESS}(w_i^2)),

    where :math:`v_i` is the variance of the products, divided by the square of their mean where that is above 1, and at
    least 2. `limits_of_spread` computes limits from :math:`n_i`. Ratios within `ERRORS` standard errors of 1 always
    pass, so that few effective draws never lead to a warning on their own. :math:`S` is estimated from the draws
    themselves, which adds at most D / ESS to a ratio. With fewer than `_PER_ENTRY` effective draws for each entry, or
    more than `_MOST_WHITENED` entries, we use the entries themselves; :math:`v_i` then accounts for their larger
    variance.

    Parameters
    ----------
    gradient : DenseGradient
        Gradient on all rows.
    draws : ndarray of shape (n_chains, n_kept, D)
    temperature : float
    cells : float
        Rows times entries that all gradients together may read, except that at least `_MIN_PROBES` are computed.
    """
    n_chains, n_kept, D = draws.shape
    if n_chains * n_kept < MIN_KEPT:
        return Spread()
    n = int(np.clip(cells / (D * gradient.dense.n_rows), _MIN_PROBES, _PROBES))
    at = np.linspace(0, n_kept - 1, min(n_kept, -(-n // n_chains))).round().astype(int)
    chosen = draws[:, at].astype(np.float64)
    values, slopes = zip(*(gradient(theta) for theta in chosen.reshape(-1, D)), strict=True)
    values, slopes = np.reshape(values, chosen.shape[:2]), np.reshape(slopes, chosen.shape)
    axes = _Axes(draws, at)
    with np.errstate(invalid="ignore", over="ignore"):  # gradients may not be finite; such ratios are not checked
        pull = axes.along(slopes)
        products = -axes.of(chosen) * pull / temperature
        ratios = products.mean(axis=(0, 1))
        unit = np.maximum(np.abs(products).max(axis=(0, 1)), 1.0)  # squares of huge products would overflow
        deviation = unit * (products / unit).std(axis=(0, 1))
        v = np.maximum(2.0, (deviation / np.maximum(ratios, 1.0)) ** 2)
        bends = _bends(draws, chosen, slopes, at) / temperature
    bounded = []
    for i in np.flatnonzero(ratios < NARROW):
        rises = _beyond(gradient, axes, chosen.reshape(-1, D), values.ravel(), i)
        if not np.all(np.isfinite(rises)):
            bounded.append(int(i))
            ratios[i] = 1.0
        elif max(rises) < -_WALL and np.mean(slopes[..., i] == 0.0) > 0.5:
            ratios[i] = 1.0
    n_effective = np.minimum(axes.n_effective, values.size)
    error, n_normal = deviation / np.sqrt(n_effective), 2.0 * n_effective / v
    return Spread(ratios, clearly_above(VERY_WIDE, bends), values, tuple(bounded), n_normal, axes.given, error)


class _Axes:
    """Coordinates in which draws have unit variances, and are uncorrelated if there are enough draws.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_kept, D)
    at : ndarray of int
        Indices of the draws of each chain at which gradients are computed.

    Attributes
    ----------
    n_effective : ndarray of shape (D,)
        The smaller of the effective sample sizes of a coordinate and of its square.
    given : ndarray of bool of shape (D,)
        Whether the entries before determine most of the variance of an entry, so that its coordinate is about the rest.
    """

    def __init__(self, draws, at):
        D = draws.shape[2]
        self._centre = draws.mean(axis=(0, 1), dtype=np.float64)
        units = draws.std(axis=(0, 1), dtype=np.float64)
        self._units, self._root = np.where(units > 0.0, units, 1.0), None
        some = draws[:, evenly(draws.shape[1], max(_MOST_SERIES // draws.shape[0], at.size))]
        some = some[..., evenly(D, _MOST_WHITENED)]  # if there are more, these represent all
        few = self._fewest(some)
        self.given = np.zeros(D, dtype=bool)
        if D <= _MOST_WHITENED and few.min() >= _PER_ENTRY * D:
            self._root = _root_of(self.of(draws).reshape(-1, D))
        if self._root is not None:
            few = self._fewest(self.of(some))
            self.given = np.diag(self._root) ** 2 < _DETERMINED
        self.n_effective = few if few.size == D else np.full(D, few.min())

    @staticmethod
    def _fewest(values):
        """The smaller of the effective sample sizes of values and of their squares, (D,).

        It is the number of draws where values are constant.
        """
        if values.shape[1] < MIN_KEPT:  # too few draws of a chain to estimate autocorrelations
            return np.full(values.shape[2], float(values.shape[0] * values.shape[1]))
        values = values - values.mean(axis=(0, 1))
        both = [effective_sample_size(each, kind="mean") for each in (values, values**2)]
        return np.where(np.isnan(both), values.shape[0] * values.shape[1], both).min(axis=0)

    def of(self, points):
        """The coordinates of points (..., D)."""
        scaled = (points - self._centre) / self._units
        if self._root is None:
            return scaled
        flat = linalg.solve_triangular(self._root, scaled.reshape(-1, scaled.shape[-1]).T, lower=True)
        return flat.T.reshape(scaled.shape)

    def along(self, slopes):
        """Gradients (..., D) with respect to the coordinates."""
        scaled = slopes * self._units
        return scaled if self._root is None else scaled @ self._root

    def direction(self, i):
        """The change of theta, (D,), when coordinate ``i`` increases by 1."""
        if self._root is None:
            return np.where(np.arange(self._units.size) == i, self._units, 0.0)
        return self._root[:, i] * self._units


def _root_of(values):
    """The lower Cholesky factor of the second moments of values (n, D), or None if they are singular."""
    moments = values.T @ values / len(values)
    still = np.diag(moments) == 0.0
    moments[still, still] = 1.0
    try:
        return np.linalg.cholesky(moments)
    except np.linalg.LinAlgError:
        return None


def _bends(draws, chosen, slopes, at):
    """Products of second differences of draws and of gradients, (n_chains, n, D), with mean 1 for independent draws.

    They are divided by 6, since second differences of independent draws have six times the variance. As in
    `spread_of`, coordinates are used in which the differences are uncorrelated.
    """
    D = draws.shape[2]
    bends, pulls = np.diff(chosen, 2, axis=1), -np.diff(slopes, 2, axis=1)
    lag = int(at[1] - at[0]) if at.size > 1 else draws.shape[1]
    n = draws.shape[1] - 2 * lag
    if D > _MOST_WHITENED or draws.shape[0] * n < _PER_ENTRY * D:
        return bends * pulls / 6.0
    every = draws[:, 2 * lag :] - 2.0 * draws[:, lag : lag + n] + draws[:, :n]
    units = np.sqrt(np.mean(np.square(every), axis=(0, 1), dtype=np.float64))
    units = np.where(units > 0.0, units, 1.0)
    root = _root_of((every / units).reshape(-1, D))
    if root is None:
        return bends * pulls / 6.0
    flat = linalg.solve_triangular(root, (bends / units).reshape(-1, D).T, lower=True).T
    return flat.reshape(bends.shape) * ((pulls * units) @ root) / 6.0


def _beyond(gradient, axes, points, values, i):
    """Changes of the log density from the two outermost points of coordinate ``i`` to a standard deviation beyond."""
    along, rises = axes.of(points)[:, i], []
    step = along.std() * axes.direction(i)
    for at, away in ((along.argmin(), -step), (along.argmax(), step)):
        rises.append(gradient(points[at] + away)[0] - values[at])
    return rises


def clearly_above(limit, ratios):
    """Means (D,) of ratios of single draws (n_chains, n, D), where a mean is clearly above ``limit``; elsewhere 1."""
    n_chains, n = ratios.shape[:2]
    n_pieces = max(1, min(_PIECES, n // 4))
    if n_chains * n < MIN_KEPT or n_chains * n_pieces < 2:
        return np.ones(ratios.shape[2:])
    with np.errstate(invalid="ignore", over="ignore"):
        pieces = np.concatenate([part.mean(axis=1) for part in np.array_split(ratios, n_pieces, axis=1)])
        mean, error = pieces.mean(axis=0), pieces.std(axis=0, ddof=1) / np.sqrt(len(pieces))
        return np.where(mean - _SURE * error > limit, mean, 1.0)
