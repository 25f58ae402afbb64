"""Prevalence of topics and priors of documents, computed from draws of the coefficients."""

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ...chains.checks import CLIPPED_PREDICTOR
from ...covariates.effects import over_draws
from ...utils import as_table
from ...utils._bit_stable import bit_stable_product
from ...utils._block_tables import joined_metadata
from ...utils._numbers import interval_tails
from .._counts.record import scored_draws
from .._results.topics import summed
from .coefficients import _HIGHEST, _LOWEST

_CELLS_AT_ONCE = 10_000_000  # Cells of draws of the prevalence computed at a time, to limit memory.


def encoded_rows(model, metadata):
    """Metadata encoded by a fitted model; raises if the model or the prediction has no metadata."""
    check_is_fitted(model)
    if metadata is None or not model._encoder.levels:
        raise ValueError(
            "Predictions need metadata, here and in fit; doc_topic_prior_ is the mean prior of the documents."
        )
    encoded = model._encoder.encode(joined_metadata(metadata), None, model.handle_unknown)
    if encoded.shape[0] == 0:
        raise ValueError("metadata has no rows; pass one for each prediction.")
    return encoded


def linear_predictors(encoded, coef):
    """Linear predictors of encoded rows, (n_rows, n_topics); ``coef`` has the intercept first."""
    slopes = np.ascontiguousarray(coef[:, 1:].T)
    eta = encoded @ slopes if sparse.issparse(encoded) else bit_stable_product(encoded, slopes)
    eta += coef[:, 0]
    return eta


def doc_priors(encoded, coef, new=None):
    """Dirichlet parameters exp(x' lambda) of encoded rows, (n_rows, n_topics); ``coef`` has the intercept first.

    If topics were merged, ``new`` is the index of the new topic of each topic. Parameters of merged topics are added.
    """
    eta = linear_predictors(encoded, coef)
    np.clip(eta, _LOWEST, _HIGHEST, out=eta)
    np.exp(eta, out=eta)
    return eta if new is None else summed(eta, new, -1)


def are_clipped(encoded, coef):
    """Whether linear predictors reach a bound in some draws ``coef`` of a chain, as 0 or 1, (n_rows, n_topics)."""
    lowest, highest = np.exp(_LOWEST), np.exp(_HIGHEST)
    at_bound = np.zeros((encoded.shape[0], coef.shape[1]), dtype=bool)
    for s in scored_draws(len(coef)):
        priors = doc_priors(encoded, coef[s])
        at_bound |= (priors <= lowest) | (priors >= highest)
    return at_bound.astype(np.float64)


def check_clipped(shares):
    """Check that linear predictors stay within their bounds, given the shares of documents at a bound, (n_topics,)."""
    if not np.any(shares > 0.0):
        return CLIPPED_PREDICTOR.passed(0)
    topic = int(np.argmax(shares))
    meaning = (
        f"The coefficients of the metadata reach the bounds of the linear predictor, [{_LOWEST:g}, {_HIGHEST:g}], for "
        f"{np.count_nonzero(shares)} of {shares.size} topics (topic {topic}: {shares[topic]:.2g} of the documents). "
        "There they are not informed by the documents."
    )
    remedy = "Use smaller metadata_prior_scale and intercept_prior_scale, or fewer topics."
    return CLIPPED_PREDICTOR.fired(shares[topic], meaning, remedy)


def prevalence(encoded, coef, new=None):
    """Expected proportions of encoded rows, (n_rows, n_topics)."""
    priors = doc_priors(encoded, coef, new)
    return priors / priors.sum(axis=1, keepdims=True)


def prevalence_draws(encoded, coef, dispersion, new=None):
    """Yield the prevalence of some rows at a time under each draw, (n_chains, n_kept, n_rows, n_topics)."""
    n = max(1, _CELLS_AT_ONCE // (coef.shape[0] * coef.shape[1] * coef.shape[2]))
    for start in range(0, encoded.shape[0], n):
        yield over_draws(coef, lambda each, rows=encoded[start : start + n]: dispersion.prevalence(rows, each, new))


def prior_draws(model, metadata):
    """Dirichlet parameters of documents with given metadata in each draw of a fitted model, (n_draws, n_rows, ...)."""
    encoded = encoded_rows(model, metadata)
    parameters_of = model._dispersion.dirichlet_parameters
    return np.stack([parameters_of(encoded, coef, model._merged_into) for coef in model._flat_coef])


def predicted_prevalence(model, metadata, interval):
    """Mean prevalence for rows of metadata, (n_rows, n_topics); with ``interval`` a tuple of mean, low and high."""
    encoded, agreement = encoded_rows(model, metadata), model._agreement
    coef, new, dispersion = model._coef_draws, model._merged_into, model._dispersion
    if interval is None:
        reference = coef[agreement.reference][None]
        mean = np.concatenate(
            [draws[0].mean(axis=0) for draws in prevalence_draws(encoded, reference, dispersion, new)]
        )
        return mean / mean.sum(axis=1, keepdims=True)
    parts, tails = [], interval_tails(interval)
    for draws in prevalence_draws(encoded, coef, dispersion, new):
        ends, _ = agreement.summary(np.swapaxes(draws, 2, 3), tails)
        parts.append([draws[agreement.reference].mean(axis=0), *(end.T for end in ends)])
    mean, low, high = (np.concatenate(part) for part in zip(*parts, strict=True))
    return mean / mean.sum(axis=1, keepdims=True), low, high


def coefficient_table(model, tails):
    """The table of `DMRTopicModel.coef_table`, with a row for each coefficient."""
    terms, parameters = ["intercept", *model.metadata_names_], model._dispersion.names
    columns = [_columns_of(model, name, terms, tails) for name in parameters]
    table = {name: np.concatenate([each[name] for each in columns]) for name in columns[0]}
    if len(parameters) > 1:
        table["parameter"] = np.repeat(np.array(parameters, dtype=object), len(columns[0]["topic"]))
    return as_table(table)


def _columns_of(model, name, terms, tails):
    """The columns of the table of one array of coefficients, ``samples_[name]``."""
    coef = model.samples_[name]
    mean = coef[model.reference_chain_].mean(axis=0)
    (low, high), positive = model._agreement.summary(coef, tails)
    return {
        "topic": np.repeat(np.arange(len(mean)), len(terms)),
        "name": np.repeat(np.asarray(model.topic_names_, dtype=object), len(terms)),
        "term": np.tile(np.array(terms, dtype=object), len(mean)),
        "mean": mean.ravel(),
        "low": low.ravel(),
        "high": high.ravel(),
        "positive": positive.ravel(),
    }


def difference_table(model, groups, tails):
    """The table of `DMRTopicModel.prevalence_difference`, for two tables of metadata ``groups``."""
    groups = [encoded_rows(model, metadata) for metadata in groups]
    coef, new, agreement = model._coef_draws, model._merged_into, model._agreement
    of = model._dispersion.prevalence
    a, b = (over_draws(coef, lambda each, rows=encoded: of(rows, each, new).mean(axis=0)) for encoded in groups)
    difference = a - b
    (low, high), positive = agreement.summary(difference, tails)
    return as_table(
        {
            "topic": np.arange(difference.shape[2]),
            "name": np.asarray(model.topic_names_, dtype=object),
            "difference": difference[agreement.reference].mean(axis=0),
            "low": low,
            "high": high,
            "positive": positive,
        }
    )
