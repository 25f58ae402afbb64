"""What `hashes` runs: each case is data that a user might type, so that nothing here moves when the package does."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module

import numba
import numpy as np
from scipy import sparse

from tests.goldens.make import counts

ANY_SAMPLER = (
    "scir sgrld exponential-ou exact-dirichlet gibbs gmc sggmc gsgnht gmc-appr-mh gmc-b-gibbs vi sto-vi sgld sghmc "
    "sgnht sg-nphmc sgr-nphmc hmc nuts rhmc blob gfsd gfsf svgd hmc-em sghmc-em sgnht-em sg-nphmc-em psghmc-det "
    "psghmc-fgh"
).split()
SIMPLEX = ("scir", "sgrld", "exact-dirichlet", "gibbs")
LANGEVIN = ("sgld", "sghmc", "sgnht", "sg-nphmc", "sgr-nphmc")
EM = ("hmc-em", "sghmc-em", "sgnht-em", "sg-nphmc-em")
PARTICLES = ("blob", "gfsd", "gfsf", "svgd", "psghmc-det", "psghmc-fgh")
FLAT = (*LANGEVIN, "hmc", "nuts", "rhmc", *EM, *PARTICLES)
SPHERE = ("gmc", "sggmc", "gsgnht")
# Every sampler that fits, beside None.
FITTING = {
    "BayesianLDA": (*SIMPLEX, "sgld", "sghmc", "sgnht", "sghmc-em", "sgnht-em", *PARTICLES),
    "DMRTopicModel": (*SIMPLEX, "sgld", "sghmc", "sgnht", "sghmc-em", "sgnht-em", *PARTICLES),
    "GammaProcessTopicModel": (*SIMPLEX, *LANGEVIN, *EM[1:]),
    "SphericalAdmixtureModel": (*SPHERE, "gmc-appr-mh", "gmc-b-gibbs", "vi", "sto-vi"),
    "DPCategoricalMixture": SIMPLEX,
    "BayesianLogisticRegression": FLAT,
    "BayesianGaussian": FLAT,
    "VonMisesFisherMixture": ("gibbs", *SPHERE),
}
BASE = {
    "BayesianLDA": {"n_components": 3},
    "DMRTopicModel": {"n_components": 3},
    "GammaProcessTopicModel": {"n_components": 4, "n_inner": 3},
    "SphericalAdmixtureModel": {"n_components": 3, "n_inner": 2},
    "DPCategoricalMixture": {},
    "BayesianLogisticRegression": {},
    "BayesianGaussian": {},
    "VonMisesFisherMixture": {"n_components": 3, "n_inner": 2},
}
USUAL_DATA = {
    "BayesianLDA": "counts",
    "DMRTopicModel": "counts and metadata",
    "GammaProcessTopicModel": "counts",
    "SphericalAdmixtureModel": "directions",
    "DPCategoricalMixture": "counts",
    "BayesianLogisticRegression": "two classes",
    "BayesianGaussian": "rows",
    "VonMisesFisherMixture": "directions",
}
ALL_WAYS = ("fit", "jobs", "resume", "stream", "after")
FIT = ("fit",)


@dataclass(frozen=True)
class Case:
    """A tiny fit of an estimator, or a call of `sample`.

    Parameters
    ----------
    name : str
        Names its hashes; changing it loses them.
    what : str
        The estimator, or the target.
    data : str
        Key of `DATA`; unused for targets.
    params : dict
        Of the estimator, or of `sample`.
    ways : tuple of str
        What is done: "fit"; "jobs", the same with ``n_jobs=2``; "resume", a fit that is stopped, pickled and goes on;
        "stream", `partial_fit` of blocks; "after", `partial_fit` of a block after a fit; "sample".
    """

    name: str
    what: str
    data: str = ""
    params: dict = field(default_factory=dict)
    ways: tuple = ALL_WAYS


@dataclass(frozen=True)
class Made:
    """A public class, made when it is used: ``Made("SGLD", temperature=2.0)``."""

    name: str
    params: dict

    def __init__(self, name, **params):
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "params", params)

    def __call__(self):
        return public(self.name)(**{name: made(value) for name, value in self.params.items()})


def made(value):
    """The value itself, or the object that a `Made` describes."""
    return value() if isinstance(value, Made) else value


def public(name):
    """A public class by its name alone, wherever it is exported."""
    for module in ("sk_sgmcmc", "sk_sgmcmc.samplers", "sk_sgmcmc.targets", "sk_sgmcmc.targets"):
        try:
            found = getattr(import_module(module), name, None)
        except ModuleNotFoundError:
            continue
        if found is not None:
            return found
    raise LookupError(f"{name} is not exported.")


# ------------------------------------------------------------------------------------------------ data, from arithmetic


@dataclass(frozen=True)
class Data:
    """Arguments of ``fit``, and of the calls of ``partial_fit`` that read the same rows in blocks of unequal sizes."""

    whole: tuple
    blocks: tuple


CUTS = (slice(0, 13), slice(13, 20), slice(20, 30))


def _data(X, y=None, first=None, **given):
    """Arguments and keywords; ``first`` are keywords of the first block alone."""

    def call(rows, more):
        args = (X[rows],) if y is None else (X[rows], y[rows])
        return args, {**{name: value[rows] for name, value in given.items()}, **(more or {})}

    blocks = [call(rows, None if k else first) for k, rows in enumerate(CUTS)]
    return Data(call(slice(None), None), tuple(blocks))


def _grid(n, d):
    i, j = np.mgrid[:n, :d]
    return i, j


def rows():
    i, j = _grid(30, 3)
    return ((3 * i + 7 * j + i * j + i * i) % 13 - 6) / [4.0, 2.0, 1.0]


def directions():
    i, j = _grid(30, 6)
    return (5 * i + 3 * j + i * j) % 7 - 3.0 + 8.0 * (i % 3 == j % 3)


def codes(n_values):
    i, j = _grid(30, 6)
    X = ((i * j + i + 2 * j) % n_values * (i % 2 == 0) + (j % n_values) * (i % 2)).astype(float)
    X[(3 * i + 5 * j) % 17 == 0] = np.nan
    return X


def metadata():
    i = np.arange(30)
    return np.column_stack([i % 3, i // 10 * 1.5])


def fractional():
    d, w = _grid(30, 12)
    return counts() * (1.0 + (d + w) % 4 / 4.0)


def weights():
    return 0.5 + np.arange(30) % 4 / 2.0


def labels(n_classes):
    i = np.arange(30)
    return ((rows()[:, 0] > 0) + i % 5 // 3) % n_classes


def _described():
    """Counts with two columns of metadata behind them."""
    return _data(np.column_stack([counts(), metadata()]))


def _tables(**given):
    """Blocks with columns of their own, for ``new_features="extend"``."""
    import pandas as pd

    X = pd.DataFrame(counts(), columns=[f"w{w}" for w in range(12)])
    columns = (slice(0, 8), slice(9, 2, -1), slice(4, 12))
    blocks = [
        ((X.iloc[rows, own],), {name: value[rows] for name, value in given.items()})
        for rows, own in zip(CUTS, columns, strict=True)
    ]
    return Data(((X,), given), tuple(blocks))


DATA: dict[str, Callable] = {
    "counts": lambda: _data(counts()),
    "sparse counts": lambda: _data(sparse.csr_array(counts().astype(np.float32))),
    "fractional counts": lambda: _data(fractional()),
    "tables": _tables,
    "sparse counts and metadata": lambda: _data(sparse.csr_array(counts()), metadata=metadata()),
    "tables and metadata": lambda: _tables(metadata=metadata()),
    "counts and metadata": lambda: _data(counts(), metadata=metadata()),
    "counts with metadata": _described,
    "fractional counts and metadata": lambda: _data(fractional(), metadata=metadata()),
    "weighted counts": lambda: _data(counts(), sample_weight=weights()),
    "codes": lambda: _data(codes(3)),
    "weighted codes": lambda: _data(codes(3), sample_weight=weights()),
    "binary": lambda: _data(codes(2)),
    "directions": lambda: _data(directions()),
    "sparse directions": lambda: _data(sparse.csr_array(np.maximum(directions(), 0.0))),
    "rows": lambda: _data(rows()),
    "two classes": lambda: _data(rows(), labels(2), {"classes": [0, 1]}),
    "three classes": lambda: _data(rows(), labels(3), {"classes": [0, 1, 2]}),
    "weighted classes": lambda: _data(rows(), labels(2), {"classes": [0, 1]}, sample_weight=weights()),
}


# ----------------------------------------------------------------------------------------- functions that users compile


@numba.njit
def location(theta, rows, scale, gradient):
    """Rows about theta, with a normal prior."""
    value = 0.0
    for k in range(theta.size):
        value -= 0.05 * theta[k] ** 2
        gradient[k] = -0.1 * theta[k]
        for i in range(rows.shape[0]):
            residual = rows[i, k] - theta[k]
            value -= 0.5 * scale * residual**2
            gradient[k] += scale * residual
    return value


@numba.njit
def information(theta, rows, scale, G, dG):
    """A metric that varies slowly."""
    for k in range(theta.size):
        for j in range(theta.size):
            G[k, j] = 0.0
            for i in range(theta.size):
                dG[i, k, j] = 0.0
        G[k, k] = 30.0 + theta[k] ** 2
        dG[k, k, k] = 2.0 * theta[k]


@numba.njit
def diagonal_information(theta, rows, scale, G, dG):
    for k in range(theta.size):
        G[k] = 30.0 + theta[k] ** 2
        for j in range(theta.size):
            dG[k, j] = 0.0
        dG[k, k] = 2.0 * theta[k]


@numba.njit
def pulled(theta, rows, scale, gradient):
    """A direction that is pulled by the first of two proportions."""
    gradient[:] = 0.0
    gradient[0] = 8.0 * theta[3]
    gradient[3] = 8.0 * theta[0]
    return 8.0 * theta[0] * theta[3]


@numba.njit
def langevin(z, slope, D, Q, div_D, div_Q):
    for i in range(z.size):
        D[i, i] = 1.0


@numba.njit
def named_parameters(mu, tau, p):
    """A log density of named parameters; its gradient is by differences."""
    value = -0.5 * (mu / tau) ** 2 - tau
    for k in range(p.size):
        value += 0.5 * k * np.log(p[k])
    return value


def _unit(rows):
    return rows / np.sqrt((rows**2).sum(axis=1, keepdims=True))


SYMMETRIC = ((2.0, 0.5, 0.0), (0.5, 1.0, 0.25), (0.0, 0.25, 3.0))
SPACES = {"x": ("sphere", (3,)), "w": ("simplex", (2,))}
TARGETS: dict[str, Callable] = {
    "DirichletCategorical": lambda: Made(
        "DirichletCategorical", categories=np.arange(40) ** 2 % 7, concentration=0.5, n_categories=8
    ),
    "GammaPoisson": lambda: Made("GammaPoisson", counts=counts()[:, :4], shape=2.0, rate=0.5),
    "LogNormalMedian": lambda: Made("LogNormalMedian", values=np.abs(rows()) + 0.5),
    "GaussianMean": lambda: Made("GaussianMean", rows=rows(), precision=SYMMETRIC, prior_precision=0.5),
    "RestrictedGaussian": lambda: Made(
        "RestrictedGaussian", linear=[[1.0, 0.5, 0.0], [0.0, 2.0, 0.5], [0.5, 0.0, 1.0]], quadratic=SYMMETRIC
    ),
    "ExponentialMixture": lambda: Made("ExponentialMixture", directions=[[3.0, 0.0, 0.0], [0.0, 2.0, 1.0]], n_rows=3),
    "ChainedVonMisesFisher": lambda: Made("ChainedVonMisesFisher", directions=_unit(directions())),
    "MatrixCompletion": lambda: Made("MatrixCompletion", matrix=codes(3), factor_scales=[2.0, 1.0], noise_scale=0.5),
    "Density": lambda: Made("Density", log_density_and_gradient=location, dim=3, data=rows()),
    "Density, control variates": lambda: Made(
        "Density", log_density_and_gradient=location, dim=3, data=rows(), control_variates=True
    ),
    "Density, metric": lambda: Made(
        "Density", log_density_and_gradient=location, dim=3, data=rows(), metric=information
    ),
    "Density, diagonal metric": lambda: Made(
        "Density", log_density_and_gradient=location, dim=3, data=rows(), metric=diagonal_information,
        metric_is_diagonal=True,
    ),
    "log density": lambda: lambda: named_parameters,
    "ManifoldDensity": lambda: Made("ManifoldDensity", log_density_and_gradient=pulled, spaces=SPACES),
}  # fmt: skip
