"""THE table: every sampler with small arguments, a target on which its law is known, and deliberately broken variants.

A sampler is proved by its law. Each case runs independent chains side by side, as the columns of one state, and
compares the moments of what they keep with the exact law of the transition *with* its step size, as z-scores: one
batch mean for each chain, `N_BATCHES` chains. A sampler whose law is known only as h -> 0 (SGRLD) is run at h, h/2
and h/4, and its moments extrapolated. The broken variants are kernels of the same signature with one mistake each, of
the kind that people have made; the same test must reject every one of them.

Calibrated over 20 seeds: the largest |z| of a right sampler was 3.9, the smallest of a broken one 12. The threshold
is 6, and broken variants must exceed 7.8. ``SK_SGMCMC_TEST_SEEDS=all`` runs other seeds.

To add a sampler, add a case to `CASES`.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy import special

from sk_sgmcmc.kernels._jit import OK, TRANSITION, kernel
from sk_sgmcmc.kernels.math.random import TINY, gamma_draw, poisson_draw
from sk_sgmcmc.kernels.runners import DENSE_SIGNAL, run_dense
from sk_sgmcmc.samplers import SCIR, SGRLD, ExactDirichlet, ExponentialOU

N_BATCHES = 50
THRESHOLD = 6.0


@kernel(DENSE_SIGNAL)
def fixed_signal(theta, X, y, weight, params, scale, signal, extra):
    """The same signal for every column at every step: ``params`` = (extra, signal of each row)."""
    for r in range(theta.shape[0]):
        for k in range(theta.shape[1]):
            signal[r, k] = params[1 + r]
    for k in range(theta.shape[1]):
        extra[k] = params[0]
    return OK


def run_columns(kernels, theta, signal, extra, step_size, n_steps, rng, *, thin=1, n_aux=0):
    """Chains side by side, one a column, through the real runner; returns kept theta and aux (n_kept, n_rows, n)."""
    theta = np.array(theta, dtype=float, order="C")
    n_kept = n_steps // thin
    kept, kept_aux = np.empty((n_kept, *theta.shape)), np.empty((n_kept if n_aux else 0, *theta.shape))
    after = np.arange(1, n_steps + 1)
    status, made = run_dense(
        theta, np.zeros((n_aux, *theta.shape)), np.zeros(1), np.zeros((1, 1)), np.zeros((1, 0)), np.ones(1),
        np.array([extra, *signal], dtype=float), np.zeros(n_steps, dtype=np.int64), 1, 1.0,
        np.full((n_steps, 1), float(step_size)), np.where(after % thin == 0, after // thin - 1, -1), kept, kept_aux,
        kernels[0].compiled, fixed_signal.compiled, kernels[1].compiled, rng,
    )  # fmt: skip
    assert (status, made) == (OK, n_steps)
    return kept, kept_aux


def refuse_without_broken(sampler, broken):
    """Raise if a case lists no broken variant: nothing would show that its law test can fail."""
    if not broken:
        raise ValueError(
            f"broken={broken!r} of the case of {sampler!r} must hold at least one step with a mistake, by name; the "
            "law test must reject it."
        )


def z_scores(batch_means, exact):
    """z-scores of the mean over batches, (n_batches, n_statistics) against (n_statistics,)."""
    error = batch_means.std(axis=0, ddof=1) / np.sqrt(len(batch_means))
    return (batch_means.mean(axis=0) - exact) / error


# ---------------------------------------------------------------------------------------------------- broken variants


@kernel(TRANSITION)
def scir_half_spread(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: the scale of the gamma is (1 - e^{-h}) / 2, the chi-squared's factor without its degrees of freedom."""
    decay = np.exp(-hyper[0])
    for r in rows:
        for k in range(theta.shape[1]):
            count = poisson_draw(theta[r, k] * decay / (1.0 - decay), rng)
            theta[r, k] = max(0.5 * (1.0 - decay) * gamma_draw(signal[r, k] + count, rng), TINY)
    return OK


