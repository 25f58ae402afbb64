"""Displays of topics over time, and of the documents with the largest proportion of a topic."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from ..topic._base import BaseTopicModel
from ..topic._results.documents import starts_of_periods
from ..utils._parameters import keyword_parameters
from ..utils._typing import AnyArray, AxesLike, FigureLike, FloatArray, IntArray
from ..utils.blocks import CountsLike
from ._base import (
    BAR,
    FAINT,
    GREY,
    INK,
    LONGEST_NAME,
    WHISKER,
    Panels,
    check_interval,
    shortened,
    style_panel,
    topic_title,
    whiskers,
)
from ._similarity import check_topics, topic_labels

_MOST_TOPICS, _FEW_TOPICS = 12, 3  # number of topics shown by default: over time, and with their documents
_WIDTH, _LINES = 80, 3  # largest number of characters in a line, and of lines, shown of a document


def _largest(shares, topics, n):
    """The n most prevalent of the given topics."""
    return topics[np.argsort(-shares[topics], kind="stable")[:n]]


def _set_title(panel, topic, label):
    panel.set_title(topic_title(topic, label), loc="left", fontsize=9, fontweight="bold", color=INK)


@keyword_parameters
class TopicsOverTimeDisplay(Panels):
    """Prevalence of topics at different times, with credible intervals; one panel per topic.

    Times that are names, such as classes of documents, are drawn as points, with the names on the vertical axis.

    Usually created by `from_estimator`.

    Parameters
    ----------
    times : ndarray of shape (n_times,)
        Times, or starts of periods, in order.
    topics : ndarray of shape (n_topics,)
        Indices of the topics shown.
    labels : list of str
        Names or top words of the topics.
    share, low, high : ndarray of shape (n_topics, n_times)
        Mean proportions in the documents of each time, and the ends of their credible intervals.
    interval : float
        Mass of the credible intervals.
    of : {"documents", "population"}
        What the share is the mean over, as for `BayesianLDA.topics_over_time <sk_sgmcmc.BayesianLDA.topics_over_time>`.
        The title of the horizontal axis says it.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes, shape (n_topics,)

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import BayesianLDA
    >>> from sk_sgmcmc.datasets import make_lda
    >>> from sk_sgmcmc.inspection import TopicsOverTimeDisplay
    >>> X = make_lda(
    ...     n_samples=100, n_features=30, n_components=3, random_state=0
    ... ).counts
    >>> lda = BayesianLDA(n_components=3, n_iter=100, random_state=0).fit(X)
    >>> display = TopicsOverTimeDisplay.from_estimator(
    ...     lda, X, 2000 + np.arange(100) // 20
    ... )
    >>> display.share.shape
    (3, 5)
    """

    times: AnyArray
    topics: IntArray
    labels: Sequence[str]
    share: FloatArray
    low: FloatArray
    high: FloatArray
    interval: float
    of: Literal["documents", "population"] = "documents"

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseTopicModel,
        X: CountsLike,
        times: ArrayLike,
        *,
        topics: Sequence[int] | IntArray | None = None,
        interval: float = 0.9,
        n_bins: int | None = None,
        of: Literal["documents", "population"] = "documents",
        n_words: int = 2,
        ax: AxesLike | None = None,
        figure: FigureLike | None = None,
        n_columns: int | None = None,
        **params: Any,
    ) -> Self:
        """Plot the topics of a fitted topic model over time.

        Parameters
        ----------
        estimator : fitted topic model of counts
        X : array-like or sparse of shape (n_samples, n_features)
            Counts.
        times : array-like of shape (n_samples,)
            Numbers, dates or ordered labels.
        topics : sequence of int, default=None
            Indices of the topics to show, in this order. None: the most prevalent, at most 12.
        interval : float, default=0.9
            Mass of the credible intervals.
        n_bins : int or None, default=None
            Number of periods of equal length into which to group the times. None: each distinct time separately.
        of : {"documents", "population"}, default="documents"
            Whether means are over these documents, or over the population from which they are a sample.
        n_words : int, default=2
            Number of top words in a title. Names that you set as ``topic_names_`` replace them.
        ax : sequence of matplotlib Axes, default=None
            One Axes for each topic. None: a new figure.
        figure : matplotlib Figure or SubFigure, default=None
            Figure in which to create the panels.
        n_columns : int, default=None
            Number of panels in a row. None: at most 3, or 2 if times are names.
        **params
            Further arguments of ``topics_over_time``, such as ``metadata``.

        Returns
        -------
        display : TopicsOverTimeDisplay
        """
        chosen = check_topics(estimator, topics, "TopicsOverTimeDisplay")
        check_interval(interval)
        table = estimator.topics_over_time(X, times, interval, n_bins=n_bins, of=of, **params)
        n_topics = len(estimator.components_)
        columns = {name: np.asarray(table[name]).reshape(-1, n_topics) for name in ("share", "low", "high")}
        documents = np.asarray(table["n_documents"]).reshape(-1, n_topics)[:, 0]
        if topics is None:
            chosen = _largest(documents @ columns["share"], chosen, _MOST_TOPICS)
        return cls(
            times=starts_of_periods(np.asarray(table["time"]).reshape(-1, n_topics)[:, 0]),
            topics=chosen,
            labels=topic_labels(estimator, chosen, n_words),
            interval=interval,
            of=of,
            **{name: value[:, chosen].T for name, value in columns.items()},
        ).plot(ax=ax, figure=figure, n_columns=n_columns)

    def plot(
        self, *, ax: AxesLike | None = None, figure: FigureLike | None = None, n_columns: int | None = None
    ) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : sequence of matplotlib Axes, default=None
            One Axes for each topic. None: a new figure.
        figure : matplotlib Figure or SubFigure, default=None
            Figure in which to create the panels.
        n_columns : int, default=None
            Number of panels in a row. None: at most 3, or 2 if times are names.

        Returns
        -------
        display : TopicsOverTimeDisplay
        """
        named = self._named()
        shared = {"sharey": True} if named and ax is None else {}
        self._make_panels(
            self.topics.size, "topics", ax=ax, figure=figure, n_columns=n_columns or (2 if named else 3),
            size=self._size, **shared,
        )  # fmt: skip
        for i, panel in enumerate(self.axes_):
            (self._draw_names if named else self._draw_course)(panel, i)
            _set_title(panel, self.topics[i], self.labels[i])
            panel.tick_params(labelsize=8, labelcolor=GREY, color=FAINT)
            style_panel(panel, spines=("bottom",) if named else ("left", "bottom"))
        if ax is None:
            whose = {"documents": "share of the documents", "population": "share in the population"}[self.of]
            self.figure_.supxlabel(f"{whose}: mean and {self.interval:.0%} credible interval", fontsize=9, color=GREY)
        return self

    def _draw_course(self, panel, i):
        """Draw a line with a band over numbers or dates."""
        panel.fill_between(self.times, self.low[i], self.high[i], color=BAR, alpha=0.5, linewidth=0)
        alone = {"marker": "o", "markersize": 3} if self.times.size < 13 else {}
        panel.plot(self.times, self.share[i], color=WHISKER, linewidth=1.3, **alone)
        if self.times.dtype.kind == "M":
            locator = panel.xaxis.get_major_locator()
            panel.xaxis.set_major_locator(type(locator)(maxticks=4))
        else:
            panel.locator_params(axis="x", nbins=4, integer=self.times.dtype.kind in "iu")
        panel.locator_params(axis="y", nbins=4)
        panel.set_ylim(0, 1.08 * self.high[i].max())

    def _draw_names(self, panel, i):
        """Draw a point for each name; a line between names would have no meaning, and names are read across."""
        places = np.arange(self.times.size)
        sides = whiskers(self.share[i], self.low[i], self.high[i])
        panel.errorbar(self.share[i], places, xerr=sides, fmt="o", color=WHISKER, ecolor=BAR, markersize=4,
                       elinewidth=2.2)  # fmt: skip
        panel.set_yticks(places, [shortened(str(time), LONGEST_NAME) for time in self.times])
        panel.tick_params(axis="y", length=0)
        panel.set_ylim(places.size - 0.5, -0.5)
        panel.set_xlim(0, 1.08 * self.high[i].max())
        panel.locator_params(axis="x", nbins=4)

    def _named(self):
        """Whether times are names."""
        return self.times.dtype.kind not in "iufM"

    def _size(self, n_rows, n_columns):
        longest = max(len(f"topic 00: {label}") for label in self.labels)
        width, height, names = n_columns * max(2.3, 0.085 * longest), 1.75, 0.0
        if self._named():
            names = 0.07 * max(len(shortened(str(time), LONGEST_NAME)) for time in self.times)
            height = max(height, 0.6 + 0.2 * self.times.size)
        return 0.4 + names + width, max(2.6, height * n_rows)


