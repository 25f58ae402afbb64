"""What effects on topics average: the prior of documents, or a regression of their proportions, and which documents."""

from functools import partial

import numpy as np

from ...covariates.effects import Comparison, Counterfactuals, PriorMean
from ...utils._tables import aligned
from .proportions import RecordedProportions, SampledProportions, Weights, clusters_of
from .regression import RegressionMean


def comparison_of(model, of, X, metadata, groups, given, random_state):
    """The `Comparison` of `DMRTopicModel.effects`, whose arguments these are.

    Nothing is drawn until its ``made()`` is called, which returns a `PriorMean` or a `RegressionMean`.
    """
    if of not in ("population", "documents", "prior"):
        raise ValueError(f'`of` must be "population", "documents" or "prior"; got {of!r}.')
    if groups is not None and of != "population":
        raise ValueError(f'`groups` reweights clusters of documents, which only of="population" does; got of={of!r}.')
    if of == "prior":
        if X is not None:
            raise ValueError('`X` has no use with of="prior", which reads no words. Leave it out, and pass metadata=.')
        average = Counterfactuals.of_model(model, metadata, given)
        prevalence = partial(model._dispersion.prevalence, new=model._merged_into)
        made = PriorMean(model._agreement, model._coef_draws, prevalence)
        return Comparison(lambda: made, average, of, _labels(model))
    if X is None:
        average = Counterfactuals.of_model(model, metadata, given)
        recorded = model._recorded_counts()
        if recorded is None or model._observed is None:
            raise ValueError(_not_recorded(model, of))
        draws = RecordedProportions(
            recorded, model._encoder, model._observed, model._agreement, model.components_.shape[1], random_state,
            model._merged_into,
        )  # fmt: skip
    else:
        metadata, groups = aligned(X, metadata=metadata, groups=groups)
        Counterfactuals.of_model(model, metadata, given)
        corpus, observed = model._described_documents(X, metadata)
        average = Counterfactuals(model._encoder, observed, given)
        draws = SampledProportions(model, corpus, observed, random_state)
    weights = Weights(draws, of == "population", clusters_of(groups, draws.observed.place.size))
    return Comparison(lambda: RegressionMean(model._encoder, draws, weights), average, of, _labels(model))


def _labels(model):
    names = np.asarray(model.topic_names_, dtype=object)
    return {"topic": np.arange(names.size), "name": names}


def _not_recorded(model, of):
    """The message that the topics of the fitted documents are not known."""
    return (
        f"of={of!r} needs the topics of the documents at the kept draws, which this {type(model).__name__} does not "
        "have: they are recorded by a fit with stored assignments on the simplex, within 512 MiB, unless "
        "keep_documents=False, and forget_documents drops them. Pass the documents as X=, with their metadata=, or "
        'pass of="prior", the mean of their prior.'
    )
