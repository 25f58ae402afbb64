"""Samplers as parameter objects: pass one as ``sampler=`` of an estimator or of `sk_sgmcmc.sample`."""

from ._admixture import GMCApprMH, GMCBGibbs, StochasticVI, VariationalInference
from ._base import Sampler
from ._euclidean import HMC, SGHMC, SGLD
from ._geodesic import GMC, GSGNHT, SGGMC
from ._mass import MonteCarloEM
from ._nuts import NUTS
from ._particles import GFSD, GFSF, PSGHMC, SVGD, Blob
from ._recipe import ParticleRecipe, Recipe
from ._reference import ExactDirichlet, Gibbs, SliceGibbs
from ._riemannian import RHMC, SGRNPHMC
from ._simplex import SCIR, SGRLD, ExponentialOU
from ._thermostats import SGNHT, SGNPHMC
from .schedules import ConstantStep, CyclicalStep, PolynomialDecay, Schedule

__all__ = [
    "GFSD",
    "GFSF",
    "GMC",
    "GSGNHT",
    "HMC",
    "NUTS",
    "PSGHMC",
    "RHMC",
    "SCIR",
    "SGGMC",
    "SGHMC",
    "SGLD",
    "SGNHT",
    "SGNPHMC",
    "SGRLD",
    "SGRNPHMC",
    "SVGD",
    "Blob",
    "ConstantStep",
    "CyclicalStep",
    "ExactDirichlet",
    "ExponentialOU",
    "GMCApprMH",
    "GMCBGibbs",
    "Gibbs",
    "MonteCarloEM",
    "ParticleRecipe",
    "PolynomialDecay",
    "Recipe",
    "Sampler",
    "Schedule",
    "SliceGibbs",
    "StochasticVI",
    "VariationalInference",
]
