"""Topic models."""

from ._lda import BayesianLDA
from ._sam import SphericalAdmixtureModel

__all__ = ["BayesianLDA", "SphericalAdmixtureModel"]
