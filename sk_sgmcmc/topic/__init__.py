"""Topic models."""

from ._dmr import DMRTopicModel
from ._gamma_process import GammaProcessTopicModel
from ._lda import BayesianLDA
from ._sam import SphericalAdmixtureModel

__all__ = ["BayesianLDA", "DMRTopicModel", "GammaProcessTopicModel", "SphericalAdmixtureModel"]
