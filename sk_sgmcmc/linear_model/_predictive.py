"""Predictive distributions of linear regression, from moments of the draws instead of every draw for every row."""

from functools import cached_property

import numpy as np
from scipy import sparse, special

from ..utils._bit_stable import bit_stable_product, one_blas_thread
from ..utils._mixtures import normal_mixture_quantile

_ROWS, _CELLS = 512, 1_000_000  # at a time
_MOST_COLUMNS = 20  # beyond which evaluating every draw costs less than fourth moments
# The largest absolute third and fifth derivatives of the normal distribution function.
_THIRD, _FIFTH = 0.399, 1.197
# In standard deviations of the noise: the error of a quantile, that of a good guess, and the last step of Newton's
# method, whose square is an error.
_PRECISION, _NEAR, _LAST_STEP = 1e-7, 1e-2, 1e-5


class NormalPredictive:
    """Mixtures, over draws, of normal distributions whose means are linear in the row.

    Parameters
    ----------
    coef, intercept, noise : ndarray of shape (n_draws, n_features), (n_draws,), (n_draws,)
        Draws; the noise is a standard deviation.
    """

    def __init__(self, coef, intercept, noise):
        self.coef, self.intercept, self.noise = coef, intercept, noise
        self.mean_coef, self.mean_intercept = coef.mean(axis=0, dtype=np.float64), intercept.mean(dtype=np.float64)
        self.variance = np.mean(noise**2)

    @cached_property
    def _away(self):
        return np.column_stack([self.intercept - self.mean_intercept, self.coef - self.mean_coef])

    @cached_property
    def _spread_root(self):
        """A square root of the covariance of the intercept and the coefficients."""
        return np.linalg.qr(self._away / np.sqrt(len(self.coef)), mode="r")

    @cached_property
    def _moments(self):
        return _Moments(1.0 / self.noise, self._away)

    def moments(self, X):
        """Mean and standard deviation of a new observation at each row of X, (n,) each."""
        std = np.empty(X.shape[0])
        with one_blas_thread():
            for lo in range(0, X.shape[0], _ROWS):
                rows = slice(lo, lo + _ROWS)
                moved = _times(X[rows], self._spread_root[:, 1:].T) + self._spread_root[:, 0]
                std[rows] = np.sqrt(np.einsum("ij,ij->i", moved, moved) + self.variance)
        return self.mean(X), std

    def mean(self, X):
        """Mean of a new observation at each row of X, (n,)."""
        product = X @ self.mean_coef if sparse.issparse(X) else np.einsum("ij,j->i", X, self.mean_coef)
        return product + self.mean_intercept

    def quantiles(self, X, tails):
        """Means (n,), and a list of quantiles (n,) of a new observation at each row of X."""
        mean, std = self.moments(X)
        found = [mean + std * special.ndtri(tail) for tail in tails]
        is_done = np.zeros((len(tails), len(mean)), dtype=bool)
        # Threads of BLAS wait for each other longer than the products of small blocks take.
        with one_blas_thread():
            if not sparse.issparse(X):
                for lo in range(0, len(mean), _ROWS):
                    rows = slice(lo, lo + _ROWS)
                    for k, tail in enumerate(tails):
                        above, is_done[k, rows] = self._moments.quantile(X[rows], found[k][rows] - mean[rows], tail)
                        found[k][rows] = mean[rows] + above
            self._use_draws(X, tails, found, is_done)
        return mean, found

    def _use_draws(self, X, tails, found, is_done):
        """Improve the quantiles that are not precise enough, from the mean of each draw."""
        rest = np.flatnonzero(~is_done.all(axis=0))
        step = max(1, _CELLS // len(self.coef))
        for lo in range(0, rest.size, step):
            rows = rest[lo : lo + step]
            means = _times(X[rows], self.coef.T) + self.intercept
            for k, tail in enumerate(tails):
                needed = np.flatnonzero(~is_done[k, rows])
                at = rows[needed]
                found[k][at] = normal_mixture_quantile(means[needed], self.noise, tail, found[k][at])


class _Moments:
    """Moments up to the second or fourth of the standardised distance between a quantile and the mean of a draw.

    At r above the mean, the distance is z = t (r - b - x'c) for a draw's rate t, which is one over the noise, and its
    distances b and c from the mean intercept and coefficients. It is linear in u = (r, -1, -x), so its moments are
    those of the vectors t (1, b, c). The probability below r is the mean of Phi(z), which is expanded about the mean
    of z.

    Parameters
    ----------
    rate : ndarray of shape (n_draws,)
    away : ndarray of shape (n_draws, 1 + n_features)
    """

    def __init__(self, rate, away):
        vectors = rate[:, None] * np.column_stack([np.ones(len(rate)), away])
        self.mean = vectors.mean(axis=0)
        unit, root = np.linalg.qr(vectors - self.mean)
        unit *= np.sqrt(len(rate))  # columns without correlation and with second moment 1
        self.root = root / np.sqrt(len(rate))
        self.farthest = np.sqrt(np.max(np.einsum("ij,ij->i", unit, unit)))
        self.has_fourth = unit.shape[1] <= _MOST_COLUMNS
        if not self.has_fourth:
            return
        first, second = np.triu_indices(unit.shape[1])
        pairs = np.where(first == second, 1.0, 2.0) * unit[:, first] * unit[:, second]
        self.third = np.ascontiguousarray(pairs.T @ unit / len(rate))
        self.fourth = np.ascontiguousarray(pairs.T @ pairs / len(rate))

    def quantile(self, X, above, tail):
        """Quantiles above the mean, from guesses, and whether each is precise enough."""
        rest = -(_times(X, self.root[:, 2:].T) + self.root[:, 1])
        shift = -(np.einsum("ij,j->i", X, self.mean[2:]) + self.mean[1])
        with np.errstate(all="ignore"):
            guess = above
            for _ in range(3):
                below, density, _ = self._expanded(rest, shift, above, False)
                above = above - (below - tail) / density
            below, density, error = self._expanded(rest, shift, above, True)
            step = (below - tail) / density
            rate = self.mean[0]
            is_near = (error * rate <= _NEAR * density) & (np.abs(step) * rate <= _NEAR)
            is_done = (error * rate <= _PRECISION * density) & (np.abs(step) * rate <= _LAST_STEP)
            above = np.where(is_near, above - step, guess)  # an expansion that fails may lead anywhere
        return above, is_done

    def _expanded(self, rest, shift, above, is_last):
        """Probability below, density, and a bound of the error of the probability; the last with higher moments."""
        z = self.mean[0] * above + shift
        g = rest + above[:, None] * self.root[:, 0]
        m2, shared = np.einsum("ij,ij->i", g, g), np.einsum("ij,j->i", g, self.root[:, 0])
        top = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
        below = special.ndtr(z) - 0.5 * z * top * m2
        density = top * (self.mean[0] * (1.0 + 0.5 * (z**2 - 1.0) * m2) - z * shared)
        if not is_last:
            return below, density, None
        if not self.has_fourth:  # The fourth moment is at most that of draws all as far as the farthest.
            return below, density, _THIRD / 6.0 * self.farthest * m2**1.5
        pairs, lo = np.empty((len(g), len(self.third))), 0
        for j in range(g.shape[1]):
            hi = lo + g.shape[1] - j
            np.multiply(g[:, j:], g[:, j, None], out=pairs[:, lo:hi])
            lo = hi
        m3 = np.einsum("ij,ij->i", bit_stable_product(pairs, self.third), g)
        m4 = np.einsum("ij,ij->i", bit_stable_product(pairs, self.fourth), pairs)
        below += top * ((z**2 - 1.0) * m3 / 6.0 - (z**3 - 3.0 * z) * m4 / 24.0)
        # The fifth absolute moment is at most sqrt(m4 m6), and no draw is farther than `farthest` times the spread.
        return below, density, _FIFTH / 120.0 * m4 * self.farthest * np.sqrt(m2)


def _times(X, B):
    """X B, in which a row does not depend on the other rows; X may be sparse."""
    return X @ B if sparse.issparse(X) else bit_stable_product(X, B)
