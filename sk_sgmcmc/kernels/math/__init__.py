"""Draws from laws and special functions that kernels share."""

from .._lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
