"""Targets for `sk_sgmcmc.sample`: user-defined densities, conjugate posteriors, and densities on manifolds."""

from ._base import Target
from ._conjugate import DirichletCategorical, GammaPoisson, GaussianMean, LogNormalMedian
from ._density import Density
from ._examples import ChainedVonMisesFisher, ExponentialMixture, MatrixCompletion, RestrictedGaussian
from ._manifold_density import ManifoldDensity
from ._parameters import Ordered, Positive, Simplex

__all__ = [
    "ChainedVonMisesFisher",
    "Density",
    "DirichletCategorical",
    "ExponentialMixture",
    "GammaPoisson",
    "GaussianMean",
    "LogNormalMedian",
    "ManifoldDensity",
    "MatrixCompletion",
    "Ordered",
    "Positive",
    "RestrictedGaussian",
    "Simplex",
    "Target",
]
