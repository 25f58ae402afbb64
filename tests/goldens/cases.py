"""The golden fits: the data and the table of cases. `hashes` runs them and compares their draws with `hashes.json`.

Each case is something that a user might type, in public names only. To add one, add a line to the table and run
``python -m tests.goldens.hashes --write --only NAME``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module

import numba
import numpy as np
from scipy import sparse

from sk_sgmcmc.datasets import CountBlocks
from sk_sgmcmc.targets import Positive, Simplex


@dataclass(frozen=True)
class Case:
    """A tiny fit of an estimator, or a call of `sample`.

    Parameters
    ----------
    name : str
        Names its entry in the file; changing it loses that.
    what : str
        The estimator, or the key of `TARGETS`.
    data : str or None
        Key of `DATA`; None for a call of `sample`.
    params : dict
        Of the estimator, or of `sample`.
    """

    name: str
    what: str
    data: str | None = None
    params: dict = field(default_factory=dict)


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
    for module in ("sk_sgmcmc", "sk_sgmcmc.samplers", "sk_sgmcmc.targets"):
        found = getattr(import_module(module), name, None)
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


def counts():
    d, w = _grid(30, 12)
    return (7 * d + 5 * w + d * w) % 11 * ((w < 6) == (d % 2 == 0)) // 3


def fractional():
    d, w = _grid(30, 12)
    return counts() * (1.0 + (d + w) % 4 / 4.0)


def metadata():
    i = np.arange(30)
    return np.column_stack([i % 3, i // 10 * 1.5])


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


def mixed():
    """Codes, measurements and counts, with a missing cell."""
    X = np.column_stack([codes(3), rows(), np.arange(30) * 7 % 23])
    X[3, 0] = np.nan
    return X


def weights():
    return 0.5 + np.arange(30) % 4 / 2.0


def labels(n_classes):
    i = np.arange(30)
    return ((rows()[:, 0] > 0) + i % 5 // 3) % n_classes


def _tables():
    """Blocks with columns of their own, for ``new_features="extend"``."""
    import pandas as pd

    X = pd.DataFrame(counts(), columns=[f"w{w}" for w in range(12)])
    columns = (slice(0, 8), slice(9, 2, -1), slice(4, 12))
    return Data(((X,), {}), tuple(((X.iloc[rows, own],), {}) for rows, own in zip(CUTS, columns, strict=True)))


def _named():
    """The same columns in each block, with names for seed words."""
    import pandas as pd

    X = pd.DataFrame(counts(), columns=[f"w{w}" for w in range(12)])
    return Data(((X,), {}), tuple(((X.iloc[rows],), {}) for rows in CUTS))


def _by_formula():
    """Counts with a table of metadata."""
    import pandas as pd

    table = pd.DataFrame({"year": metadata()[:, 1], "party": np.array(["a", "b", "c"])[np.arange(30) % 3]})
    whole = (counts(),), {"metadata": table}
    return Data(whole, tuple(((counts()[rows],), {"metadata": table.iloc[rows]}) for rows in CUTS))


def _in_blocks(**given):
    """Blocks of documents that are read one at a time, in two shards."""
    X = sparse.csr_array(counts())
    whole = (CountBlocks([X[:17], X[17:]], shard_tokens=100),), given
    return Data(whole, tuple(((X[rows],), {name: value[rows] for name, value in given.items()}) for rows in CUTS))


DATA: dict[str, Callable] = {
    "counts": lambda: _data(counts()),
    "fractional counts": lambda: _data(fractional()),
    "tables": _tables,
    "counts with names": _named,
    "blocks": _in_blocks,
    "counts and outcomes": lambda: _data(counts(), y=rows()[:, 0]),
    "counts and classes": lambda: _data(counts(), y=labels(2)),
    "counts and metadata": lambda: _data(counts(), metadata=metadata()),
    "counts with metadata": lambda: _data(np.column_stack([counts(), metadata()])),
    "counts and a table of metadata": _by_formula,
    "blocks and metadata": lambda: _in_blocks(metadata=metadata()),
    "codes": lambda: _data(codes(3)),
    "weighted codes": lambda: _data(codes(3), sample_weight=weights()),
    "mixed rows": lambda: _data(mixed(), sample_weight=weights()),
    "mixed rows and metadata": lambda: _data(mixed(), metadata=metadata()),
    "binary": lambda: _data(codes(2)),
    "directions": lambda: _data(directions()),
    "rows": lambda: _data(rows()),
    "two classes": lambda: _data(rows(), labels(2), {"classes": [0, 1]}),
    "three classes": lambda: _data(rows(), labels(3), {"classes": [0, 1, 2]}),
    "weighted classes": lambda: _data(rows(), labels(2), {"classes": [0, 1]}, sample_weight=weights()),
    "responses": lambda: _data(rows(), rows() @ [1.0, -0.5, 0.25] + labels(3)),
    "events": lambda: _data(rows(), labels(3) + np.arange(30) % 4),
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


SYMMETRIC = ((2.0, 0.5, 0.0), (0.5, 1.0, 0.25), (0.0, 0.25, 3.0))
SPACES = {"x": ("sphere", (3,)), "w": ("simplex", (2,))}
TARGETS: dict[str, Callable] = {
    "DirichletCategorical": lambda: Made(
        "DirichletCategorical", categories=np.arange(40) ** 2 % 7, concentration=0.5, n_categories=8
    ),
    "LogNormalMedian": lambda: Made("LogNormalMedian", values=np.abs(rows()) + 0.5),
    "GaussianMean": lambda: Made("GaussianMean", rows=rows(), precision=SYMMETRIC, prior_precision=0.5),
    "RestrictedGaussian": lambda: Made(
        "RestrictedGaussian", linear=[[1.0, 0.5, 0.0], [0.0, 2.0, 0.5], [0.5, 0.0, 1.0]], quadratic=SYMMETRIC
    ),
    "MatrixCompletion": lambda: Made("MatrixCompletion", matrix=codes(3), factor_scales=[2.0, 1.0], noise_scale=0.5),
    "Density": lambda: Made("Density", log_density_and_gradient=location, dim=3, data=rows()),
    "log density": lambda: lambda: named_parameters,
    "ManifoldDensity": lambda: Made("ManifoldDensity", log_density_and_gradient=pulled, spaces=SPACES),
}


# ------------------------------------------------------------------------------------------------------------ the table

# What each estimator is fitted to unless a case says otherwise, and the parameters that its cases share.
USUAL = {
    "BayesianLDA": ("counts", {"n_components": 3}),
    "DMRTopicModel": ("counts and metadata", {"n_components": 3}),
    "StructuralTopicModel": ("counts and a table of metadata", {"n_components": 3, "content": "party"}),
    "TopicRegressor": ("counts and outcomes", {"n_components": 3}),
    "TopicClassifier": ("counts and classes", {"n_components": 3}),
    "GammaProcessTopicModel": ("counts", {"n_components": 4, "n_inner": 3}),
    "SphericalAdmixtureModel": ("directions", {"n_components": 3, "n_inner": 2}),
    "DPCategoricalMixture": ("counts", {}),
    "LatentClassModel": ("mixed rows", {"n_components": 2}),
    "VonMisesFisherMixture": ("directions", {"n_components": 3, "n_inner": 2}),
    "BayesianLogisticRegression": ("two classes", {}),
    "BayesianLinearRegression": ("responses", {}),
    "BayesianPoissonRegressor": ("events", {}),
    "BayesianNegativeBinomialRegressor": ("events", {}),
    "BayesianGaussian": ("rows", {}),
}
BATCH = {"batch_size": 10}
FRESH = {"batch_size": 10, "assignments": "fresh", "n_sweeps": (1, 2)}
SEEDED = np.full((3, 12), 0.01) + 2.0 * (np.arange(12) % 3 == np.arange(3)[:, None])
PRODUCT = [("simplex", 1), ("sphere", 1), ("stiefel", 1)]


def _fit(model, name, data=None, **params):
    usual, shared = USUAL[model]
    return Case(f"{model}, {name}", model, data or usual, shared | params)


def _sample(target, name, **params):
    return Case(f"sample {target}, {name}", target, params=params)


CASES = (
    _fit("BayesianLDA", "None"),
    _fit("BayesianLDA", "scir", sampler="scir"),
    _fit("BayesianLDA", "scir, seeded topics, batch", sampler="scir", topic_word_prior=SEEDED, **BATCH),
    _fit("BayesianLDA", "scir, fresh", sampler="scir", **FRESH),
    _fit("BayesianLDA", "scir, tables", "tables", sampler="scir", new_features="extend"),
    _fit("BayesianLDA", "sgrld, fresh", sampler="sgrld", **FRESH),
    _fit("BayesianLDA", "gibbs, documents' prior", sampler="gibbs", doc_topic_prior=0.3),
    _fit("BayesianLDA", "gibbs, fractional counts", "fractional counts", sampler="gibbs"),
    _fit("BayesianLDA", "None, seed words", "counts with names", seed_words={"a": ["w1", "w2"], "b": ["w7"]}),
    _fit("BayesianLDA", "None, blocks", "blocks"),
    _fit("BayesianLDA", "None, normal", topic_prior="normal"),
    _fit("BayesianLDA", "blob, normal, batch", sampler="blob", sampler__n_particles=3, topic_prior="normal", **BATCH),
    _fit("DMRTopicModel", "None"),
    _fit("DMRTopicModel", "None, columns", "counts with metadata", metadata_columns=2),
    _fit("DMRTopicModel", "None, formula", "counts and a table of metadata", formula="~ party + year"),
    _fit("DMRTopicModel", "None, blocks", "blocks and metadata"),
    _fit("DMRTopicModel", "None, dispersion by topic", dispersion="topic"),
    _fit("DMRTopicModel", "coef sghmc, scir", coef_sampler="sghmc", sampler="scir"),
    _fit("DMRTopicModel", "coef sgnht, fresh", coef_sampler="sgnht", **FRESH),
    _fit("StructuralTopicModel", "None", formula="~ 1"),
    _fit("StructuralTopicModel", "None, dispersion by topic", formula="~ party + year", dispersion="topic"),
    _fit(
        "StructuralTopicModel", "None, keywords", "counts with names", formula="~ 1", content=None,
        keywords={"a": ["w1", "w2"], "b": ["w7"]},
    ),
    _fit("TopicRegressor", "None"),
    _fit("TopicRegressor", "None, shared dispersion", dispersion="shared"),
    _fit("TopicRegressor", "None, without feedback", feedback=False),
    _fit("TopicClassifier", "None"),
    _fit("GammaProcessTopicModel", "None"),
    _fit("GammaProcessTopicModel", "None, fresh", **FRESH),
    _fit(
        "GammaProcessTopicModel", "scir, hyper-priors", sampler="scir", concentration_prior=(2.0, 0.5),
        rate_prior=(2.0, 1.0), scale_prior=(1.0, 0.5),
    ),
    _fit("GammaProcessTopicModel", "sghmc, topics by gibbs", sampler="sghmc", topics_sampler="gibbs"),
    _fit("SphericalAdmixtureModel", "None"),
    _fit("SphericalAdmixtureModel", "gsgnht, batch", sampler="gsgnht", **BATCH),
    _fit(
        "SphericalAdmixtureModel", "sggmc, drawn hyper-parameters, fresh", sampler="sggmc", kappa0="auto",
        kappa1="auto", proportions="fresh", **BATCH,
    ),
    _fit("SphericalAdmixtureModel", "gmc-b-gibbs", sampler="gmc-b-gibbs"),
    _fit("SphericalAdmixtureModel", "vi", sampler="vi"),
    _fit("DPCategoricalMixture", "None"),
    _fit("DPCategoricalMixture", "gibbs, categorical, replication", "weighted codes", sampler="gibbs",
         likelihood="categorical", weights="replication"),
    _fit("DPCategoricalMixture", "exact-dirichlet, bernoulli, stored", "binary", sampler="exact-dirichlet",
         likelihood="bernoulli"),
    _fit("DPCategoricalMixture", "scir, categorical, survey, batch", "weighted codes", sampler="scir",
         likelihood="categorical", weights="survey", **BATCH),
    _fit("DPCategoricalMixture", "scir, multinomial, fresh", sampler="scir", likelihood="multinomial",
         assignments="fresh", **BATCH),
    _fit("DPCategoricalMixture", "gibbs, mixed", "mixed rows", sampler="gibbs", likelihood="mixed"),
    _fit("LatentClassModel", "None"),
    _fit("LatentClassModel", "None, metadata", "mixed rows and metadata", weights="survey"),
    _fit("VonMisesFisherMixture", "None"),
    _fit("VonMisesFisherMixture", "gibbs, kappa of each", sampler="gibbs", kappa=[2.0, 5.0, 9.0]),
    _fit("VonMisesFisherMixture", "gmc, process", sampler="gmc", weight_concentration_prior_type="dirichlet_process"),
    _fit("BayesianLogisticRegression", "None"),
    _fit("BayesianLogisticRegression", "sgld, three classes, batch", "three classes", sampler="sgld", **BATCH),
    _fit("BayesianLogisticRegression", "hmc, weights", "weighted classes", sampler="hmc"),
    _fit("BayesianLogisticRegression", "nuts", sampler="nuts"),
    _fit("BayesianLogisticRegression", "ubu, palindromic batches", sampler=Made("SGHMC", scheme="ubu"),
         batch_order="palindromic", control_variates=False, **BATCH),
    _fit("BayesianLogisticRegression", "blob, class weights", sampler="blob", sampler__n_particles=3,
         class_weight={0: 2.0, 1: 1.0}),
    _fit("BayesianLinearRegression", "None"),
    _fit("BayesianPoissonRegressor", "None"),
    _fit("BayesianNegativeBinomialRegressor", "None"),
    _fit("BayesianGaussian", "None"),
    _fit("BayesianGaussian", "sgnht", sampler="sgnht"),
    _fit("BayesianGaussian", "rhmc", sampler="rhmc"),
    _fit("BayesianGaussian", "sgr-nphmc", sampler="sgr-nphmc"),
    _fit("BayesianGaussian", "psghmc-fgh", sampler="psghmc-fgh", sampler__n_particles=3),
    _sample("DirichletCategorical", "scir, batch", sampler="scir", **BATCH),
    _sample("LogNormalMedian", "None"),
    _sample("GaussianMean", "sgnht-em", sampler="sgnht-em", n_iter=24),
    _sample("GaussianMean", "recipe", sampler=Made("Recipe", matrices=langevin)),
    _sample("RestrictedGaussian", "all, None", geometry=PRODUCT),
    _sample("MatrixCompletion", "gmc", sampler="gmc"),
    _sample("ManifoldDensity", "None, start", init=np.array([0.6, 0.0, 0.8, 0.25, 0.75])),
    _sample("log density", "None, windows", n_iter=60, burn_in=40,
            parameters={"mu": (), "tau": Positive(), "p": Simplex(3)}),
    _sample("Density", "sgld, batch", sampler="sgld", **BATCH),
)  # fmt: skip
