"""Topics joined into one, in all draws."""

from copy import copy

import numpy as np

_ADDED = "doc_topic_prior", "weights"  # in samples: what topics that become one add up


def new_topics(groups, n_topics):
    """Index of the new topic of each topic, (n_topics,); those that no group names stay by themselves.

    A new topic has the place of the first of its group.
    """
    if not hasattr(groups, "__len__") or isinstance(groups, str):
        raise TypeError(f"groups={groups!r} must be a list of topics, such as [0, 3], or of such lists.")
    groups = list(groups)
    if not groups:
        raise ValueError("groups must name topics to join; got none. Pass a list such as [0, 3] or [[0, 3], [1, 7]].")
    groups = [groups] if groups and all(np.ndim(each) == 0 for each in groups) else groups
    first = np.arange(n_topics)
    seen = set()
    for group in groups:
        group = np.asarray(group)
        if group.dtype.kind in "OUS":
            raise TypeError(f"groups={groups!r} must name topics by number, such as [[0, 3], [1, 7]].")
        if group.ndim != 1 or group.size < 2 or group.dtype.kind not in "iu":
            raise ValueError(f"groups={groups!r} must be lists of at least two topics each, such as [[0, 3], [1, 7]].")
        if group.min() < 0 or group.max() >= n_topics:
            raise ValueError(f"groups={groups!r} name topics outside 0 to {n_topics - 1}.")
        twice = seen.intersection(group.tolist()) or np.unique(group).size < group.size
        if twice:
            raise ValueError(f"groups={groups!r} name a topic twice; each topic belongs to one group at most.")
        seen.update(group.tolist())
        first[group] = group.min()
    return np.unique(first, return_inverse=True)[1]


def summed(values, new, axis):
    """Sums over the topics that become one, along an axis."""
    shape = list(values.shape)
    shape[axis] = new.max() + 1
    out = np.zeros(shape, dtype=values.dtype)
    np.add.at(np.moveaxis(out, axis, 0), new, np.moveaxis(values, axis, 0))
    return out


def mixed(topics, new, masses):
    """Mixtures of the topics (..., n_topics, n_features) that become one, by their masses."""
    weights = masses / np.bincount(new, masses)[new]
    alone = np.bincount(new)[new] == 1
    weights[alone] = 1.0
    return summed(topics * weights[:, None].astype(topics.dtype), new, -2)


def merged(model, new):
    """A copy of a fitted model in which topics become the ``new`` ones, whose chains cannot go on."""
    masses, out = model._masses(), copy(model)
    out.__dict__.pop("_chains", None)
    out.samples_ = {"components": mixed(model.samples_["components"], new, masses)}
    out.samples_ |= {name: summed(model.samples_[name], new, -1) for name in _ADDED if name in model.samples_}
    out.n_components = int(new.max() + 1)
    out.components_ = mixed(model.components_, new, masses)
    out.doc_topic_prior_ = summed(model.doc_topic_prior_, new, -1)
    if hasattr(model, "_doc_priors"):
        out._doc_priors = summed(model._doc_priors, new, -1)
    out._agreement = model._agreement.merged(new)
    out._topic_names, out._is_merged = merged_names(model._given_topic_names, new), True
    out._seeds = None  # whose names are those of topics before the merger
    return out


def merged_names(names, new):
    """Names of topics that become one, those of a group joined; None if they were given none."""
    if names is None:
        return None
    joined = [" + ".join(names[new == k]) for k in range(new.max() + 1)]
    return np.array(joined, dtype=object)


def refuse_merged(model):
    """Raise if a model's topics were merged, so that no chain draws them."""
    if model._is_merged and not hasattr(model, "_chains"):
        raise ValueError(
            "These topics were merged after they were drawn, so no chain can go on from them; call partial_fit on the "
            "estimator that was merged, and merge its topics again."
        )
