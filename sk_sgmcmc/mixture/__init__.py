"""Mixture models."""

from ._dirichlet_process.model import DPCategoricalMixture
from ._von_mises_fisher.model import VonMisesFisherMixture

__all__ = ["DPCategoricalMixture", "VonMisesFisherMixture"]
