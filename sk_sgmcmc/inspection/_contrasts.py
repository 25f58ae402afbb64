"""Display of the words of topics that differ between two groups of documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..topic import StructuralTopicModel
from ..utils._numbers import indices
from ..utils._parameters import keyword_parameters
from ..utils._typing import AnyArray, AxesLike, FigureLike, FloatArray, IntArray
from ._base import (
    CHARACTER,
    COLOURS,
    GREY,
    INK,
    LONGEST,
    Panels,
    check_interval,
    shortened,
    style_rows,
    topic_title,
    whiskers,
)

_LONGEST_GROUP = 20  # largest number of characters shown of a group's name


@keyword_parameters
class WordContrastDisplay(Panels):
    """Words of topics that differ between two groups of documents, with credible intervals; one panel per topic.

    Usually created by `from_estimator`.

    Parameters
    ----------
    topics : ndarray of shape (n_topics,)
        Indices of the topics shown.
    names : ndarray of str, shape (n_topics,)
        Titles of the panels.
    words : list of ndarray of str
        Words of each topic; the words of the first group come first.
    log_ratio, low, high : list of ndarray
        Logarithms of the ratios of their probabilities in the two groups: posterior means, and ends of intervals.
    interval : float
        Mass of the credible intervals.
    a, b : str
        The two groups.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes, shape (n_topics,)
    ax_ : matplotlib Axes
        The first panel.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import StructuralTopicModel
    >>> from sk_sgmcmc.inspection import WordContrastDisplay
    >>> X = np.array(
    ...     [[4, 3, 0, 0], [5, 0, 2, 0], [0, 0, 4, 4], [0, 4, 0, 3]] * 10
    ... )
    >>> metadata = {"party": np.array(["green", "red"] * 20)}
    >>> model = StructuralTopicModel(
    ...     2, formula="~ 1", content="party", n_iter=60, random_state=0
    ... )
    >>> model = model.fit(
    ...     X, metadata=metadata, feature_names=["sea", "fish", "moon", "star"]
    ... )
    >>> len(
    ...     WordContrastDisplay.from_estimator(
    ...         model, "green", "red", n_words=1
    ...     ).words
    ... )
    2
    """

    topics: IntArray
    names: AnyArray
    words: Sequence[AnyArray]
    log_ratio: Sequence[FloatArray]
    low: Sequence[FloatArray]
    high: Sequence[FloatArray]
    interval: float
    a: str
    b: str

    @classmethod
    def from_estimator(
        cls,
        estimator: StructuralTopicModel,
        a: Any,
        b: Any,
        *,
        topics: Sequence[int] | IntArray | None = None,
        n_words: int = 6,
        interval: float = 0.9,
        ax: AxesLike | None = None,
        figure: FigureLike | None = None,
        n_columns: int | None = None,
    ) -> Self:
        """Plot the words of a fitted model that differ most between two groups.

        Parameters
        ----------
        estimator : fitted StructuralTopicModel with ``content``
        a, b : object
            Two of its ``groups_``.
        topics : sequence of int, default=None
            Indices of the topics to show, in this order. None: all.
        n_words : int, default=6
            Number of words of each group; see `StructuralTopicModel.word_contrast
            <sk_sgmcmc.StructuralTopicModel.word_contrast>`.
        interval : float, default=0.9
            Mass of the credible intervals.
        ax : matplotlib Axes or sequence of Axes, default=None
            One Axes for each topic. None: a new figure.
        figure : matplotlib Figure or SubFigure, default=None
            Figure in which to create the panels.
        n_columns : int, default=None
            Number of panels in a row. None: at most 4.

        Returns
        -------
        display : WordContrastDisplay
        """
        if not isinstance(estimator, StructuralTopicModel):
            raise TypeError(
                f"WordContrastDisplay compares the words of a StructuralTopicModel; got a {type(estimator).__name__}."
            )
        check_is_fitted(estimator)
        check_interval(interval)
        n_topics = len(estimator.components_)
        topics = np.arange(n_topics) if topics is None else indices("topics", topics, n_topics)
        table = estimator.word_contrast(a, b, topics, n_words, interval)
        own = [np.asarray(table["topic"]) == k for k in topics]
        columns = {name: np.asarray(table[name]) for name in ("word", "log_ratio", "low", "high")}
        display = cls(
            topics=topics,
            names=np.array([topic_title(k, estimator.topic_names_[k]) for k in topics], dtype=object),
            words=[columns["word"][rows].astype(str) for rows in own],
            log_ratio=[columns["log_ratio"][rows] for rows in own],
            low=[columns["low"][rows] for rows in own],
            high=[columns["high"][rows] for rows in own],
            interval=interval,
            a=str(a),
            b=str(b),
        )
        return display.plot(ax=ax, figure=figure, n_columns=n_columns)

    def plot(
        self, *, ax: AxesLike | None = None, figure: FigureLike | None = None, n_columns: int | None = None
    ) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of Axes, default=None
            One Axes for each topic. None: a new figure.
        figure : matplotlib Figure or SubFigure, default=None
            Figure in which to create the panels.
        n_columns : int, default=None
            Number of panels in a row. None: at most 4.

        Returns
        -------
        display : WordContrastDisplay
        """
        columns = n_columns or min(4, len(self.topics))
        self._make_panels(len(self.topics), "topics", ax=ax, figure=figure, n_columns=columns, size=self._size)
        self.ax_ = self.axes_[0]
        widest = max((np.abs([low, high]).max() for low, high in zip(self.low, self.high, strict=True) if low.size))
        for i, panel in enumerate(self.axes_):
            mean, places = self.log_ratio[i], np.arange(len(self.words[i]))
            sides = whiskers(mean, self.low[i], self.high[i])
            for sign, colour in zip((1, -1), COLOURS[:2], strict=True):
                own = mean * sign > 0
                panel.errorbar(
                    mean[own], places[own], xerr=sides[:, own], fmt="o", markersize=4, color=colour, elinewidth=1.4,
                    capsize=2.5, zorder=3,
                )  # fmt: skip
            panel.axvline(0.0, color=GREY, linewidth=0.8, zorder=1)
            style_rows(panel, self.words[i])
            panel.set_xlim(1.05 * widest, -1.05 * widest)  # The first group is on the left.
            panel.set_title(self.names[i], loc="left", fontsize=9, fontweight="bold", color=INK)
        if ax is None:
            self.figure_.supxlabel(self._axis_label(), fontsize=9, color=GREY)
        return self

    def _axis_label(self):
        """The quantity between the names of the groups, or below them if it would be wider than the figure."""
        title = f"log ratio of probabilities: mean and {self.interval:.0%} interval"
        a, b = shortened(self.a, _LONGEST_GROUP), shortened(self.b, _LONGEST_GROUP)
        one_line = f"← {a}     {title}     {b} →"
        width = self.figure_.bbox.width / self.figure_.dpi
        return one_line if CHARACTER * len(one_line) < width else f"← {a}          {b} →\n{title}"

    def _size(self, n_rows, n_columns):
        of_words = 0.075 * min(LONGEST, max(len(word) for words in self.words for word in words))
        of_title = 0.085 * max(map(len, self.names))
        most = max(map(len, self.words))
        return max(4.6, (of_words + max(1.6, of_title)) * n_columns), 0.6 + n_rows * (0.55 + 0.2 * most)
