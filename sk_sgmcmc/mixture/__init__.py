"""Mixture models."""

from ._vmf import VonMisesFisherMixture

__all__ = ["VonMisesFisherMixture"]
