"""Type aliases for the annotations of the public interface.

Modules that use them begin with ``from __future__ import annotations``, so that `help` shows the names of the aliases.
The aliases exist at run time, so that `typing.get_type_hints` works; types of optional packages are Any there.
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

# Types of arguments. DataFrames of pandas and polars are array-like; Dask has no types, so its collections are Any.
MatrixLike = ArrayLike | sparse.sparray | sparse.spmatrix
Columns = MatrixLike | DataFrame | Mapping[str, Any]
Path = str | PathLike[str]
RandomState = int | np.random.RandomState | None
Seed = RandomState | np.random.Generator | np.random.SeedSequence
StepFunction = Callable[[Any, int], Any]  # called with an estimator and a step
Callbacks = StepFunction | Sequence[StepFunction] | None
AxesLike = Axes | Sequence[Axes] | NDArray[Any]
FigureLike = Figure | SubFigure

# Types of results. For a Dask array, methods with results row by row return a lazy Dask array instead of an ndarray.
AnyArray = NDArray[Any]
FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]
Table = DataFrame | Bunch

Function = TypeVar("Function", bound=Callable[..., Any])  # for decorators that keep the signature
