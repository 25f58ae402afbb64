"""The loop of mixtures of von Mises-Fisher laws: labels, weights, concentrations and means, in turn."""

import math

import numpy as np
from numba import types

from ..._jit import F1, F1_IN, F2, F2_IN, F3, I1, I1_IN, I8, OK, RNG, TRANSITION, helper, kernel, read_only
from ...math.concentration import VON_MISES_FISHER, redraw_concentration
from ...math.random import TINY, gamma_draw
from .components import linear_pull_into, redraw_labels, redraw_means

MOVE, DRAW, LEAVE = 0, 1, 2  # treatment of the means: steps of a sampler, exact draws, or nothing
I2_IN = read_only(types.int64, 2)


@helper
def exchange_labels(means, velocity, weights, kappas, kappas_move, labels, counts, sums, rng):
    """A Metropolis step that exchanges the weights of two components, since sticks are ordered.

    A concentration that is given belongs to its component: it stays there unless ``kappas_move``, and only components
    of equal concentration are exchanged.
    """
    n = weights.shape[0]
    i = rng.integers(0, n)
    j = (i + rng.integers(1, n)) % n
    if not kappas_move and kappas[i] != kappas[j]:
        return
    gain = (counts[j] - counts[i]) * math.log(weights[i] / weights[j])
    if math.log(1.0 - rng.random()) >= gain:
        return
    for s in range(labels.shape[0]):
        if labels[s] == i:
            labels[s] = j
        elif labels[s] == j:
            labels[s] = i
    kappas[i], kappas[j] = kappas[j], kappas[i]
    counts[i], counts[j] = counts[j], counts[i]
    for v in range(means.shape[1]):
        means[i, v], means[j, v] = means[j, v], means[i, v]
        velocity[i, v], velocity[j, v] = velocity[j, v], velocity[i, v]
        sums[i, v], sums[j, v] = sums[j, v], sums[i, v]


@helper
def redraw_weights(weights, counts, concentration, is_process, rng):
    """Draw weights given the number of rows of each component: from a Dirichlet law, or by sticks."""
    n = weights.shape[0]
    total = 0.0
    if is_process:
        behind, left = counts.sum(), 1.0
        for k in range(n):
            behind -= counts[k]
            weights[k] = left
            if k < n - 1:
                own, rest = gamma_draw(1.0 + counts[k], rng), gamma_draw(concentration + behind, rng)
                weights[k] = max(left * own / (own + rest), TINY)
                left *= rest / (own + rest)
            total += weights[k]
    else:
        for k in range(n):
            weights[k] = gamma_draw(concentration + counts[k], rng)
            total += weights[k]
    for k in range(n):
        weights[k] = max(weights[k] / total, TINY)


_RUN = I8(
    F2, F3, F1, F1, F1, I1, F1, F2, I1_IN, I1_IN, read_only(types.float64, 1), I2_IN, F1_IN, F1_IN, I8, F2_IN,
    types.FunctionType(TRANSITION), types.FunctionType(TRANSITION), RNG,
)  # fmt: skip


@kernel(_RUN)
def run_mixture(
    means,
    aux,
    scalars,
    weights,
    kappas,
    labels,
    counts,
    sums,
    ptr,
    words,
    values,
    batches,
    pull,
    prior,
    how,
    hypers,
    advance,
    step,
    rng,
):
    """Steps of the chain, one for each minibatch; returns a status.

    Parameters
    ----------
    means, aux, scalars : state of the sampler of the means; means (n_components, n_features) has unit rows
    weights, kappas, labels, counts, sums : the rest of the state, see `redraw_labels`; all changed in place
    ptr, words, values : the data, CSR
    batches : (n_steps, n_batch) rows whose labels are drawn anew
    pull : (n_features,) concentration times direction of the means' prior
    prior : (concentration of the weights, 1 for sticks or 0, 1 to learn kappas or 0, mean and standard deviation of
        log kappa)
    how : `MOVE`, `DRAW` or `LEAVE`
    hypers : (n_steps * n_inner, n_hyper)
    """
    n_components, n_features = means.shape
    b, signal, rows = np.empty(means.size), np.empty_like(means), np.arange(n_components)
    extra, numbers = np.zeros(max(1, n_features)), np.zeros(10)
    n_inner = hypers.shape[0] // max(1, batches.shape[0])
    for t in range(batches.shape[0]):
        redraw_labels(means, weights, kappas, ptr, words, values, batches[t], labels, counts, sums, rng)
        if prior[1] > 0.0 and n_components > 1:
            exchange_labels(means, aux[0], weights, kappas, prior[2] > 0.0, labels, counts, sums, rng)
        redraw_weights(weights, counts, prior[0], prior[1] > 0.0, rng)
        for k in range(n_components):
            along = 0.0
            for v in range(n_features):
                along += means[k, v] * sums[k, v]
            if prior[2] > 0.0:
                numbers[0], numbers[1], numbers[2], numbers[3] = VON_MISES_FISHER, n_features, counts[k], along
                numbers[4], numbers[5] = prior[3], prior[4]
                kappas[k] = redraw_concentration(kappas[k], numbers, rng)
            for v in range(n_features):
                b[k * n_features + v] = kappas[k] * sums[k, v] + pull[v]
        if how == DRAW:
            redraw_means(means, b, rng)
        elif how == MOVE:
            for i in range(n_inner):
                hyper = hypers[t * n_inner + i]
                status = advance(means, aux, scalars, signal, extra, hyper, rows, rng)
                if status == OK:
                    linear_pull_into(means, b, signal, extra)
                    status = step(means, aux, scalars, signal, extra, hyper, rows, rng)
                if status != OK:
                    return status
    return OK
