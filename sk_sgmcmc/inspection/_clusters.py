"""Plots of clusters of rows: their profiles, and the probability that pairs of rows share a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform
from sklearn.utils.validation import check_is_fitted

from ..utils._numbers import indices
from ..utils._parameters import keyword_parameters
from ..utils._typing import AnyArray, Axes, AxesLike, FigureLike, FloatArray, IntArray, MatrixLike
from ._base import (
    BAR,
    FAINT,
    GREY,
    INK,
    WHISKER,
    Panels,
    check_interval,
    pyplot,
    shortened,
    style_panel,
    whiskers,
)

_LEAST_WEIGHT, _MOST_CLUSTERS, _MOST_ENTRIES = 0.01, 8, 40  # limits on the clusters and entries shown by default
_LINE = 0.19  # height of a line of small text, in inches


def _check_clusters(estimator, who, method):
    if not hasattr(estimator, method):
        raise TypeError(
            f"{who} shows clusters found by DPCategoricalMixture or LatentClassModel, which {type(estimator).__name__} "
            "does not have."
        )
    check_is_fitted(estimator)


@keyword_parameters
class ProfileDisplay(Panels):
    """The profile of each cluster or latent class, with credible intervals; one panel per cluster.

    A dot is a posterior mean, a line its interval, and a grey mark the value in all rows of X. Probabilities are shown
    as they are. Means and standard deviations of counts and measurements are shown on a scale from the lowest to the
    highest end of their intervals, which their labels tell. Usually created by `from_estimator`.

    Parameters
    ----------
    clusters : ndarray of shape (n_shown,)
        Indices of the clusters shown.
    weights : ndarray of shape (n_shown,)
        Weights of these clusters.
    features, levels : ndarray of str, shape (n_entries,)
        Names of the entries shown; levels are empty if features have none.
    probability, low, high : ndarray of shape (n_shown, n_entries)
        Posterior means, and ends of the credible intervals, between 0 and 1.
    overall : ndarray of shape (n_entries,)
        Values in all rows of X.
    interval : float
        Mass of the intervals.
    noun : str, default="cluster"
        What titles of panels call a cluster.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes, shape (n_shown,)

    See Also
    --------
    CoClusteringDisplay : Probability that pairs of rows share a cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import DPCategoricalMixture
    >>> from sk_sgmcmc.inspection import ProfileDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate(
    ...     [rng.random((60, 5)) < 0.9, rng.random((40, 5)) < 0.1]
    ... ).astype(float)
    >>> mixture = DPCategoricalMixture(
    ...     likelihood="bernoulli", n_iter=400, random_state=0
    ... ).fit(X)
    >>> display = ProfileDisplay.from_estimator(mixture, clusters=[0, 1])
    >>> display.probability.shape
    (2, 5)
    """

    clusters: IntArray
    weights: FloatArray
    features: AnyArray
    levels: AnyArray
    probability: FloatArray
    low: FloatArray
    high: FloatArray
    overall: FloatArray
    interval: float
    noun: str = "cluster"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        clusters: Sequence[int] | IntArray | None = None,
        features: Sequence[Any] | AnyArray | None = None,
        interval: float = 0.9,
        ax: AxesLike | None = None,
        figure: FigureLike | None = None,
    ) -> Self:
        """Plot the clusters of a fitted mixture.

        Parameters
        ----------
        estimator : fitted DPCategoricalMixture or LatentClassModel
        clusters : sequence of int, default=None
            Indices of the clusters to show, in this order. None: clusters of weight 0.01 or more, at most 8.
        features : sequence, default=None
            Names of columns, or their indices if they have no names, in this order. None: all if they have at most 40
            entries, else the features in which the clusters differ most from all rows of X.
        interval : float, default=0.9
            Mass of the credible intervals.
        ax : sequence of matplotlib Axes, default=None
            One Axes for each cluster. None: a new figure.
        figure : matplotlib Figure or SubFigure, default=None
            Figure in which to create the panels.

        Returns
        -------
        display : ProfileDisplay
        """
        _check_clusters(estimator, "ProfileDisplay", "profile_table")
        check_interval(interval)
        n = estimator.weights_.size
        if clusters is None:
            clusters = np.arange(max(1, min(_MOST_CLUSTERS, int((estimator.weights_ >= _LEAST_WEIGHT).sum()))))
        clusters = indices("clusters", clusters, n)
        table = estimator.profile_table(interval)
        columns = {name: np.asarray(table[name]).reshape(n, -1) for name in table}
        noun, feature = next(iter(columns)), columns["feature"][0]
        if "statistic" in columns:
            columns |= _between_0_and_1(columns)
        apart = columns["weight"][clusters, 0] @ np.abs(columns["probability"][clusters] - columns["overall"][0])
        chosen = _entries(feature, features, apart)
        levels = columns["level"][0] if "level" in columns else np.full(feature.size, "")
        return cls(
            clusters=clusters,
            weights=columns["weight"][clusters, 0],
            features=np.array([str(name) for name in feature[chosen]]),
            levels=np.array([str(name) for name in levels[chosen]]),
            probability=columns["probability"][clusters][:, chosen],
            low=columns["low"][clusters][:, chosen],
            high=columns["high"][clusters][:, chosen],
            overall=columns["overall"][0, chosen],
            interval=interval,
            noun=noun,
        ).plot(ax=ax, figure=figure)

    def plot(self, *, ax: AxesLike | None = None, figure: FigureLike | None = None) -> Self:
        """Draw the panels.

        Parameters
        ----------
        ax : sequence of matplotlib Axes, default=None
            One Axes for each cluster. None: a new figure.
        figure : matplotlib Figure or SubFigure, default=None
            Figure in which to create the panels.

        Returns
        -------
        display : ProfileDisplay
        """
        labels, places = self._rows()
        n = self.clusters.size

        def size(n_rows, n_columns):
            width = 0.075 * max(map(len, labels)) + 0.3 + 1.35 * n
            return max(3.0, width), max(1.8, 0.9 + _LINE * places[-1])

        self._make_panels(n, "clusters", ax=ax, figure=figure, n_columns=n, size=size, sharey=True)
        largest = 1.0 if self.high.max() > 0.5 else 1.05 * self.high.max()
        for i, panel in enumerate(self.axes_):
            self._draw(panel, i, places, largest)
            panel.set_yticks(places, labels)
            if ax is None and i:
                panel.tick_params(axis="y", labelleft=False)
        if ax is None:
            self.figure_.supxlabel(
                f"probability: mean and {self.interval:.0%} credible interval; grey: in all rows",
                fontsize=9, color=GREY,
            )  # fmt: skip
        return self

    def _rows(self):
        """Label and vertical position of each entry, with a gap between features that have levels."""
        if (self.levels == "").all():
            return [shortened(name) for name in self.features], np.arange(self.features.size, dtype=float)
        starts = np.concatenate([[True], self.features[1:] != self.features[:-1]])
        labels = [f"{shortened(name)}: {shortened(level)}" if start else shortened(level)
                  for name, level, start in zip(self.features, self.levels, starts, strict=True)]  # fmt: skip
        return labels, np.arange(self.features.size) + 0.5 * (np.cumsum(starts) - 1)

    def _draw(self, panel, i, places, largest):
        mean = self.probability[i]
        sides = whiskers(mean, self.low[i], self.high[i])
        panel.scatter(self.overall, places, marker="|", s=45, color=FAINT, linewidth=2.0, zorder=2)
        panel.errorbar(
            mean, places, xerr=sides, fmt="o", color=WHISKER, ecolor=BAR, markersize=3.5, elinewidth=2.2, zorder=3
        )
        panel.set_ylim(places[-1] + 0.6, -0.6)
        panel.set_xlim(-0.03 * largest, 1.03 * largest)
        panel.set_title(
            f"{self.noun} {self.clusters[i]} ({self.weights[i]:.0%})",
            loc="left",
            fontsize=9,
            fontweight="bold",
            color=INK,
        )
        panel.tick_params(axis="y", length=0, labelsize=8, labelcolor=INK)
        panel.tick_params(axis="x", labelsize=8, labelcolor=GREY, color=FAINT)
        panel.locator_params(axis="x", nbins=3)
        style_panel(panel, spines=("bottom",))


def _between_0_and_1(columns):
    """Columns of a table of profiles, (n_clusters, n_entries), with all statistics between 0 and 1.

    Those that are not probabilities are shifted and scaled, and their levels tell the range.
    """
    is_other = columns["statistic"][0] != "probability"
    least, most = columns["low"].min(axis=0), columns["high"].max(axis=0)
    least, most = (np.where(is_other, ends, at) for ends, at in ((least, 0.0), (most, 1.0)))
    width = np.where(most > least, most - least, 1.0)
    scaled = {name: (columns[name] - least) / width for name in ("mean", "low", "high", "overall")}
    labels = columns["level"].copy()
    for e in np.flatnonzero(is_other):
        labels[:, e] = f"{columns['statistic'][0, e]}, {least[e]:.3g} to {most[e]:.3g}"
    return {**scaled, "probability": scaled["mean"], "level": labels}


def _entries(feature, chosen, apart):
    """Indices of the entries to show: those of the ``chosen`` features, else of the features that differ most.

    ``apart`` is the difference between the clusters and all rows, for each entry.
    """
    names = list(dict.fromkeys(feature.tolist()))
    if chosen is None:
        if feature.size <= _MOST_ENTRIES:
            return np.arange(feature.size)
        place = {name: i for i, name in enumerate(names)}
        group = np.array([place[name] for name in feature.tolist()])
        most = np.zeros(len(names))
        np.maximum.at(most, group, apart)
        order = np.argsort(-most, kind="stable")
        held = np.cumsum(np.bincount(group)[order])
        kept = order[: max(1, int((held <= _MOST_ENTRIES).sum()))]
        return np.flatnonzero(np.isin(group, kept))
    chosen = [chosen] if isinstance(chosen, str) else list(chosen)
    unknown = [name for name in chosen if name not in names]
    if unknown or not chosen:
        raise ValueError(f"features={unknown[:5]} are not among the features, such as {names[:5]}.")
    return np.concatenate([[i for i, name in enumerate(feature.tolist()) if name == one] for one in chosen])


@keyword_parameters
class CoClusteringDisplay:
    """Heat map of the probability that pairs of rows share a component.

    Rows are ordered by cluster. Within a cluster, rows that often share a component are next to each other. A
    well-separated cluster is a dark square; an uncertain one blurs into its neighbours. Usually created by
    `from_estimator`.

    Parameters
    ----------
    together : ndarray of shape (n_shown, n_shown)
        Probability that two rows are in the same component, in plotting order.
    labels : ndarray of shape (n_shown,)
        The cluster of each row, in plotting order.
    rows : ndarray of shape (n_shown,)
        Index in X of each row, in plotting order.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    image_ : matplotlib AxesImage

    See Also
    --------
    ProfileDisplay : Probabilities of features in each cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from sk_sgmcmc import DPCategoricalMixture
    >>> from sk_sgmcmc.inspection import CoClusteringDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate(
    ...     [rng.random((60, 12)) < 0.95, rng.random((40, 12)) < 0.05]
    ... ).astype(float)
    >>> mixture = DPCategoricalMixture(
    ...     likelihood="bernoulli", n_iter=40, random_state=0
    ... ).fit(X)
    >>> display = CoClusteringDisplay.from_estimator(mixture, X)
    >>> np.bincount(display.labels).tolist()
    [60, 40]
    """

    together: FloatArray
    labels: IntArray
    rows: IntArray

    @classmethod
    def from_estimator(cls, estimator: Any, X: MatrixLike, *, n_rows: int = 1000, ax: Axes | None = None) -> Self:
        """Plot the rows of a fitted mixture.

        Parameters
        ----------
        estimator : fitted DPCategoricalMixture
        X : array-like, sparse or DataFrame of shape (n_samples, n_features)
            Rows, as for ``predict``.
        n_rows : int, default=1000
            Largest number of rows to show. If X has more, they are evenly spaced.
        ax : matplotlib Axes, default=None
            None: a new figure.

        Returns
        -------
        display : CoClusteringDisplay
        """
        _check_clusters(estimator, "CoClusteringDisplay", "co_clustering")
        if not n_rows >= 2:
            raise ValueError(f"n_rows={n_rows} must be at least 2.")
        labels = np.asarray(estimator.predict(X))
        rows = np.unique(np.linspace(0, labels.size - 1, min(n_rows, labels.size)).round().astype(int))
        X = X if rows.size == labels.size else _taken(X, rows)
        together, labels = estimator.co_clustering(X), labels[rows]
        order = _order(together, labels)
        return cls(together=together[np.ix_(order, order)], labels=labels[order], rows=rows[order]).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the heat map.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: a new figure.

        Returns
        -------
        display : CoClusteringDisplay
        """
        if ax is None:
            _, ax = pyplot("CoClusteringDisplay").subplots(figsize=(5.4, 4.4), layout="constrained")
        self.image_ = ax.imshow(self.together, vmin=0, vmax=1, cmap="Blues", interpolation="nearest")
        n = self.labels.size
        ends = np.flatnonzero(np.diff(self.labels)) + 1
        edges = np.concatenate([[0], ends, [n]])
        # Very small clusters have no room for a number or separating lines.
        size = np.diff(edges)
        for i, end in enumerate(ends):
            if min(size[i], size[i + 1]) >= 0.01 * n:
                ax.axhline(end - 0.5, color=FAINT, linewidth=0.6)
                ax.axvline(end - 0.5, color=FAINT, linewidth=0.6)
        shown = np.flatnonzero(size >= 0.035 * n)
        middles = (edges[shown] + edges[shown + 1] - 1) / 2
        names = [str(self.labels[edges[i]]) for i in shown]
        ax.set_xticks(middles, names)
        ax.set_yticks(middles, names)
        ax.tick_params(length=0, labelsize=9, labelcolor=INK)
        ax.spines[:].set_color(FAINT)
        ax.set_xlabel("cluster of a row", fontsize=9, color=GREY)
        ax.set_ylabel("cluster of another row", fontsize=9, color=GREY)
        bar = ax.figure.colorbar(self.image_, ax=ax, shrink=0.8)
        bar.set_label("probability of being together", fontsize=9, color=GREY)
        bar.ax.tick_params(labelsize=8, labelcolor=GREY, color=FAINT)
        bar.outline.set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _taken(X, rows):
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "tocsr"):
        return X.tocsr()[rows]
    return X[rows] if hasattr(X, "shape") else [X[i] for i in rows]


def _order(together, labels):
    """Plotting order of the rows: by cluster, and within it by hierarchical clustering of ``together``."""
    order = []
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        if own.size > 2:
            apart = np.clip(1.0 - together[np.ix_(own, own)], 0.0, 1.0)
            np.fill_diagonal(apart, 0.0)
            apart = squareform((apart + apart.T) / 2, checks=False)
            own = own[leaves_list(linkage(apart, "average"))]
        order.append(own)
    return np.concatenate(order)
