"""Statistics of the draws of a finished run: their convergence over time, and their spread; `checks` compares them."""

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy import linalg, stats

from ..metrics import effective_sample_size, mcse, split_r_hat

R_HAT = 1.1
FEW_DRAWS = 10  # effective draws, for each of up to four chains
_FEW_SHARE = 12  # kept draws for each effective one, below which so few are no proof of slow chains
_LEVEL = 1e-3  # probability that independent draws exceed the limit of R-hat
MIN_KEPT = 20  # with fewer draws of a chain, nothing is checked
MOST_ENTRIES = 20  # of an array of parameters, those with the largest plain R-hat
_PIECES = 10  # of a chain, whose means show drifts and slow waves alike
_BLOCK = 4_000_000  # numbers screened at once
# What counts as a drift from one third of the kept draws to another: the change of the mean, and that change in
# standard errors.
MOVE, ERRORS = 0.01, 3.0
_MIN_THIRD = 4
_LEAST_MORE, _MOST_MORE = 2.0, 20.0  # how many times as long a run is recommended
# At least this many times, where the change to the last third is more than this share of the change before it. The
# share is 0.6 where what is left to gain falls as 1 / steps.
_AT_FULL_PACE, _PACE = 10.0, 0.8
# Bounds of a variance over that implied by the curvature: half and 1.4 times the standard deviation.
NARROW, WIDE = 0.25, 2.0
FAST = 1.5  # times its mean, of the square of a velocity
_PROBES = 100  # gradients on all rows to compare the spread with, fewer if rows are many
_MIN_PROBES = 20
_MOST_WHITENED = 200  # entries; of more, each is checked by itself
_PER_ENTRY = 10  # effective draws, from which a covariance is known well enough
_MOST_SERIES = 2000  # draws in all from which effective sample sizes are estimated
_DETERMINED = 0.5  # share of a variance that the entries before leave, below which a message says so
_WALL = 5.0  # change of a log density, within a standard deviation beyond the outermost draws, where it ends in a wall
CELLS = 5e8  # rows times entries that all of these gradients may read
# Of chains that have not settled: twice the standard deviation, which the waves of slow chains do not reach, and
# standard errors of pieces of chains by which they must exceed it.
VERY_WIDE, _SURE = 4.0, 2.0


@dataclass(frozen=True)
class Unsettled:
    """Chains that do not agree with each other or over time.

    Parameters
    ----------
    name : str
        The quantity with the largest R-hat.
    r_hat, limit : float
        Its R-hat, and the largest one that independent draws have.
    slowest : str
        The quantity with the fewest effective draws, for what it needs.
    ess, least : float
        How many it has, and how many it needs.
    """

    name: str
    r_hat: float
    limit: float
    slowest: str
    ess: float
    least: float


