"""Samplers as parameter objects: pass one as ``sampler=`` of an estimator or of `sk_sgmcmc.sample`."""

from ._admixture import GMCApprMH, GMCBGibbs, StochasticVI, VariationalInference
from ._base import Sampler
from ._geodesic import GMC, GSGNHT, SGGMC
from ._reference import ExactDirichlet, Gibbs
from ._simplex import SCIR, SGRLD, ExponentialOU
from .schedules import ConstantStep, CyclicalStep, PolynomialDecay, Schedule

__all__ = [
    "GMC",
    "GSGNHT",
    "SCIR",
    "SGGMC",
    "SGRLD",
    "ConstantStep",
    "CyclicalStep",
    "ExactDirichlet",
    "ExponentialOU",
    "GMCApprMH",
    "GMCBGibbs",
    "Gibbs",
    "PolynomialDecay",
    "Sampler",
    "Schedule",
    "StochasticVI",
    "VariationalInference",
]
