"""Checks of latent class models: whether the classes are identified, used, and the same in all chains."""

import numpy as np

from ...chains.checks import EMPTY_CLASSES, SEVERAL_MODES, TOO_FEW_ITEMS
from .alignment import ALIKE

_FEW_ROWS = 0.5  # a class of a smaller weight has no rows


def check_items(columns, n_classes):
    """Check that there are more cells of the table of all answers than parameters, in a list.

    The list is empty for one class, and if a column has no levels: such mixtures are identified in general.
    """
    if n_classes == 1 or any(not hasattr(column, "levels") for column in columns):
        return []
    sizes = np.array([column.n_levels for column in columns], dtype=np.float64)
    n_parameters = n_classes * (sizes - 1.0).sum() + n_classes - 1
    n_cells = float(np.exp(min(np.log(sizes).sum(), 600.0))) - 1.0
    value = n_parameters / max(n_cells, 0.5)
    if value <= TOO_FEW_ITEMS.limit:
        return [TOO_FEW_ITEMS.passed(value)]
    meaning = (
        f"The {len(columns)} columns have {n_cells:.0f} free cells in the table of all answers, but {n_classes} "
        f"classes have {n_parameters:.0f} parameters, so the data do not determine the classes: the prior does."
    )
    return [TOO_FEW_ITEMS.fired(value, meaning, "Use fewer classes (n_components), or more columns.")]


def check_empty(sizes):
    """Check the weights of rows of the classes in all draws, (n_draws, n_classes), in a list; empty for one class."""
    if sizes.shape[1] == 1:
        return []
    share = (sizes < _FEW_ROWS).mean(axis=0)
    value, n = share.max(), int((share > EMPTY_CLASSES.limit).sum())
    if not n:
        return [EMPTY_CLASSES.passed(value)]
    meaning = (
        f"{n} of {sizes.shape[1]} classes have no rows in up to {value:.0%} of the draws: the data support fewer "
        "classes."
    )
    remedy = f"Use n_components={max(1, sizes.shape[1] - n)}, or compare numbers of classes by search_n_components."
    return [EMPTY_CLASSES.fired(value, meaning, remedy)]


def check_modes(agree, distances):
    """Check that all chains found the same classes, in a list; empty for one chain.

    Parameters
    ----------
    agree, distances
        As from `sk_sgmcmc.mixture._latent_class.alignment.align_chains`.
    """
    if len(agree) == 1:
        return []
    n = int((~agree).sum())
    if not n:
        return [SEVERAL_MODES.passed(0)]
    meaning = (
        f"{n} of {len(agree)} chains found other classes than the chain with the largest mean log posterior (Hellinger "
        f"distances of their rows up to {distances.max():.2f}; at most {ALIKE} is the same class). Results leave these "
        "chains out, so intervals do not cover their classes. See chains_agree_."
    )
    return [SEVERAL_MODES.fired(n, meaning, "Use fewer classes (n_components), or a larger n_iter.")]


def latent_class_checks(model, chains):
    """All checks of a fitted model."""
    return [
        *check_items(model._layout.columns, model.n_components),
        *check_empty(model._sizes.reshape(-1, model.n_components)),
        *check_modes(model.chains_agree_, model._distances),
    ]
