"""Which class of chain a sampler of the topics needs, and its step size."""

from ...samplers.schedules import ConstantStep
from .block_chain import BlockTopicChain
from .chain import TopicChain
from .collapsed_chain import CollapsedTopicChain
from .particles import ParticleTopicChain

# Share of a variance that a step of a sampler on flat space may add, and, with fresh assignments, the larger share that
# the noise of minibatches may add.
_TOLERANCE, _NOISE = 0.05, 0.1
# Classes of chains by the name of the sampler's loop; all others use `TopicChain`.
CHAINS = {"particles": ParticleTopicChain}


def chain_class(sampler, pair, in_blocks=False):
    """The class of chain for a sampler that fits by ``pair``, (geometry, signal); for a corpus in memory or in blocks.

    Raises `ValueError` if there is none.
    """
    if in_blocks:
        if pair[1] == "conditionals":
            return BlockTopicChain
        raise ValueError(
            f"{type(sampler).__name__} reads minibatches of documents, but fit sweeps over all blocks of CountBlocks; "
            'use sampler="gibbs", or None with batch_size="auto" and assignments="auto", or pass the blocks to '
            "partial_fit."
        )
    if pair[1] == "conditionals":
        return CollapsedTopicChain
    return sampler._pick_loop(CHAINS, TopicChain)


def resolved_sampler(sampler, pair, corpus, scale, whiten):
    """The fitted copy of a sampler, with its step size.

    Parameters
    ----------
    sampler : Sampler
    pair : tuple of str
        Geometry and signal.
    corpus : Corpus
    scale : float
        N/n, the scale of the noise of minibatches; 0 if assignments are stored.
    whiten : bool
        Whether coordinates on flat space have posterior deviations of about 1.
    """
    if not sampler._picks_step:
        return sampler._resolved(None)
    if pair[0] != "euclidean":
        return sampler._resolved(sampler._simplex_schedule(noisy=scale > 0))
    curvature = 1.0
    if not whiten:  # that of the most frequent word, were it in a single topic
        curvature += max(1.0, scale) * float(corpus.to_csr().sum(axis=0).max())
    noise = curvature * scale
    return sampler._resolved(
        ConstantStep(float(sampler._stable_step(curvature, noise, share=_NOISE if noise else _TOLERANCE)))
    )
