"""Warnings that point at the user's line, however deep in this package they arise."""

import sys
import warnings
from pathlib import Path

import sklearn

# This package, and scikit-learn, whose pipelines, searches and decorators call it.
_PACKAGES = tuple(str(Path(path).resolve().parent) for path in (Path(__file__).parent, sklearn.__file__))


def warn_user(message, category=UserWarning):
    """Warn at the nearest caller outside this package and scikit-learn."""
    # Python 3.12 has ``skip_file_prefixes`` for this.
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
