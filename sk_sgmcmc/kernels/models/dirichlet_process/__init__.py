"""Dirichlet-process mixtures of categorical rows."""

from ..._lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
