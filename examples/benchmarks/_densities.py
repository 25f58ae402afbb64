"""Log densities of the benchmark of `sample`, each twice: for numba with a gradient by hand, and for JAX.

JAX's versions are functions of free coordinates, as blackjax moves them, with the volume elements by hand; they are the
coordinates in which `sample` moves too. JAX is imported when `Model.by_jax` is called.
"""

from dataclasses import dataclass, field

import numba
import numpy as np

from sk_sgmcmc.targets import Positive, Simplex


@dataclass(frozen=True)
class Model:
    """A log density in both forms.

    Parameters
    ----------
    function : callable
        Jitted, of the parameters by name, with its gradient.
    parameters : dict
        As `sample` takes them.
    by_jax : callable
        Makes the log density of a dict of free coordinates.
    free : dict of str to tuple
        Shapes of these coordinates.
    numbers : callable
        Makes the parameters of draws of these coordinates.
    data : ndarray, default=None
    """

    function: object
    parameters: dict
    by_jax: object
    free: dict
    numbers: object = dict
    data: object = field(default=None, repr=False)


# ------------------------------------------------------------------------------------------ eight schools
EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


@numba.njit
def eight_schools(mu, tau, eta, gradient):
    """Eta is standard normal, not centred."""
    error = (EFFECTS - mu - tau * eta) / ERRORS
    pull = error / ERRORS
    gradient.mu[()] = pull.sum() - mu / 25.0
    gradient.tau[()] = (pull * eta).sum() - 2.0 * tau / (25.0 + tau**2)
    gradient.eta[:] = tau * pull - eta
    return -0.5 * ((error**2).sum() + (eta**2).sum() + mu**2 / 25.0) - np.log(1.0 + tau**2 / 25.0)


def jax_eight_schools():
    """The same for JAX."""
    import jax.numpy as jnp

    def log_density(q):
        tau = jnp.exp(q["log_tau"])
        error = (EFFECTS - q["mu"] - tau * q["eta"]) / ERRORS
        value = -0.5 * ((error**2).sum() + (q["eta"] ** 2).sum() + q["mu"] ** 2 / 25.0)
        return value - jnp.log(1.0 + tau**2 / 25.0) + q["log_tau"]

    return log_density


def with_tau(q):
    """Draws with tau in the place of its logarithm."""
    return {**{k: v for k, v in q.items() if k != "log_tau"}, "tau": np.exp(q["log_tau"])}


# ------------------------------------------------------------------------------------------ hierarchical logistic
N_GROUPS = 30


def grouped_rows(n=1000, n_groups=N_GROUPS, seed=0):
    """Rows (outcome, group, two covariates)."""
    rng = np.random.default_rng(seed)
    group, x = rng.integers(0, n_groups, n), rng.standard_normal((n, 2))
    eta = -0.5 + 0.8 * rng.standard_normal(n_groups)[group] + x @ [0.7, -0.4]
    return np.column_stack([rng.random(n) < 1.0 / (1.0 + np.exp(-eta)), group, x])


@numba.njit
def hierarchical_logistic(mu, tau, z, slope, rows, gradient):
    """Intercepts mu + tau z of groups, and slopes."""
    gradient.mu[()] = -mu
    gradient.tau[()] = -tau
    gradient.z[:] = -z
    gradient.slope[:] = -slope
    value = -0.5 * (mu**2 + tau**2 + (z**2).sum() + (slope**2).sum())
    for i in range(rows.shape[0]):
        j = int(rows[i, 1])
        eta = mu + tau * z[j] + slope[0] * rows[i, 2] + slope[1] * rows[i, 3]
        e = 1.0 + np.exp(-eta)
        value += (rows[i, 0] - 1.0) * eta - np.log(e)
        pull = rows[i, 0] - 1.0 / e
        gradient.mu[()] += pull
        gradient.tau[()] += pull * z[j]
        gradient.z[j] += pull * tau
        gradient.slope[0] += pull * rows[i, 2]
        gradient.slope[1] += pull * rows[i, 3]
    return value


