"""Mixture models."""

from ._dp_categorical import DPCategoricalMixture
from ._vmf import VonMisesFisherMixture

__all__ = ["DPCategoricalMixture", "VonMisesFisherMixture"]
