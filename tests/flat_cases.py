"""The table of the samplers on flat space: target, step size, law, and deliberately broken variants.

The target is a correlated Gaussian in three dimensions. Linear chains (SGLD, SGHMC) have a closed-form law *with* their
step size: the stationary covariance of the linear map, which is read off the slow twin. The others are run at h, h/2
and h/4 and extrapolated by their order, or at one step size if they are exact. Masses are not the identity.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import solve_discrete_lyapunov

from sk_sgmcmc.kernels._jit import OK, TRANSITION, helper, kernel
from sk_sgmcmc.kernels.models.conjugate import gaussian_mean
from sk_sgmcmc.kernels.runners import run_dense, run_metropolis
from sk_sgmcmc.kernels.samplers import mass as at
from sk_sgmcmc.kernels.samplers import riemannian
from sk_sgmcmc.kernels.samplers.euclidean import flat_flow, flat_project
from sk_sgmcmc.kernels.samplers.mass import XI, draw_momentum, kinetic, times_inverse_mass
from sk_sgmcmc.samplers import HMC, RHMC, SGHMC, SGLD, SGNHT, SGNPHMC, SGRNPHMC
from tests.cases import N_BATCHES, refuse_without_broken, z_scores
from tests.naive import euclidean as naive

PRECISION = np.array([[2.0, 0.8, 0.0], [0.8, 1.0, 0.3], [0.0, 0.3, 0.5]])
COVARIANCE = np.linalg.inv(PRECISION)
MASS = np.array([[1.0, 0.5, 0.0], [0.5, 3.0, 0.4], [0.0, 0.4, 2.0]])
D = 3
PAIRS = np.triu_indices(D)


def gradient(theta):
    return -PRECISION @ theta


def log_density(theta):
    return -0.5 * theta @ PRECISION @ theta


def run_chain(sampler, h, n_steps, thin, rng, step_kernel=None):
    """One chain through the real runner; kept states (n_kept, D)."""
    fitted = sampler._resolved(h)
    theta = (np.linalg.cholesky(COVARIANCE) @ rng.standard_normal(D))[:, None]
    aux, scalars = fitted._state(theta, "euclidean", 0)
    after = np.arange(1, n_steps + 1)
    slots = np.where(after % thin == 0, after // thin - 1, -1)
    kept = np.empty((n_steps // thin, D, 1))
    data = np.zeros((1, D)), np.zeros((1, 0)), np.ones(1), np.concatenate([[0.0], PRECISION.ravel()])
    hypers = fitted._hyper(0, n_steps)
    hypers[:, 0] = h
    if fitted._uses_metric:
        signal, metric = (each.compiled for each in step_kernel or (gaussian_mean, bent_metric))
        args = np.zeros(0), False, hypers, slots, kept, signal, metric, rng
        if fitted._loop == "riemannian-metropolis":
            status, _ = riemannian.run_metropolis(theta, aux, scalars, *data, *args)
        else:
            starts = np.zeros(n_steps, dtype=np.int64)
            params, *args = args
            status, _ = riemannian.run_dense(theta, aux, scalars, *data, starts, 1, 1.0, *data[:3], params, 1.0, *args)
    elif fitted._loop == "metropolis":
        flow, project = step_kernel or flat_flow, flat_project
        status, _ = run_metropolis(
            theta, aux, scalars, *data, hypers, slots, kept, flow.compiled, gaussian_mean.compiled, project.compiled,
            rng,
        )  # fmt: skip
    else:
        advance, step = fitted._kernels("euclidean")
        status, _ = run_dense(
            theta, aux, scalars, *data, np.zeros(n_steps, dtype=np.int64), 1, 1.0, hypers, slots, kept,
            np.empty((0, D, 1)), advance.compiled, gaussian_mean.compiled, (step_kernel or step).compiled, rng,
        )  # fmt: skip
    assert status == OK
    return kept[..., 0]


def moments(draws):
    """Means and products, (D + D (D + 1) / 2,)."""
    return np.concatenate([draws.mean(axis=0), (draws.T @ draws / len(draws))[PAIRS]])


class GivenNormals:
    """A generator whose normal numbers are given; it hands them out in order.

    Parameters
    ----------
    z : ndarray of shape (n_normals,)
    """

    def __init__(self, z):
        self.z, self.n_drawn = z, 0

    def standard_normal(self, size=None):
        """The next numbers."""
        shape = () if size is None else size
        n = int(np.prod(shape))
        self.n_drawn += n
        if self.n_drawn > self.z.size:
            raise ValueError(f"n_normals={self.z.size}, but the twin draws more numbers in a step; pass how many.")
        return self.z[self.n_drawn - n : self.n_drawn].reshape(shape)


def linear_law(twin, n_state, n_normals=D):
    """Moments of the stationary law of a twin that is linear in its state and in its normal numbers.

    ``twin(state, rng)`` makes one step, for which it draws ``n_normals`` numbers by ``rng.standard_normal``.
    """

    def step(state, z):
        rng = GivenNormals(z)
        new = twin(state, rng)
        if rng.n_drawn < n_normals:
            raise ValueError(f"n_normals={n_normals}, but the twin draws {rng.n_drawn} in a step; pass that.")
        return new

    zero, still = np.zeros(n_state), np.zeros(n_normals)
    A = np.array([step(e, still) for e in np.eye(n_state)]).T
    B = np.array([step(zero, e) for e in np.eye(n_normals)]).T
    covariance = solve_discrete_lyapunov(A, B @ B.T)[:D, :D]
    return np.concatenate([np.zeros(D), covariance[PAIRS]])


TARGET_LAW = np.concatenate([np.zeros(D), COVARIANCE[PAIRS]])


@dataclass(frozen=True)
class FlatCase:
    """One sampler at a step size, its law there, and what must be rejected.

    Parameters
    ----------
    sampler : Sampler
    h : float
        Step size, or the largest of those extrapolated.
    time : float
        Length of each chain.
    law : ndarray or None
        Exact moments at h, or those of the target where the bias at h is below the error; None: extrapolate.
    order : int
        Of the bias, for the extrapolation.
    broken : dict of str to kernel
        In the place of the step, or of a Riemannian sampler's signal and metric (a pair); at least one.
    """

    sampler: object
    h: float
    time: float
    law: object = None
    order: int = 1
    broken: dict = field(default_factory=dict)

    def __post_init__(self):
        refuse_without_broken(self.sampler, self.broken)

    def batch_means(self, h, rng, step_kernel=None, n_chains=N_BATCHES):
        unit = 1.0 if self.sampler._reads_all_rows else h
        n_steps = int(self.time / unit)
        thin = max(1, int(0.2 / unit))
        burn = n_steps // 20 // thin
        return np.array(
            [
                moments(run_chain(self.sampler, h, n_steps - n_steps % thin, thin, rng, step_kernel)[burn:])
                for _ in range(n_chains)
            ]
        )

    def z_scores(self, seed, step_kernel=None):
        rng = np.random.default_rng(seed)
        if self.law is not None:
            return z_scores(self.batch_means(self.h, rng, step_kernel), self.law)
        coarse, middle, fine = (self.batch_means(self.h / 2**i, rng, step_kernel) for i in range(3))
        a = 2.0**self.order
        b = 2.0 ** (self.order + 1) if self.order == 1 else 2.0 ** (self.order + 2)
        once, twice = (a * middle - coarse) / (a - 1.0), (a * fine - middle) / (a - 1.0)
        return z_scores((b * twice - once) / (b - 1.0), TARGET_LAW)


# ---------------------------------------------------------------------------------------------------- broken variants


@kernel(TRANSITION)
def sgld_noise_of_epsilon(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: sqrt(h), the papers' noise of variance epsilon with h in the place of epsilon / 2."""
    for r in rows:
        theta[r, 0] += hyper[0] * signal[r, 0] + np.sqrt(hyper[0]) * rng.standard_normal()
    return OK


