"""Topic models."""

from ._dmr import DMRTopicModel
from ._lda import BayesianLDA
from ._sam import SphericalAdmixtureModel

__all__ = ["BayesianLDA", "DMRTopicModel", "SphericalAdmixtureModel"]
