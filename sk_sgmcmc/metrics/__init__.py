"""Metrics: functions of arrays, without estimators.

They measure the held-out quality of topic models, the distance from a Dirichlet distribution, the convergence of
chains, and the coherence, diversity and stability of topics.
"""

from .alignment import align_draws, align_topics, hellinger_distances, topic_stability
from .coherence import coherence, exclusivity, top_word_indices, topic_diversity
from .completion import (
    completion_perplexity,
    doc_topic_proportions,
    document_completion,
    paired_difference,
    split_tokens,
)
from .diagnostics import effective_sample_size, mcse, split_r_hat
from .partitions import co_clustering, partition_distance, point_partition
from .simplex import ks_distance, rosenblatt_ks, rosenblatt_transform
from .stein import kernel_stein_discrepancy

__all__ = [
    "align_draws",
    "align_topics",
    "co_clustering",
    "coherence",
    "completion_perplexity",
    "doc_topic_proportions",
    "document_completion",
    "effective_sample_size",
    "exclusivity",
    "hellinger_distances",
    "kernel_stein_discrepancy",
    "ks_distance",
    "mcse",
    "paired_difference",
    "partition_distance",
    "point_partition",
    "rosenblatt_ks",
    "rosenblatt_transform",
    "split_r_hat",
    "split_tokens",
    "top_word_indices",
    "topic_diversity",
    "topic_stability",
]
