"""`topic_report`: a report about the topics of a fitted topic model, as one HTML file."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from numpy.typing import ArrayLike

from ...topic._base import BaseTopicModel
from ...utils._files import replacing
from ...utils._numbers import checked_count, interval_tails
from ...utils._typing import AnyArray, Columns, Path
from ...utils.blocks import CountsLike
from .._base import check_interval
from .._similarity import check_topics
from .contents import gather, named
from .page import page


def topic_report(
    estimator: BaseTopicModel,
    X: CountsLike,
    path: Path,
    texts: Sequence[str] | AnyArray | None = None,
    *,
    feature_names: Sequence[str] | AnyArray | None = None,
    labels: Sequence[str] | Mapping[int, str] | AnyArray | None = None,
    metadata: Columns | None = None,
    times: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    n_bins: int | None = None,
    of: Literal["population", "documents"] = "population",
    title: str | None = None,
    interval: float = 0.9,
    n_words: int = 12,
    n_documents: int = 5,
    n_characters: int = 1200,
) -> pathlib.Path:
    """Write a report about the topics of a fitted topic model, as one HTML file that works offline.

    The page has a map and a list of the topics, which can be searched and sorted. For each topic, it shows words, share
    of the documents, representative documents, prevalence over time and by group, and similar topics, with credible
    intervals. A section reports convergence, and whether several chains agree. Sections for which there are no data say
    so. The same arguments give the same bytes.

    Parameters
    ----------
    estimator : fitted topic model
    X : array-like or sparse of shape (n_samples, n_features)
        Documents, as for ``transform``.
    path : str or path-like
        Where to write the file, for example "topics.html". An existing file is replaced at the end, when the new one is
        complete.
    texts : array-like of str, shape (n_samples,), default=None
        The documents. None: documents are shown by their most frequent words.
    feature_names : array-like of str, default=None
        Names of the words. None: the names passed to ``fit``, or the indices of the columns.
    labels : sequence of str or dict from int to str, default=None
        Names of the topics, as for ``topic_names_``. None: ``topic_names_`` if you have set it, else top words.
    metadata : as for ``fit``, default=None
        Metadata of X, if the model has any and X is not the X of ``fit``.
    times : array-like of shape (n_samples,), default=None
        Numbers, dates or labels, as for ``topics_over_time``. None: no prevalence over time.
    groups : array-like of shape (n_samples,), default=None
        Group of each document, such as its author's party; at most 50 different values. Two groups are compared with
        each other, and each of several groups with all other documents. None: no prevalence by group.
    n_bins : int, default=None
        Number of periods of equal length that replace the distinct times.
    of : {"population", "documents"}, default="population"
        What shares by time and group are means over, as for ``topics_over_time``.
    title : str, default=None
        Title of the page. None: the numbers of topics and documents.
    interval : float, default=0.9
        Mass of the credible intervals.
    n_words : int, default=12
        Number of words of a topic.
    n_documents : int, default=5
        Number of documents of a topic.
    n_characters : int, default=1200
        Number of characters of a text, which is cut after them.

    Returns
    -------
    path : pathlib.Path
        Absolute path of the file, whose ``as_uri()`` a browser opens.

    See Also
    --------
    to_pyldavis : Arguments for an interactive map of pyLDAvis.

    Notes
    -----
    Texts are escaped, and the page's content security policy forbids all scripts but its own, and everything that would
    have to be loaded. The script adds search, order and keys; without it, all topics stand below each other. Anyone who
    has the file can read the texts in it. Proportions are draws with seed 0, as in the tables of the estimator. Effects
    of a model's covariates are those of ``effects``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sk_sgmcmc import BayesianLDA
    >>> from sk_sgmcmc.datasets import make_lda
    >>> from sk_sgmcmc.inspection import topic_report
    >>> data = make_lda(
    ...     n_samples=100, n_features=30, n_components=3, random_state=0
    ... )
    >>> lda = BayesianLDA(n_components=3, n_iter=100, random_state=0)
    >>> lda = lda.fit(data.counts, feature_names=data.feature_names)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = topic_report(
    ...         lda,
    ...         data.counts,
    ...         Path(folder) / "topics.html",
    ...         times=[2000, 2001] * 50,
    ...     )
    ...     (
    ...         path.name,
    ...         path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>"),
    ...     )
    ('topics.html', True)
    """
    topics = check_topics(estimator, None, "topic_report")
    path = _checked_path(path)
    check_interval(interval)
    interval_tails(interval)
    counts = {"n_words": n_words, "n_documents": n_documents, "n_characters": n_characters}
    n_words, n_documents, n_characters = (checked_count(name, value) for name, value in counts.items())
    if of not in ("population", "documents"):
        raise ValueError(f'`of` must be "population" or "documents"; got {of!r}.')
    if title is not None and not isinstance(title, str):
        raise TypeError(f"`title` must be a text or None; got {title!r}.")
    contents = gather(
        named(estimator, labels, feature_names), X, topics, texts, metadata=metadata, groups=groups, times=times,
        n_bins=n_bins, of=of, interval=interval, n_words=n_words, n_documents=n_documents,
    )  # fmt: skip
    with replacing(path) as file:
        file.write(page(contents, title, n_characters).encode())
    return pathlib.Path(path).absolute()


def _checked_path(path: Any) -> str:
    """A path to which a file can be written, as text; raises before anything is computed or written."""
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str) or not os.fspath(path):
        raise TypeError(f'`path` must be the path of a file, such as "topics.html"; got {path!r}.')
    path = os.fspath(path)
    folder = os.path.dirname(path) or os.curdir
    if os.path.isdir(path):
        raise IsADirectoryError(f"`path` must be the path of a file; got the folder {path!r}. Add a name to it.")
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"`path` must lie in a folder that exists; there is no {folder!r}. Create it first.")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"`path` must lie in a folder that can be written; {folder!r} cannot. Pass another path.")
    return path
