"""Signals of the models, by which samplers move, and the parts of models that are drawn exactly."""

from .._lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
