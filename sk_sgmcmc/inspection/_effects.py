"""Display of the effects of a covariate on the prevalence of topics or classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from ..utils._numbers import indices
from ..utils._parameters import keyword_parameters
from ..utils._typing import AnyArray, AxesLike, FigureLike, FloatArray, IntArray
from ._base import (
    COLOURS,
    GREY,
    LONGEST_NAME,
    Panels,
    check_interval,
    shortened,
    style_rows,
    topic_title,
    value_label,
    whiskers,
    wrapped,
)
from ._similarity import without_numbered


@keyword_parameters
class EffectsDisplay(Panels):
    """Differences in the prevalence of topics or classes between values of a covariate, with credible intervals.

    There is a row for each topic or class, the largest difference first, and a line at 0. Usually created by
    `from_estimator`.

    Parameters
    ----------
    topics : ndarray of shape (n_topics,)
        Indices of the topics or classes shown, from top to bottom.
    names : ndarray of str, shape (n_topics,)
        Labels of the rows.
    contrasts : list of str
        The two values that each contrast compares, such as "red − green".
    difference : ndarray of shape (n_topics, n_contrasts)
        Posterior means of the differences; NaN if the documents do not determine them.
    low, high : ndarray of shape (n_topics, n_contrasts)
        Ends of the credible intervals.
    interval : float
        Mass of the credible intervals.
    covariate : str
        Name of the covariate.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes, shape (1,)
    ax_ : matplotlib Axes

    See Also
    --------
    PrevalenceDisplay : Prevalence of topics or classes at each value of a covariate.

    Examples
    --------
    >>> from sk_sgmcmc import DMRTopicModel
    >>> from sk_sgmcmc.datasets import make_dmr
    >>> from sk_sgmcmc.inspection import EffectsDisplay
    >>> data = make_dmr(random_state=0)
    >>> metadata = {"spoken": data.metadata[:, 1]}
    >>> dmr = DMRTopicModel(3, n_iter=40, random_state=0).fit(
    ...     data.counts, metadata=metadata
    ... )
    >>> display = EffectsDisplay.from_estimator(dmr, "spoken", at=[0, 1])
    >>> display.contrasts, display.difference.shape
    (['1 − 0'], (3, 1))
    """

    topics: IntArray
    names: AnyArray
    contrasts: Sequence[str]
    difference: FloatArray
    low: FloatArray
    high: FloatArray
    interval: float
    covariate: str

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        covariate: str,
        *,
        at: Any = None,
        reference: Any = None,
        given: Mapping[str, Any] | None = None,
        topics: Sequence[int] | IntArray | None = None,
        interval: float = 0.9,
        ax: AxesLike | None = None,
        figure: FigureLike | None = None,
        **params: Any,
    ) -> Self:
        """Plot the effects of a covariate in a fitted model.

        Parameters
        ----------
        estimator : fitted model with a method ``effects``
            A DMRTopicModel, StructuralTopicModel or LatentClassModel that was fitted with metadata.
        covariate : str
            A column of metadata.
        at : value or list of values, default=None
            Values to compare. None selects all levels, or the first and third quartiles of numbers.
        reference : value, default=None
            Value with which the others are compared. None: the first of ``at``.
        given : dict, default=None
            Fixed values of other covariates.
        topics : sequence of int, default=None
            Indices of the topics or classes to show. None: all.
        interval : float, default=0.9
            Mass of the credible intervals.
        ax : matplotlib Axes, default=None
            None: a new figure.
        figure : matplotlib Figure or SubFigure, default=None
            Figure in which to create the panel.
        **params
            Further arguments of the estimator's ``effects``, such as ``pairwise``, or ``of`` of topic models.

        Returns
        -------
        display : EffectsDisplay
        """
        if not hasattr(estimator, "effects"):
            raise TypeError(
                "EffectsDisplay requires a model with covariates, such as DMRTopicModel or LatentClassModel; got "
                f"{type(estimator).__name__}."
            )
        check_interval(interval)
        table = estimator.effects(covariate, at, reference=reference, given=given, interval=interval, **params)
        if "difference" not in table:
            raise ValueError("EffectsDisplay shows differences. Leave out `kind`, or use PrevalenceDisplay.")
        what = next(iter(table))  # The first column numbers topics or classes, and its name says which.
        n_topics = int(np.max(table[what])) + 1
        chosen = np.arange(n_topics) if topics is None else indices("topics", topics, n_topics)
        columns = {name: np.asarray(table[name]).reshape(n_topics, -1) for name in table}
        names = columns["name"][:, 0] if "name" in columns else [""] * n_topics
        labels = [topic_title(k, name, what) for k, name in enumerate(without_numbered(estimator, names))]
        mean = columns["difference"][chosen]
        chosen = chosen[np.argsort(-mean.mean(axis=1), kind="stable")]
        pairs = zip(columns["value"][0], columns["reference"][0], strict=True)
        return cls(
            topics=chosen,
            names=np.array([labels[k] for k in chosen], dtype=object),
            contrasts=[f"{value_label(value)} − {value_label(other)}" for value, other in pairs],
            **{name: columns[name][chosen].astype(np.float64) for name in ("difference", "low", "high")},
            interval=interval,
            covariate=covariate,
        ).plot(ax=ax, figure=figure)

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
        display : EffectsDisplay
        """
        self._make_panels(1, "effects", ax=ax, figure=figure, n_columns=1, size=self._size)
        self.ax_ = panel = self.axes_[0]
        n_topics, n_contrasts = self.difference.shape
        places, step = np.arange(n_topics), 0.7 / n_contrasts
        for c, contrast in enumerate(self.contrasts):
            mean, low, high = self.difference[:, c], self.low[:, c], self.high[:, c]
            panel.errorbar(
                mean, places + step * (c - (n_contrasts - 1) / 2.0), xerr=whiskers(mean, low, high), fmt="o",
                markersize=4, color=COLOURS[c % len(COLOURS)], elinewidth=1.4, capsize=2.5, zorder=3,
                label=shortened(contrast, 2 * LONGEST_NAME),
            )  # fmt: skip
        panel.axvline(0.0, color=GREY, linewidth=0.8, zorder=1)
        style_rows(panel, self.names, LONGEST_NAME)
        panel.locator_params(axis="x", nbins=6)
        compared = self.covariate
        if n_contrasts == 1:
            compared += f", {shortened(self.contrasts[0], 2 * LONGEST_NAME)}"
        else:
            panel.legend(
                loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=min(3, n_contrasts), frameon=False, fontsize=8,
                labelcolor=GREY,
            )  # fmt: skip
        title = f"difference in expected share by {compared}: mean and {self.interval:.0%} interval"
        panel.set_xlabel(wrapped(title, panel), fontsize=9, color=GREY)
        return self

    def _size(self, n_rows, n_columns):
        n_topics, n_contrasts = self.difference.shape
        of_legend = 0.0 if n_contrasts == 1 else 0.2 * -(-n_contrasts // 3)
        return 6.4, 1.0 + of_legend + n_topics * max(0.32, 0.16 * n_contrasts)
