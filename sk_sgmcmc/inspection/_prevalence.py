"""Display of the prevalence of topics or classes as a function of a covariate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..covariates.effects import prevalence_at
from ..utils._numbers import indices
from ..utils._parameters import keyword_parameters
from ..utils._typing import AnyArray, AxesLike, Columns, FigureLike, FloatArray, IntArray
from ..utils.blocks import CountsLike
from ._base import (
    COLOURS,
    FAINT,
    GREY,
    INK,
    Panels,
    check_interval,
    shortened,
    style_panel,
    topic_title,
    value_label,
    whiskers,
)
from ._similarity import without_numbered

_LONGEST_TITLE = 30  # largest number of characters of a title
_MOST_TOPICS = 6  # largest number of topics shown by default
_SHOWN = {
    "population": "mean share in the population",
    "documents": "mean share in these documents",
    "prior": "expected share, before reading words",
    "classes": "expected share of the class",
}


@keyword_parameters
class PrevalenceDisplay(Panels):
    """Prevalence of topics or classes against a covariate, with credible intervals; one panel for each.

    Usually created by `from_estimator`.

    Parameters
    ----------
    topics : ndarray of shape (n_topics,)
        Indices of the topics or classes shown.
    names : ndarray of str, shape (n_topics,)
        Titles of the panels.
    values : ndarray of shape (n_values,)
        Values of the covariate: ascending floats, which are joined by lines, or levels in an array of objects, which
        are shown as points.
    groups : list
        Levels of ``by``; [None] if ``by`` is None.
    prevalence : ndarray of shape (n_topics, n_groups, n_values)
        Posterior means; NaN for values at which a group was not observed.
    low, high : ndarray of shape (n_topics, n_groups, n_values)
        Ends of the credible intervals.
    interval : float
        Mass of the credible intervals.
    covariate, by : str
        Titles of the horizontal axis and of the legend; ``by`` may be None.
    of : {"population", "documents", "prior", "classes"}
        What the prevalence is the mean of: for topics as for `DMRTopicModel.effects <sk_sgmcmc.DMRTopicModel.effects>`;
        "classes" for the probabilities of latent classes given the covariates. The title of the vertical axis names it,
        and says so if a regression goes below 0; panels then have a line at 0.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes, shape (n_topics,)
    ax_ : matplotlib Axes
        The first panel.

    See Also
    --------
    EffectsDisplay : Differences in prevalence between values of a covariate.
    ProfileDisplay : Answers of latent classes.

    Examples
    --------
    >>> from sk_sgmcmc import DMRTopicModel
    >>> from sk_sgmcmc.datasets import make_dmr
    >>> from sk_sgmcmc.inspection import PrevalenceDisplay
    >>> data = make_dmr(random_state=0)
    >>> metadata = {"year": data.metadata[:, 0], "spoken": data.metadata[:, 1]}
    >>> dmr = DMRTopicModel(3, n_iter=40, random_state=0).fit(
    ...     data.counts, metadata=metadata
    ... )
    >>> display = PrevalenceDisplay.from_estimator(dmr, "year", by="spoken")
    >>> display.prevalence.shape
    (3, 2, 50)

    Shares of latent classes over age:

    >>> import numpy as np
    >>> from sk_sgmcmc import LatentClassModel
    >>> X = np.array(
    ...     [["yes", "often", "a", 1], ["no", "never", "b", 2]] * 40,
    ...     dtype=object,
    ... )
    >>> people = {"age": np.tile([60, 30, 50, 20], 20)}
    >>> model = LatentClassModel(2, n_iter=400, random_state=0).fit(
    ...     X, metadata=people
    ... )
    >>> display = PrevalenceDisplay.from_estimator(model, "age")
    >>> display.names.tolist(), display.prevalence.shape
    (['class 0', 'class 1'], (2, 1, 50))
    """

    topics: IntArray
    names: AnyArray
    values: AnyArray
    groups: Sequence[Any]
    prevalence: FloatArray
    low: FloatArray
    high: FloatArray
    interval: float
    covariate: str
    by: str | None = None
    of: Literal["population", "documents", "prior", "classes"] = "prior"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        metadata: str | Columns,
        *,
        by: str | None = None,
        of: Literal["population", "documents", "prior"] | None = None,
        at: Sequence[Any] | None = None,
        given: Mapping[str, Any] | None = None,
        groups: ArrayLike | None = None,
        X: CountsLike | None = None,
        average_over: Columns | None = None,
        topics: Sequence[int] | IntArray | None = None,
        interval: float = 0.9,
        n_points: int = 50,
        ax: AxesLike | None = None,
        figure: FigureLike | None = None,
        n_columns: int | None = None,
    ) -> Self:
        """Plot the prevalence of topics or classes of a fitted model with metadata.

        Parameters
        ----------
        estimator : fitted model with a method ``effects``
            A DMRTopicModel, StructuralTopicModel or LatentClassModel that was fitted with metadata.
        metadata : str or table
            Name of the covariate on the horizontal axis. At each of its values, prevalence is averaged over documents
            as in `DMRTopicModel.effects <sk_sgmcmc.DMRTopicModel.effects>`, or over rows as in
            `LatentClassModel.effects <sk_sgmcmc.LatentClassModel.effects>`. For topics also a DataFrame or dict of
            metadata: prevalence is then predicted for each row by the documents' prior, as ``predict_prevalence`` does,
            and the horizontal axis is its first column other than ``by``.
        by : str, default=None
            Covariate with a line for each of its levels. If it is numeric with more than two values, there is a line
            for each quartile.
        of : {"population", "documents", "prior"}, default=None
            Mean to show of topics: of the population from which the documents are a sample, of these documents, or of
            their prior. The first two are regressions, whose lines may leave the range from 0 to 1 where there are few
            documents; the prior stays within it. None: "population". Has no effect on rows of metadata, which are
            predicted by the prior. Leave it out for classes, whose prevalence is their mean probability given the
            covariates.
        at : list of values, default=None
            Values of the covariate. None: all levels, or both values of a numeric covariate that has only two, which
            are shown as points; for other numeric covariates, ``n_points`` over the range, and for each group over the
            range in which it was observed.
        given : dict, default=None
            Fixed values of other covariates.
        groups : array-like of shape (n_documents,), default=None
            Labels of clusters of documents that have one weight together in a population. For topics only.
        X : as for ``fit``, default=None
            Documents to use in place of those that were fitted. For topics only.
        average_over : table, default=None
            Metadata of X, or of the documents or rows over which to average. None: the fitted ones.
        topics : sequence of int, default=None
            Indices of the topics or classes to show, in this order. None: all, or if there are more than six, the six
            that vary most.
        interval : float, default=0.9
            Mass of the credible intervals.
        n_points : int, default=50
            Number of points on a line.
        ax : matplotlib Axes or sequence of Axes, default=None
            One Axes for each topic. None: a new figure.
        figure : matplotlib Figure or SubFigure, default=None
            Figure in which to create the panels.
        n_columns : int, default=None
            Number of panels in a row. None: at most 3.

        Returns
        -------
        display : PrevalenceDisplay
        """
        if not hasattr(estimator, "effects"):
            raise TypeError(
                "PrevalenceDisplay requires a model with covariates, such as DMRTopicModel or LatentClassModel; got "
                f"{type(estimator).__name__}."
            )
        check_is_fitted(estimator)
        check_interval(interval)
        if isinstance(metadata, str):
            covariate = metadata
            comparison = estimator._comparison(of, X, average_over, groups, given)
            shown_of, labels = comparison.of, comparison.labels
            parts = _averaged(comparison, metadata, by, at, interval, n_points)
        else:
            averages = {"at": at, "given": given, "groups": groups, "X": X, "average_over": average_over}
            covariate, *parts = _predicted(estimator, metadata, by, interval, averages)
            names = estimator.topic_names_
            shown_of, labels = "prior", {"topic": np.arange(len(names)), "name": names}
        values, levels, mean, low, high = parts
        chosen = _chosen_topics(topics, mean)
        what = next(iter(labels))  # "topic" or "class"
        names = without_numbered(estimator, labels.get("name", [""] * len(mean)))
        names = np.array([names[k] or topic_title(k, "", what) for k in chosen], dtype=object)
        display = cls(
            topics=chosen, names=names, values=values, groups=levels, prevalence=mean[chosen], low=low[chosen],
            high=high[chosen], interval=interval, covariate=covariate, by=by, of=shown_of,
        )  # fmt: skip
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
            Number of panels in a row. None: at most 3.

        Returns
        -------
        display : PrevalenceDisplay
        """
        self._make_panels(
            len(self.topics), "panels", ax=ax, figure=figure, n_columns=n_columns or 3, sharex=True,
            size=self._size,
        )  # fmt: skip
        axes, self.ax_ = self.axes_, self.axes_[0]
        if ax is None:
            for panel in axes[-(n_columns or 3) :]:  # the lowest panel of each column
                panel.tick_params(labelbottom=True)
        is_line = self.values.dtype.kind == "f"
        is_below = self.of != "prior" and bool(np.nanmin(self.low) < 0.0)
        shown = _SHOWN[self.of] + ("\n(a regression, not bounded by 0)" if is_below else "")
        for i, panel in enumerate(axes):
            if is_below:
                panel.axhline(0.0, color=GREY, linewidth=0.8, zorder=1)
            for g, group in enumerate(self.groups):
                colour = COLOURS[g % len(COLOURS)]
                ends = self.prevalence[i, g], self.low[i, g], self.high[i, g]
                draw = _line if is_line else _points
                draw(panel, self.values, ends, colour, value_label(group), g, len(self.groups))
            if not is_line:
                panel.set_xticks(np.arange(self.values.size), [shortened(value_label(value)) for value in self.values])
                panel.set_xlim(-0.5, self.values.size - 0.5)
                crowded = sum(len(str(value)) for value in self.values) > 24
                panel.tick_params(axis="x", rotation=30 if crowded else 0)
            panel.set_ylim(1.06 * min(np.nanmin(self.low[i]), 0.0), 1.06 * max(np.nanmax(self.high[i]), 1e-12))
            panel.set_title(
                shortened(str(self.names[i]), _LONGEST_TITLE), loc="left", fontsize=8.5, fontweight="bold", color=INK
            )
            panel.tick_params(labelsize=8, labelcolor=GREY, color=FAINT)
            panel.locator_params(axis="y", nbins=4)
            style_panel(panel, spines=("left", "bottom"), grid="y")
        if self.groups != [None]:
            look = {"title": self.by, "frameon": False, "fontsize": 8, "title_fontsize": 8}
            if ax is None and figure is None:  # above the panels, which then have the whole width of a page
                entries = axes[0].get_legend_handles_labels()
                self.figure_.legend(*entries, loc="outside upper right", ncols=min(4, len(self.groups)), **look)
            else:
                axes[0].legend(**look)
        if ax is None:
            label = f"{self.covariate}; mean and {self.interval:.0%} credible interval"
            self.figure_.supxlabel(label, fontsize=9, color=GREY)
            self.figure_.supylabel(shown, fontsize=9, color=GREY, multialignment="center")
        else:
            for panel in axes:
                panel.set_xlabel(self.covariate, fontsize=9, color=GREY)
                panel.set_ylabel(shown, fontsize=9, color=GREY)
        return self

    def _size(self, n_rows, n_columns):
        longest = max(len(shortened(str(name), _LONGEST_TITLE)) for name in self.names)
        of_legend = 0.0 if self.groups == [None] else 0.2 + 0.2 * -(-len(self.groups) // 4)
        return 0.5 + n_columns * max(2.3, 0.35 + 0.076 * longest), 0.5 + 2.0 * n_rows + of_legend


def _line(panel, values, ends, colour, label, g, n_groups):
    mean, low, high = ends
    panel.fill_between(values, low, high, color=colour, alpha=0.2, linewidth=0, zorder=2)
    panel.plot(values, mean, color=colour, linewidth=1.6, label=label, zorder=3)


def _points(panel, values, ends, colour, label, g, n_groups):
    mean, low, high = ends
    places = np.arange(values.size) + (0.16 * (g - (n_groups - 1) / 2.0))
    panel.errorbar(
        places, mean, yerr=whiskers(mean, low, high), fmt="o", markersize=4, color=colour, elinewidth=1.4, capsize=2.5,
        label=label, zorder=3,
    )  # fmt: skip


def _averaged(comparison, covariate, by, at, interval, n_points):
    """Values, groups, and mean, low and high of averages over documents, each (n_topics, n_groups, n_values)."""
    average = comparison.average
    taken = [name for name in (covariate, by) if name in average.given]
    if taken or covariate == by:
        raise ValueError(f"{(taken or [by])[0]!r} can be one of the horizontal axis, by and given; choose one.")
    groups = [None] if by is None else average.values(by)
    values, is_curve = _values_on_axis(average, covariate, at, n_points)
    settings, cells, room = [], [], (len(groups), len(values))
    keeps_to_range = by is not None and at is None and average.is_number(covariate) and not average.is_number(by)
    for g, group in enumerate(groups):
        first, last = -np.inf, np.inf
        if keeps_to_range:
            seen, _ = average.seen(covariate, (by, group))
            first, last = (seen[0], seen[-1]) if seen.size else (np.inf, -np.inf)
            margin = (
                0.5 * (values[-1] - values[0]) / max(len(values) - 1, 1)
            )  # include the grid points nearest to the ends of the range
            first, last = first - margin, last + margin
        for v, value in enumerate(values):
            if not average.is_number(covariate) or first <= value <= last:
                settings.append({covariate: value} | ({} if by is None else {by: group}))
                cells.append((g, v))
    out = []
    for part in prevalence_at(comparison.made(), average, settings, interval, is_seen_together=keeps_to_range):
        table = np.full((len(part), *room), np.nan)
        table[:, [g for g, _ in cells], [v for _, v in cells]] = part
        out.append(table)
    return _as_values(values, is_curve), groups, *out


def _values_on_axis(average, covariate, at, n_points):
    """Values of the horizontal axis, and whether lines join them."""
    if not average.is_number(covariate):
        return average.values(covariate, at), False
    seen, _ = average.seen(covariate)
    if at is not None:
        values = average.values(covariate, at)
    elif seen.size <= 2:
        values = seen
    elif n_points >= 2:
        values = np.linspace(seen[0], seen[-1], int(n_points))
    else:
        raise ValueError(f"n_points={n_points} must be at least 2.")
    return sorted(map(float, values)), max(seen.size, len(values)) > 2


def _predicted(estimator, metadata, by, interval, averages):
    """Name of the horizontal axis, values, groups, and mean, low and high of predictions for the rows.

    The predictions are (n_topics, n_groups, n_values). ``averages`` are arguments that apply to averages only;
    each must be None.
    """
    if not isinstance(metadata, Mapping) and not hasattr(metadata, "columns"):
        raise TypeError(
            f"metadata is of type {type(metadata).__name__}; give the name of a covariate, a DataFrame or a dict."
        )
    if not hasattr(estimator, "predict_prevalence"):
        raise TypeError(
            f"{type(estimator).__name__} does not predict the prevalence for rows of metadata. Pass the name of a "
            "covariate, with `by` for lines and `given` for fixed values of others."
        )
    for name, value in averages.items():
        if value is not None:
            raise ValueError(f"{name} is for averages; rows of metadata are predicted as they are. Leave it out.")
    names = list(metadata if isinstance(metadata, Mapping) else metadata.columns)
    if by is not None and by not in names:
        raise ValueError(f"by={by!r} is not a column of metadata, which has {names}.")
    axis = [name for name in names if name != by]
    if not axis:
        raise ValueError("metadata has no column for the horizontal axis.")
    predicted = estimator.predict_prevalence(metadata, interval=interval)
    x = np.asarray(metadata[axis[0]])
    is_number = x.dtype.kind in "iuf"
    values, column = np.unique(x.astype(np.float64) if is_number else x.astype(str), return_inverse=True)
    of = np.asarray(metadata[by]) if by is not None else None
    groups, row = ([None], np.zeros(x.size, dtype=np.int64)) if of is None else np.unique(of, return_inverse=True)
    cells = row * values.size + column
    if np.unique(cells).size < cells.size:
        raise ValueError(f"metadata has several rows with one value of {axis[0]!r}; separate them by by=.")
    out = []
    for part in predicted:
        table = np.full((part.shape[1], len(groups) * values.size), np.nan)
        table[:, cells] = part.T
        out.append(table.reshape(part.shape[1], len(groups), values.size))
    return str(axis[0]), _as_values(values, is_number and values.size > 2), list(groups), *out


def _as_values(values, is_curve):
    return np.asarray(values, dtype=np.float64) if is_curve else np.array([*values, None], dtype=object)[:-1]


def _chosen_topics(topics, mean):
    """Indices of the topics to show: the requested ones, or those that vary most."""
    n_topics = len(mean)
    if topics is None:
        varies = np.nanmax(mean, axis=(1, 2)) - np.nanmin(mean, axis=(1, 2))
        return np.arange(n_topics) if n_topics <= _MOST_TOPICS else np.argsort(-varies, kind="stable")[:_MOST_TOPICS]
    return indices("topics", topics, n_topics)
