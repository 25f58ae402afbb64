"""Latent Dirichlet allocation: assignments of tokens, and where chains start."""

from ..._lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
