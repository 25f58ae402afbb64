"""Which samplers move the topics of a count topic model, by which chains, and in steps of what size."""

from ...samplers.schedules import ConstantStep
from .chain import TopicChain
from .collapsed_chain import CollapsedTopicChain
from .particles import ParticleTopicChain

# Share of a variance that a step of a sampler on flat space may add; minibatches with fresh assignments, which start
# near the mode, may add more.
_TOLERANCE, _NOISE = 0.05, 0.1


class SamplersMixin:
    """Samplers on the simplex, on flat space and the exact reference, for models whose chain is a `TopicChain`."""

    _offers = (("simplex", "counts"), ("euclidean", "conditional-gradient"), ("any", "conditionals"))

    topic_prior = "dirichlet"  # of models that have no such parameter

    def _offered(self):
        return self._offers[1:2] if self.topic_prior == "normal" else self._offers

    @property
    def _default_sampler(self):
        return "sghmc" if self.topic_prior == "normal" else "scir"

    def _default_for(self, streams):
        """Collapsed Gibbs where all documents are at hand and nothing is said of minibatches; else what streams."""
        exact = (
            not streams
            and self.topic_prior == "dirichlet"
            and self.assignments != "fresh"
            and isinstance(self.batch_size, str)
            and self.total_samples is None
        )
        return "gibbs" if exact else self._default_sampler

    def _chain_of(self, sampler, pair):
        """What makes a chain of a sampler."""
        if pair[1] == "conditionals":
            return CollapsedTopicChain
        return ParticleTopicChain if sampler._runner == "particles" else TopicChain

    def _flat_arguments(self, pair):
        """What `SoftmaxTopics` is made with; None for samplers on the simplex."""
        if pair[0] != "euclidean":
            return None
        normal = self.topic_prior == "normal"
        return {"prior_scale": float(self.topic_prior_scale) if normal else 0.0, "whiten": self.whiten}

    def _resolved_sampler(self, sampler, pair, corpus, stored, scale):
        """The fitted copy of the sampler; ``scale`` is N/n."""
        if pair[0] == "euclidean":
            auto = self._flat_step_size(sampler, corpus, 0.0 if stored else scale)
        else:
            auto = sampler._simplex_schedule(noisy=not stored) if sampler._picks_step else None
        return sampler._resolved(auto)

    def _flat_step_size(self, sampler, corpus, scale):
        """A constant step that is stable where posterior deviations are about 1; ``scale`` is N/n, 0 without noise."""
        curvature = 1.0
        if not self.whiten:  # of the most frequent word, if one topic had it alone
            curvature += max(1.0, scale) * float(corpus.to_csr().sum(axis=0).max())
        noise = curvature * scale
        if not sampler._picks_step:
            return None
        return ConstantStep(float(sampler._stable_step(curvature, noise, share=_NOISE if noise else _TOLERANCE)))
