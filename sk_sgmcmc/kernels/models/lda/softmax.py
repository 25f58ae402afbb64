"""Signals of count topic models on flat space: the gradient of topics that are a softmax over words.

theta = spread * state (n_words, n_topics), phi_wk = exp(theta_wk) / sum_v exp(theta_vk). Given the assignments, the log
density is the log prior of theta plus sum_wk C_wk log phi_wk, where C_wk counts the tokens of word w in topic k.
"""

import numpy as np

from ..._jit import F1, F1_IN, F2, F2_IN, F8, I8, OK, kernel, read_only
from ...math.vector import exp_not_positive


@kernel(I8(F2_IN, F2_IN, F2, F1))
def softmax_cells(state, spread, cells, total):
    """Write exp(theta - column maximum) into ``cells`` and its column sums into ``total``."""
    n_words, n_topics = state.shape
    largest = np.full(n_topics, -np.inf)
    for w in range(n_words):
        for k in range(n_topics):
            theta = spread[w, k] * state[w, k]
            cells[w, k] = theta
            largest[k] = max(largest[k], theta)
    total[:] = 0.0
    for w in range(n_words):
        for k in range(n_topics):
            cells[w, k] = exp_not_positive(cells[w, k] - largest[k])
            total[k] += cells[w, k]
    return OK


@kernel(I8(F2_IN, F2_IN, F2_IN, F1_IN, F2_IN, F1_IN, read_only(F8, 2, "A"), F8, F2))
def topic_gradient(state, spread, cells, total, shape, mass, prior, prior_scale, out):
    """Gradient of the log density in the state.

    ``shape`` is prior + C, and ``mass`` (n_topics,) the column sums of C. If ``prior_scale`` is 0, exp(theta) has a
    Gamma(prior, 1) prior, so phi has a Dirichlet prior. The gradient in theta is shape - exp(theta) - mass phi.
    Otherwise, the prior is theta ~ N(prior, prior_scale^2), and the gradient is
    (prior - theta) / prior_scale^2 + C - mass phi.
    """
    n_words, n_topics = state.shape
    share = np.empty(n_topics)
    for k in range(n_topics):
        share[k] = mass[k] / total[k]
    precision = 1.0 / prior_scale**2 if prior_scale > 0.0 else 0.0
    for w in range(n_words):
        for k in range(n_topics):
            theta = spread[w, k] * state[w, k]
            if prior_scale > 0.0:
                pull = (prior[w, k] - theta) * precision + shape[w, k] - prior[w, k]
            else:
                pull = shape[w, k] - np.exp(min(theta, 600.0))
            out[w, k] = spread[w, k] * (pull - share[k] * cells[w, k])
    return OK
