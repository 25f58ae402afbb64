"""The Dirichlet prior of the topics: one number that burn-in fits, and which topics have equal priors."""

import numpy as np
from scipy.special import digamma

from ...metrics import align_topics

# The value of "auto" where it is not fitted, and in the passes from which chains start.
DEFAULT = 0.01
# Where it is fitted, the first value lies between these. Tokens leave the topics of the start more easily under a flat
# prior, and the fit takes it down within some tens of sweeps; but a prior that outweighs the tokens of a topic hides
# what they say.
_FIRST = DEFAULT, 0.05
_FIRST_SHARE = 0.2  # of the mean topic's tokens, that the prior then stands for
PASSES_PER_FIT = 5
LEAST_PASSES = 2 * PASSES_PER_FIT  # of burn-in; fewer would leave the prior near its first value
# Below, words would stay in the topics where they are; above, topics would become alike.
_SMALLEST, _LARGEST = 1e-3, 1.0
_CELLS_PER_PIECE = 2**22  # of the counts, sorted at a time


def first_word_prior(n_tokens, n_words, n_topics):
    """The value, one number, that a prior has until it is first fitted."""
    return float(np.clip(_FIRST_SHARE * n_tokens / (n_words * n_topics), *_FIRST))


def fitted_word_prior(counts, word_prior, n_updates=5):
    """The prior, one number, moved by Minka's fixed point towards the counts (n_words, n_topics).

    A few updates go only part of the way. That is intended: early in burn-in, the counts are not yet those that the
    prior should fit.
    """
    n_words, mass = len(counts), counts.sum(axis=0, dtype=np.float64)
    n_pieces = -(-counts.size // _CELLS_PER_PIECE)
    found = [np.unique(part[part > 0], return_counts=True) for part in np.array_split(counts, n_pieces)]
    values, times = (np.concatenate(column).astype(np.float64) for column in zip(*found, strict=True))
    if not values.size:
        return word_prior
    for _ in range(n_updates):
        cells = times @ (digamma(values + word_prior) - digamma(word_prior))
        sums = n_words * (digamma(mass + n_words * word_prior) - digamma(n_words * word_prior)).sum()
        word_prior = float(np.clip(word_prior * cells / sums, _SMALLEST, _LARGEST))
    return word_prior


def equal_topics(labels, topic_word_prior):
    """A number for each topic, equal where ``labels`` (n_topics,) and columns of the prior are equal."""
    if topic_word_prior.strides[1] != 0:
        labels = np.vstack([labels, topic_word_prior])
    return np.unique(np.atleast_2d(labels), axis=1, return_inverse=True)[1].ravel()


def order_like(before, after, groups, word_prior):
    """Order of topics ``after`` in which they resemble ``before``; None if topics cannot change places.

    Both are cells (n_words, n_topics). Topics change places within ``groups`` of equal priors, if ``word_prior``
    distinguishes topics.
    """
    have_own = np.ndim(word_prior) == 2 and word_prior.shape[1] > 1
    if np.ptp(groups) > 0 and not (have_own and np.unique(groups).size < groups.size):
        return None
    shares = ((cells / cells.sum(axis=0)).T for cells in (before, after))
    return align_topics(*shares, groups=groups if have_own else None)