@keyword_parameters
class TopicDocumentsDisplay(Panels):
    """The texts of the documents with the largest proportion of each topic; one panel per topic.

    A bar is the document's proportion of the topic, with its credible interval. Usually created by `from_estimator`.

    Parameters
    ----------
    topics : ndarray of shape (n_topics,)
        Indices of the topics shown.
    labels : list of str
        Names or top words of the topics.
    documents : ndarray of shape (n_topics, n)
        Indices of the documents in X, the largest proportion first.
    texts : ndarray of str, shape (n_topics, n)
        Texts of the documents.
    proportion, low, high : ndarray of shape (n_topics, n)
        Means over draws, and ends of the credible intervals.
    interval : float
        Mass of the credible intervals.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes, shape (n_topics,)

    Examples
    --------
    >>> from sk_sgmcmc import BayesianLDA
    >>> from sk_sgmcmc.datasets import make_lda
    >>> from sk_sgmcmc.inspection import TopicDocumentsDisplay
    >>> X = make_lda(
    ...     n_samples=100, n_features=30, n_components=3, random_state=0
    ... ).counts
    >>> lda = BayesianLDA(n_components=3, n_iter=100, random_state=0).fit(X)
    >>> texts = [f"document {i}" for i in range(100)]
    >>> TopicDocumentsDisplay.from_estimator(
    ...     lda, X, texts, topics=[1], n=4
    ... ).documents.shape
    (1, 4)
    """

    topics: IntArray
    labels: Sequence[str]
    documents: IntArray
    texts: AnyArray
    proportion: FloatArray
    low: FloatArray
    high: FloatArray
    interval: float

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseTopicModel,
        X: CountsLike,
        texts: Sequence[str] | AnyArray,
        *,
        topics: Sequence[int] | IntArray | None = None,
        n: int = 3,
        interval: float = 0.9,
        n_words: int = 4,
        ax: AxesLike | None = None,
        figure: FigureLike | None = None,
        **params: Any,
    ) -> Self:
        """Plot the documents with the largest proportion of each topic.

        Parameters
        ----------
        estimator : fitted topic model of counts
        X : array-like or sparse of shape (n_samples, n_features)
            Counts.
        texts : array-like of str, shape (n_samples,)
            The documents.
        topics : sequence of int, default=None
            Indices of the topics to show, in this order. None: the three with the largest mean proportion.
        n : int, default=3
            Number of documents of each topic.
        interval : float, default=0.9
            Mass of the credible intervals.
        n_words : int, default=4
            Number of top words in a title. Names that you set as ``topic_names_`` replace them.
        ax : sequence of matplotlib Axes, default=None
            One Axes for each topic. None: a new figure.
        figure : matplotlib Figure or SubFigure, default=None
            Figure in which to create the panels.
        **params
            Further arguments of ``representative_docs``, such as ``metadata``.

        Returns
        -------
        display : TopicDocumentsDisplay
        """
        chosen = check_topics(estimator, topics, "TopicDocumentsDisplay")
        check_interval(interval)
        if texts is None:
            raise TypeError("texts must be the documents, a text for each row of X; got None.")
        table = estimator.representative_docs(X, texts, n, interval, **params)
        n_topics = len(estimator.components_)
        given = {name: np.asarray(table[name]).reshape(n_topics, -1)
                 for name in ("document", "text", "proportion", "low", "high")}  # fmt: skip
        if topics is None:
            draw_params = {name: value for name, value in params.items() if name != "random_state"}
            shares = np.asarray(estimator.transform(X, **draw_params)).mean(axis=0)
            chosen = _largest(shares, chosen, _FEW_TOPICS)
        return cls(
            topics=chosen,
            labels=topic_labels(estimator, chosen, n_words),
            documents=given["document"][chosen],
            texts=given["text"][chosen].astype(str),
            proportion=given["proportion"][chosen],
            low=given["low"][chosen],
            high=given["high"][chosen],
            interval=interval,
        ).plot(ax=ax, figure=figure)

    def plot(self, *, ax: AxesLike | None = None, figure: FigureLike | None = None) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : sequence of matplotlib Axes, default=None
            One Axes for each topic. None: a new figure.
        figure : matplotlib Figure or SubFigure, default=None
            Figure in which to create the panels.

        Returns
        -------
        display : TopicDocumentsDisplay
        """
        n_topics, n = self.documents.shape
        self._make_panels(
            n_topics, "topics", ax=ax, figure=figure, n_columns=1, sharex=True,
            size=lambda n_rows, _: (7.5, 0.5 + n_rows * (0.35 + 0.46 * n)),
        )  # fmt: skip
        places = np.arange(n)
        for i, panel in enumerate(self.axes_):
            mean, sides = self.proportion[i], whiskers(self.proportion[i], self.low[i], self.high[i])
            panel.barh(places, mean, height=0.5, color=BAR, zorder=2)
            panel.errorbar(mean, places, xerr=sides, fmt="none", ecolor=WHISKER, elinewidth=1.4, capsize=2.5, zorder=3)
            for place, text in enumerate(self.texts[i]):
                panel.text(1.08, place, _quoted(text), fontsize=8, color=INK, va="center", linespacing=1.05)
            panel.set_xlim(0, 3.9)
            panel.set_ylim(n - 0.5, -0.5)
            panel.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
            panel.set_yticks(places, [str(document) for document in self.documents[i]])
            panel.tick_params(axis="y", length=0, labelsize=8, labelcolor=GREY)
            panel.tick_params(axis="x", labelsize=8, labelcolor=GREY, color=FAINT)
            panel.spines[:].set_visible(False)
            _set_title(panel, self.topics[i], self.labels[i])
        if ax is None:
            for panel in self.axes_[:-1]:
                panel.tick_params(axis="x", bottom=False)
            self.axes_[-1].set_xlabel(
                f"proportion of the topic: mean and {self.interval:.0%} credible interval", fontsize=8, color=GREY,
                loc="left",
            )  # fmt: skip
        return self


def _quoted(text):
    """The beginning of a text, wrapped into a few lines, with dollar signs escaped for matplotlib."""
    lines = textwrap.wrap(" ".join(text.split()), _WIDTH, max_lines=_LINES, placeholder=" …")
    return "\n".join(lines).replace("$", r"\$")
