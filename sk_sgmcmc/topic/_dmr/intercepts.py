"""The convergence check of the intercepts, about which documents with few words contain little information."""

import numpy as np

from ...chains.checks import INTERCEPTS_NOT_CONVERGED, unsettled_meaning
from ...chains.convergence import Diagnosis


def mean_intercepts(data, coef):
    """Mean over documents and topics of the logarithm of the Dirichlet parameters, (n_chains, n_kept).

    This is the mean intercept for centred metadata. It does not depend on the order of topics.

    Parameters
    ----------
    data : TokenCorpus
        With metadata.
    coef : ndarray of shape (n_chains, n_kept, n_topics, n_metadata + 1)
        Draws of the coefficients, the intercept first.
    """
    centre = data.mean_of(lambda encoded: encoded)
    mean = coef.mean(axis=2, dtype=np.float64)
    return mean[..., 0] + mean[..., 1:] @ centre


def check_intercepts(values, n_iter):
    """Check that the `mean_intercepts` have converged, or that the Monte Carlo error of their mean is small.

    ``n_iter`` is the number of steps to recommend.
    """
    diagnosis, limit = Diagnosis({"mean_intercept": values}), INTERCEPTS_NOT_CONVERGED.limit
    found, (error,) = diagnosis.unsettled(), diagnosis.columns["mcse"]
    if found is None or not error > limit:
        return [INTERCEPTS_NOT_CONVERGED.passed(error)] if error <= limit else []
    meaning = (
        f"The intercepts have not converged: {unsettled_meaning(found)} The Monte Carlo standard error of their mean "
        f"is {error:.2g} ({limit} at most), so the documents' prior is known only up to a factor of "
        f"{np.exp(error):.2g}. Documents with few words say little about it."
    )
    remedy = f"Set n_iter={n_iter}, or a smaller intercept_prior_scale, such as 1."
    return [INTERCEPTS_NOT_CONVERGED.fired(error, meaning, remedy)]
