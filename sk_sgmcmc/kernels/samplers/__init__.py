"""Transitions of the samplers."""

from .._lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
