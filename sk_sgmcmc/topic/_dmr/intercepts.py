"""Convergence of the intercepts, about which documents with few words say little."""

import numpy as np

from ...chains.convergence import Diagnosis

# Monte Carlo standard error of the mean intercept. Of 24 default fits to planted topics, from 40 documents of 8 words
# to 2,000 of 60, it exceeded this in two, whose priors moved by factors of 2 and 3; the median was 0.03.
MOST_ERROR = 0.2


def mean_intercepts(data, coef):
    """Mean over documents and topics of the logarithm of the Dirichlet parameters, (n_chains, n_kept).

    It is the mean intercept of centred metadata, and does not depend on how topics are numbered.

    Parameters
    ----------
    data : TokenData
        With metadata.
    coef : ndarray of shape (n_chains, n_kept, n_topics, n_metadata + 1)
        Draws, the intercept first.
    """
    centre = data.mean_of(lambda encoded: encoded)
    mean = coef.mean(axis=2, dtype=np.float64)
    return mean[..., 0] + mean[..., 1:] @ centre


def intercept_doubts(values, n_iter):
    """A message, in a list, if the `mean_intercepts` have not converged and their mean is uncertain.

    ``n_iter`` is the number of steps to recommend.
    """
    diagnosis = Diagnosis({"mean_intercept": values})
    found, (error,) = diagnosis.unsettled(), diagnosis.columns["mcse"]
    if found is None or not error > MOST_ERROR:
        return []
    return [
        f"The intercepts have not converged: {found.message} The Monte Carlo standard error of their mean is "
        f"{error:.2g} ({MOST_ERROR} at most), so the documents' prior is known up to a factor of {np.exp(error):.2g} "
        f"only. Documents with few words say little about it. Set n_iter={n_iter}, or a smaller intercept_prior_scale, "
        "such as 1."
    ]