@dataclass(frozen=True)
class Drift:
    """How far the mean of a quantity moves during a run.

    Parameters
    ----------
    change, error : float
        Between the two most different thirds of the kept draws, and its standard error.
    limit : float
        The larger of `MOVE` and `ERRORS` standard errors.
    factor : float
        How many times as long a run would probably be enough.
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
    """How far the draws of some quantities have converged.

    Parameters
    ----------
    monitored : dict of str to ndarray of shape (n_chains, n_kept, ...)
        Quantities that cannot switch labels. Of the entries of a larger array, the table holds `MOST_ENTRIES`: those
        whose means over tenths of a chain differ most for their spread.
    in_time : bool
        Whether draws follow one another in time. Particles do not, and have no R-hat.

    Attributes
    ----------
    names : list of str
        Of the arrays.
    columns : dict of str to ndarray
        The table: ``quantity``, ``mean``, ``r_hat``, ``ess``, ``mcse``.
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

    def unsettled(self, moving=()):
        """An `Unsettled` if R-hat of a quantity is too large, or its effective draws too few; else None.

        A quantity named in ``moving`` that has never moved is unsettled too; so is any, if none has moved.
        """
        names, r_hat, ess = (self.columns[name] for name in ("quantity", "r_hat", "ess"))
        if not self._in_time or all(draws.shape[1] < MIN_KEPT for draws in self._draws):
            return None
        for name in self._still if all(self._still.values()) else moving:
            if self._still[name]:
                first = next(entry for entry in names if entry.startswith(name))
                return Unsettled(first, np.inf, R_HAT, name, 0.0, self._few[0])
        excess = self._excess()
        share = np.where(np.isnan(ess), np.inf, ess / self._few)
        if not (excess.max() > 0 or share.min() < 1):
            return None
        worst, slowest = int(np.argmax(excess)), int(np.argmin(share))
        of_slowest = names[slowest], ess[slowest], self._few[slowest]
        return Unsettled(names[worst], r_hat[worst], self._limits[worst], *of_slowest)

    def _excess(self):
        """R-hat of each quantity less its limit, minus infinity where it is not known."""
        r_hat = self.columns["r_hat"]
        return np.where(np.isnan(r_hat), -np.inf, r_hat - self._limits)

    def worst_r_hat(self):
        """The R-hat that exceeds its limit most, or comes closest to it, and this limit; None if none is known."""
        excess = self._excess()
        if not np.isfinite(excess).any():
            return None
        worst = int(np.argmax(excess))
        return self.columns["r_hat"][worst], self._limits[worst]

    def drift(self, name, unit=1.0):
        """The `Drift` of the mean of a quantity over thirds of the kept draws; None if there are too few draws.

        The move is measured in ``unit``, or relative to the size of the mean if that is None. R-hat does not suit a
        quantity that approaches its limit for ever, by ever smaller steps.
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
        # What is left beside a smooth trend: noise, and how long it lasts.
        t = np.linspace(-1.0, 1.0, draws.size)
        noise = draws - np.polynomial.polynomial.polyval(t, np.polynomial.polynomial.polyfit(t, draws, 2))
        square = max((noise**2).sum(), 1e-300)
        correlation = (noise[1:] * noise[:-1]).sum() / square + 3.0 / draws.size  # the trend has taken about as much
        correlation = np.clip(correlation, 0.0, 0.9)
        error = np.sqrt(2.0 / n * square / (draws.size - 3) * (1.0 + correlation) / (1.0 - correlation))
        change = float(np.ptp(means))
        # What is left to go, and so what is gained between two thirds, falls as one over the length of the run.
        factor = max(change / MOVE, _AT_FULL_PACE if means[2] - means[1] > _PACE * (means[1] - means[0]) > 0 else 0.0)
        factor = float(np.clip(factor, _LEAST_MORE, _MOST_MORE))
        return Drift(change, float(error), float(max(MOVE, ERRORS * error)), factor)


def r_hat_limit(n_chains, n_kept, n_quantities):
    """The largest R-hat that independent draws of so many quantities have, but at least `R_HAT`."""
    n_pieces, n = 2 * n_chains, n_kept // 2
    if n < 2:
        return np.inf
    ratio = stats.f.isf(_LEVEL / (2 * n_quantities), n_pieces - 1, n_pieces * (n - 1))
    return float(max(R_HAT, np.sqrt((n - 1 + ratio) / n)))


def _shown(values):
    """Indices of the entries of an array (n_chains, n_kept, ...) that the table holds."""
    shape = values.shape[2:]
    n_entries = int(np.prod(shape))
    if n_entries <= MOST_ENTRIES:
        return list(product(*map(range, shape)))
    worst = np.argsort(-_plain_r_hat(values.reshape(*values.shape[:2], -1)), kind="stable")[:MOST_ENTRIES]
    return [tuple(int(i) for i in np.unravel_index(k, shape)) for k in np.sort(worst)]


def _plain_r_hat(values):
    """Variance between over that within pieces of chains, (n_entries,): a quick look at many entries."""
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
    """The smallest and the largest ratio of variances that are no reason to warn, for each entry.

    They are `NARROW` and `WIDE`, or further from 1 where chance alone reaches them: a ratio from ``n_effective``
    independent normal draws is a chi-squared number over its degrees of freedom. Of right draws, a share of `_LEVEL`
    of all runs crosses either limit at one of ``n_entries``.

    Parameters
    ----------
    n_effective : ndarray of shape (n,)
        Positive.
    n_entries : int

    Returns
    -------
    narrow, wide : ndarray of shape (n,)
    """
    level, n_effective = _LEVEL / n_entries, np.asarray(n_effective, dtype=np.float64)
    narrow, wide = (tail(level, n_effective) / n_effective for tail in (stats.chi2.ppf, stats.chi2.isf))
    return np.minimum(NARROW, narrow), np.maximum(WIDE, wide)


class Spread(NamedTuple):
    """The spread of draws on flat space compared with the curvature; None where draws are too few.

    Parameters
    ----------
    ratios : ndarray of shape (D,)
        Variance of draws over that implied by the curvature of the log density, for each entry: 1 at convergence, and 1
        where the density ends at a bound or in walls about a plateau, and says nothing of narrow draws.
    of_changes : ndarray of shape (D,)
        The same from differences of draws, which neither a drift nor chains that lie apart enlarge; 1 unless it is
        clearly above `VERY_WIDE`.
    log_density : ndarray of shape (n_chains, n_probes)
        At the draws that were used, evenly spaced.
    bounded : tuple of int
        Entries with small ratios beyond whose draws the log density is not finite.
    n_effective : ndarray of shape (D,)
        Independent normal draws from which a ratio would be as precise.
    given : ndarray of bool of shape (D,)
        Entries whose ratio is that of their conditional variance, given the entries before.
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
        """The smallest and the largest ratio that are no reason to warn, for each entry."""
        if self.ratios is None:
            return NARROW, WIDE
        narrow, wide = limits_of_spread(self.n_effective, self.ratios.size)
        below, above = (self.ratios + sign * ERRORS * self.error for sign in (1.0, -1.0))
        return np.where(below < 1.0, narrow, -np.inf), np.where(above > 1.0, wide, np.inf)


