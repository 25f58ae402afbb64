"""Mixtures of von Mises-Fisher laws: labels of a minibatch of rows given everything else, means given labels."""

import math

import numpy as np

from ..._jit import F1_IN, F2, I8, OK, RNG, helper, kernel
from ...math.bessel import log_vmf_normaliser
from ...math.concentration import von_mises_fisher_draw
from ...runners import DENSE_SIGNAL
from ..spherical.admixture import sparse_products


@helper
def redraw_labels(means, weights, kappas, ptr, words, values, rows, labels, counts, sums, rng):
    """Draw the component of each of ``rows`` anew, and update the sums from which means and weights are drawn.

    Parameters
    ----------
    means, weights, kappas : (n_components, n_features), (n_components,), (n_components,)
    ptr, words, values : the data, CSR; an empty row has no component
    rows, labels : indices of rows; (n_rows,) component of each row, -1 if it has none yet; changed in place
    counts, sums : (n_components,) number, (n_components, n_features) sum of the rows of each; changed in place
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
    """sum over rows of b'x: independent von Mises-Fisher laws; ``params`` = b of every row, in C order."""
    linear_pull_into(theta, params, signal, extra)
    return OK


@helper
def redraw_means(theta, params, rng):
    """Draw every row of theta exactly from the law of `linear_pull`."""
    width = theta.shape[1]
    for r in range(theta.shape[0]):
        von_mises_fisher_draw(params[r * width : (r + 1) * width], theta[r], rng)


@kernel(I8(F2, F1_IN, RNG))
def exact_means(theta, params, rng):
    """`redraw_means` for Python."""
    redraw_means(theta, params, rng)
    return OK
