"""Displays of top words and of held-out scores, with the interface of scikit-learn's displays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..utils._numbers import indices
from ..utils._parameters import keyword_parameters
from ..utils._typing import AnyArray, Axes, AxesLike, FigureLike, FloatArray, IntArray
from ._base import (
    BAR,
    GREY,
    INK,
    LONGEST,
    WHISKER,
    Panels,
    check_interval,
    pyplot,
    style_rows,
    topic_title,
    whiskers,
)
from ._export import check_count_model
from ._similarity import given_names


@keyword_parameters
class TopicWordsDisplay(Panels):
    """The most probable words of topics, with credible intervals; one panel per topic.

    With several chains, bars show the means in the reference chain, and intervals pool the draws of the chains that
    agree on the topic. If a chain does not agree (``chains_agree_``), the title is grey and ends in "(chains differ)".
    Usually created by `from_estimator`.

    Parameters
    ----------
    topics : ndarray of shape (n_topics,)
        Indices of the topics shown.
    words : ndarray of str, shape (n_topics, n_words)
        Top words of each topic, the most probable first.
    probability : ndarray of shape (n_topics, n_words)
        Posterior means of their probabilities.
    low, high : ndarray of shape (n_topics, n_words)
        Ends of the credible intervals.
    interval : float
        Mass of the credible intervals.
    labels : list of str or None, default=None
        Names of the topics, which follow their indices in the titles.
    chains_differ : ndarray of bool, shape (n_topics,), or None, default=None
        Whether some chain does not agree on a topic. None: all chains agree.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes, shape (n_topics,)

    Examples
    --------
    >>> from sk_sgmcmc import BayesianLDA
    >>> from sk_sgmcmc.datasets import make_lda
    >>> from sk_sgmcmc.inspection import TopicWordsDisplay
    >>> data = make_lda(
    ...     n_samples=100, n_features=30, n_components=3, random_state=0
    ... )
    >>> lda = BayesianLDA(n_components=3, n_iter=100, random_state=0).fit(
    ...     data.counts
    ... )
    >>> display = TopicWordsDisplay.from_estimator(
    ...     lda, n_words=5, feature_names=data.feature_names
    ... )
    >>> display.words.shape
    (3, 5)
    """

    topics: IntArray
    words: AnyArray
    probability: FloatArray
    low: FloatArray
    high: FloatArray
    interval: float
    labels: Sequence[str] | None = None
    chains_differ: AnyArray | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        n_words: int = 8,
        topics: Sequence[int] | IntArray | None = None,
        interval: float = 0.9,
        feature_names: Sequence[str] | AnyArray | None = None,
        ax: AxesLike | None = None,
        figure: FigureLike | None = None,
        n_columns: int | None = None,
    ) -> Self:
        """Plot the topics of a fitted topic model; titles contain the names that you set as ``topic_names_``.

        Parameters
        ----------
        estimator : fitted topic model
        n_words : int, default=8
            Number of words of each topic.
        topics : sequence of int, default=None
            Indices of the topics to show, in this order. None: all.
        interval : float, default=0.9
            Mass of the credible intervals.
        feature_names : array-like of str, default=None
            Names of the columns. None: ``feature_names_in_``, or the indices of the columns.
        ax : matplotlib Axes or sequence of Axes, default=None
            One Axes for each topic. None: a new figure.
        figure : matplotlib Figure or SubFigure, default=None
            Figure in which to create the panels.
        n_columns : int, default=None
            Number of panels in a row. None: at most 5.

        Returns
        -------
        display : TopicWordsDisplay
        """
        check_count_model(estimator, "TopicWordsDisplay")
        n_topics = len(estimator.components_)
        topics = np.arange(n_topics) if topics is None else indices("topics", topics, n_topics)
        check_interval(interval)
        table = estimator.top_words(n_words, interval=interval, feature_names=feature_names)
        columns = {
            name: np.asarray(table[name]).reshape(n_topics, -1)[topics]
            for name in ("word", "probability", "low", "high")
        }
        display = cls(
            topics=topics,
            words=columns["word"].astype(str),
            probability=columns["probability"],
            low=columns["low"],
            high=columns["high"],
            interval=interval,
            labels=given_names(estimator, topics),
            chains_differ=~estimator.chains_agree_.all(axis=0)[topics],
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
            Number of panels in a row. None: at most 5.

        Returns
        -------
        display : TopicWordsDisplay
        """
        n_topics, n_words = self.words.shape
        self._make_panels(n_topics, "topics", ax=ax, figure=figure, n_columns=n_columns or 5, size=self._size)
        places = np.arange(n_words)
        widest = self.high.max()
        for i, panel in enumerate(self.axes_):
            mean, sides = self.probability[i], whiskers(self.probability[i], self.low[i], self.high[i])
            panel.barh(places, mean, height=0.72, color=BAR, zorder=2)
            panel.errorbar(mean, places, xerr=sides, fmt="none", ecolor=WHISKER, elinewidth=1.4, capsize=2.5, zorder=3)
            style_rows(panel, self.words[i])
            panel.set_xlim(0, 1.04 * widest)
            color = GREY if self._differs(i) else INK
            panel.set_title(self._title(i), loc="left", fontsize=10, fontweight="bold", color=color)
            panel.locator_params(axis="x", nbins=3)
        if ax is None:
            label = f"probability in the topic: mean and {self.interval:.0%} credible interval"
            self.figure_.supxlabel(label, fontsize=9, color=GREY)
        return self

    def _differs(self, i):
        return self.chains_differ is not None and self.chains_differ[i]

    def _title(self, i):
        title = topic_title(self.topics[i], None if self.labels is None else self.labels[i])
        return f"{title} (chains differ)" if self._differs(i) else title

    def _size(self, n_rows, n_columns):
        # Estimated widths of words and titles in inches, plus at least 1.5 inches for the bars.
        of_words = 0.075 * min(LONGEST, max(len(word) for word in self.words.ravel()))
        of_title = 0.1 * max(len(self._title(i)) for i in range(len(self.topics)))
        width = of_words + max(1.5, of_title)
        return max(3.4, width * n_columns), 0.55 + n_rows * (0.55 + 0.19 * self.words.shape[1])


