"""Mixtures of von Mises-Fisher distributions: draws of labels, means and weights, and the loop that makes steps."""

import math

import numpy as np
from numba import types

from .._jit import F1, F1_IN, F2, F2_IN, F3, I1, I1_IN, I8, OK, RNG, TRANSITION, helper, kernel, read_only
from ..math.concentration import VON_MISES_FISHER, redraw_concentration, von_mises_fisher_draw
from ..math.random import TINY, gamma_draw
from ..math.special import log_vmf_normaliser
from ..runners import DENSE_SIGNAL
from .spherical.admixture import sparse_products


@helper
def redraw_labels(means, weights, kappas, ptr, words, values, rows, labels, counts, sums, rng):
    """Redraw the component of each of ``rows``, and update the sums from which means and weights are drawn.

    Parameters
    ----------
    means, weights, kappas : (n_components, n_features), (n_components,), (n_components,)
    ptr, words, values : the data, CSR; an empty row has no component
    rows : indices of rows
    labels : (n_rows,), component of each row, -1 if it has none yet; changed in place
    counts, sums : (n_components,), (n_components, n_features), number and sum of rows of each; changed in place
    """
    n_components = means.shape[0]
    products = np.empty((rows.shape[0], n_components))
    sparse_products(means, ptr, words, values, rows, products)
    base = np.empty(n_components)
    for k in range(n_components):
        base[k] = math.log(weights[k]) + log_vmf_normaliser(float(means.shape[1]), kappas[k])
    for s in range(rows.shape[0]):
        row = rows[s]
        if ptr[row] == ptr[row + 1]:
            continue
        largest = -np.inf
        for k in range(n_components):
            products[s, k] = base[k] + kappas[k] * products[s, k]
            largest = max(largest, products[s, k])
        total = 0.0
        for k in range(n_components):
            products[s, k] = math.exp(products[s, k] - largest)
            total += products[s, k]
        left = rng.random() * total
        new = 0
        while new < n_components - 1 and left >= products[s, new]:
            left -= products[s, new]
            new += 1
        old = labels[row]
        if new != old:
            labels[row] = new
            counts[new] += 1.0
            if old >= 0:
                counts[old] -= 1.0
            for j in range(ptr[row], ptr[row + 1]):
                sums[new, words[j]] += values[j]
                if old >= 0:
                    sums[old, words[j]] -= values[j]


@helper
def linear_pull_into(theta, params, signal, extra):
    """Gradient and log density of `linear_pull`."""
    width = theta.shape[1]
    extra[:] = 0.0
    for r in range(theta.shape[0]):
        for i in range(width):
            signal[r, i] = params[r * width + i]
            extra[0] += signal[r, i] * theta[r, i]


@kernel(DENSE_SIGNAL)
def linear_pull(theta, X, y, weight, params, scale, signal, extra):
    """Independent von Mises-Fisher rows, of log density b'x + const; ``params`` = b of every row, in C order."""
    linear_pull_into(theta, params, signal, extra)
    return OK


@helper
def redraw_means(theta, params, rng):
    """Draw every row of theta exactly from the distribution of `linear_pull`."""
    width = theta.shape[1]
    for r in range(theta.shape[0]):
        von_mises_fisher_draw(params[r * width : (r + 1) * width], theta[r], rng)


@kernel(I8(F2, F1_IN, RNG))
def exact_means(theta, params, rng):
    """`redraw_means`, callable from Python."""
    redraw_means(theta, params, rng)
    return OK


MOVE, DRAW, LEAVE = 0, 1, 2  # treatment of the means: steps of a sampler, exact draws, or nothing
I2_IN = read_only(types.int64, 2)


@helper
def exchange_labels(means, velocity, weights, kappas, kappas_move, labels, counts, sums, rng):
    """A Metropolis step that exchanges two components but not their weights, since stick-breaking weights are ordered.

    Without ``kappas_move``, the concentrations are fixed for each component. Then only components with equal
    concentrations are exchanged.
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
    """Draw weights given the number of rows of each component, from a Dirichlet distribution or by stick-breaking."""
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
    batches : (n_steps, n_batch) rows whose labels are redrawn
    pull : (n_features,) concentration times direction of the means' prior
    prior : (concentration of the weights, 1 for stick-breaking or 0, 1 to learn kappas or 0, mean and standard
        deviation of log kappa)
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
