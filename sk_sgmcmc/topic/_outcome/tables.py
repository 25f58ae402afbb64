"""Tables of the coefficients of topics, and which of them the data determine."""

import numpy as np

from ...chains.checks import DISPERSION_MATTERS, NOT_IDENTIFIED
from ...utils._numbers import interval_ends
from ...utils._tables import as_table


def _shares(model):
    """Shares of the topics in the fitted documents, (n_topics,)."""
    masses = model._masses()
    return masses / masses.sum()


def _draws(model, name):
    """Draws of the reference chain, (n_kept, n)."""
    return model.samples_[name][model.reference_chain_]


def _contrasts(model, reference):
    """Draws of the differences between topics and the ``reference``, or the mean of all; (n_kept, n_topics)."""
    coef = _draws(model, "coef")
    return coef - (coef @ _shares(model) if reference is None else coef[:, reference])[:, None]


def unidentified(model):
    """Topics whose coefficient the prior determines rather than the data: no less spread than half of the prior's."""
    spread = _contrasts(model, None).std(axis=0)
    return np.flatnonzero(spread > NOT_IDENTIFIED.limit * model.coef_prior_scale * model._response_scale)


def check_identified(model):
    """A `Check` of whether the data determine the coefficient of each topic."""
    found = unidentified(model)
    spread = _contrasts(model, None).std(axis=0).max() / (model.coef_prior_scale * model._response_scale)
    if not found.size:
        return NOT_IDENTIFIED.passed(spread)
    names = ", ".join(f"{k} ({model.topic_names_[k]})" for k in found[:5]) + (", …" if found.size > 5 else "")
    meaning = (
        f"The outcomes do not determine the coefficients of {found.size} of {len(model.coef_)} topics: {names}. These "
        "topics fill so little of the documents, or are so alike, that the coefficients follow their prior."
    )
    return NOT_IDENTIFIED.fired(spread, meaning, "Try fewer topics (n_components), or more documents.")


def check_dispersion(model, shared, by_topic):
    """A `Check` of whether differences between topics depend on the documents' prior.

    ``shared`` and ``by_topic`` are coefficients under the two priors, (n_topics,).
    """
    use = np.setdiff1d(np.arange(shared.size), unidentified(model))
    coef = _draws(model, "coef")[:, use]
    spread = (coef[:, :, None] - coef[:, None]).std(axis=0)
    change = by_topic[use] - shared[use]
    ratio = np.abs(change[:, None] - change) / np.where(spread > 0, spread, np.inf)
    worst = float(ratio.max(initial=0.0))
    if worst <= DISPERSION_MATTERS.limit:
        return DISPERSION_MATTERS.passed(worst)
    i, j = np.unravel_index(np.argmax(ratio), ratio.shape)
    a, b = use[min(i, j)], use[max(i, j)]
    meaning = (
        f"The differences between topics depend on the documents' prior: that between topic {a} "
        f"({model.topic_names_[a]}) and topic {b} ({model.topic_names_[b]}) changes by {worst:.1f} of its posterior "
        "standard deviations (1 at most) if each topic has a dispersion of its own."
    )
    return DISPERSION_MATTERS.fired(worst, meaning, 'Set dispersion="topic", the default.')


def _row(draws, tails):
    low, high = interval_ends(draws, tails)
    return float(draws.mean()), float(low), float(high), float((draws > 0).mean())


def coefficient_table(model, reference, tails):
    """The table of `TopicOutcomeModel.coef_table`."""
    topics, names = _contrasts(model, reference), model.topic_names_
    lacking = unidentified(model)
    if reference in lacking:
        _refuse(model, reference)
    rows = []
    for k in range(topics.shape[1]):
        values = (np.nan,) * 4 if k in lacking else _row(topics[:, k], tails)
        rows.append(("topic", k, names[k], *values))
    for j, name in enumerate(model.covariate_names_):
        rows.append(("covariate", -1, name, *_row(_draws(model, "covariate_coef")[:, j], tails)))
    heads = ("term", "topic", "name", "mean", "low", "high", "positive")
    return as_table({head: np.array(column) for head, column in zip(heads, zip(*rows, strict=True), strict=True)})


def contrast_table(model, a, b, tails):
    """The table of `TopicOutcomeModel.contrast`."""
    for k in unidentified(model):
        if k in (a, b):
            _refuse(model, k)
    coef = _draws(model, "coef")
    heads = ("a", "b", "mean", "low", "high", "positive")
    row = (model.topic_names_[a], model.topic_names_[b], *_row(coef[:, a] - coef[:, b], tails))
    return as_table({head: np.array([value]) for head, value in zip(heads, row, strict=True)})


def _refuse(model, k):
    raise ValueError(
        f"The data do not determine the coefficient of topic {k} ({model.topic_names_[k]}): it fills so little of the "
        "documents, or is so like other topics, that its interval is that of the prior. Fit with fewer topics, or with "
        "more documents."
    )
