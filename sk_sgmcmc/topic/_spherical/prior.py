"""The constants of a spherical admixture: its prior, checked."""

from dataclasses import dataclass

import numpy as np

from ...utils._numbers import real_array

CONCENTRATIONS = ("kappa0", "kappa1", "sigma")


@dataclass(frozen=True, eq=False)
class AdmixturePrior:
    """The model's constants.

    Parameters
    ----------
    alpha : ndarray of shape (n_topics,)
    numbers : ndarray of shape (3,)
        kappa0, kappa1, sigma.
    center : ndarray of shape (n_words,)
        Unit.
    learnt : tuple of str
        Which of "kappa0", "kappa1", "sigma" and "doc_topic_prior" are drawn too, starting from ``alpha`` and
        ``numbers``; their logarithms have normal priors centred there.
    scale : float
        Standard deviation of those priors.
    """

    alpha: np.ndarray
    numbers: np.ndarray
    center: np.ndarray
    learnt: tuple = ()
    scale: float = 1.0


def checked_prior(model, rows, sampler, is_sampled):
    """The `AdmixturePrior` that the parameters of a model ask for, given unit rows.

    ``is_sampled`` tells whether the ``sampler`` draws, and so can learn what is "auto".
    """
    K, V = model.n_components, rows.shape[1]
    learnt = tuple(name for name in (*CONCENTRATIONS, "doc_topic_prior") if isinstance(getattr(model, name), str))
    if learnt and not is_sampled:
        raise ValueError(f'{learnt[0]}="auto" is drawn, and {type(sampler).__name__} draws nothing; give a number.')
    alpha = real_array("doc_topic_prior", 1.0 if "doc_topic_prior" in learnt else model.doc_topic_prior)
    if alpha.shape not in ((), (K,)) or not np.all(alpha > 0) or not np.all(np.isfinite(alpha)):
        raise ValueError(
            f"doc_topic_prior={model.doc_topic_prior!r} must be a positive number, or {K} of them, one per topic."
        )
    given = [getattr(model, name) for name in CONCENTRATIONS]
    numbers = np.array(
        [times * V if value in (None, "auto") else value for value, times in zip(given, (2, 6, 2), strict=True)]
    )
    center = np.asarray(rows.sum(axis=0), dtype=np.float64).ravel()
    length = np.linalg.norm(center)
    center = center / length if length > 1e-12 else np.full(V, V**-0.5)
    return AdmixturePrior(np.broadcast_to(alpha, (K,)).copy(), numbers.astype(np.float64), center, learnt)
