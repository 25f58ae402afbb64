"""Signals of the models, and conditional draws of the parts of models that are sampled exactly."""

from .._lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