def spread_of(gradient, draws, temperature=1.0, cells=CELLS):
    r"""The `Spread` of draws on flat space.

    For any density :math:`p^{1/T}` on flat space that decays, integration by parts gives
    :math:`E[-a^\top(\theta - c) \, b^\top \nabla \log p(\theta)] = T a^\top b` for all vectors and every constant
    :math:`c`. For a normal density with precision :math:`P` and draws with covariance :math:`S` the left side is
    :math:`a^\top S P b`. Chains that have hardly moved have ratios near 0. The noise of minibatches and long steps lead
    to ratios above 1.

    With :math:`a = b = e_i`, the mean over n independent draws has the variance
    :math:`(1 + 1 / (1 - R_i^2)) / n`, where :math:`R_i` is the correlation of an entry with all others: of correlated
    entries it says nothing. We take coordinates in which the draws are uncorrelated instead, :math:`w = L^{-1}(\theta -
    c)` with :math:`L L^\top = S`, where :math:`R_i = 0` and the variance is :math:`2 / n`: a ratio is a chi-squared
    number with n degrees of freedom, over n. The Cholesky factor of the entries in their order keeps their names:
    :math:`w_i` is the part of entry i that the entries before do not predict, and its ratio is that of its conditional
    variance. The directions of all :math:`w_i` together are a basis, so no direction is left out.

    Draws of a chain depend on each other and need not be normal. The number of independent normal draws that would be
    as precise is

    .. math:: n_i = \frac{2}{v_i} \min(n, \mathrm{ESS}(w_i), \mathrm{ESS}(w_i^2)),

    where :math:`v_i` is the variance of the products, over the square of their mean where that is above 1, and at least
    2. `limits_of_spread` turns it into limits, and no ratio is wrong that is within `ERRORS` standard errors of 1: few
    effective draws never lead to a warning on their own. The covariance :math:`S` is that of the draws themselves,
    which adds at most D / ESS to a ratio; with fewer than `_PER_ENTRY` effective draws for each entry, or more than
    `_MOST_WHITENED` entries, we keep the entries as they are, whose larger variance :math:`v_i` includes.

    Parameters
    ----------
    gradient : DenseGradient
        Gradient on all rows.
    draws : ndarray of shape (n_chains, n_kept, D)
    temperature : float
    cells : float
        Rows times entries that all gradients together may read, but for the fewest draws.
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
    with np.errstate(invalid="ignore", over="ignore"):  # where gradients are not finite, nothing is checked
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
        elif max(rises) < -_WALL and np.mean(pull[..., i] == 0.0) > 0.5:
            ratios[i] = 1.0
    n_effective = np.minimum(axes.n_effective, values.size)
    error, n_normal = deviation / np.sqrt(n_effective), 2.0 * n_effective / v
    return Spread(ratios, clearly_above(VERY_WIDE, bends), values, tuple(bounded), n_normal, axes.given, error)


class _Axes:
    """Coordinates in which draws have unit variances, and are uncorrelated if there are enough of them.

    Parameters
    ----------
    draws : ndarray of shape (n_chains, n_kept, D)
    at : ndarray of int
        Draws of each chain at which gradients are known.

    Attributes
    ----------
    n_effective : ndarray of shape (D,)
        Effective draws, the fewer of those of a coordinate and of its square.
    given : ndarray of bool of shape (D,)
        Coordinates that are mostly determined by those before.
    """

    def __init__(self, draws, at):
        D = draws.shape[2]
        self._centre = draws.mean(axis=(0, 1), dtype=np.float64)
        units = draws.std(axis=(0, 1), dtype=np.float64)
        self._units, self._root = np.where(units > 0.0, units, 1.0), None
        some = draws[:, evenly(draws.shape[1], max(_MOST_SERIES // draws.shape[0], at.size))]
        some = some[..., evenly(D, _MOST_WHITENED)]  # entries that stand for all others
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
        """Effective draws of values and of their squares, all of them where nothing moves."""
        if values.shape[1] < MIN_KEPT:  # too few of a chain to see how they depend on each other
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
        """By how much theta moves, (D,), if a coordinate grows by 1."""
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
    """Products of second differences of draws and of slopes, of mean 1 if draws are independent: (n_chains, n, D).

    Second differences of independent draws have six times the variance. As in `spread_of`, they are taken in
    coordinates in which they are uncorrelated.
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
    """By how much a log density rises within a standard deviation below and above the outermost values of an entry."""
    along, rises = axes.of(points)[:, i], []
    step = along.std() * axes.direction(i)
    for at, away in ((along.argmin(), -step), (along.argmax(), step)):
        rises.append(gradient(points[at] + away)[0] - values[at])
    return rises


def clearly_above(limit, ratios):
    """Means of ratios of single draws, (n_chains, n, D), where they exceed a limit beyond chance, and elsewhere 1."""
    n_chains, n = ratios.shape[:2]
    n_pieces = max(1, min(_PIECES, n // 4))
    if n_chains * n < MIN_KEPT or n_chains * n_pieces < 2:
        return np.ones(ratios.shape[2:])
    with np.errstate(invalid="ignore", over="ignore"):
        pieces = np.concatenate([part.mean(axis=1) for part in np.array_split(ratios, n_pieces, axis=1)])
        mean, error = pieces.mean(axis=0), pieces.std(axis=0, ddof=1) / np.sqrt(len(pieces))
        return np.where(mean - _SURE * error > limit, mean, 1.0)
