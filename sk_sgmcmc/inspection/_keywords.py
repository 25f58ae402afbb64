"""Display of how often topics use their keywords."""

from __future__ import annotations

from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..topic import StructuralTopicModel
from ..utils._parameters import keyword_parameters
from ..utils._typing import AnyArray, AxesLike, FigureLike, FloatArray
from ._base import (
    BAR,
    GREY,
    LONGEST_NAME,
    WHISKER,
    Panels,
    check_interval,
    style_rows,
    whiskers,
)


@keyword_parameters
class KeywordDisplay(Panels):
    """Share of the tokens of topics that come from their keywords, with credible intervals.

    Bars show the share of the keywords in all documents. Where it is small, or where the share in the topic is hardly
    larger, the topic may be about something else than its name says. Usually created by `from_estimator`.

    Parameters
    ----------
    names : ndarray of str, shape (n_keyword_topics,)
        Names of the topics.
    rate, low, high : ndarray of shape (n_keyword_topics,)
        Posterior means of the shares, and ends of intervals.
    in_corpus : ndarray of shape (n_keyword_topics,)
        Shares of the keywords in all tokens.
    interval : float
        Mass of the credible intervals.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes, shape (1,)
    ax_ : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import StructuralTopicModel
    >>> from sk_sgmcmc.inspection import KeywordDisplay
    >>> X = np.array(
    ...     [[4, 3, 0, 0], [5, 0, 2, 0], [0, 0, 4, 4], [0, 4, 0, 3]] * 10
    ... )
    >>> model = StructuralTopicModel(
    ...     2,
    ...     formula="~ 1",
    ...     keywords={"Water": ["sea"]},
    ...     n_iter=60,
    ...     random_state=0,
    ... )
    >>> model = model.fit(X, feature_names=["sea", "fish", "moon", "star"])
    >>> KeywordDisplay.from_estimator(model).names.tolist()
    ['Water']
    """

    names: AnyArray
    rate: FloatArray
    low: FloatArray
    high: FloatArray
    in_corpus: FloatArray
    interval: float

    @classmethod
    def from_estimator(
        cls,
        estimator: StructuralTopicModel,
        *,
        interval: float = 0.9,
        ax: AxesLike | None = None,
        figure: FigureLike | None = None,
    ) -> Self:
        """Plot the rates of the keywords of a fitted model.

        Parameters
        ----------
        estimator : fitted StructuralTopicModel with ``keywords``
        interval : float, default=0.9
            Mass of the credible intervals.
        ax : matplotlib Axes, default=None
            None: a new figure.
        figure : matplotlib Figure or SubFigure, default=None
            Figure in which to create the panel.

        Returns
        -------
        display : KeywordDisplay
        """
        if not isinstance(estimator, StructuralTopicModel):
            raise TypeError(
                f"KeywordDisplay shows the keywords of a StructuralTopicModel; got a {type(estimator).__name__}."
            )
        check_is_fitted(estimator)
        check_interval(interval)
        table = estimator.keyword_table(interval)
        columns = {name: np.asarray(table[name], dtype=float) for name in ("rate", "low", "high", "in_corpus")}
        display = cls(names=np.asarray(table["name"], dtype=object), interval=interval, **columns)
        return display.plot(ax=ax, figure=figure)

    def plot(self, *, ax: AxesLike | None = None, figure: FigureLike | None = None) -> Self:
        """Draw the panel.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: a new figure.
        figure : matplotlib Figure or SubFigure, default=None
            Figure in which to create the panel.

        Returns
        -------
        display : KeywordDisplay
        """
        self._make_panels(1, "keywords", ax=ax, figure=figure, n_columns=1, size=self._size)
        self.ax_ = panel = self.axes_[0]
        places = np.arange(self.names.size)
        panel.barh(places, self.in_corpus, height=0.5, color=BAR, label="share of the keywords in all documents")
        panel.errorbar(
            self.rate, places, xerr=whiskers(self.rate, self.low, self.high), fmt="o", markersize=4, color=WHISKER,
            elinewidth=1.4, capsize=2.5, zorder=3,
            label=f"share of the topic's tokens that come from them: mean and {self.interval:.0%} interval",
        )  # fmt: skip
        style_rows(panel, self.names, LONGEST_NAME)
        panel.set_xlim(left=0.0)
        panel.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False, fontsize=8, labelcolor=GREY)
        return self

    def _size(self, n_rows, n_columns):
        return 6.4, 1.3 + 0.32 * self.names.size
