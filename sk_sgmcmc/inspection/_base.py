"""Base class of displays with panels, and helpers that displays share, such as colours and checks."""

import textwrap

import numpy as np

from ..utils._numbers import checked_count

INK, BAR, WHISKER = "#333333", "#8fb8d8", "#1f4e79"
COLOURS = "#1f4e79", "#c0504d", "#4f9d69", "#8064a2", "#c79a2b", "#3aa6b9", "#7f7f7f", "#b65fa3"
GREY, FAINT, GRID = "#666666", "#bbbbbb", "#e6e6e6"
LONGEST, LONGEST_NAME = 18, 28  # largest number of characters shown of a word, and of a topic's name
CHARACTER = 0.075  # approximate width of a character of size 9, in inches


def pyplot(whom):
    """Import and return matplotlib's pyplot; raises an error that names the display that needs it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f"{whom} needs matplotlib, which is not installed. Try `pip install matplotlib`.") from error
    return plt


def shortened(word, longest=LONGEST):
    """Shorten a word to ``longest`` characters, including an ellipsis, and escape dollar signs for matplotlib."""
    word = word if len(word) <= longest else word[: longest - 1] + "…"
    return word.replace("$", r"\$")


def value_label(value):
    """Text of a value of a covariate, with at most six digits of a number."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def wrapped(label, panel):
    """Break the label of a panel's horizontal axis into lines that fit its width."""
    inches = panel.bbox.width / panel.figure.dpi
    return "\n".join(textwrap.wrap(label, max(20, int(inches / CHARACTER))))


def check_interval(interval):
    """Raise if ``interval`` is None, which tables allow but displays do not."""
    if interval is None:
        raise ValueError("interval=None; a display shows intervals, for example interval=0.9.")


def topic_title(topic, label, what="topic"):
    """Title of a topic, or of ``what``: its number, and its label if it has one."""
    if label and label.startswith(f"{topic}_"):  # default names already begin with the number
        return label
    return f"{what} {topic}" + (f": {label}" if label else "")


def whiskers(mean, low, high):
    """Lengths of error bars below and above the mean, (2, n); 0 where the mean lies outside of the interval.

    A mean can lie outside of its interval, for example if the draws have two modes.
    """
    return np.maximum([mean - low, high - mean], 0.0)


def style_panel(panel, *, spines, grid="both"):
    """Draw a light grid behind the contents of a panel, and hide all spines but the given ones."""
    panel.grid(axis=grid, color=GRID, linewidth=0.8, zorder=0)
    panel.set_axisbelow(True)
    for side, spine in panel.spines.items():
        spine.set_visible(side in spines)
        spine.set_color(FAINT)


def style_rows(panel, labels, longest=LONGEST):
    """Label the rows of a panel, from top to bottom at 0, 1 and so on, and style it without a vertical axis."""
    panel.set_yticks(np.arange(len(labels)), [shortened(str(label), longest) for label in labels])
    panel.set_ylim(len(labels) - 0.4, -0.6)
    panel.tick_params(axis="y", length=0, labelsize=9, labelcolor=INK)
    panel.tick_params(axis="x", labelsize=8, labelcolor=GREY, color=FAINT)
    style_panel(panel, spines=("bottom",), grid="x")


class Panels:
    """Base class of displays with one panel for each topic or cluster."""

    def _make_panels(self, n, of, *, ax=None, figure=None, n_columns, size, **shared):
        """Create the panels if necessary, and set ``axes_``, with an Axes for each panel, and ``figure_``.

        Parameters
        ----------
        n : int
            Number of panels.
        of : str
            Plural noun for the contents of the panels, for messages.
        ax, figure
            The arguments of ``plot``.
        n_columns : int
            Number of panels in a row.
        size : callable
            ``size(n_rows, n_columns)`` returns the width and height of a new figure, in inches.
        **shared
            Arguments of ``Figure.subplots``.
        """
        if ax is not None:
            axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
            if axes.size != n:
                raise ValueError(f"ax holds {axes.size} Axes; it must hold one for each of the {n} {of}.")
            figure = axes[0].figure
        else:
            n_columns = checked_count("n_columns", n_columns)
            n_columns = min(n, n_columns)
            n_rows = -(-n // n_columns)
            if figure is None:
                plt = pyplot(type(self).__name__)
                figure = plt.figure(figsize=size(n_rows, n_columns), layout="constrained")
            axes = figure.subplots(n_rows, n_columns, squeeze=False, **shared).ravel()
            for panel in axes[n:]:
                panel.remove()
            axes = axes[:n]
        self.figure_, self.axes_ = figure, axes
