"""Compile the kernels of estimators before they are needed.

    python -m sk_sgmcmc.warm_up                # every estimator, and sample
    python -m sk_sgmcmc.warm_up BayesianLDA    # one estimator

Each line of the output is an estimator and the seconds that a small fit took, with its most important other methods.
numba saves compiled code on disk, so later processes only load it: a second run prints how long loading takes. A
density of your own, such as the one that ``sample`` draws from here, is compiled in every process.
"""

import argparse
import time
import warnings

import numpy as np

from .datasets import make_lda
from .density import BayesianGaussian
from .linear_model import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
)
from .mixture import DPCategoricalMixture, LatentClassModel, VonMisesFisherMixture
from .targets import Density
from .targets._sample import sample
from .topic import (
    BayesianLDA,
    DMRTopicModel,
    GammaProcessTopicModel,
    SphericalAdmixtureModel,
    StructuralTopicModel,
    TopicClassifier,
    TopicRegressor,
)
from .topic._counts.sweeps import compile_sweeps

_COUNTS = make_lda(n_samples=60, n_features=30, n_components=3, document_length=30, random_state=0).counts
_ROWS = np.random.default_rng(0).normal(size=(60, 3))
_CLASSES = (_ROWS[:, 0] > 0).astype(int)


def _log_density(q, data, rows, gradient):
    gradient[:] = -q
    return -0.5 * (q**2).sum()


def _topics(estimator, metadata=None, **params):
    given = {} if metadata is None else {"metadata": metadata}
    model = estimator(3, n_iter=40, random_state=0, **params).fit(_COUNTS, **given)
    model.top_words(3)
    model.transform(_COUNTS, **given)
    model.score(_COUNTS, **given)
    few = {} if metadata is None else {"metadata": {name: values[:5] for name, values in metadata.items()}}
    model.transform_draws(_COUNTS[:5], **few)


def _spherical():
    model = SphericalAdmixtureModel(3, n_iter=20, random_state=0).fit(_COUNTS)
    model.top_words(3)
    model.transform(_COUNTS)


def _directions():
    VonMisesFisherMixture(2, n_iter=40, random_state=0).fit(_ROWS).predict(_ROWS)


def _profiles():
    DPCategoricalMixture(n_iter=40, random_state=0).fit(_COUNTS).predict(_COUNTS)


def _classes():
    X = np.column_stack([_CLASSES, _ROWS, np.arange(60)])
    model = LatentClassModel(2, n_iter=40, random_state=0).fit(X, metadata={"x": _ROWS[:, 0]})
    model.predict(X, metadata={"x": _ROWS[:, 0]})
    DPCategoricalMixture(likelihood="mixed", n_iter=40, random_state=0).fit(X)


def _structural():
    _topics(StructuralTopicModel, {"x": _CLASSES}, content="x")
    model = StructuralTopicModel(2, formula="~ 1", keywords={"A": ["a"]}, n_iter=40, random_state=0)
    model.fit(_COUNTS, feature_names=[*"abcdefghijklmnopqrstuvwxyz"][: _COUNTS.shape[1]])


def _overdispersed():
    BayesianNegativeBinomialRegressor(n_iter=40, random_state=0).fit(_ROWS, _CLASSES)


def _outcomes(make):
    for dispersion in ("topic", "shared"):
        make(2, dispersion=dispersion, n_iter=40, random_state=0).fit(_COUNTS, _CLASSES).predict(_COUNTS)
    make(2, feedback=False, n_iter=40, random_state=0).fit(_COUNTS, _CLASSES)


# Functions that make a small fit, by the name of the estimator or function that they compile.
FIRST_FITS = {
    "BayesianLDA": lambda: _topics(BayesianLDA),
    "DMRTopicModel": lambda: _topics(DMRTopicModel, {"x": _ROWS[:, 0]}),
    "StructuralTopicModel": _structural,
    "TopicRegressor": lambda: _outcomes(TopicRegressor),
    "TopicClassifier": lambda: _outcomes(TopicClassifier),
    "GammaProcessTopicModel": lambda: _topics(GammaProcessTopicModel),
    "SphericalAdmixtureModel": _spherical,
    "VonMisesFisherMixture": _directions,
    "DPCategoricalMixture": _profiles,
    "LatentClassModel": _classes,
    "BayesianLinearRegression": lambda: BayesianLinearRegression(n_iter=40, random_state=0).fit(_ROWS, _ROWS[:, 0]),
    "BayesianLogisticRegression": lambda: BayesianLogisticRegression(n_iter=40, random_state=0).fit(_ROWS, _CLASSES),
    "BayesianPoissonRegressor": lambda: BayesianPoissonRegressor(n_iter=40, random_state=0).fit(_ROWS, _CLASSES),
    "BayesianNegativeBinomialRegressor": _overdispersed,
    "BayesianGaussian": lambda: BayesianGaussian(n_iter=40, random_state=0).fit(_ROWS),
    "sample": lambda: sample(Density(_log_density, dim=2), n_iter=40, random_state=0),
}
# Functions that compile further kernels, which only fits of large data use.
FOR_LARGE_DATA = {"BayesianLDA": compile_sweeps}


def warm_up(names=FIRST_FITS):
    """Compile the kernels of estimators by fitting each to small data.

    Parameters
    ----------
    names : iterable of str
        Keys of ``FIRST_FITS``; all by default.

    Yields
    ------
    name : str
    seconds : float
        Time of the fit. Estimators share kernels, so the first fit takes longest.
    """
    for name in names:
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such short chains do not converge
            FIRST_FITS[name]()
            if name in FOR_LARGE_DATA:
                FOR_LARGE_DATA[name]()
        yield name, time.perf_counter() - began


def main(arguments=None):
    """Compile kernels as the command line asks, and print the time."""
    parser = argparse.ArgumentParser(
        prog="python -m sk_sgmcmc.warm_up", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="estimator", help=f"one of {', '.join(FIRST_FITS)}")
    names = parser.parse_args(arguments).names
    if unknown := sorted(set(names) - set(FIRST_FITS)):
        parser.error(f"{', '.join(unknown)} is not one of {', '.join(FIRST_FITS)}")
    total = 0.0
    print("Compiling; numba keeps the result on disk for later processes.", flush=True)
    for name, seconds in warm_up(names or FIRST_FITS):
        print(f"{seconds:7.1f} s  {name}", flush=True)
        total += seconds
    print(f"{total:7.1f} s  in all", flush=True)


if __name__ == "__main__":
    main()
