"""What a sampler becomes on a Gaussian target: a linear recursion, whose stationary covariance is known exactly.

For a coordinate with curvature lambda, i.e. with gradient -lambda theta, a step maps s = (theta, p), or s = theta
without momentum, to A s + b xi + e. Here xi is the error of the gradient, and e the injected noise with covariance Q.
"""

from typing import NamedTuple

import numpy as np
from scipy import optimize


class LinearChain(NamedTuple):
    """The recursion of one step for each of n coordinates.

    Parameters
    ----------
    transition : ndarray of shape (n, m, m)
        A; m is 2 with momentum and 1 without.
    response : ndarray of shape (n, m)
        b.
    injected : ndarray of shape (n, m, m)
        Q.
    """

    transition: np.ndarray
    response: np.ndarray
    injected: np.ndarray

    @classmethod
    def still(cls, n):
        """A step that changes nothing, of coordinates with momentum; ``then_...`` compose the parts of a step."""
        return cls(np.tile(np.eye(2), (n, 1, 1)), np.zeros((n, 2)), np.zeros((n, 2, 2)))

    def _then(self, part, response=0.0, injected=0.0):
        """A further part of the step."""
        turned = part @ self.injected @ np.swapaxes(part, -1, -2)
        moved = (part @ self.response[..., None])[..., 0]
        return LinearChain(part @ self.transition, moved + response, turned + injected)

    def then_drift(self, time):
        """theta += time p."""
        return self._then(np.array([[1.0, time], [0.0, 1.0]]))

    def then_kick(self, curvatures, time):
        """p += time (-curvature theta + xi)."""
        part = np.tile(np.eye(2), (curvatures.size, 1, 1))
        part[:, 1, 0] = -time * curvatures
        return self._then(part, response=np.array([0.0, time]))

    def then_euler_kick(self, curvatures, time, factor, variance):
        """p <- factor p + time (-curvature theta + xi) + noise of this variance, all from the state before."""
        part = np.tile(np.diag([1.0, factor]), (curvatures.size, 1, 1))
        part[:, 1, 0] = -time * curvatures
        return self._then(part, response=np.array([0.0, time]), injected=np.diag([0.0, variance]))

    def then_damping(self, factor, variance):
        """p <- factor p + noise of this variance."""
        return self._then(np.diag([1.0, factor]), injected=np.diag([0.0, variance]))

    def then_langevin(self, friction, time, temperature):
        """Langevin dynamics without force over ``time``, solved exactly; see `kernels.samplers.euclidean`."""
        x = friction * time
        half = np.tanh(0.5 * x) / friction
        rest = 2.0 * x - 4.0 * np.tanh(0.5 * x) if x > 0.1 else x**3 / 6.0 - x**5 / 60.0 + 17.0 * x**7 / 10080.0
        spread = np.diag([temperature * rest / friction**2, 0.0])
        damped = self.then_drift(half).then_damping(np.exp(-x), temperature * -np.expm1(-2.0 * x))
        return damped.then_drift(half)._then(np.eye(2), injected=spread)

    def is_stable(self):
        """Whether the chain has a stationary distribution."""
        return bool(np.abs(np.linalg.eigvals(self.transition)).max() < 1.0)

    def injected_covariance(self):
        """Stationary covariance that the injected noise causes, (n, m, m)."""
        return solved(self.transition, self.transition, self.injected)


def solved(left, right, constant):
    """The matrix P = left P right^T + constant; all arrays are (..., m, m) and broadcast."""
    m = constant.shape[-1]
    lead = np.broadcast_shapes(left.shape[:-2], right.shape[:-2], constant.shape[:-2])
    product = np.einsum("...ik,...jl->...ijkl", left, right).reshape(*lead, m * m, m * m)
    constant = np.broadcast_to(constant, (*lead, m, m)).reshape(*lead, m * m, 1)
    return np.linalg.solve(np.eye(m * m) - product, constant).reshape(*lead, m, m)


def thermostatted(chain_at, noise_variances, temperature, start):
    """The chain at the friction at which a thermostat holds the mean kinetic energy.

    The friction fluctuates about this value; the fluctuations are left out.

    Parameters
    ----------
    chain_at : callable
        Maps a friction to a `LinearChain`, whose momentum at the end of a step is what the thermostat reads.
    noise_variances : ndarray of shape (n,)
        Variances of the errors of the gradient.
    temperature : float
        The mean square of the momentum at which the thermostat rests.
    start : float
        Friction without errors of the gradient.

    Returns
    -------
    chain : LinearChain, or None if there is no such friction
    """

    def excess(friction):
        chain = chain_at(friction)
        if not chain.is_stable():
            return np.inf
        own = chain.response[:, :, None] * chain.response[:, None] * noise_variances[:, None, None]
        total = solved(chain.transition, chain.transition, chain.injected + own)
        return float(total[:, 1, 1].mean() - temperature)

    low, high = 0.5 * start, 2.0 * start
    for _ in range(60):
        if excess(low) > 0.0:
            break
        low *= 0.5
    for _ in range(60):
        if excess(high) < 0.0:
            break
        high *= 2.0
    if not (0.0 < excess(low) < np.inf and excess(high) < 0.0):
        return None
    return chain_at(optimize.brentq(excess, low, high, xtol=1e-10 * start))
