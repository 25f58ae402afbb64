"""Latent Dirichlet allocation: assignments of tokens, and starts of chains."""

from ..._lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
