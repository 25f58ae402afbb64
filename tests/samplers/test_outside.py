"""Samplers defined outside the package fit the models that they declare, by their own automatic step or with none."""

import numpy as np
import pytest

from sk_sgmcmc import (
    BayesianGaussian,
    BayesianLDA,
    BayesianLogisticRegression,
    DMRTopicModel,
    DPCategoricalMixture,
    GammaProcessTopicModel,
    SphericalAdmixtureModel,
    VonMisesFisherMixture,
    sample,
)
from sk_sgmcmc.datasets import make_lda
from sk_sgmcmc.kernels._jit import NOT_FINITE, OK, TRANSITION, kernel
from sk_sgmcmc.kernels.math.random import gamma_draw
from sk_sgmcmc.kernels.samplers import geodesic, simplex
from sk_sgmcmc.samplers import ConstantStep, Sampler
from sk_sgmcmc.targets import DirichletCategorical, GaussianMean, RestrictedGaussian

OWN = 0.00625  # the step size that each of the samplers below picks, and no other does


@kernel(TRANSITION)
def preconditioned_step(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """SGLD with a diagonal preconditioner that follows the squared gradients; hyper = (h, decay)."""
    h, decay = hyper[0], hyper[1]
    for i in range(rows.shape[0]):
        r = rows[i]
        for k in range(theta.shape[1]):
            g = signal[i, k]
            aux[0, r, k] = decay * aux[0, r, k] + (1.0 - decay) * g * g
            scale = 1.0 / (1.0 + np.sqrt(aux[0, r, k]))
            theta[r, k] += h * scale * g + np.sqrt(2.0 * h * scale) * rng.standard_normal()
            if not np.isfinite(theta[r, k]):
                return NOT_FINITE
    return OK


@kernel(TRANSITION)
def autoregressive_gamma_step(theta, aux, scalars, signal, extra, hyper, rows, rng):
    """With probability h a cell is drawn anew from its Gamma law."""
    for i in range(rows.shape[0]):
        for k in range(theta.shape[1]):
            if rng.random() < hyper[0]:
                theta[rows[i], k] = gamma_draw(signal[i, k], rng)
    return OK


class PreconditionedSGLD(Sampler):
    """A sampler on flat space without a rule for its step size; it adapts for ever, which a public one must not."""

    _name = "outside-flat"
    _fits = (("euclidean", "gradient"), ("euclidean", "conditional-gradient"), ("euclidean", "block-gradient"))
    _n_aux = 1

    def __init__(self, step_size="auto", decay=0.99):
        self.step_size = step_size
        self.decay = decay

    def _numbers(self):
        return [self.decay]

    def _kernels(self, geometry):
        return simplex.no_advance, preconditioned_step


class LazyGamma(Sampler):
    """One on the simplex."""

    _name = "outside-simplex"
    _fits = (("simplex", "counts"), ("positive", "counts"))

    def __init__(self, step_size="auto"):
        self.step_size = step_size

    def _kernels(self, geometry):
        return simplex.no_advance, autoregressive_gamma_step


class SphereWalk(Sampler):
    """One on spheres, with the kernels of `SGGMC` and numbers of its own."""

    _name = "outside-sphere"
    _fits = (("sphere", "gradient"), ("sphere", "admixture"), ("sphere", "mixture"))
    _n_aux = 1
    _n_scalars = 2

    def __init__(self, step_size="auto"):
        self.step_size = step_size

    def _numbers(self):
        return [2.0, 0.0, 2.0, 0.0]

    def _kernels(self, geometry):
        return geodesic.TRANSITIONS[geometry]


def _own_step(self, curvature, noise, *, share=0.05, reach=0.4):
    return OWN


class PreconditionedSGLDWithRule(PreconditionedSGLD):
    """The same with a rule."""

    _stable_step = _own_step


class LazyGammaWithRule(LazyGamma):
    """The same with a rule."""

    _simplex_step = OWN
    _stable_step = _own_step

    def _simplex_schedule(self, noisy):
        return ConstantStep(OWN)


class SphereWalkWithRule(SphereWalk):
    """The same with a rule."""

    _stable_step = _own_step


COUNTS = make_lda(n_samples=40, n_features=12, n_components=2, document_length=15, random_state=0).counts
ROWS = np.random.default_rng(0).normal(size=(60, 3))
LABELS = (ROWS[:, 0] > 0).astype(int)
SMALL = {"n_iter": 8, "random_state": 0}


def lda(sampler, **params):
    return BayesianLDA(2, sampler=sampler, **SMALL, **params).fit(COUNTS).sampler_


def dmr(sampler):
    year = np.arange(40.0)
    model = DMRTopicModel(2, coef_sampler=sampler, **SMALL).fit(COUNTS, metadata=year)
    return model._chains[0].doc_prior.coefficients.state.sampler


# By kind: what each model has in use after a fit with a sampler.
FLAT = {
    "logistic": lambda s: BayesianLogisticRegression(sampler=s, **SMALL).fit(ROWS, LABELS).sampler_,
    "Gaussian": lambda s: BayesianGaussian(sampler=s, **SMALL).fit(ROWS).sampler_,
    "LDA": lda,
    "LDA, fresh": lambda s: lda(s, assignments="fresh", batch_size=10),
    "LDA, normal prior": lambda s: lda(s, topic_prior="normal"),
    "DMR": dmr,
    "gamma process": lambda s: GammaProcessTopicModel(4, sampler=s, n_inner=2, **SMALL).fit(COUNTS).sampler_,
    "sample": lambda s: sample(GaussianMean(ROWS), s, n_iter=8, random_state=0).sampler_,
}
SIMPLEX = {
    "LDA": lda,
    "LDA, fresh": lambda s: lda(s, assignments="fresh", batch_size=10),
    "DMR": lambda s: DMRTopicModel(2, sampler=s, **SMALL).fit(COUNTS, metadata=np.arange(40.0)).sampler_,
    "gamma process": lambda s: GammaProcessTopicModel(4, topics_sampler=s, **SMALL).fit(COUNTS).topics_sampler_,
    "Dirichlet process": lambda s: DPCategoricalMixture(sampler=s, **SMALL).fit(COUNTS).sampler_,
    "sample": lambda s: sample(DirichletCategorical([0, 1, 1], n_categories=3), s, n_iter=8, random_state=0).sampler_,
}
SPHERE = {
    "spherical admixture": lambda s: SphericalAdmixtureModel(2, sampler=s, **SMALL).fit(np.abs(ROWS)).sampler_,
    "von Mises-Fisher": lambda s: VonMisesFisherMixture(2, sampler=s, **SMALL).fit(ROWS).sampler_,
    "sample": lambda s: sample(RestrictedGaussian([[1.0, 2.0, 0.5]]), s, n_iter=8, random_state=0).sampler_,
}
CASES = [
    pytest.param(fit, without, with_rule, id=f"{kind}-{name}")
    for kind, fits, without, with_rule in (
        ("flat", FLAT, PreconditionedSGLD, PreconditionedSGLDWithRule),
        ("simplex", SIMPLEX, LazyGamma, LazyGammaWithRule),
        ("sphere", SPHERE, SphereWalk, SphereWalkWithRule),
    )
    for name, fit in fits.items()
]


@pytest.mark.parametrize("fit, without, with_rule", CASES)
def test_a_sampler_from_outside_moves_by_its_own_automatic_step(fit, without, with_rule):
    np.testing.assert_allclose(fit(with_rule()).step_size_(np.arange(3)), OWN, rtol=2e-3)


@pytest.mark.parametrize("fit, without, with_rule", CASES)
def test_a_sampler_from_outside_without_a_rule_is_refused_until_it_is_given_a_step(fit, without, with_rule):
    with pytest.raises(ValueError, match=rf"{without.__name__} has no automatic step size.*step_size=0\.01"):
        fit(without())
    assert fit(without(step_size=0.003)).step_size_(0) == 0.003
