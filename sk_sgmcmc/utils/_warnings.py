"""Warnings that point at the user's line, and checks for columns that look like ids, dates, blanks or an index."""

import os
import re
import sys
import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date
from pathlib import Path

import sklearn

# Folders of this package, and of scikit-learn, whose pipelines, searches and decorators call it.
_PACKAGES = tuple(f"{Path(path).resolve().parent}{os.sep}" for path in (Path(__file__).parent, sklearn.__file__))

_SUBJECT = ContextVar("subject", default=None)  # Each thread has its own.


@contextmanager
def warnings_about(subject):
    """Context in which every warning of `warn_user` ends by a line that it is about ``subject``."""
    token = _SUBJECT.set(subject)
    try:
        yield
    finally:
        _SUBJECT.reset(token)


def warn_user(message, category=UserWarning):
    """Warn at the nearest caller outside this package and scikit-learn."""
    subject = _SUBJECT.get()
    if subject is not None:
        message = f"{message}\nThis is about {subject}."
    # Python 3.12 has the argument ``skip_file_prefixes`` for this; earlier versions have not.
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


_FEWEST = 15  # with fewer levels, there is no warning about ids
_SHARE = 2 / 3  # number of levels over number of rows from which levels look like ids
_INDEX = re.compile(r"(Unnamed: \d+)?(_level_\d+)?$")
_DATE = re.compile(r"\s*(\d{4}[-/.]\d{1,2}([-/.]\d{1,2}.*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}.*)\s*$")


def warn_of_index_column(names, of="X"):
    """Warn if a column has the name that pandas gives to an index when it reads it from a CSV file."""
    found = [name for name in names if isinstance(name, str) and _INDEX.match(name)]
    if found:
        warn_user(
            f"Column {found[0]!r} of {of} has the name that an index gets when it is read from a CSV file, and is used "
            "like the other columns. Read it with pandas.read_csv(..., index_col=0), or drop it."
        )


def warn_of_levels(levels, n_levels, n_rows, column):
    """Warn if categories look like ids, dates or blanks.

    Parameters
    ----------
    levels : sequence
        The distinct values of the column.
    n_levels, n_rows : int
        Number of levels that occur, and number of rows.
    column : str
        Name of the column and of its table, for the message.
    """
    blank = [level for level in levels if isinstance(level, str) and not level.strip()]
    if blank:
        warn_user(
            f"{column} has the level {blank[0]!r}, which counts like any other. If it marks missing entries, pass None "
            "or NaN in its place."
        )
    levels = [level for level in levels if not (isinstance(level, str) and not level.strip())]
    are_dates = len(levels) > 1 and all(
        isinstance(level, date) or (isinstance(level, str) and _DATE.match(level)) for level in levels
    )
    if n_levels >= max(_FEWEST, _SHARE * n_rows):
        what = "dates" if are_dates else "ids, dates or texts"
        warn_user(
            f"{column} has {n_levels} levels in {n_rows} rows, as {what} have, and each level counts as a category of "
            "its own. Leave the column out, or turn it into numbers (of dates, for example, the year) or a few groups."
        )
    elif are_dates:
        warn_user(
            f"{column} holds dates such as {str(levels[0])!r}, and each of the {n_levels} dates counts as a category. "
            "Turn them into numbers, for example the year, or into a few periods."
        )
