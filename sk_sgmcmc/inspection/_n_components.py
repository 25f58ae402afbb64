"""Plot of the results of a search for the number of topics."""

from __future__ import annotations

from typing import Self

import numpy as np

from ..utils._parameters import positional_parameters
from ..utils._typing import Axes, Table
from ._base import BAR, FAINT, GREY, GRID, INK, WHISKER, Panels

_PANELS = (("score", "held-out score"), ("coherence", "coherence"), ("exclusivity", "exclusivity"),
           ("stability", "stability"))  # fmt: skip


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
        n = len(_PANELS)
        self._make_panels(n, "panels", ax=ax, n_columns=n, size=lambda n_rows, n_columns: (12, 2.8))
        numbers = np.asarray(self.table["n_components"], dtype=float)
        order = np.argsort(numbers)
        for panel, (name, title) in zip(self.axes_, _PANELS, strict=True):
            value = np.asarray(self.table[name], dtype=float)
            panel.plot(numbers[order], value[order], "o-", color=WHISKER, markersize=4, linewidth=1.4)
            if name == "score":
                # The band is for the difference from the best score, whose error is much smaller than the score's own,
                # since documents differ more than models do.
                error = 2.0 * np.asarray(self.table["difference_error"], dtype=float)
                panel.fill_between(
                    numbers[order], (value - error)[order], (value + error)[order], color=BAR, alpha=0.5, linewidth=0
                )
            panel.set_xticks(numbers[order], [f"{number:g}" for number in numbers[order]])
            panel.set_title(title, loc="left", fontsize=10, fontweight="bold", color=INK)
            panel.set_xlabel("topics", fontsize=9, color=GREY)
            panel.tick_params(labelsize=8, labelcolor=GREY, color=FAINT)
            panel.grid(color=GRID, linewidth=0.8, zorder=0)
            panel.set_axisbelow(True)
            for side in ("top", "right"):
                panel.spines[side].set_visible(False)
        return self
