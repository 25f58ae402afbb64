"""Document completion as in its definition, one document and one word at a time."""

import math

import numpy as np

MASK = 2**64 - 1


def proportions(counts, topics, alpha, n_updates):
    """Fixed-point updates for one document: counts (V,), topics (K, V), alpha (K,)."""
    n_topics = topics.shape[0]
    mass = np.full(n_topics, counts.sum() / n_topics)
    for _ in range(n_updates):
        new = np.zeros(n_topics)
        for w in np.flatnonzero(counts):
            responsibility = (mass + alpha) * topics[:, w]
            if responsibility.sum() > 0:
                new += counts[w] * responsibility / responsibility.sum()
        mass = new
    return (mass + alpha) / (mass + alpha).sum()


def log_predictive(observed, hidden, draws, alpha, n_updates):
    """Sum of log probabilities of the hidden tokens of each document; alpha (S, D, K)."""
    out = np.zeros(len(observed))
    for d in range(len(observed)):
        for w in np.flatnonzero(hidden[d]):
            p = [
                proportions(observed[d], topics, alpha[s, d], n_updates) @ topics[:, w]
                for s, topics in enumerate(draws)
            ]
            out[d] += hidden[d, w] * math.log(max(np.mean(p), 1e-12))
    return out


def mix64(x):
    """SplitMix64's finaliser on a Python integer."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def row_key(row):
    """Hash of one dense row."""
    total = 0
    for j in np.flatnonzero(row):
        bits = int(np.float64(row[j]).view(np.uint64))
        total += mix64(mix64(int(j) + 1) ^ bits)
    return mix64(total & MASK)


def split_row(row, fraction, salt):
    """Observed part of one dense row, coin by coin."""
    state = mix64(row_key(row) ^ salt)
    observed = np.zeros_like(row, dtype=float)
    for j in np.flatnonzero(row):
        left = float(row[j])
        while left > 0:
            weight = min(1.0, left)
            state = (state + 0x9E3779B97F4A7C15) & MASK
            if (mix64(state) >> 11) * 2.0**-53 < fraction:
                observed[j] += weight
            left -= weight
    return observed
