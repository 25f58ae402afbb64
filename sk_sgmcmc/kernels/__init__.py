"""Compiled arithmetic: arrays in, arrays out.

Nothing here knows an estimator or a sampler class, and this is the only package that imports numba. The rest of
the library imports a kernel module inside the function that needs it, so ``import sk_sgmcmc`` compiles nothing and
does not load numba.
"""
