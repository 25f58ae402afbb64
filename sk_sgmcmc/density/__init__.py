"""Density estimation with posterior uncertainty."""

from ._gaussian import BayesianGaussian

__all__ = ["BayesianGaussian"]
