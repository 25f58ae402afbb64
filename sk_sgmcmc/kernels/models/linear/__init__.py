"""Bayesian linear models: logistic, multinomial, Poisson and linear regression."""

from ..._lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
