"""The temperature of collapsed sweeps, above 1 at their beginning.

What the start leads to is a mode that hundreds of sweeps do not leave; warm ones do, and the topics stay.
"""

import numpy as np
from scipy import linalg, sparse

_HOTTEST = 1.4
# It falls to 1 evenly over this share of the sweeps, and within so many.
_COOLING, _MOST_WARM = 0.6, 60
_SAMPLE_TOKENS = 3_000_000  # of the documents that `singular_values` reads
_POWERS, _MORE = 2, 10  # multiplications by A A' and columns beyond those wanted, of a randomised decomposition


def first_temperature(data, n_topics):
    r"""The temperature of the first sweep: about that at which the last of the topics melts.

    Where topics differ little, a sweep at temperature T multiplies their differences along a pair of singular vectors
    of the counts by :math:`(1 + \sigma) / T`: what a document has of a topic is kept, and the words add
    :math:`\sigma` times what the topic has. So there are as many topics at T as there are values above T - 1.

    Parameters
    ----------
    data : TokenData
    n_topics : int

    Returns
    -------
    float
        Rounded, so that it is the same however many threads multiply matrices.
    """
    values = singular_values(data, n_topics)
    return min(_HOTTEST, 1.0 + round(float(values[-1]), 3)) if values.size else 1.0


def singular_values(data, n_values):
    r"""The largest singular values of the counts as correspondence analysis scales them, descending.

    That is of :math:`n_{dw} / \sqrt{n_d n_w}`; the first is 1, as the counts have the same direction in common. Those
    of a random sample of the documents if there are many. Somewhat too small, the more so the more alike they are:
    found by two iterations from a random subspace.
    """
    scaled = _scaled_counts(data)
    if not scaled.nnz:  # which LAPACK refuses
        return np.empty(0)
    wide = scaled if scaled.shape[0] <= scaled.shape[1] else scaled.T.tocsr()
    tall = wide.T.tocsr()
    n_columns = min(n_values + _MORE, wide.shape[0])
    basis = np.random.default_rng(0).standard_normal((wide.shape[0], n_columns), dtype=np.float32)
    for _ in range(_POWERS):
        basis = wide @ (tall @ basis)
    image = tall @ linalg.qr(basis, mode="economic", overwrite_a=True, check_finite=False)[0]
    squares = linalg.eigvalsh(image.T @ image, check_finite=False)[::-1]
    return np.sqrt(np.maximum(squares[:n_values], 0.0, dtype=np.float64))


def _scaled_counts(data):
    """The counts of documents, or of a sample, over the roots of the totals of rows and columns; csr_array, float32."""
    n_docs, order = data.n_docs, np.arange(data.n_docs)
    if data.words.size > _SAMPLE_TOKENS:
        order = np.random.default_rng(0).permutation(n_docs)[: int(n_docs * _SAMPLE_TOKENS / data.words.size) + 1]
    lengths = np.diff(data.token_ptr)[order]
    ends = np.cumsum(lengths)
    words = data.words[np.arange(ends[-1]) + np.repeat(data.token_ptr[order] - (ends - lengths), lengths)]
    used, words, of_word = np.unique(words, return_inverse=True, return_counts=True)
    cells = np.repeat(1.0 / np.sqrt(np.maximum(lengths, 1)), lengths) / np.sqrt(of_word)[words]
    return sparse.csr_array(
        (cells.astype(np.float32), words, np.concatenate([[0], ends])), shape=(order.size, used.size)
    )


def temperature(first, sweep, n_sweeps):
    """The temperature of a sweep, from 0, of so many that are not kept, the first of which is as warm as ``first``."""
    n_warm = min(_COOLING * n_sweeps, _MOST_WARM)
    if sweep >= n_warm:
        return 1.0
    return 1.0 + (first - 1.0) * (1.0 - sweep / n_warm)
