"""Mixtures of von Mises-Fisher laws."""

from ..._lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
