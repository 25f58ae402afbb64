"""A sample of the State of the Union addresses, which comes with the package."""

from importlib import resources

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from ..utils import as_table
from ._registry import CORPORA

_OF_ADDRESSES = ("year", "president", "party", "type")
_SAMPLE = (
    "Every third paragraph, and the words that occur in at least ten of these: a sample that comes with the package "
    "(fetch_sotu_paragraphs reads all paragraphs)."
)


def load_sotu() -> Bunch:
    """Every third paragraph of the State of the Union addresses, 1790 to 2020, as counts of words.

    6,829 paragraphs of 240 addresses by 42 presidents, with 4,214 words. The addresses are in the public domain, as
    works of the government of the United States. The counts come with the package; `fetch_sotu_paragraphs` reads all
    paragraphs from a folder.

    Returns
    -------
    data : sklearn.utils.Bunch
        ``data`` (also as ``counts``) : csr_matrix of int64, shape (6829, 4214).
        ``feature_names`` : ndarray of str, the words.
        ``metadata`` : table (DataFrame if pandas is installed, else Bunch) with the columns ``address`` (0 to 239),
        ``paragraph`` (its number in the address), ``year``, ``president``, ``party`` and ``type`` ("speech" or
        "written"). ``DESCR`` : str.

    Examples
    --------
    >>> from sk_sgmcmc.datasets import load_sotu
    >>> addresses = load_sotu()
    >>> addresses.counts.shape
    (6829, 4214)
    >>> list(addresses.metadata)
    ['address', 'paragraph', 'year', 'president', 'party', 'type']
    """
    file = resources.files(__package__) / "sotu.npz"
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        words = np.array(arrays["words"].tobytes().decode().split("\n"))
        address, paragraph = (arrays[name].astype(np.int64) for name in ("address", "paragraph"))
        columns = {"address": address, "paragraph": paragraph}
        columns |= {name: arrays[name][address] for name in _OF_ADDRESSES}
        # Places of the non-zero cells, counted along the rows, are kept as differences, which take half the space.
        places = np.cumsum(arrays["gaps"], dtype=np.int64)
        counts = sparse.csr_matrix(
            (arrays["counts"].astype(np.int64), np.divmod(places, words.size)), shape=(address.size, words.size)
        )
    return Bunch(
        data=counts,
        counts=counts,
        feature_names=words,
        metadata=as_table(columns),
        DESCR=f"{CORPORA['sotu_paragraphs'].description}\n{_SAMPLE}",
    )