def jax_hierarchical_logistic():
    """The same for JAX."""
    import jax.numpy as jnp

    rows = grouped_rows()
    y, group, x = jnp.asarray(rows[:, 0]), jnp.asarray(rows[:, 1].astype(int)), jnp.asarray(rows[:, 2:])

    def log_density(q):
        tau = jnp.exp(q["log_tau"])
        value = -0.5 * (q["mu"] ** 2 + tau**2 + (q["z"] ** 2).sum() + (q["slope"] ** 2).sum())
        eta = q["mu"] + tau * q["z"][group] + x @ q["slope"]
        return value + (y * eta - jnp.logaddexp(0.0, eta)).sum() + q["log_tau"]

    return log_density


# ------------------------------------------------------------------------------------------ funnel
@numba.njit
def centred_funnel(v, x, gradient):
    """Neal's: v ~ N(0, 3^2), each x ~ N(0, e^v)."""
    shrink = np.exp(-v)
    square = (x**2).sum() * shrink
    gradient.v[()] = -v / 9.0 + 0.5 * square - 0.5 * x.size
    gradient.x[:] = -x * shrink
    return -0.5 * (v**2 / 9.0 + square + x.size * v)


def jax_centred_funnel():
    """The same for JAX."""
    import jax.numpy as jnp

    def log_density(q):
        v, x = q["v"], q["x"]
        return -0.5 * (v**2 / 9.0 + (x**2).sum() * jnp.exp(-v) + x.size * v)

    return log_density


@numba.njit
def funnel(v, z, gradient):
    """The same law with x = e^(v / 2) z, observed: y ~ N(x, 1), y = 0 for each."""
    s = np.exp(0.5 * v)
    x = s * z
    gradient.v[()] = -v / 9.0 - 0.5 * (x**2).sum()
    gradient.z[:] = -z - x * s
    return -0.5 * (v**2 / 9.0 + (z**2).sum() + (x**2).sum())


def jax_funnel():
    """The same for JAX."""
    import jax.numpy as jnp

    def log_density(q):
        x = jnp.exp(0.5 * q["v"]) * q["z"]
        return -0.5 * (q["v"] ** 2 / 9.0 + (q["z"] ** 2).sum() + (x**2).sum())

    return log_density


# ------------------------------------------------------------------------------------------ Poisson regression
def poisson_rows(n=2000, d=5, seed=0):
    """Rows (count, a column of ones, d - 1 covariates)."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.standard_normal((n, d - 1))])
    return np.column_stack([rng.poisson(np.exp(x @ np.linspace(0.5, -0.3, d))), x])


@numba.njit
def poisson(b, rows, scale, gradient):
    """Counts with a logarithmic link."""
    gradient.b[:] = -b / 100.0
    value = -0.5 * (b**2).sum() / 100.0
    for i in range(rows.shape[0]):
        eta = 0.0
        for k in range(b.size):
            eta += rows[i, 1 + k] * b[k]
        rate = np.exp(eta)
        value += scale * (rows[i, 0] * eta - rate)
        pull = scale * (rows[i, 0] - rate)
        for k in range(b.size):
            gradient.b[k] += pull * rows[i, 1 + k]
    return value


def jax_poisson(rows=None):
    """The same for JAX."""
    import jax.numpy as jnp

    rows = poisson_rows() if rows is None else rows
    y, x = jnp.asarray(rows[:, 0]), jnp.asarray(rows[:, 1:])

    def log_density(q):
        eta = x @ q["b"]
        return -0.5 * (q["b"] ** 2).sum() / 100.0 + (y * eta - jnp.exp(eta)).sum()

    return log_density


# ------------------------------------------------------------------------------------------ logistic regression
def logistic_rows(n, d, seed=0):
    """Rows (outcome 0 or 1, a column of ones, d - 1 covariates)."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(n), rng.standard_normal((n, d - 1))])
    eta = x @ np.linspace(0.8, -0.8, d)
    return np.column_stack([rng.random(n) < 1.0 / (1.0 + np.exp(-eta)), x])


