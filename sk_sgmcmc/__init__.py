"""Scikit-learn-compatible Bayesian estimators, fitted by stochastic-gradient MCMC."""

from .density import BayesianGaussian
from .linear_model import (
    BayesianLinearRegression,
    BayesianLogisticRegression,
    BayesianNegativeBinomialRegressor,
    BayesianPoissonRegressor,
)
from .mixture import DPCategoricalMixture, LatentClassModel, VonMisesFisherMixture
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

__version__ = "0.1.0"

__all__ = [
    "BayesianGaussian",
    "BayesianLDA",
    "BayesianLinearRegression",
    "BayesianLogisticRegression",
    "BayesianNegativeBinomialRegressor",
    "BayesianPoissonRegressor",
    "DMRTopicModel",
    "DPCategoricalMixture",
    "GammaProcessTopicModel",
    "LatentClassModel",
    "SphericalAdmixtureModel",
    "StructuralTopicModel",
    "TopicClassifier",
    "TopicRegressor",
    "VonMisesFisherMixture",
    "__version__",
    "sample",
]
