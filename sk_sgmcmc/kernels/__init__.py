"""Compiled functions of arrays.

Nothing here depends on an estimator or a sampler class, and only this package imports numba. Other packages import
these modules as usual, at the top of a file. The modules are loaded at first use (see `_lazy`), so ``import sk_sgmcmc``
compiles nothing and does not load numba.
"""

from ._lazy import lazy_modules

__getattr__ = lazy_modules(__name__)