@numba.njit
def logistic(b, rows, scale, gradient):
    """Two classes, coefficients N(0, 10^2)."""
    gradient.b[:] = -b / 100.0
    value = -0.5 * (b**2).sum() / 100.0
    for i in range(rows.shape[0]):
        eta = 0.0
        for k in range(b.size):
            eta += rows[i, 1 + k] * b[k]
        e = 1.0 + np.exp(-eta)
        value += scale * ((rows[i, 0] - 1.0) * eta - np.log(e))
        pull = scale * (rows[i, 0] - 1.0 / e)
        for k in range(b.size):
            gradient.b[k] += pull * rows[i, 1 + k]
    return value


def jax_logistic(rows):
    """The same for JAX."""
    import jax.numpy as jnp

    y, x = jnp.asarray(rows[:, 0]), jnp.asarray(rows[:, 1:])

    def log_density(q):
        eta = x @ q["b"]
        return -0.5 * (q["b"] ** 2).sum() / 100.0 + (y * eta - jnp.logaddexp(0.0, eta)).sum()

    return log_density


# ------------------------------------------------------------------------------------------ mixture
K = 2


def mixed_rows(n=500, seed=0):
    """Numbers from two normals, (n, 1)."""
    rng = np.random.default_rng(seed)
    which = rng.choice(K, n, p=[0.35, 0.65])
    mean, sd = np.array([-1.5, 1.5]), np.array([0.8, 1.0])
    return (mean[which] + sd[which] * rng.standard_normal(n))[:, None]


@numba.njit
def mixture(low, gap, sd, p, rows, gradient):
    """Means low, low + gap[0], ... in their order; one exponential a row and component but the likeliest."""
    mean, cell, error, sums = np.empty(K), np.empty(K), np.empty(K), np.zeros((K, 3))
    mean[0] = low
    for k in range(1, K):
        mean[k] = mean[k - 1] + gap[k - 1]
    log_sd, log_p = np.log(sd), np.log(p)
    value = -0.5 * (low**2 + (gap**2).sum()) / 25.0 + (log_p - 0.5 * log_sd**2 - log_sd).sum()
    each, inverse, product = log_p - log_sd, 1.0 / sd, 1.0
    for i in range(rows.shape[0]):
        top, total = 0, 0.0
        for k in range(K):
            error[k] = (rows[i, 0] - mean[k]) * inverse[k]
            cell[k] = each[k] - 0.5 * error[k] ** 2
            top = k if cell[k] > cell[top] else top
        high = cell[top]
        for k in range(K):
            cell[k] = 1.0 if k == top else np.exp(cell[k] - high)
            total += cell[k]
        value += high
        product *= total
        if product > 1e200:
            value += np.log(product)
            product = 1.0
        for k in range(K):
            share = cell[k] / total
            sums[k, 0] += share
            sums[k, 1] += share * error[k]
            sums[k, 2] += share * error[k] ** 2
    pulls = sums[:, 1] * inverse
    gradient.p[:] = (1.0 + sums[:, 0]) / p
    gradient.sd[:] = (sums[:, 2] - sums[:, 0] - log_sd - 1.0) * inverse
    gradient.low[()] = pulls.sum() - low / 25.0
    for k in range(1, K):
        gradient.gap[k - 1] = pulls[k:].sum() - gap[k - 1] / 25.0
    return value + np.log(product)


def simplex_basis():
    """Orthonormal columns, orthogonal to 1: (K, K - 1)."""
    basis = np.zeros((K, K - 1))
    for k in range(K - 1):
        basis[: k + 1, k], basis[k + 1, k] = 1.0, -(k + 1.0)
    return basis / np.linalg.norm(basis, axis=0)