@kernel(TRANSITION)
def scir_half_decay(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: e^{-h/2} in one of the two places."""
    decay = np.exp(-hyper[0])
    for r in rows:
        for k in range(theta.shape[1]):
            count = poisson_draw(theta[r, k] * np.exp(-0.5 * hyper[0]) / (1.0 - decay), rng)
            theta[r, k] = max((1.0 - decay) * gamma_draw(signal[r, k] + count, rng), TINY)
    return OK


@kernel(TRANSITION)
def scir_no_poisson(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: the Poisson number is forgotten."""
    for r in rows:
        for k in range(theta.shape[1]):
            theta[r, k] = max((1.0 - np.exp(-hyper[0])) * gamma_draw(signal[r, k], rng), TINY)
    return OK


@kernel(TRANSITION)
def scir_half_shape(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: a degrees of freedom of the chi-squared where 2a belong; seen on the simplex, unlike a wrong scale."""
    decay = np.exp(-hyper[0])
    for r in rows:
        for k in range(theta.shape[1]):
            count = poisson_draw(theta[r, k] * decay / (1.0 - decay), rng)
            theta[r, k] = max((1.0 - decay) * gamma_draw(0.5 * signal[r, k] + count, rng), TINY)
            aux[0, r, k] = np.log(theta[r, k])
    return OK


@kernel(TRANSITION)
def redraw_shape_plus_one(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: Gamma(a + 1), the small-shape trick without its power of a uniform."""
    for r in rows:
        for k in range(theta.shape[1]):
            theta[r, k] = rng.standard_gamma(signal[r, k] + 1.0)
            aux[0, r, k] = np.log(theta[r, k])
    return OK


@kernel(TRANSITION)
def ou_wrong_noise(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: sqrt(1 - e^{-h}) where sqrt(1 - e^{-2h}) belongs."""
    decay = np.exp(-hyper[0])
    for r in rows:
        for k in range(theta.shape[1]):
            noise = extra[k] * np.sqrt(1.0 - decay) * rng.standard_normal()
            theta[r, k] = np.exp(signal[r, k] + (np.log(theta[r, k]) - signal[r, k]) * decay + noise)
    return OK


@kernel(TRANSITION)
def expanded_mean_noise_theta(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake (students' code): the noise multiplied by theta instead of its root."""
    h = hyper[0]
    for k in range(theta.shape[1]):
        pull = extra[k] / theta[:, k].sum() + 1.0
        for r in rows:
            x = theta[r, k]
            theta[r, k] = max(
                abs(x + h * (signal[r, k] - pull * x) + np.sqrt(2.0 * h) * x * rng.standard_normal()), TINY
            )
    return OK


@kernel(TRANSITION)
def expanded_mean_gradient_twice(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake (published code): the natural gradient multiplied by theta again, plus 1."""
    h = hyper[0]
    for k in range(theta.shape[1]):
        pull = extra[k] / theta[:, k].sum() + 1.0
        for r in rows:
            x = theta[r, k]
            drift = x * (signal[r, k] - pull * x) + 1.0
            theta[r, k] = max(abs(x + h * drift + np.sqrt(2.0 * h * x) * rng.standard_normal()), TINY)
    return OK


@kernel(TRANSITION)
def expanded_mean_noise_twice(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: sqrt(4 h theta), a paper's epsilon = 2h put into the noise and h into the drift."""
    h = hyper[0]
    for k in range(theta.shape[1]):
        pull = extra[k] / theta[:, k].sum() + 1.0
        for r in rows:
            x = theta[r, k]
            theta[r, k] = max(
                abs(x + h * (signal[r, k] - pull * x) + np.sqrt(4.0 * h * x) * rng.standard_normal()), TINY
            )
    return OK


@kernel(TRANSITION)
def expanded_natural_wrong_sign(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake: the correction e^{-theta} added instead of taken away."""
    h = hyper[0]
    for k in range(theta.shape[1]):
        total = np.exp(theta[:, k]).sum()
        for r in rows:
            x = theta[r, k]
            drift = np.exp(-x) * (signal[r, k] + 1.0) - extra[k] / total - 1.0
            theta[r, k] = x + h * drift + np.sqrt(2.0 * h) * np.exp(-0.5 * x) * rng.standard_normal()
    return OK


@kernel(TRANSITION)
def reduced_mean_printed(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake (printed): the correction (K pi - 1) / n without its 1/n."""
    h = hyper[0]
    n_cells = theta.shape[0]
    for k in range(theta.shape[1]):
        n = extra[k]
        pi = theta[:, k].copy()
        noise = np.sqrt(pi) * np.array([rng.standard_normal() for _ in range(n_cells)])
        along = noise.sum()
        for r in rows:
            natural = (signal[r, k] - 1.0 - (signal[:, k].sum() - n_cells) * pi[r]) / n
            drift = natural - (n_cells * pi[r] - 1.0)
            theta[r, k] = max(abs(pi[r] + h * drift + np.sqrt(2.0 * h / n) * (noise[r] - pi[r] * along)), TINY)
        theta[:, k] /= theta[:, k].sum()
    return OK


@kernel(TRANSITION)
def reduced_natural_printed(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """Mistake (printed): the correction 1/pi_j^2 - (K - 1)/pi_K^2 where 1/pi_j - 1/pi_K belongs."""
    h = hyper[0]
    last = theta.shape[0] - 1
    for k in range(theta.shape[1]):
        n = extra[k]
        pi = np.exp(theta[:, k])
        pi /= pi.sum()
        base = rng.standard_normal() / np.sqrt(pi[last])
        for r in range(last):
            natural = signal[r, k] / pi[r] - signal[last, k] / pi[last]
            correction = 1.0 / pi[r] ** 2 - last / pi[last] ** 2
            noise = rng.standard_normal() / np.sqrt(pi[r]) - base
            # Kept within bounds, so that what is rejected is its law and not an overflow.
            moved = theta[r, k] + h * (natural - correction) / n + np.sqrt(2.0 * h / n) * noise
            theta[r, k] = min(max(moved, -6.0), 6.0)
    return OK


# ------------------------------------------------------------------------------------------------- targets and laws


@dataclass(frozen=True)
class GammaCells:
    """Independent Gamma(shape, 1) cells; the statistics are means, squares and logarithms."""

    shape: np.ndarray
    extra: float = 0.0
    geometry: str = "positive"

    def start(self, sampler, n, rng):
        return np.maximum(rng.standard_gamma(self.shape, (n, len(self.shape))).T, TINY)

    def batch_means(self, kept, aux, sampler):
        x = kept
        return np.concatenate([f.mean(axis=0) for f in (x, x**2, np.log(x))]).T

    def exact(self):
        a = self.shape
        return np.concatenate([a, a * (a + 1.0), special.digamma(a)])


@dataclass(frozen=True)
class LogNormalCells:
    """Independent log-normal cells, given by the mean and the one standard deviation of their logarithms."""

    shape: np.ndarray
    extra: float
    geometry: str = "positive"

    def start(self, sampler, n, rng):
        return np.exp(self.shape[:, None] + self.extra * rng.standard_normal((len(self.shape), n)))

    def batch_means(self, kept, aux, sampler):
        x = np.log(kept) - self.shape[:, None]
        return np.concatenate([x.mean(axis=0), (x**2).mean(axis=0)]).T

    def exact(self):
        return np.concatenate([0 * self.shape, 0 * self.shape + self.extra**2])


@dataclass(frozen=True)
class DirichletCells:
    """A Dirichlet(shape) column of cells, of which ``extra`` counts are data; statistics are means and squares."""

    shape: np.ndarray
    extra: float
    geometry: str = "simplex"

    def start(self, sampler, n, rng):
        pi = rng.dirichlet(self.shape, n).T
        if getattr(sampler, "parameterization", "reduced-mean") == "reduced-mean":
            return pi
        if sampler.parameterization == "reduced-natural":
            return np.log(pi / pi[-1])
        theta = pi * rng.standard_gamma(self.shape.sum() - self.extra, n)
        return np.log(theta) if sampler.parameterization == "expanded-natural" else theta

    def batch_means(self, kept, aux, sampler):
        pi = np.exp(sampler._simplex_logs(kept, np.empty(0)))
        pi = pi / pi.sum(axis=1, keepdims=True)
        return np.concatenate([pi.mean(axis=0), (pi**2).mean(axis=0)]).T

    def exact(self):
        a, total = self.shape, self.shape.sum()
        return np.concatenate([a / total, a * (a + 1.0) / (total * (total + 1.0))])


@dataclass(frozen=True)
class Case:
    """One sampler, the target on which its law is known, and what must be rejected there.

    Parameters
    ----------
    sampler : Sampler
        With ``step_size`` a number: the size at which the law is tested, or the largest of those extrapolated.
    target : object
        ``start``, ``batch_means`` and ``exact``.
    time : float
        Length of each of the chains, in units of the diffusion's time.
    exact : bool
        Whether the law is that of the transition at any step size; else it is the limit h -> 0.
    broken : dict of str to kernel
        Step kernels with one mistake, at least one.
    """

    sampler: object
    target: object
    time: float
    exact: bool = True
    broken: dict = field(default_factory=dict)

    def __post_init__(self):
        refuse_without_broken(self.sampler, self.broken)

    def z_scores(self, seed, step_kernel=None):
        """z-scores of all statistics, by the sampler's own step kernel or another."""
        advance, step = self.sampler._kernels(self.target.geometry)
        kernels = (advance, step_kernel or step)
        rng = np.random.default_rng(seed)
        h = getattr(self.sampler, "step_size", 1.0)
        if self.exact:
            return z_scores(self.batch_means(kernels, h, rng), self.target.exact())
        coarse, middle, fine = (self.batch_means(kernels, h / 2**i, rng) for i in range(3))
        # The polynomial of degree 2 in h through the three, at h = 0.
        return z_scores((8.0 * fine - 6.0 * middle + coarse) / 3.0, self.target.exact())

    def batch_means(self, kernels, h, rng, every=0.1):
        """Means of the statistics over each chain, (N_BATCHES, n_statistics); a draw each ``every`` units of time."""
        n_steps = int(self.time / h)
        thin = max(1, int(every / h))
        n_aux = 1 if self.target.geometry == "simplex" else 0
        start = self.target.start(self.sampler, N_BATCHES, rng)
        target = self.target
        kept, aux = run_columns(
            kernels, start, target.shape, target.extra, h, n_steps - n_steps % thin, rng, thin=thin, n_aux=n_aux
        )
        return target.batch_means(kept, aux, self.sampler)


_GAMMA = GammaCells(np.array([0.2, 0.5, 2.0, 10.0]))
# Prior 4 in each of four cells and 20 counts: dense enough for every parameterisation of SGRLD.
_DENSE = DirichletCells(np.array([14.0, 10.0, 7.0, 5.0]), 20.0)
_SCIR_BROKEN = {f.__name__: f for f in (scir_half_spread, scir_half_decay, scir_no_poisson)}

CASES = {
    "scir on gammas, h=0.5": Case(SCIR(step_size=0.5), _GAMMA, 500.0, broken=_SCIR_BROKEN),
    "scir on gammas, h=0.05": Case(SCIR(step_size=0.05), _GAMMA, 200.0, broken=_SCIR_BROKEN),
    "scir on gammas, h=3": Case(
        SCIR(step_size=3.0), _GAMMA, 3000.0, broken={"scir_half_spread": scir_half_spread}
    ),
    "scir on the simplex": Case(
        SCIR(step_size=0.5), DirichletCells(np.array([0.3, 0.5, 2.0, 4.0]), 0.0), 2000.0,
        broken={"scir_half_shape": scir_half_shape},
    ),
    "exact-dirichlet": Case(
        ExactDirichlet(), DirichletCells(np.array([0.02, 0.5, 2.0, 4.0]), 0.0), 1000.0,
        broken={"redraw_shape_plus_one": redraw_shape_plus_one},
    ),
    "exponential-ou": Case(
        ExponentialOU(step_size=0.3), LogNormalCells(np.array([-2.0, 0.0, 1.5]), 0.7), 300.0,
        broken={"ou_wrong_noise": ou_wrong_noise},
    ),
    "sgrld expanded-mean": Case(
        SGRLD(step_size=0.04), _DENSE, 2500.0, exact=False,
        broken={
            f.__name__: f
            for f in (expanded_mean_noise_theta, expanded_mean_gradient_twice, expanded_mean_noise_twice)
        },
    ),
    "sgrld expanded-natural": Case(
        SGRLD(step_size=0.04, parameterization="expanded-natural"), _DENSE, 500.0, exact=False,
        broken={"expanded_natural_wrong_sign": expanded_natural_wrong_sign},
    ),
    "sgrld reduced-mean": Case(
        SGRLD(step_size=0.04, parameterization="reduced-mean"), _DENSE, 500.0, exact=False,
        broken={"reduced_mean_printed": reduced_mean_printed},
    ),
    "sgrld reduced-natural": Case(
        SGRLD(step_size=0.02, parameterization="reduced-natural"), _DENSE, 500.0, exact=False,
        broken={"reduced_natural_printed": reduced_natural_printed},
    ),
}  # fmt: skip

# Samplers whose law is tested neither here nor in a test file of their own name beside test_laws.py.
_GEODESIC = "tests/samplers/test_geodesic_laws.py"
APPROXIMATE = ("gmc-appr-mh", "vi", "sto-vi")  # which have no law to test
ELSEWHERE = {
    "gibbs": "tests/topic/test_lda_laws.py",
    "slice-gibbs": "tests/mixture/test_dp_laws.py",
    "gmc": _GEODESIC,
    "sggmc": _GEODESIC,
    "gsgnht": _GEODESIC,
    "gmc-b-gibbs": "tests/topic/test_sam_laws.py",
    **dict.fromkeys(APPROXIMATE, "tests/topic/test_sam.py"),
    "nuts": "tests/samplers/test_nuts.py",
    **dict.fromkeys(("sgld", "sghmc", "sgnht", "sg-nphmc", "hmc", "rhmc", "sgr-nphmc"), "tests/flat_cases.py"),
    **dict.fromkeys(("sghmc-em", "sgnht-em", "sg-nphmc-em", "hmc-em"), "tests/samplers/test_flat_laws.py"),
    **dict.fromkeys(("blob", "gfsd", "gfsf", "svgd", "psghmc-det", "psghmc-fgh"), "tests/samplers/test_particles.py"),
}