@keyword_parameters
class TraceDisplay:
    """The held-out score during ``fit``, against seconds or steps.

    Usually created by `from_estimator`.

    Parameters
    ----------
    trace : dict
        Lists ``step``, ``seconds`` and ``score``: the ``trace_`` that `HeldOutScore` sets.
    n_burn : int or None, default=None
        Last step of burn-in, which is shaded.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    line_ : matplotlib Line2D

    Examples
    --------
    >>> from sk_sgmcmc import BayesianLDA
    >>> from sk_sgmcmc.callbacks import HeldOutScore
    >>> from sk_sgmcmc.datasets import make_lda
    >>> from sk_sgmcmc.inspection import TraceDisplay
    >>> X = make_lda(
    ...     n_samples=120, n_features=30, n_components=3, random_state=0
    ... ).counts
    >>> lda = BayesianLDA(
    ...     n_components=3,
    ...     n_iter=30,
    ...     random_state=0,
    ...     callbacks=HeldOutScore(X[100:], every=5),
    ... )
    >>> TraceDisplay.from_estimator(lda.fit(X[:100])).trace["step"]
    [5, 10, 15, 20, 25, 30]
    """

    trace: Mapping[str, Sequence[float]]
    n_burn: int | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        x: Literal["seconds", "step"] = "seconds",
        ax: Axes | None = None,
        name: str | None = None,
    ) -> Self:
        """Plot the trace of an estimator that was fitted with `HeldOutScore` among its callbacks.

        Parameters
        ----------
        estimator : fitted estimator
        x : {"seconds", "step"}, default="seconds"
            Quantity on the horizontal axis.
        ax : matplotlib Axes, default=None
            None: a new figure. Pass the same Axes for several estimators to compare them.
        name : str, default=None
            Label of the line. None: the names of the class and the sampler.

        Returns
        -------
        display : TraceDisplay
        """
        check_is_fitted(estimator)
        if not getattr(estimator, "trace_", {}).get("step"):
            raise ValueError(
                f"This {type(estimator).__name__} has no trace_; fit it with "
                "callbacks=HeldOutScore(X_held_out) from sk_sgmcmc.callbacks, and an `every` below n_iter."
            )
        if name is None:
            name = f"{type(estimator).__name__}, {type(estimator.sampler_).__name__}"
        n_burn = estimator._chains[0].plan.n_burn
        return cls(trace=estimator.trace_, n_burn=n_burn if np.isfinite(n_burn) else None).plot(x=x, ax=ax, name=name)

    def plot(
        self, *, x: Literal["seconds", "step"] = "seconds", ax: Axes | None = None, name: str | None = None
    ) -> Self:
        """Draw the trace.

        Parameters
        ----------
        x : {"seconds", "step"}, default="seconds"
            Quantity on the horizontal axis.
        ax : matplotlib Axes, default=None
            None: a new figure.
        name : str, default=None
            Label of the line.

        Returns
        -------
        display : TraceDisplay
        """
        if x not in ("seconds", "step"):
            raise ValueError(f'x={x!r} must be "seconds" or "step".')
        if ax is None:
            _, ax = pyplot("TraceDisplay").subplots(figsize=(5.6, 3.2), layout="constrained")
            if self.n_burn:
                end = np.interp(self.n_burn, [0, *self.trace["step"]], [0, *self.trace[x]])
                ax.axvspan(0, end, color="#f2f2f2", zorder=0)
                ax.annotate("burn-in", (0, 1), (4, -4), xycoords=("data", "axes fraction"), va="top",
                            textcoords="offset points", fontsize=8, color="#888888")  # fmt: skip
        (self.line_,) = ax.plot(self.trace[x], self.trace["score"], marker="o", markersize=3, linewidth=1.4, label=name)
        ax.set_xlabel("seconds of fitting" if x == "seconds" else "step")
        ax.set_ylabel("held-out log probability of a token")
        ax.set_xlim(left=0)
        ax.spines[["top", "right"]].set_visible(False)
        if name is not None:
            ax.legend(frameon=False, loc="lower right", fontsize=9)
        self.ax_, self.figure_ = ax, ax.figure
        return self
