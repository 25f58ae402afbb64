"""Tables of the comparison of topic models, as text and as reStructuredText."""

import textwrap
from typing import NamedTuple


class Table(NamedTuple):
    """A title, the names of the columns, rows of text, and lines below the table."""

    title: str
    head: list
    rows: list
    notes: list = []

    def text(self):
        """As it is printed."""
        lines = [self.head, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.head))]
        cells = ["  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)) for line in lines]
        return "\n".join([self.title, *(f"  {line.rstrip()}" for line in cells), *(f"  {each}" for each in self.notes)])

    def rst(self):
        """As a page includes it."""
        lines = [f".. list-table:: {self.title}", "   :header-rows: 1", ""]
        for row in [self.head, *self.rows]:
            lines += [f"   {'* -' if i == 0 else '  -'} {cell}".rstrip() for i, cell in enumerate(row)]
        return "\n".join([*lines, "", *(f"{wrapped(each)}\n" for each in self.notes)])


def wrapped(text):
    """A paragraph in lines of at most 120 characters; commands stay whole."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def number(value, digits=1):
    """A number as text, with commas; two dashes if there is none."""
    return "--" if value is None or value != value else f"{value:,.{digits}f}"


def timed(perplexity, seconds):
    """A perplexity, and the seconds that it took in brackets."""
    return f"{number(perplexity)} ({number(seconds)} s)"