def jax_mixture():
    """The same for JAX."""
    import jax
    import jax.numpy as jnp

    y, basis = jnp.asarray(mixed_rows()[:, 0]), jnp.asarray(simplex_basis())

    def log_density(q):
        gap, log_sd = jnp.exp(q["log_gap"]), q["log_sd"]
        log_p = jax.nn.log_softmax(basis @ q["z"])
        mean = q["low"] + jnp.concatenate([jnp.zeros(1), jnp.cumsum(gap)])
        value = -0.5 * (q["low"] ** 2 + (gap**2).sum()) / 25.0 + (log_p - 0.5 * log_sd**2 - log_sd).sum()
        cells = log_p - log_sd - 0.5 * ((y[:, None] - mean) / jnp.exp(log_sd)) ** 2
        value += jax.nn.logsumexp(cells, axis=1).sum()
        return value + q["log_gap"].sum() + log_sd.sum() + log_p.sum()

    return log_density


def of_mixture(q):
    """Draws of the parameters."""
    cells = np.exp(q["z"] @ simplex_basis().T)
    return {
        "low": q["low"],
        "gap": np.exp(q["log_gap"]),
        "sd": np.exp(q["log_sd"]),
        "p": cells / cells.sum(axis=-1, keepdims=True),
    }


# ------------------------------------------------------------------------------------------ correlated Gaussian
D = 100
PRECISION = np.linalg.inv(0.9 ** np.abs(np.subtract.outer(np.arange(D), np.arange(D))) * 1.0)


@numba.njit
def correlated(x, gradient):
    """Neighbours correlate by 0.9."""
    gradient.x[:] = -np.dot(PRECISION, x)
    return 0.5 * np.dot(x, gradient.x)


def jax_correlated():
    """The same for JAX."""
    import jax.numpy as jnp

    precision = jnp.asarray(PRECISION)
    return lambda q: -0.5 * q["x"] @ precision @ q["x"]


SMALL = {
    "eight schools": Model(
        eight_schools, {"mu": (), "tau": Positive(), "eta": (8,)}, jax_eight_schools,
        {"mu": (), "log_tau": (), "eta": (8,)}, with_tau,
    ),
    "hierarchical logistic": Model(
        hierarchical_logistic, {"mu": (), "tau": Positive(), "z": (N_GROUPS,), "slope": (2,)},
        jax_hierarchical_logistic, {"mu": (), "log_tau": (), "z": (N_GROUPS,), "slope": (2,)}, with_tau,
        grouped_rows(),
    ),
    "funnel": Model(funnel, {"v": (), "z": (9,)}, jax_funnel, {"v": (), "z": (9,)}),
    "funnel, centred": Model(centred_funnel, {"v": (), "x": (9,)}, jax_centred_funnel, {"v": (), "x": (9,)}),
    "Poisson": Model(poisson, {"b": (5,)}, jax_poisson, {"b": (5,)}, data=poisson_rows()),
    "mixture": Model(
        mixture, {"low": (), "gap": Positive(K - 1), "sd": Positive(K), "p": Simplex(K)}, jax_mixture,
        {"low": (), "log_gap": (K - 1,), "log_sd": (K,), "z": (K - 1,)}, of_mixture, mixed_rows(),
    ),
    "Gaussian, 100-d": Model(correlated, {"x": (D,)}, jax_correlated, {"x": (D,)}),
}  # fmt: skip


def many_rows(n):
    """Two regressions of so many rows, of 10 coefficients each."""
    found = {}
    for name, function, by_jax, make in (
        ("logistic", logistic, jax_logistic, logistic_rows),
        ("Poisson", poisson, jax_poisson, poisson_rows),
    ):
        rows = make(n, 10)
        found[f"{name}, {n:,} rows"] = Model(
            function, {"b": (10,)}, lambda by_jax=by_jax, rows=rows: by_jax(rows), {"b": (10,)}, data=rows
        )
    return found
