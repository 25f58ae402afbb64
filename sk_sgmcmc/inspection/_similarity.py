"""Displays of the similarity of topics, as a map and as a tree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.cluster.hierarchy import linkage, optimal_leaf_ordering
from scipy.linalg import eigh
from scipy.spatial.distance import squareform
from scipy.special import xlogy
from sklearn.manifold import smacof
from sklearn.utils.validation import check_is_fitted

from ..metrics import hellinger_distances
from ..topic._base import BaseTopicModel
from ..topic._estimator.model import CountTopicModel
from ..topic._results.topics import check_choice
from ..utils._numbers import indices
from ..utils._parameters import keyword_parameters
from ..utils._typing import Axes, FloatArray, IntArray
from ..utils.blocks import CountsLike
from ._base import BAR, FAINT, GREY, INK, LONGEST_NAME, WHISKER, check_interval, pyplot, shortened

_DISTANCES = ("hellinger", "jensen-shannon", "angle")
_METHODS = ("average", "complete", "single", "weighted", "ward")
_FILLED, _FILLED_EACH = 0.16, 0.02  # largest share of the map that circles cover: in total, and per circle on average


def check_topics(estimator, topics, who):
    """Indices of the topics to show; raises unless the estimator is a fitted topic model with these topics."""
    if not isinstance(estimator, BaseTopicModel):
        raise TypeError(
            f"{who} shows topics, which {type(estimator).__name__} does not have; give a topic model, such as "
            "BayesianLDA."
        )
    check_is_fitted(estimator)
    if topics is None:
        return np.flatnonzero(estimator._topics_in_use())
    return indices("topics", topics, len(estimator.components_))


def checked_distance(estimator, distance):
    on_simplex = isinstance(estimator, CountTopicModel)
    if distance is None:
        return "hellinger" if on_simplex else "angle"
    if distance not in _DISTANCES or (distance != "angle") != on_simplex:
        fit = "'hellinger' or 'jensen-shannon'" if on_simplex else "'angle'"
        raise ValueError(f"distance={distance!r} must be {fit} for {type(estimator).__name__}.")
    return distance


def distances_between(topics, kind):
    """Distances between topics, (n_topics, n_topics)."""
    topics = np.asarray(topics, dtype=np.float64)
    if kind == "hellinger":
        apart = hellinger_distances(topics, topics)
    elif kind == "angle":
        apart = np.arccos(np.clip(topics @ topics.T, -1.0, 1.0))
    else:
        own = xlogy(topics, topics).sum(axis=1)
        mixed = np.stack([xlogy(both, both).sum(axis=1) for both in ((topics + one) / 2 for one in topics)])
        apart = np.sqrt(np.clip((own[:, None] + own) / 2 - mixed, 0.0, None))
    np.fill_diagonal(apart, 0.0)
    return (apart + apart.T) / 2


def names_of_content(estimator, topics):
    """Names of topics; empty for default names, which consist of the name of the class and a number."""
    return without_numbered(estimator, estimator.topic_names_[topics])


def without_numbered(estimator, names):
    """The names, with those that consist of the name of the estimator's class and a number replaced by ""."""
    numbered = re.compile(rf"{type(estimator).__name__.lower()}\d+")
    return ["" if numbered.fullmatch(name) else name for name in names]


def given_names(estimator, topics):
    """Names that the user set, shortened, and empty for topics with default names; None if the user set none."""
    if estimator._given_topic_names is None:
        return None
    return [shortened(name, LONGEST_NAME) for name in names_of_content(estimator, topics)]


def topic_labels(estimator, topics, n_words):
    """Labels of topics: names that the user set, else their top words, else empty strings."""
    if names := given_names(estimator, topics):
        return names
    words = estimator._word_names(estimator.components_.shape[1])
    if np.asarray(words).dtype.kind not in "OU":
        return ["" for _ in topics]
    top = np.argsort(-estimator.components_[topics], axis=1, kind="stable")[:, :n_words]
    return [", ".join(str(words[w]) for w in row) for row in top]


def _shares(estimator, X, topics, interval, params):
    if X is not None:
        table = estimator.topics_over_time(X, np.zeros(np.shape(X)[0]), interval, **params)  # the same time for all
        return [np.asarray(table[name])[topics] for name in ("share", "low", "high")]
    counted = isinstance(estimator, CountTopicModel)
    share = estimator._masses() if counted else np.ones(len(estimator.components_))
    share = (share / share.sum())[topics]
    return share, share, share


