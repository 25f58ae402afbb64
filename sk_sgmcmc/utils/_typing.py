"""Types of the public interface, under the names that its annotations use.

Modules that use them begin with ``from __future__ import annotations``, so that `help` shows the names. The names can
be evaluated, so that `typing.get_type_hints` works; types of optional packages are Any at run time.
"""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import Bunch

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from pandas import DataFrame
else:
    Axes = Figure = SubFigure = DataFrame = Any

__all__ = [
    "AnyArray",
    "Axes",
    "AxesLike",
    "Callbacks",
    "Columns",
    "FigureLike",
    "FloatArray",
    "Function",
    "IntArray",
    "MatrixLike",
    "Path",
    "RandomState",
    "Seed",
    "StepFunction",
    "Table",
]

# What users give. Frames of pandas and polars are array-like; Dask, which has no types, passes as Any.
MatrixLike = ArrayLike | sparse.sparray | sparse.spmatrix
Columns = MatrixLike | DataFrame | Mapping[str, Any]
Path = str | PathLike[str]
RandomState = int | np.random.RandomState | None
Seed = RandomState | np.random.Generator | np.random.SeedSequence
StepFunction = Callable[[Any, int], Any]  # called with an estimator and a step
Callbacks = StepFunction | Sequence[StepFunction] | None
AxesLike = Axes | Sequence[Axes] | NDArray[Any]
FigureLike = Figure | SubFigure

# What they receive. Given a Dask array, methods that answer row by row return a lazy one in place of an array.
AnyArray = NDArray[Any]
FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]
Table = DataFrame | Bunch

Function = TypeVar("Function", bound=Callable[..., Any])  # of decorators that keep the signature
