"""Names of samplers, and the samplers that fit a model."""

import numpy as np
from sklearn.base import clone

from .. import samplers as public
from ._base import Sampler
from ._euclidean import HMC, SGHMC
from ._mass import MonteCarloEM
from ._particles import PSGHMC
from ._recipe import ParticleRecipe, Recipe
from ._thermostats import SGNHT, SGNPHMC


def _made(cls, **parameters):
    def make():
        return cls(**{name: value() if callable(value) else value for name, value in parameters.items()})

    make._fits, make.__name__ = cls._fits, cls.__name__
    return make


# All names of samplers. Each value is a class or function that makes the sampler when called without arguments.
SAMPLERS = {
    cls._name: cls
    for cls in map(vars(public).get, public.__all__)
    # Without PSGHMC, which has several names, and recipes, which need arguments.
    if isinstance(getattr(cls, "_name", None), str) and cls not in (Recipe, ParticleRecipe)
}
LEARNT_MASS = {f"{cls._name}-em": _made(cls, mass=MonteCarloEM) for cls in (HMC, SGHMC, SGNHT, SGNPHMC)}
SAMPLERS.update(LEARNT_MASS)
SAMPLERS.update({f"psghmc-{kind}": _made(PSGHMC, kind=kind) for kind in ("det", "fgh")})


# Signals and spaces as error messages call them.
_SIGNALS = {
    "gradient": "a gradient",
    "conditional-gradient": "a conditional gradient",
    "block-gradient": "a gradient by blocks",
    "gradient-metric": "a gradient and a metric",
    "block-gradient-metric": "a gradient and a metric by blocks",
    "log-location": "a log-location",
}
_SPACES = {
    "any": "",
    "euclidean": "on Euclidean space",
    "positive": "on (0, inf)",
    "sphere": "on spheres",
    "stiefel": "on orthonormal frames",
    "product": "on products of manifolds",
}


def make_sampler(sampler, offers=None, model_name=None):
    """The sampler object for a user's ``sampler=`` argument, which is a name or a sampler.

    A sampler with NumPy integers among its parameters is replaced by a copy with Python integers. The error for an
    unknown name lists the samplers that fit the pairs in ``offers``, or all samplers without it.
    """
    if isinstance(sampler, str):
        if sampler not in SAMPLERS:
            names = sorted(SAMPLERS) if offers is None else names_fitting(offers)
            known = "Known names" if offers is None else f"Samplers that fit {model_name}"
            raise ValueError(f"sampler={sampler!r} is not a known sampler. {known}: {', '.join(names)}.")
        return SAMPLERS[sampler]()
    if not isinstance(sampler, Sampler):
        raise TypeError(
            f"sampler must be a name, a sampler object from sk_sgmcmc.samplers, or None; got {sampler!r} "
            f"of type {type(sampler).__name__}."
        )
    narrow = {name: value for name, value in sampler.get_params().items() if isinstance(value, np.integer)}
    if narrow:  # NumPy integers may overflow in products; the user's object stays unchanged
        sampler = clone(sampler).set_params(**{name: int(value) for name, value in narrow.items()})
    return sampler


def _in_words(geometry, signal):
    return f"{_SIGNALS.get(signal, signal)} {_SPACES.get(geometry, f'on the {geometry}')}".strip()


def fitting_pair(sampler, offers):
    """The first (geometry, signal) that a sampler accepts and a model offers, or None."""
    return next((pair for pair in offers if pair in sampler._fits), None)


def names_fitting(offers):
    """Names of the samplers that fit what a model offers, in alphabetical order."""
    return sorted(name for name, make in SAMPLERS.items() if fitting_pair(make(), offers))


def check_fits(sampler, offers, model_name):
    """The first (geometry, signal) that a sampler accepts and a model offers.

    If there is none, raises an error that lists the samplers which fit the model.
    """
    pair = fitting_pair(sampler, offers)
    if pair is None:
        needs = " or ".join(sorted(_in_words(*pair) for pair in sampler._fits))
        raise ValueError(
            f"sampler={sampler!r} does not fit {model_name}: {type(sampler).__name__} needs {needs}. "
            f"Samplers that fit {model_name}: {', '.join(names_fitting(offers))}."
        )
    return pair