@kernel(TRANSITION)
def sghmc_noise_half(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: noise of variance h C where 2 h C belongs."""
    p, velocity = aux[0], aux[1]
    times_inverse_mass(scalars, p, velocity)
    for r in rows:
        noise = np.sqrt(hyper[0] * hyper[2]) * rng.standard_normal()
        p[r, 0] += hyper[0] * (signal[r, 0] - hyper[2] * velocity[r, 0]) + noise
    times_inverse_mass(scalars, p, velocity)
    for r in rows:
        theta[r, 0] += hyper[0] * velocity[r, 0]
    return OK


@kernel(TRANSITION)
def baoab_noise_white(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: noise of the identity's covariance under a mass that is another."""
    p, velocity = aux[0], aux[1]
    h, c = hyper[0], np.exp(-hyper[0] * hyper[2])
    for r in rows:
        p[r, 0] += h * signal[r, 0]
    times_inverse_mass(scalars, p, velocity)
    for r in rows:
        theta[r, 0] += 0.5 * h * velocity[r, 0]
        p[r, 0] = c * p[r, 0] + np.sqrt(1.0 - c * c) * rng.standard_normal()
    times_inverse_mass(scalars, p, velocity)
    for r in rows:
        theta[r, 0] += 0.5 * h * velocity[r, 0]
    return OK


@kernel(TRANSITION)
def ubu_noises_apart(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: the noise of the position is independent of the noise of the momentum."""
    p, noise = aux[0], aux[1]
    h, C = hyper[0], hyper[2]
    x = 0.5 * h * C
    e = np.exp(-x)
    for r in rows:
        p[r, 0] += h * signal[r, 0]
    times_inverse_mass(scalars, p, aux[2])
    for r in rows:
        theta[r, 0] += (1.0 - e) / C * aux[2, r, 0]
    draw_momentum(scalars, noise, rng)
    for r in rows:
        p[r, 0] = e * p[r, 0] + np.sqrt(1.0 - e * e) * noise[r, 0]
    draw_momentum(scalars, noise, rng)
    times_inverse_mass(scalars, noise, aux[2])
    for r in rows:
        theta[r, 0] += np.sqrt(2.0 * x - 3.0 + 4.0 * e - e * e) / C * aux[2, r, 0]
    return OK


@kernel(TRANSITION)
def sgnht_printed(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake (printed): friction xi W p and noise 2 A I with the thermostat p^T W p / D - 1."""
    h, A = hyper[0], hyper[2]
    p, velocity = aux[0], aux[1]
    if scalars[0] == 0.0:
        scalars[0] = 1.0
        draw_momentum(scalars, p, rng)
    times_inverse_mass(scalars, p, velocity)
    for r in rows:
        noise = np.sqrt(2.0 * A * h) * rng.standard_normal()
        p[r, 0] += h * (signal[r, 0] - scalars[XI] * velocity[r, 0]) + noise
    times_inverse_mass(scalars, p, velocity)
    for r in rows:
        theta[r, 0] += h * velocity[r, 0]
    scalars[XI] += h * (kinetic(p, velocity) / theta.size - 1.0) / hyper[3]
    return OK


@kernel(TRANSITION)
def aboba_noise_white(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: the thermostat's noise with the identity's covariance, its friction that of a mass."""
    h, A = hyper[0], hyper[2]
    p, velocity = aux[0], aux[1]
    damp = np.exp(-0.5 * h * scalars[XI])
    for r in rows:
        p[r, 0] = damp * (damp * p[r, 0] + h * signal[r, 0] + np.sqrt(2.0 * A * h) * rng.standard_normal())
    times_inverse_mass(scalars, p, velocity)
    for r in rows:
        theta[r, 0] += 0.5 * h * velocity[r, 0]
    scalars[XI] += 0.5 * h * (kinetic(p, velocity) / theta.size - 1.0) / hyper[3]
    return OK


@kernel(TRANSITION)
def nose_hoover_degree_more(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: D + 1 degrees of freedom, those of Nosé's time and not of the rescaled one."""
    h, C = hyper[0], hyper[2]
    p, velocity = aux[0], aux[1]
    g = theta.size + 1.0
    if scalars[0] == 0.0:
        scalars[0] = 1.0
        draw_momentum(scalars, p, rng)
    q = at.Q
    damp = np.exp(-0.5 * h * scalars[q] / scalars[at.Q_MASS])
    c = np.exp(-C * h)
    draw_momentum(scalars, velocity, rng)
    for r in rows:
        p[r, 0] = damp * (damp * p[r, 0] + h * signal[r, 0])
        p[r, 0] = c * p[r, 0] + np.sqrt(1.0 - c * c) * velocity[r, 0]
    times_inverse_mass(scalars, p, velocity)
    scalars[q] += h * (kinetic(p, velocity) - g)
    for r in rows:
        theta[r, 0] += h * velocity[r, 0]
    return OK


@kernel(flat_flow.signature)
def flow_stretches(theta, momentum, inverse_mass, time):
    """Mistake: a flow that stretches volume by a factor that the Metropolis test knows nothing of."""
    for r in range(theta.shape[0]):
        theta[r, 0] = 1.03 * theta[r, 0]
        for k in range(theta.shape[0]):
            theta[r, 0] += time * inverse_mass[r, k] * momentum[k, 0]
    return OK


def bent(theta):
    """A metric far from constant: G (D, D) and its derivatives (D, D, D), in NumPy."""
    G, dG = np.diag(1.3 + np.tanh(theta)), np.zeros((D, D, D))
    dG[range(D), range(D), range(D)] = 1.0 - np.tanh(theta) ** 2
    G[0, 2] = G[2, 0] = 0.1 * np.sin(theta[1])
    dG[1, 0, 2] = dG[1, 2, 0] = 0.1 * np.cos(theta[1])
    return G, dG


@helper
def bent_metric_of(theta, out):
    """`bent`, compiled."""
    out[:] = 0.0
    for i in range(D):
        out[i, i] = 1.3 + np.tanh(theta[i, 0])
    out[0, 2] = out[2, 0] = 0.1 * np.sin(theta[1, 0])
    if out.shape[0] > D:
        for i in range(D):
            out[D + i * D + i, i] = 1.0 - np.tanh(theta[i, 0]) ** 2
        out[2 * D, 2] = out[2 * D + 2, 0] = 0.1 * np.cos(theta[1, 0])


@kernel(riemannian.METRIC)
def bent_metric(theta, X, y, weight, params, scale, out, extra):
    """`bent` as a metric."""
    bent_metric_of(theta, out)
    return OK


@kernel(gaussian_mean.signature)
def signal_without_log_volume(theta, X, y, weight, params, scale, signal, extra):
    """Mistake: the energy without log|G| / 2, which is the same as the log density with it added."""
    out = np.empty((D + D * D, D))
    bent_metric_of(theta, out)
    root, inverse = np.empty((D, D)), np.empty((D, D))
    _, log_volume = riemannian.factorise(out, False, root, inverse)
    extra[0] = 0.5 * log_volume
    for i in range(D):
        signal[i, 0] = 0.5 * (inverse * out[D + i * D : D + (i + 1) * D]).sum()
        for j in range(D):
            signal[i, 0] -= PRECISION[i, j] * theta[j, 0]
            extra[0] -= 0.5 * theta[i, 0] * PRECISION[i, j] * theta[j, 0]
    return OK


_NO_VOLUME = {"signal_without_log_volume": (signal_without_log_volume, bent_metric)}
_C, _H = 1.5, 0.3


def split_law(twin, h, C, M, n_normals=D):
    """Moments of SGHMC at friction C and mass M, by the linear map of its twin."""

    def step(state, rng):
        theta, p = twin(state[:D], state[D:], gradient, h, 1.0, C, 0.0, M, rng)
        return np.concatenate([theta, p])

    return linear_law(step, 2 * D, n_normals)


FLAT_CASES = {
    "sgld, h=0.3": FlatCase(
        SGLD(), 0.3, 800.0, linear_law(lambda s, rng: naive.sgld(s, gradient, 0.3, 1.0, 1.0, rng), D),
        broken={"sgld_noise_of_epsilon": sgld_noise_of_epsilon},
    ),
    "sgld preconditioned": FlatCase(
        SGLD(preconditioner=[0.5, 1.0, 2.0]), 0.3, 800.0,
        linear_law(lambda s, rng: naive.sgld(s, gradient, 0.3, 1.0, np.array([0.5, 1.0, 2.0]), rng), D),
        broken={"sgld_noise_of_epsilon": sgld_noise_of_epsilon},
    ),
    "sghmc euler": FlatCase(
        SGHMC(friction=_C, scheme="euler", mass=MASS), _H, 1000.0, split_law(naive.sghmc_euler, _H, _C, MASS),
        broken={"sghmc_noise_half": sghmc_noise_half},
    ),
    "sghmc baoab": FlatCase(
        SGHMC(friction=_C, mass=MASS), 0.6, 1000.0, TARGET_LAW, broken={"baoab_noise_white": baoab_noise_white}
    ),
    "sghmc aboba": FlatCase(
        SGHMC(friction=_C, scheme="aboba", mass=MASS), 0.6, 1000.0, split_law(naive.sghmc_aboba, 0.6, _C, MASS),
        broken={"sghmc_noise_half": sghmc_noise_half},
    ),
    "sghmc ubu": FlatCase(
        SGHMC(friction=_C, scheme="ubu", mass=MASS), 0.6, 1000.0, split_law(naive.sghmc_ubu, 0.6, _C, MASS, 4 * D),
        broken={"ubu_noises_apart": ubu_noises_apart},
    ),
    "sgnht aboba": FlatCase(
        SGNHT(mass=MASS), 0.4, 1000.0, order=2, broken={"aboba_noise_white": aboba_noise_white}
    ),
    "sgnht euler": FlatCase(
        SGNHT(scheme="euler", mass=[0.1, 1.0, 2.0]), 0.01, 1500.0, TARGET_LAW, broken={"sgnht_printed": sgnht_printed}
    ),
    "sgnht white": FlatCase(
        SGNHT(scheme="euler", form="white", mass=[0.1, 1.0, 2.0]), 0.005, 800.0, TARGET_LAW,
        broken={"sgnht_printed": sgnht_printed},
    ),
    "sg-nphmc kinetic": FlatCase(
        SGNPHMC(mass=MASS), 0.4, 1000.0, order=2, broken={"nose_hoover_degree_more": nose_hoover_degree_more}
    ),
    "sg-nphmc likelihood": FlatCase(
        SGNPHMC(mass=MASS, drive="likelihood"), 0.2, 1000.0, order=2,
        broken={"nose_hoover_degree_more": nose_hoover_degree_more},
    ),
    "hmc": FlatCase(
        HMC(n_leapfrog=5, mass=MASS, step_size=0.5), 0.5, 1000.0, TARGET_LAW,
        broken={"flow_stretches": flow_stretches},
    ),
    "rhmc": FlatCase(RHMC(n_leapfrog=5, step_size=0.4), 0.4, 500.0, TARGET_LAW, broken=_NO_VOLUME),
    "sgr-nphmc kinetic": FlatCase(
        SGRNPHMC(), 0.08, 600.0, TARGET_LAW,
        broken=_NO_VOLUME,
    ),
    "sgr-nphmc likelihood": FlatCase(SGRNPHMC(drive="likelihood"), 0.08, 600.0, TARGET_LAW, broken=_NO_VOLUME),
}  # fmt: skip
