"""Conversion of texts to counts, for any language and as in this package's English text corpora."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from ..utils._warnings import warn_user

_ASCII_WORD = re.compile("[A-Za-z]{3,}")
_CLITICS = re.compile(r"n't\b|'(?:s|re|ll|ve|d|m|t)\b")


def normalize_text(text: str) -> str:
    """Fold accents, convert to lower case, and strip English clitics ("don't" becomes "do").

    Parameters
    ----------
    text : str
        The original text.

    Returns
    -------
    str
        The normalised text.
    """
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in decomposed if not unicodedata.combining(c)).replace("\u2019", "'")
    return _CLITICS.sub(" ", text.lower())


# Scripts without spaces between words, in which a run of letters is not a word: Thai, Lao, Burmese, Khmer, Chinese and
# Japanese.
_NO_SPACES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u312f"
    "\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_HANGUL = "\uac00-\ud7a3"  # each character is a syllable
_JOINERS = "\u200c\u200d"  # occur within words of Persian and of Indian languages
_MEASURED = 200_000  # number of letters from which `WordVectorizer` computes the share in words


@cache
def _word():
    """Regular expression for words: at least three letters with their marks, or at least two Korean syllables."""
    # ``re`` has no class of combining marks, which occur within words of Hindi and other languages.
    marks = "".join(chr(c) for c in range(0x300, 0x20000) if unicodedata.category(chr(c)) in ("Mn", "Mc"))
    letter = rf"(?![{_NO_SPACES}])[^\W\d_]"
    return re.compile(rf"[{_HANGUL}]{{2,}}|{letter}(?:{letter}|[{marks}{_JOINERS}]){{2,}}")


def words_of_text(text: str) -> list[str]:
    """Words of a text in any language with separators between words."""
    return (_ASCII_WORD if text.isascii() else _word()).findall(text)


def normalize_unicode(text: str) -> str:
    """Convert to lower case and to composed characters, and strip English clitics; accents are kept."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("\u2019", "'").replace("\u00ad", "")
    return _CLITICS.sub(" ", text.lower())


class WordVectorizer(CountVectorizer):
    """A `CountVectorizer` whose ``fit`` warns if most letters of the texts belong to no word."""

    def fit_transform(self, raw_documents: Iterable[str], y: Any = None) -> Any:
        """As for `CountVectorizer`."""
        if self.tokenizer not in (None, words_of_text) or self.analyzer != "word" or isinstance(raw_documents, str):
            return super().fit_transform(raw_documents, y)
        measured = np.zeros(2)  # numbers of letters in words, and in total
        try:
            return super().fit_transform(self._measuring(raw_documents, measured), y)
        finally:
            in_words, in_all = measured
            if in_words < in_all / 2:
                warn_user(
                    f"{1 - in_words / in_all:.0%} of the letters in these texts belong to no token: tokens are runs of "
                    "at least three letters, and some languages, such as Chinese, Japanese and Thai, put no space "
                    "between words. Pass tokenizer=, a function from a text to its words, or "
                    'analyzer="char", ngram_range=(2, 2).'
                )

    def _measuring(self, raw_documents, measured):
        preprocess, tokenize = self.build_preprocessor(), self.build_tokenizer()
        for document in raw_documents:
            if measured[1] < _MEASURED and isinstance(document, str):
                text = preprocess(document)
                measured += [sum(map(str.isalpha, part)) for part in ("".join(tokenize(text)), text)]
            yield document


def make_count_vectorizer(
    *,
    min_df: float = 1,
    max_df: float = 0.5,
    vocabulary: Sequence[str] | None = None,
    stop_words: str | Iterable[str] | None = "english",
    ascii_only: bool = False,
    **params: Any,
) -> CountVectorizer:
    """A scikit-learn `~sklearn.feature_extraction.text.CountVectorizer` for topic models.

    Letters are lower-cased, and English clitics ("'s", "n't") are dropped. Tokens are runs of at least three letters of
    any language (of two syllables in Korean), with their accents, that are not among the stop words. Columns are in
    alphabetical order.

    Parameters
    ----------
    min_df : int or float, default=1
        Drop words in fewer documents (a share, if a float).
    max_df : int or float, default=0.5
        Drop words in more documents (a share, if a float).
    vocabulary : sequence of str, default=None
        Count only these words.
    stop_words : "english", iterable of str or None, default="english"
        Words to leave out. Pass a list for languages other than English.
    ascii_only : bool, default=False
        Whether to tokenise as in this package's English text corpora: accents are folded, so that "naïve" becomes
        "naive", and tokens consist of the letters a to z.
    **params
        Other parameters of `sklearn.feature_extraction.text.CountVectorizer`, such as ``tokenizer`` for languages
        without spaces between words.

    Returns
    -------
    sklearn.feature_extraction.text.CountVectorizer
        Unfitted vectorizer, which can be pickled. Its ``fit`` warns if most letters of the texts belong to no token.

    Examples
    --------
    >>> from sk_sgmcmc.datasets import make_count_vectorizer
    >>> vectorizer = make_count_vectorizer(max_df=1.0)
    >>> vectorizer.fit(
    ...     ["Naïve samplers don't converge.", "The sampler's chain"]
    ... ).get_feature_names_out().tolist()
    ['chain', 'converge', 'naïve', 'sampler', 'samplers']
    >>> vectorizer = make_count_vectorizer(
    ...     max_df=1.0, stop_words=["und", "über"]
    ... )
    >>> vectorizer.fit(
    ...     ["Häfen und Flüsse", "Über den Fluß"]
    ... ).get_feature_names_out().tolist()
    ['den', 'fluß', 'flüsse', 'häfen']
    """
    if isinstance(stop_words, str) and stop_words != "english":
        raise ValueError(
            f'stop_words must be "english", a list of words or None; got {stop_words!r}. Pass the words of that '
            "language as a list."
        )
    recipe = {"preprocessor": normalize_text if ascii_only else normalize_unicode}
    if callable(params.get("analyzer")):
        recipe = {}
    elif params.get("analyzer", "word") != "word":
        stop_words = None
    else:
        is_named = stop_words is None or isinstance(stop_words, str)
        recipe["stop_words"] = stop_words if is_named else _prepared(stop_words, **recipe)
        if "tokenizer" in params:
            recipe["token_pattern"] = None
        elif ascii_only:
            recipe["token_pattern"] = r"[a-z]{3,}"
        elif "token_pattern" not in params:
            recipe |= {"token_pattern": None, "tokenizer": words_of_text}
    return WordVectorizer(min_df=min_df, max_df=max_df, vocabulary=vocabulary, **{**recipe, **params})


def _prepared(stop_words, preprocessor):
    """Sorted list of the stop words and their forms in a preprocessed text."""
    return sorted({token for word in stop_words for token in (word, *preprocessor(word).split())})


def document_frequency_mask(counts, min_df, max_df):
    """Mask (n_features,) of the columns that ``CountVectorizer`` with these limits would keep."""
    n_docs = counts.shape[0]
    frequency = np.bincount(sparse.csr_array(counts).indices, minlength=counts.shape[1])
    low = min_df if isinstance(min_df, (int, np.integer)) else min_df * n_docs
    high = max_df if isinstance(max_df, (int, np.integer)) else max_df * n_docs
    mask = (frequency >= low) & (frequency <= high)
    if not mask.any():
        raise ValueError(f"no word is in at least min_df={min_df} and at most max_df={max_df} documents; lower min_df.")
    return mask
