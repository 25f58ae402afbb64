"""Draws of the parameters of an outcome given topics that do not follow it."""

from copy import copy
from typing import NamedTuple

import numpy as np

from ...kernels.models import outcome as kernels
from .document_prior import OutcomeStep, update_all, update_given_activities

_FIRST_SWEEPS, _SWEEPS = 40, 4  # Sweeps before the first draw, and before each of the others.
_OF_PRIOR = 100, 150  # Sweeps of `mean_coefficients` to discard, and to average over.


class GivenActivities(NamedTuple):
    """The gamma distributions of the activities in one draw."""

    shape: np.ndarray
    rate: np.ndarray

    def gamma_parameters(self):
        """Shapes and rates, both (1, n_topics)."""
        return self.shape[None], self.rate[None]


def cut_draws(documents, outcomes, outcome, draws, seed):
    """Draw the parameters of an outcome once for each draw of the topics.

    Between two draws, the topics of tokens, the proportions and the parameters are drawn given the words, the
    outcomes, and the draw of the topics and of the documents' prior. So the proportions follow the outcomes, but
    topics and priors do not. With assignments from the fit instead, proportions would not depend on the outcomes given
    the words, and coefficients would shrink.

    Parameters
    ----------
    documents : Shard
    outcomes : Outcomes
    outcome : GaussianOutcome
        Where the parameters start; not changed.
    draws : iterable of (topics, shape, rate)
        Arrays of shape (n_words, n_topics), (n_topics,) and (n_topics,).
    seed : int

    Returns
    -------
    parameters : dict of ndarray of shape (n_draws, ...)
    """
    rng, outcome, found, z, activity = np.random.default_rng(seed), copy(outcome), [], None, None
    for phi, shape, rate in draws:
        prior, n_topics = GivenActivities(shape, rate), shape.size
        if z is None:
            z = _first_topics(documents.words, phi, shape / rate, rng)
            activity = np.full((documents.n_docs, n_topics), np.nan, dtype=np.float32)
        for _ in range(_SWEEPS if found else _FIRST_SWEEPS):
            step = OutcomeStep.of(prior, outcome, outcomes, activity)
            kernels.sweep_given_topics(
                documents.token_ptr, documents.words, documents.weights, z, phi, step.shape, step.rate, rng, *step[2:]
            )
            update_given_activities(activity, outcome, outcomes, rng)
        found.append(outcome.draw())
    return {name: np.stack([each[name] for each in found]) for name in found[0]}


def mean_coefficients(documents, outcomes, outcome, phi, prior, seed):
    """Mean coefficients of topics ``phi``, (n_words, n_topics), while the documents' ``prior`` is learnt; (n_topics,).

    Other arguments are as for `cut_draws`.
    """
    rng, outcome = np.random.default_rng(seed), copy(outcome)
    shape, rate = prior.gamma_parameters()
    z = _first_topics(documents.words, phi, (shape / rate)[0], rng)
    activity, total = np.full((documents.n_docs, phi.shape[1]), np.nan, dtype=np.float32), 0.0
    tokens = documents.token_ptr, documents.weights, z
    for sweep in range(sum(_OF_PRIOR)):
        step = OutcomeStep.of(prior, outcome, outcomes, activity)
        kernels.sweep_given_topics(documents.token_ptr, documents.words, *tokens[1:], phi, *step[:2], rng, *step[2:])
        update_all(activity, outcome, outcomes, prior, tokens, rng, sweep < _OF_PRIOR[0])
        if sweep >= _OF_PRIOR[0]:
            total = total + outcome.coef
    return total / _OF_PRIOR[1]


def _first_topics(words, phi, mean, rng):
    """Topics of tokens given their words alone."""
    sums = np.cumsum(phi * mean, axis=1)
    target = rng.random(words.size) * sums[words, -1]
    z = np.empty(words.size, dtype=np.uint16)
    for start in range(0, words.size, 100_000):
        part = slice(start, start + 100_000)
        z[part] = np.minimum((sums[words[part]] <= target[part, None]).sum(axis=1), phi.shape[1] - 1)
    return z
