"""Priors of the topics of documents that can also be learnt given activities, the gamma variables of documents.

Before the outcomes are read, they are learnt from the topics of tokens, as in models without outcomes. Given outcomes,
the proportions may not be integrated out, and parameters are drawn given them.
"""

import numpy as np

from ...covariates.metadata import NoCovariates
from ...covariates.prior import NormalPrior
from ...kernels.models import outcome
from .._counts.corpus import Described
from .._counts.document_prior import DocumentPrior, FittedPrior, first_doc_prior
from .._counts.scaled_dirichlet import ScaledDirichlet
from .._dmr.dispersed_prior import DispersedMetadataPrior, distributions, halves

# Standard deviations of the normal priors of the logarithms of shapes and scales.
_SHAPE_SCALE, _SCALE_SCALE = 2.0, 1.0


# First standard deviation of the steps that move parameters with the activities, and the share of them to accept.
_FIRST_STEP, _ACCEPTED = 0.1, 0.44


class ActivityMoves:
    """Steps of the parameters of a documents' prior that move the activities along, and their sizes.

    Parameters
    ----------
    n_topics : int
    has_scales : bool
        Whether there are scales besides shapes.
    """

    def __init__(self, n_topics, has_scales):
        self.has_scales, self.n_adapted = has_scales, 0
        self.steps = np.full((2, n_topics), _FIRST_STEP)

    def permute(self, order):
        """Reorder the topics."""
        self.steps = np.ascontiguousarray(self.steps[:, order])

    def move(self, log_shape, log_scale, step, tokens, mean, rng, adapts):
        """Make a step for each topic, in place, by an `OutcomeStep`; ``tokens`` is (token_ptr, weights, z).

        ``adapts`` says whether sizes may be adapted.
        """
        accepted, precisions = np.zeros(self.steps.shape), (_SHAPE_SCALE**-2.0, _SCALE_SCALE**-2.0)
        outcome.move_with_activities(
            log_shape, log_scale, step.log_activity, *tokens, *step[3:], mean, *precisions, self.has_scales, self.steps,
            accepted, rng,
        )  # fmt: skip
        if adapts:
            self.n_adapted += 1
            self.steps = np.minimum(self.steps * np.exp((accepted - _ACCEPTED) / np.sqrt(self.n_adapted)), 3.0)


class FixedActivities(DocumentPrior):
    """A Dirichlet prior that is given."""

    def gamma_parameters(self):
        """Shapes and rates of the activities of documents, both (1, n_topics)."""
        return self.alpha[None], np.ones((1, self.alpha.size))

    def update_given(self, sums, rng):
        """Learn from `ActivitySums`; returns what must be added to all log activities: a number, or one per document.

        The proportions do not change.
        """
        return 0.0

    def move_with(self, step, tokens, rng, adapts):
        """Learn by steps that move the activities along; arguments as for `ActivityMoves.move`."""

    def exchangeable_groups(self):
        return self.alpha

    def draw(self):
        return {"doc_topic_prior": self.alpha.copy(), "doc_topic_scale": np.ones(self.alpha.size)}


class DirichletActivities(FittedPrior):
    """A learnt Dirichlet prior."""

    def __init__(self, alpha, stored=True, allows_tempering=False):
        super().__init__(alpha, stored, allows_tempering)
        self.moves = ActivityMoves(self.alpha.size, has_scales=False)

    gamma_parameters = FixedActivities.gamma_parameters

    def update_given(self, sums, rng):
        """As `FixedActivities.update_given`; draws the parameters given the proportions."""
        log_shape = np.log(self.alpha)
        log_sums = sums.log_sums - sums.log_totals.sum()
        mean = np.log(first_doc_prior(self.alpha.size))
        outcome.draw_dirichlet_parameters(
            log_shape, log_sums, float(sums.log_totals.size), mean, _SHAPE_SCALE**-2.0, rng
        )
        self.alpha = np.exp(log_shape)
        # The sum of the activities is independent of the proportions. Its shape may be small.
        total, n_docs = self.alpha.sum(), sums.log_totals.size
        return np.log(rng.standard_gamma(total + 1.0, n_docs)) + np.log1p(-rng.random(n_docs)) / total - sums.log_totals

    def move_with(self, step, tokens, rng, adapts):
        """As `FixedActivities.move_with`."""
        log_shape = np.log(self.alpha)
        mean = np.log(first_doc_prior(self.alpha.size))
        self.moves.move(log_shape, np.zeros(self.alpha.size), step, tokens, mean, rng, adapts)
        self.alpha = np.exp(log_shape)

    def permute(self, order):
        super().permute(order)
        self.moves.permute(order)

    draw = FixedActivities.draw


class ScaledActivities(DispersedMetadataPrior):
    """A learnt scaled Dirichlet prior, in which each topic has a dispersion of its own."""

    def __init__(self, alpha):
        prior = np.full(alpha.size, first_doc_prior(alpha.size))
        super().__init__(prior, tuple(NormalPrior(0, (each, each)) for each in (_SHAPE_SCALE, _SCALE_SCALE)))
        self.moves = ActivityMoves(alpha.size, has_scales=True)
        self._rows = NoCovariates().fit(None).rows(np.zeros((1, 0)))

    def _with_intercept(self, shard):
        return shard._replace(described=Described(np.zeros(shard.n_docs, dtype=np.int64), np.zeros((1, 0)), self._rows))

    def sweep_priors(self, shard):
        shape, rate = self.gamma_parameters()
        return ScaledDirichlet(shape, rate), np.zeros(shard.n_docs, dtype=np.int64)

    def gamma_parameters(self):
        """As `FixedActivities.gamma_parameters`."""
        return distributions(*(part.T for part in halves(self.coefficients.value)))

    def update(self, assigned, progress):
        super().update(assigned._replace(documents=self._with_intercept(assigned.documents)), progress)

    def update_given(self, sums, rng):
        """As `FixedActivities.update_given`; draws shapes and scales given the activities."""
        log_shape, log_scale = (part[:, 0].copy() for part in halves(self.coefficients.value))
        mean, precisions = self.coefficients.mean[0, 0], (_SHAPE_SCALE**-2.0, _SCALE_SCALE**-2.0)
        outcome.draw_gamma_parameters(
            log_shape, log_scale, sums.log_sums, sums.sums, float(sums.log_totals.size), mean, *precisions, rng
        )
        # A factor that is common to all activities cancels in the proportions, so only the prior determines it.
        shift = _SCALE_SCALE * rng.standard_normal() / np.sqrt(log_scale.size) - log_scale.mean()
        self.coefficients.value = np.column_stack([log_shape, log_scale + shift])
        return shift

    def move_with(self, step, tokens, rng, adapts):
        """As `FixedActivities.move_with`."""
        log_shape, log_scale = (part[:, 0].copy() for part in halves(self.coefficients.value))
        self.moves.move(log_shape, log_scale, step, tokens, self.coefficients.mean[0, 0], rng, adapts)
        self.coefficients.value = np.column_stack([log_shape, log_scale])

    def permute(self, order):
        super().permute(order)
        self.moves.permute(order)

    def draw(self):
        shape, rate = self.gamma_parameters()
        log_rate = np.log(rate[0])
        return {"doc_topic_prior": shape[0].copy(), "doc_topic_scale": np.exp(log_rate.mean() - log_rate)}

    def set_to(self, draw):
        log_shape, log_scale = (np.log(draw[f"doc_topic_{name}"])[:, None] for name in ("prior", "scale"))
        super().set_to({"coef": log_shape + log_scale, "dispersion_coef": log_scale})
