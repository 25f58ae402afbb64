"""The bias of the draws of a chain on flat space, predicted from the curvature and from the noise of minibatches.

Near a Gaussian posterior with precision H, a step of a sampler is linear in the state (`LinearChain`). Its stationary
covariance then solves a discrete Lyapunov equation (Mandt, Hoffman and Blei, 2017, Stochastic gradient descent as
approximate Bayesian inference, JMLR 18, section 3, in continuous time; Brosse, Durmus and Moulines, 2018, The promises
and pitfalls of stochastic gradient Langevin dynamics, NeurIPS). Here it is solved for the step as it is made: with its
step size, friction, batch size and order of minibatches.

The errors of the gradient are not independent over time, since an epoch reads each row at most once. Two minibatches of
one epoch have the correlation -1 / (N / n - 1), and minibatches of different epochs have none. With m minibatches in an
epoch, the autocovariance of the errors at lag k is therefore

    gamma_k = -V (1 - k / m) / (N / n - 1)   for 1 <= k < m,

which removes most of the noise if an epoch is short compared with the relaxation of the chain. If each second epoch
reads the minibatches of the epoch before in reverse order, 2 m minibatches belong together. Two of them at an odd lag k
are the same with probability 1 / (2 m - k). On average over the position in the pair of epochs,

    gamma_k = V ([k is odd] (1 + r) - r (2 m - k)) / (2 m)   for 1 <= k < 2 m, with r = 1 / (N / n - 1).

Rows that are drawn with replacement have gamma_k = 0.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy import linalg

from ..chains.chain import stacked_draws
from ..chains.convergence import evenly
from ..samplers._linear_chain import solved
from .tuning import DenseGradient, unit_root

_MOST_ENTRIES = 200  # above this, no bias is predicted
_CELLS = 5e7  # rows times entries that all gradients together may read
_POINTS = 8  # draws at which gradients are compared
# Minibatches from which the noise is measured; more of them where it adds more than this share of a variance.
_MINIBATCHES, _NOISY = (200, 4000), 0.03
_PER_POINT = 25  # minibatches at each draw
_DIFFERENCE = 1e-3  # step of differences of gradients, in standard deviations
_CURVED = 0.35  # largest part of the gradient, as a root mean square, that the linearisation may miss


@dataclass(frozen=True, eq=False)
class Noise:
    """Errors of the gradient of minibatches.

    Parameters
    ----------
    covariance : ndarray of shape (n_entries, n_entries)
        Covariance V of the error of one minibatch.
    n_batches : float
        Minibatches in an epoch, N / n; infinite if rows are drawn with replacement.
    batch_order : str, default="shuffled"
        Order of the minibatches of an epoch, as for `DenseChain`.
    """

    covariance: np.ndarray
    n_batches: float
    batch_order: str = "shuffled"

    def summed(self, transition):
        """Sum over the lags k >= 1 of gamma_k A^k / V, for matrices A of shape (n, m, m)."""
        if not np.isfinite(self.n_batches) or self.n_batches < 2.0:
            return np.zeros_like(transition)
        m, r = int(self.n_batches), 1.0 / (self.n_batches - 1.0)
        if self.batch_order == "palindromic":
            return ((1.0 + r) * _odd_powers(transition, m) - r * _falling_powers(transition, 2 * m)) / (2 * m)
        return -r / m * _falling_powers(transition, m)


def _falling_powers(A, m):
    """Sum of (m - k) A^k over 1 <= k < m."""
    one = np.eye(A.shape[-1])
    total = A @ ((m - 1) * one - m * A + np.linalg.matrix_power(A, m))
    return np.linalg.solve((one - A) @ (one - A), total)


def _odd_powers(A, m):
    """Sum of A^k over odd k < 2 m."""
    one = np.eye(A.shape[-1])
    return np.linalg.solve(one - A @ A, A @ (one - np.linalg.matrix_power(A, 2 * m)))


def stationary_covariance(chain, noise):
    """Covariance of theta under a `LinearChain`, and the part that is due to ``noise``; both (n, n).

    ``noise`` is in the same coordinates as the chain. None: gradients have no errors.
    """
    own = np.diag(chain.injected_covariance()[:, 0, 0])
    if noise is None:
        return own, np.zeros_like(own)
    A, b = chain.transition, chain.response
    left, right = A[:, None], A[None]
    P = solved(left, right, b[:, None, :, None] * b[None, :, None, :])
    later = noise.summed(A)
    P = P + later[:, None] @ P + P @ np.swapaxes(later, -1, -2)[None]
    added = noise.covariance * P[..., 0, 0]
    return own + added, added


class Linearisation:
    """The Gaussian nearest to the draws of a chain, and the noise of its minibatches.

    Parameters
    ----------
    dense : DenseData
    shuffle_seed : int
        Seed of the order of rows.
    draws : ndarray of shape (n_draws, n_entries)
    temperature : float
    batch_order : str, default="shuffled"
        Order of minibatches, as for `DenseChain`.

    Attributes
    ----------
    precision : ndarray of shape (n_entries, n_entries)
        Minus the derivative of the gradient at the mean of the draws, divided by the temperature. For many rows, the
        identity, which is right in the coordinates of most models here; otherwise it misses much.
    missed : float
        Root mean square of the part of the gradients at draws that ``precision`` does not explain, relative to the
        part that it does.
    """

    def __init__(self, dense, shuffle_seed, draws, temperature, batch_order="shuffled"):
        self._dense, self._shuffle_seed, self._draws, self._batch_order = dense, shuffle_seed, draws, batch_order
        self._gradient = gradient = DenseGradient(dense, (draws.shape[1], 1))
        centre, D = draws.mean(axis=0), draws.shape[1]
        self.precision = np.eye(D) / temperature
        if dense.n_rows * D * 2 * D <= _CELLS:
            steps = _DIFFERENCE * draws.std(axis=0)
            moves = np.diag(np.where(steps > 0.0, steps, _DIFFERENCE))
            slopes = np.stack([gradient(centre - move)[1] - gradient(centre + move)[1] for move in moves])
            slopes /= 2.0 * np.diag(moves)[:, None]
            self.precision = 0.5 * (slopes + slopes.T) / temperature
        points, base = self._points(_POINTS), gradient(centre)[1]
        explained = -(points - centre) @ self.precision * temperature
        rest = np.stack([gradient(point)[1] - base for point in points]) - explained
        with np.errstate(invalid="ignore", divide="ignore"):
            self.missed = float(np.sqrt((rest**2).sum() / (explained**2).sum()))

    def _points(self, n):
        """Evenly spaced draws."""
        return self._draws[np.linspace(0, len(self._draws) - 1, n).round().astype(int)]

    def noise(self, n_minibatches):
        """The `Noise` of the minibatches that chains read, averaged over draws; None if a minibatch is all rows.

        Minibatches without replacement are ranges of rows in an order that is shuffled once. With few minibatches in an
        epoch, their noise depends on this order.
        """
        dense, rng, D = self._dense, np.random.default_rng(0), self._draws.shape[1]
        N, n = dense.n_rows, dense.n_batch
        if n >= N:
            return None
        order = None if dense.with_replacement else dense.reading_order(np.random.default_rng(self._shuffle_seed))
        points = self._points(n_minibatches // _PER_POINT)
        total = np.zeros((D, D))
        for point in points:
            whole = self._gradient(point)[1]
            for _ in range(_PER_POINT):
                rows = rng.integers(0, N, n) if order is None else order[(rng.integers(N) + np.arange(n)) % N]
                error = self._gradient(point, rows)[1] - whole
                total += np.outer(error, error)
        return Noise(total / (_PER_POINT * len(points)), np.inf if dense.with_replacement else N / n, self._batch_order)


@dataclass(frozen=True, eq=False)
class StationaryLaw:
    """Covariance of the posterior, and of the draws of the chain, both (n_entries, n_entries)."""

    exact: np.ndarray
    biased: np.ndarray
    precision: np.ndarray

    def bias_at(self, draws):
        """A function that returns the bias of a quantity, in standard deviations, given its values at these draws.

        For a quantity that is about linear in theta, the relative error of its standard deviation. Otherwise, the error
        of its mean: under a Gaussian, the mean of f changes by half the covariance of f and theta' H C H theta if the
        covariance changes by C.

        Parameters
        ----------
        draws : ndarray of shape (n_draws, n_entries)
        """
        away = draws - draws.mean(axis=0)
        inverse = linalg.pinvh(away.T @ away)
        turned = away @ self.precision
        square = ((turned @ (self.biased - self.exact)) * turned).sum(axis=1)
        square -= square.mean()

        def bias_of(values):
            f = values - values.mean()
            variance = f @ f / len(f)
            if not variance > 0.0:
                return np.nan
            weights = inverse @ (away.T @ f)
            if ((f - away @ weights) ** 2).mean() < 0.1 * variance:
                exact, biased = (weights @ each @ weights for each in (self.exact, self.biased))
                return float(np.sqrt(biased / exact) - 1.0)
            return float(0.5 * (f @ square) / len(f) / np.sqrt(variance))

        return bias_of


def bias_under(sampler, chains):
    """A function from the draws of a quantity, (n_chains, n_kept), to its bias; NaN where that is not known.

    Parameters
    ----------
    sampler : Sampler
        Fitted.
    chains : list of DenseChain
    """
    if sampler._corrects_steps or not hasattr(sampler, "step_size_"):
        return lambda values: 0.0
    data = getattr(chains[0], "data", None)
    draws = stacked_draws(chains)["theta"]
    if not sampler._draws_in_time or data is None or draws.shape[-1] != 1:
        return lambda values: np.nan
    draws = draws[..., 0].astype(np.float64)
    with np.errstate(all="ignore"):
        flat = draws.reshape(-1, draws.shape[2])
        law = stationary_law(sampler, data[0], chains[0].shuffle_seed, flat, chains[0].batch_order)
    if law is None:
        return lambda values: np.nan

    at = cache(lambda n: law.bias_at(draws[:, evenly(draws.shape[1], n)].reshape(-1, draws.shape[2])))
    # A quantity may have been computed at some of the draws only.
    return lambda values: at(values.shape[1])(values.ravel())


def stationary_law(sampler, dense, shuffle_seed, draws, batch_order="shuffled"):
    """The `StationaryLaw` of a chain, or None where it cannot be predicted.

    Parameters
    ----------
    sampler : Sampler
        Fitted.
    dense, shuffle_seed
        As for `Linearisation`.
    draws : ndarray of shape (n_draws, n_entries)
        Kept draws of all chains.
    batch_order : str, default="shuffled"
        As for `Linearisation`.
    """
    D = draws.shape[1]
    h = sampler.step_size_(np.arange(2))
    if D > _MOST_ENTRIES or len(draws) < 5 * D or h[0] != h[1]:
        return None
    inverse_mass = sampler._inverse_mass(D)
    if inverse_mass is None and getattr(sampler, "mass", None) is not None:
        return None  # learnt
    if sampler._linear_chain(np.ones(1), float(h[0]), np.zeros(1)) is None:
        return None
    found = Linearisation(dense, shuffle_seed, draws, sampler.temperature, batch_order)
    if not found.missed <= _CURVED:
        return None
    root = unit_root(inverse_mass)
    root = np.eye(D) if root is None else root
    curvatures, vectors = linalg.eigh(sampler.temperature * root.T @ found.precision @ root)
    if not curvatures.min() > 0.0:
        return None
    turn = root @ vectors  # maps coordinates in which all is diagonal to theta
    exact = sampler.temperature / curvatures
    for n_minibatches in _MINIBATCHES:
        noise = found.noise(n_minibatches)
        if noise is not None:
            noise = replace(noise, covariance=turn.T @ noise.covariance @ turn)
        variances = np.zeros(D) if noise is None else np.diag(noise.covariance)
        chain = sampler._linear_chain(curvatures, float(h[0]), variances)
        if chain is None or not chain.is_stable():
            return None
        biased, added = stationary_covariance(chain, noise)
        is_little = (np.diag(added) < _NOISY * exact).all()
        if noise is None or is_little or dense.n_batch * D * _MINIBATCHES[-1] > _CELLS:
            break
    return StationaryLaw(turn @ np.diag(exact) @ turn.T, turn @ biased @ turn.T, found.precision)
