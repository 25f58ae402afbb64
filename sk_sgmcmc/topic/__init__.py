"""Topic models."""

from ._dmr.model import DMRTopicModel
from ._gamma_process.model import GammaProcessTopicModel
from ._lda import BayesianLDA
from ._outcome.model import TopicClassifier, TopicRegressor
from ._spherical.model import SphericalAdmixtureModel
from ._structural.model import StructuralTopicModel

__all__ = [
    "BayesianLDA",
    "DMRTopicModel",
    "GammaProcessTopicModel",
    "SphericalAdmixtureModel",
    "StructuralTopicModel",
    "TopicClassifier",
    "TopicRegressor",
]
