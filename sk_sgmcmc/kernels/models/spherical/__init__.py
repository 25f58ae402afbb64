"""The spherical admixture model."""

from ..._lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
