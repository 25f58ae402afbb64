"""Which chain a sampler of the topics moves, and in steps of what size."""

from ...samplers.schedules import ConstantStep
from .chain import TopicChain
from .collapsed_chain import CollapsedTopicChain
from .particles import ParticleTopicChain

# Share of a variance that a step of a sampler on flat space may add; minibatches with fresh assignments, which start
# near the mode, may add more.
_TOLERANCE, _NOISE = 0.05, 0.1


def chain_class(sampler, pair):
    """What makes a chain of a sampler that fits by ``pair``, (geometry, signal)."""
    if pair[1] == "conditionals":
        return CollapsedTopicChain
    return ParticleTopicChain if sampler._runner == "particles" else TopicChain


def resolved_sampler(sampler, pair, corpus, scale, whiten):
    """The fitted copy of a sampler, with its step size.

    Parameters
    ----------
    sampler : Sampler
    pair : tuple of str
        Geometry and signal.
    corpus : Corpus
    scale : float
        N/n of the minibatches' noise; 0 where assignments are stored.
    whiten : bool
        Whether flat coordinates have posterior deviations of about 1.
    """
    if not sampler._picks_step:
        return sampler._resolved(None)
    if pair[0] != "euclidean":
        return sampler._resolved(sampler._simplex_schedule(noisy=scale > 0))
    curvature = 1.0
    if not whiten:  # of the most frequent word, if one topic had it alone
        curvature += max(1.0, scale) * float(corpus.to_csr().sum(axis=0).max())
    noise = curvature * scale
    return sampler._resolved(
        ConstantStep(float(sampler._stable_step(curvature, noise, share=_NOISE if noise else _TOLERANCE)))
    )
