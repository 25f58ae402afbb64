"""From texts to counts: the recipe of all our text corpora."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

_CLITICS = re.compile(r"n't\b|'(?:s|re|ll|ve|d|m|t)\b")


def normalize_text(text: str) -> str:
    """Fold accents, convert to lower case, and strip English clitics ("don't" becomes "do").

    Parameters
    ----------
    text : str

    Returns
    -------
    str
    """
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in decomposed if not unicodedata.combining(c)).replace("\u2019", "'")
    return _CLITICS.sub(" ", text.lower())


def make_count_vectorizer(
    *,
    min_df: float = 1,
    max_df: float = 0.5,
    vocabulary: Sequence[str] | None = None,
    stop_words: str | Sequence[str] | None = "english",
    **params: Any,
) -> CountVectorizer:
    """A scikit-learn `~sklearn.feature_extraction.text.CountVectorizer` with the recipe of this package's text corpora.

    Accents are folded, letters are lower-cased, English clitics ("'s", "n't") are dropped; tokens are runs of at least
    three letters a to z that are not among scikit-learn's English stop words; columns are in alphabetical order.

    Parameters
    ----------
    min_df : int or float, default=1
        Words in fewer documents are dropped.
    max_df : int or float, default=0.5
        Words in more documents (as a share, if a float) are dropped.
    vocabulary : sequence of str, default=None
        Count these words and no others.
    stop_words : str, list or None, default="english"
    **params
        Other parameters of `sklearn.feature_extraction.text.CountVectorizer`.

    Returns
    -------
    sklearn.feature_extraction.text.CountVectorizer
        Not fitted. Can be pickled.

    Examples
    --------
    >>> from sk_sgmcmc.datasets import make_count_vectorizer
    >>> vectorizer = make_count_vectorizer(max_df=1.0)
    >>> vectorizer.fit(["Naïve samplers don't converge.", "The sampler's chain"]).get_feature_names_out().tolist()
    ['chain', 'converge', 'naive', 'sampler', 'samplers']
    """
    return CountVectorizer(
        preprocessor=normalize_text,
        token_pattern=r"[a-z]{3,}",
        stop_words=stop_words,
        min_df=min_df,
        max_df=max_df,
        vocabulary=vocabulary,
        **params,
    )


def document_frequency_mask(counts, min_df, max_df):
    """Which columns ``CountVectorizer`` would keep: ndarray of bool, shape (n_features,)."""
    n_docs = counts.shape[0]
    frequency = np.bincount(sparse.csr_array(counts).indices, minlength=counts.shape[1])
    low = min_df if isinstance(min_df, (int, np.integer)) else min_df * n_docs
    high = max_df if isinstance(max_df, (int, np.integer)) else max_df * n_docs
    mask = (frequency >= low) & (frequency <= high)
    if not mask.any():
        raise ValueError(f"no word is in at least min_df={min_df} and at most max_df={max_df} documents; lower min_df.")
    return mask
