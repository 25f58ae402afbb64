"""Special functions and draws from distributions that kernels share."""

from .._lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
