"""Plot of the results of a search for the number of topics."""

from __future__ import annotations

from typing import Self

import numpy as np

from ..utils._parameters import positional_parameters
from ..utils._typing import Axes, Table
from ._base import BAR, FAINT, GREY, INK, WHISKER, Panels, style_panel

_PANELS = (("score", "held-out score"), ("coherence", "coherence"), ("exclusivity", "exclusivity"),
           ("stability", "stability"))  # fmt: skip
_CLOSE = 0.08  # smallest distance of two numbers on a linear axis, as a share of its length


@positional_parameters
class NumberOfTopicsDisplay(Panels):
    """Held-out score, coherence, exclusivity and stability against the number of topics.

    Usually created by `from_search`.

    Parameters
    ----------
    table : DataFrame or Bunch
        Result of `search_n_components <sk_sgmcmc.model_selection.search_n_components>`.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes, shape (4,)

    Examples
    --------
    >>> from sk_sgmcmc import BayesianLDA
    >>> from sk_sgmcmc.datasets import make_lda
    >>> from sk_sgmcmc.inspection import NumberOfTopicsDisplay
    >>> from sk_sgmcmc.model_selection import search_n_components
    >>> X = make_lda(n_samples=100, n_features=40, random_state=0).counts
    >>> table = search_n_components(
    ...     BayesianLDA(n_iter=20, random_state=0), X, [2, 5]
    ... )
    >>> display = NumberOfTopicsDisplay.from_search(table)
    """

    table: Table

    @classmethod
    def from_search(cls, table: Table, *, ax: Axes | None = None) -> Self:
        """Plot the results of a search.

        Parameters
        ----------
        table : DataFrame or Bunch
            Result of `search_n_components <sk_sgmcmc.model_selection.search_n_components>`.
        ax : sequence of four matplotlib Axes, default=None
            None: a new figure.

        Returns
        -------
        display : NumberOfTopicsDisplay
        """
        columns = list(table) if hasattr(table, "keys") else []
        if not {"n_components", "difference_error", *(name for name, _ in _PANELS)} <= set(columns):
            raise TypeError(
                f"NumberOfTopicsDisplay draws the table of search_n_components, not {type(table).__name__}."
            )
        return cls(table).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the four panels.

        Parameters
        ----------
        ax : sequence of four matplotlib Axes, default=None
            None: a new figure.

        Returns
        -------
        display : NumberOfTopicsDisplay
        """
        shared = {} if ax is not None else {"sharex": True}
        self._make_panels(len(_PANELS), "panels", ax=ax, n_columns=2, size=lambda *_: (7, 4.6), **shared)
        numbers = np.asarray(self.table["n_components"], dtype=float)
        order = np.argsort(numbers)
        numbers = numbers[order]
        crowded = numbers.size > 2 and np.diff(numbers).min() < _CLOSE * np.ptp(numbers)
        for panel, (name, title) in zip(self.axes_, _PANELS, strict=True):
            value = np.asarray(self.table[name], dtype=float)[order]
            panel.plot(numbers, value, "o-", color=WHISKER, markersize=4, linewidth=1.4)
            if name == "score":
                # The band is for the difference from the best score, whose error is much smaller than the score's own,
                # since documents differ more than models do.
                error = 2.0 * np.asarray(self.table["difference_error"], dtype=float)[order]
                panel.fill_between(numbers, value - error, value + error, color=BAR, alpha=0.5, linewidth=0)
            if crowded:
                panel.set_xscale("log")
                panel.minorticks_off()
            panel.set_xticks(numbers, [f"{number:g}" for number in numbers])
            panel.set_title(title, loc="left", fontsize=9, fontweight="bold", color=INK)
            panel.tick_params(labelsize=8, labelcolor=GREY, color=FAINT)
            panel.locator_params(axis="y", nbins=5)
            style_panel(panel, spines=("left", "bottom"))
            if ax is not None:
                panel.set_xlabel("topics", fontsize=9, color=GREY)
        if ax is None:
            self.figure_.supxlabel("number of topics", fontsize=9, color=GREY)
        return self
