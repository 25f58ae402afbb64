"""Names of samplers, and which of them fit a model."""

import numpy as np
from sklearn.base import clone

from ._admixture import GMCApprMH, GMCBGibbs, StochasticVI, VariationalInference
from ._euclidean import HMC, SGHMC, SGLD
from ._geodesic import GMC, GSGNHT, SGGMC
from ._mass import MonteCarloEM
from ._particles import GFSD, GFSF, PSGHMC, SVGD, Blob
from ._reference import ExactDirichlet, Gibbs, SliceGibbs
from ._riemannian import RHMC, SGRNPHMC
from ._simplex import SCIR, SGRLD, ExponentialOU
from ._thermostats import SGNHT, SGNPHMC


def _made(cls, **parameters):
    def make():
        return cls(**{name: value() if callable(value) else value for name, value in parameters.items()})

    make._fits, make.__name__ = cls._fits, cls.__name__
    return make


# Every name a string may give. A value is called without arguments to make the sampler.
SAMPLERS = {
    cls._name: cls
    for cls in (
        SCIR,
        SGRLD,
        ExponentialOU,
        ExactDirichlet,
        Gibbs,
        SliceGibbs,
        GMC,
        SGGMC,
        GSGNHT,
        GMCApprMH,
        GMCBGibbs,
        VariationalInference,
        StochasticVI,
        SGLD,
        SGHMC,
        SGNHT,
        SGNPHMC,
        SGRNPHMC,
        HMC,
        RHMC,
        Blob,
        GFSD,
        GFSF,
        SVGD,
    )
}
LEARNT_MASS = {f"{cls._name}-em": _made(cls, mass=MonteCarloEM) for cls in (HMC, SGHMC, SGNHT, SGNPHMC)}
SAMPLERS.update(LEARNT_MASS)
SAMPLERS.update({f"psghmc-{kind}": _made(PSGHMC, kind=kind) for kind in ("det", "fgh")})


def make_sampler(sampler):
    """The sampler that a user's ``sampler=`` argument means: a name becomes its object, an object stays itself.

    But one whose parameters are integers of NumPy comes back as a copy with Python's.
    """
    from ._base import Sampler

    if isinstance(sampler, str):
        if sampler not in SAMPLERS:
            raise ValueError(f"sampler={sampler!r} is not a known sampler; known names: {', '.join(sorted(SAMPLERS))}.")
        return SAMPLERS[sampler]()
    if not isinstance(sampler, Sampler):
        raise TypeError(
            f"sampler must be a name, a sampler object from sk_sgmcmc.samplers, or None; got {sampler!r} "
            f"of type {type(sampler).__name__}."
        )
    narrow = {name: value for name, value in sampler.get_params().items() if isinstance(value, np.integer)}
    if narrow:  # they would overflow in products; the user's object keeps them
        sampler = clone(sampler).set_params(**{name: int(value) for name, value in narrow.items()})
    return sampler


def fitting_pair(sampler, offers):
    """The first (geometry, signal) that a sampler accepts and a model offers, or None."""
    return next((pair for pair in offers if pair in sampler._fits), None)


def check_fits(sampler, offers, model_name):
    """Return the pair a sampler and a model meet on; raise with the samplers that do fit if there is none."""
    pair = fitting_pair(sampler, offers)
    if pair is None:
        fitting = sorted(name for name, make in SAMPLERS.items() if fitting_pair(make(), offers))
        spaces = ", ".join(sorted({f"{signal} on the {geometry}" for geometry, signal in sampler._fits}))
        raise ValueError(
            f"sampler={sampler!r} does not fit {model_name}: {type(sampler).__name__} needs {spaces}. "
            f"Samplers that fit {model_name}: {', '.join(fitting)}."
        )
    return pair