@keyword_parameters
class TopicMapDisplay:
    """Map of topics as circles: similar topics are near each other, and prevalent ones are large.

    Positions are found by multidimensional scaling of the distances between the topics' posterior means. Two thin rings
    show the credible interval of a topic's share. Usually created by `from_estimator`.

    Parameters
    ----------
    topics : ndarray of shape (n_topics,)
        Indices of the topics shown.
    labels : list of str
        Names or top words of the topics.
    positions : ndarray of shape (n_topics, 2)
        Centres of the circles.
    share, low, high : ndarray of shape (n_topics,)
        Share of each topic, and the ends of its credible interval.
    distances : ndarray of shape (n_topics, n_topics)
        Distances between topics, which the positions approximate.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    See Also
    --------
    TopicHierarchyDisplay : The same distances as a tree, without a projection to two dimensions.

    Examples
    --------
    >>> from sk_sgmcmc import BayesianLDA
    >>> from sk_sgmcmc.datasets import make_lda
    >>> from sk_sgmcmc.inspection import TopicMapDisplay
    >>> data = make_lda(
    ...     n_samples=100, n_features=30, n_components=3, random_state=0
    ... )
    >>> lda = BayesianLDA(n_components=3, n_iter=100, random_state=0)
    >>> lda = lda.fit(data.counts, feature_names=data.feature_names)
    >>> TopicMapDisplay.from_estimator(lda, data.counts).positions.shape
    (3, 2)
    """

    topics: IntArray
    labels: Sequence[str]
    positions: FloatArray
    share: FloatArray
    low: FloatArray
    high: FloatArray
    distances: FloatArray

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseTopicModel,
        X: CountsLike | None = None,
        *,
        topics: Sequence[int] | IntArray | None = None,
        distance: str | None = None,
        n_words: int = 3,
        interval: float = 0.9,
        ax: Axes | None = None,
        **params: Any,
    ) -> Self:
        """Plot the topics of a fitted topic model.

        Parameters
        ----------
        estimator : fitted topic model
        X : array-like or sparse of shape (n_samples, n_features), default=None
            Documents whose mean proportions are the shares. None: shares of the tokens in ``fit``, without an interval.
        topics : sequence of int, default=None
            Indices of the topics to show. None: all that are in use.
        distance : {"hellinger", "jensen-shannon", "angle"}, default=None
            Distance between two topics. "jensen-shannon" is the square root of the divergence in nats. None:
            "hellinger" for topics that are probabilities of words; "angle", the only choice, for directions.
        n_words : int, default=3
            Number of top words next to a circle, if there is room. Names that you set as ``topic_names_`` replace them.
        interval : float, default=0.9
            Mass of the credible interval of a share.
        ax : matplotlib Axes, default=None
            None: a new figure.
        **params
            Further arguments of ``topics_over_time``, such as ``metadata``.

        Returns
        -------
        display : TopicMapDisplay
        """
        topics = check_topics(estimator, topics, "TopicMapDisplay")
        check_interval(interval)
        apart = distances_between(estimator.components_[topics], checked_distance(estimator, distance))
        share, low, high = _shares(estimator, X, topics, interval, params)
        return cls(
            topics=topics,
            labels=topic_labels(estimator, topics, n_words),
            positions=scaled_positions(apart),
            share=share,
            low=low,
            high=high,
            distances=apart,
        ).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the map.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: a new figure.

        Returns
        -------
        display : TopicMapDisplay
        """
        plt = pyplot("TopicMapDisplay")
        from matplotlib.patches import Circle

        if ax is None:
            _, ax = plt.subplots(figsize=(7.0, 6.0), layout="constrained")
        span = max(np.ptp(self.positions, axis=0).max(), 1e-9)
        # Areas are proportional to shares, in the units of the map.
        filled = min(_FILLED, _FILLED_EACH * self.topics.size)
        unit = np.sqrt(filled * span**2 / (np.pi * self.share.sum()))
        radius = {name: unit * np.sqrt(getattr(self, name)) for name in ("share", "low", "high")}
        for k in np.argsort(-self.share):
            ax.add_patch(Circle(self.positions[k], radius["share"][k], facecolor=BAR, alpha=0.6, linewidth=0))
            for name in ("low", "high"):
                ax.add_patch(Circle(self.positions[k], radius[name][k], fill=False, edgecolor=WHISKER, linewidth=0.6))
        margin = 0.04 * span + radius["high"].max()
        low, high = self.positions.min(axis=0) - margin, self.positions.max(axis=0) + margin
        ax.set_aspect("equal", adjustable="datalim")
        ax.margins(0)
        ax.update_datalim([low, high])
        ax.autoscale_view()
        ax.set_xticks([])
        ax.set_yticks([])
        ax.spines[:].set(color=FAINT, visible=True)  # a map has a frame, whatever the style
        for k, (x, y) in enumerate(self.positions):
            ax.text(x, y, str(self.topics[k]), ha="center", va="center", fontsize=8, fontweight="bold", color=INK)
        ax.figure.canvas.draw()  # sets the size of the axes, on which the placement of labels depends
        self._write_labels(ax, radius["high"])
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _write_labels(self, ax, radius):
        """Write labels next to circles, the largest first; a label for which there is no free space is left out."""
        scale = ax.transData.transform((1.0, 0.0))[0] - ax.transData.transform((0.0, 0.0))[0]
        point = ax.figure.dpi / 72
        at, reach = ax.transData.transform(self.positions), np.maximum(radius * scale, 6 * point)
        taken = [(x - r, y - r, x + r, y + r) for (x, y), r in zip(at, reach, strict=True)]
        frame = ax.get_window_extent()
        for k in (k for k in np.argsort(-self.share) if self.labels[k]):
            text = ax.text(0.0, 0.0, self.labels[k], va="center", fontsize=8, color=GREY)
            size = text.get_window_extent()
            width, height = size.width + 2 * point, 10 * point
            text.set_visible(False)
            for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1), (0.7, 0.7), (-0.7, 0.7), (0.7, -0.7), (-0.7, -0.7)):
                x, y = at[k] + (reach[k] + 3 * point) * np.array([dx, dy])
                left = x - width * (0.0 if dx > 0 else 1.0 if dx < 0 else 0.5)
                bottom = y - height * (0.5 if dy == 0 or dx else 0.0 if dy > 0 else 1.0)
                box = (left, bottom, left + width, bottom + height)
                inside = frame.x0 < box[0] and box[2] < frame.x1 and frame.y0 < box[1] and box[3] < frame.y1
                if inside and not any(_overlap(box, other) for i, other in enumerate(taken) if i != k):
                    text.set_position(ax.transData.inverted().transform((x, (box[1] + box[3]) / 2)))
                    text.set(ha="left" if dx > 0 else "right" if dx < 0 else "center", visible=True)
                    taken.append(box)
                    break
            else:
                text.remove()


def _overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def topic_positions(topics):
    """Positions (n_topics, 2) on a map of topics, which are probabilities of words, by Jensen-Shannon distances."""
    return scaled_positions(distances_between(topics, "jensen-shannon"))


def scaled_positions(apart):
    """Positions in the plane that approximate the given distances, by SMACOF.

    SMACOF starts from classical scaling instead of at random, so that the result is reproducible.
    """
    n = len(apart)
    if not np.any(apart > 0.0):  # A single topic, or topics that are all alike.
        return np.zeros((n, 2))
    square = apart**2
    inner = -(square - square.mean(axis=0) - square.mean(axis=1)[:, None] + square.mean()) / 2
    values, vectors = eigh(inner)
    start = np.zeros((n, 2))
    start[:, : min(2, n)] = (vectors * np.sqrt(np.clip(values, 0.0, None)))[:, ::-1][:, :2]
    # The sign of an eigenvector is arbitrary.
    start *= np.where(start[np.abs(start).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    return smacof(apart, n_components=2, init=start, n_init=1, eps=1e-6, normalized_stress=False)[0]


@keyword_parameters
class TopicHierarchyDisplay:
    """Tree of topics: branches of similar topics join far to the left.

    The number at a join is the percentage of draws whose own tree has a branch of the same topics. Below 50% there is
    no number, and the join is uncertain. Usually created by `from_estimator`.

    Parameters
    ----------
    topics : ndarray of shape (n_topics,)
        Indices of the topics shown; leaf i of the tree is ``topics[i]``.
    labels : list of str
        Names or top words of the topics.
    linkage : ndarray of shape (n_topics - 1, 4)
        Linkage matrix of `scipy.cluster.hierarchy.linkage`, with the leaves ordered.
    support : ndarray of shape (n_topics - 1,)
        Share of draws whose tree has the branch, for each row of the linkage.
    distance : str
        Name of the distance between topics.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes

    See Also
    --------
    TopicMapDisplay : The same distances as a map.

    Examples
    --------
    >>> from sk_sgmcmc import BayesianLDA
    >>> from sk_sgmcmc.datasets import make_lda
    >>> from sk_sgmcmc.inspection import TopicHierarchyDisplay
    >>> X = make_lda(
    ...     n_samples=100, n_features=30, n_components=5, random_state=0
    ... ).counts
    >>> lda = BayesianLDA(n_components=5, n_iter=100, random_state=0).fit(X)
    >>> TopicHierarchyDisplay.from_estimator(lda).support.shape
    (4,)
    """

    topics: IntArray
    labels: Sequence[str]
    linkage: FloatArray
    support: FloatArray
    distance: str

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseTopicModel,
        *,
        topics: Sequence[int] | IntArray | None = None,
        distance: str | None = None,
        method: str = "average",
        n_words: int = 4,
        n_draws: int = 50,
        ax: Axes | None = None,
    ) -> Self:
        """Plot the tree of the topics of a fitted topic model.

        Parameters
        ----------
        estimator : fitted topic model
        topics : sequence of int, default=None
            Indices of the topics to show. None: all that are in use.
        distance : {"hellinger", "jensen-shannon", "angle"}, default=None
            As for `TopicMapDisplay.from_estimator`.
        method : {"average", "complete", "single", "weighted", "ward"}, default="average"
            How the distance between two branches is computed, see `scipy.cluster.hierarchy.linkage`.
        n_words : int, default=4
            Number of top words in a label. Names that you set as ``topic_names_`` replace them.
        n_draws : int, default=50
            Number of draws, evenly spaced, whose trees are compared.
        ax : matplotlib Axes, default=None
            None: a new figure.

        Returns
        -------
        display : TopicHierarchyDisplay
        """
        topics = check_topics(estimator, topics, "TopicHierarchyDisplay")
        if topics.size < 2:
            raise ValueError(f"topics={topics.tolist()}; a tree needs at least two topics.")
        if not n_draws >= 1:
            raise ValueError(f"n_draws={n_draws} must be at least 1.")
        check_choice("method", method, _METHODS)
        distance = checked_distance(estimator, distance)
        apart = squareform(distances_between(estimator.components_[topics], distance), checks=False)
        tree = optimal_leaf_ordering(linkage(apart, method), apart)
        draws = estimator.samples_["components"]
        n_kept = draws.shape[1]
        some = np.unique(np.linspace(0, n_kept - 1, min(n_draws, n_kept)).round().astype(int))
        branches, found = _branches(tree), np.zeros(len(tree))
        chain = draws[estimator.reference_chain_]
        for s in some:
            own = linkage(squareform(distances_between(chain[s][topics], distance), checks=False), method)
            of_draw = set(_branches(own))
            found += [branch in of_draw for branch in branches]
        return cls(
            topics=topics,
            labels=topic_labels(estimator, topics, n_words),
            linkage=tree,
            support=found / some.size,
            distance=distance,
        ).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the tree.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None: a new figure.

        Returns
        -------
        display : TopicHierarchyDisplay
        """
        n = self.topics.size
        texts = [f"{label}  {topic}" if label else str(topic)
                 for topic, label in zip(self.topics, self.labels, strict=True)]  # fmt: skip
        if ax is None:
            size = (4.2 + 0.065 * max(map(len, texts)), 0.7 + 0.2 * n)
            _, ax = pyplot("TopicHierarchyDisplay").subplots(figsize=size, layout="constrained")
        order = _leaves(self.linkage)
        x, y = np.zeros(2 * n - 1), np.zeros(2 * n - 1)
        y[order] = np.arange(n)
        for i, (a, b, height) in enumerate(self.linkage[:, :3]):
            a, b, node = int(a), int(b), n + i
            x[node], y[node] = height, (y[a] + y[b]) / 2
            ax.plot([x[a], height, height, x[b]], [y[a], y[a], y[b], y[b]], color=WHISKER, linewidth=1.2)
            if i < n - 2 and self.support[i] >= 0.5:
                ax.annotate(f"{100 * self.support[i]:.0f}", (height, y[node]), (2, 0), textcoords="offset points",
                            fontsize=8, color=GREY, ha="left", va="bottom")  # fmt: skip
        ax.set_yticks(np.arange(n), [texts[k] for k in order])
        ax.set_ylim(n - 0.4, -0.6)
        # Topics are usually all far apart, so a horizontal axis from 0 would leave no room for the joins.
        heights = self.linkage[:, 2]
        spread = np.ptp(heights) or heights.max() or 1.0
        ax.set_xlim(max(0.0, heights.min() - 0.2 * spread), heights.max() + 0.06 * spread)
        ax.tick_params(axis="y", length=0, labelsize=8, labelcolor=INK)
        ax.tick_params(axis="x", labelsize=8, labelcolor=GREY, color=FAINT)
        ax.set_xlabel(f"distance ({self.distance}); percentage of draws with the branch", fontsize=9, color=GREY)
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.spines["bottom"].set_color(FAINT)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _branches(tree):
    """The set of leaves below each join."""
    n = len(tree) + 1
    held = [frozenset([k]) for k in range(n)]
    for a, b in tree[:, :2].astype(int):
        held.append(held[a] | held[b])
    return held[n:]


def _leaves(tree):
    n = len(tree) + 1
    under = [[k] for k in range(n)]
    for a, b in tree[:, :2].astype(int):
        under.append(under[a] + under[b])
    return np.array(under[-1])
