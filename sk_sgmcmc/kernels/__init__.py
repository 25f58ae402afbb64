"""Compiled arithmetic: arrays in, arrays out.

Nothing here depends on an estimator or a sampler class, and this is the only package that imports numba. The rest of
the library imports its modules as usual, at the top of a file; they are loaded at first use, see `_lazy`, so ``import
sk_sgmcmc`` compiles nothing and does not load numba.
"""

from ._lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
