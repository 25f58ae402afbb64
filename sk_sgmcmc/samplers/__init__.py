"""Samplers as parameter objects: pass one as ``sampler=`` of an estimator or of `sk_sgmcmc.sample`."""

from ._base import Sampler
from ._euclidean import HMC, SGHMC, SGLD
from ._mass import MonteCarloEM
from ._reference import ExactDirichlet, Gibbs
from ._simplex import SCIR, SGRLD, ExponentialOU
from ._thermostats import SGNHT, SGNPHMC
from .schedules import ConstantStep, CyclicalStep, PolynomialDecay, Schedule

__all__ = [
    "HMC",
    "SCIR",
    "SGHMC",
    "SGLD",
    "SGNHT",
    "SGNPHMC",
    "SGRLD",
    "ConstantStep",
    "CyclicalStep",
    "ExactDirichlet",
    "ExponentialOU",
    "Gibbs",
    "MonteCarloEM",
    "PolynomialDecay",
    "Sampler",
    "Schedule",
]
