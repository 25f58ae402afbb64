"""Mixture models."""

from ._dirichlet_process.model import DPCategoricalMixture
from ._latent_class.model import LatentClassModel
from ._von_mises_fisher.model import VonMisesFisherMixture

__all__ = ["DPCategoricalMixture", "LatentClassModel", "VonMisesFisherMixture"]
