"""A user's log density of named, constrained parameters, as a function of one vector of free coordinates.

A *layout* lists the parameters as tuples (name, shape, kind, copies, width). Each of the ``copies`` is a vector of
``width`` numbers of one of the kinds below. Free coordinates and numbers are stored one parameter after the other.

* A positive number is the exponential of its coordinate.
* A simplex of ``width`` cells has one coordinate less than cells. It is the softmax of an isometric image of the
  coordinates, with volume element sqrt(width) times the product of the cells.
* The coordinates of an increasing vector are its first number and the logarithms of its differences.
"""

import math
from collections import namedtuple
from dataclasses import dataclass
from functools import lru_cache

import numba
import numpy as np
from numba.extending import is_jitted

from .._jit import helper
from .._user import frozen_in

FREE, POSITIVE, SIMPLEX, ORDERED = range(4)
NUMBER, WHOLE, BOOLEAN = range(3)  # kinds of data
_STEP = 6e-6  # step of central differences, the cube root of the precision of a float64


def table_of(layout):
    """Rows (kind, first coordinate, first number, copies, width), number of coordinates, and number of numbers."""
    rows, n_free, n_numbers = [], 0, 0
    for _, _, kind, copies, width in layout:
        rows.append((kind, n_free, n_numbers, copies, width))
        n_free += copies * (width - 1 if kind == SIMPLEX else width)
        n_numbers += copies * width
    return np.array(rows, dtype=np.int64), n_free, n_numbers


@helper
def constrain(table, theta, x):
    """Write the numbers x for free coordinates theta; returns the logarithm of the volume element."""
    log_volume = 0.0
    for b in range(table.shape[0]):
        kind, lo, out, copies, width = table[b]
        if kind == FREE:
            for i in range(copies * width):
                x[out + i] = theta[lo + i]
        elif kind == POSITIVE:
            for i in range(copies * width):
                x[out + i] = np.exp(theta[lo + i])
                log_volume += theta[lo + i]
        elif kind == ORDERED:
            for c in range(copies):
                for i in range(width):
                    at = c * width + i
                    if i == 0:
                        x[out + at] = theta[lo + at]
                    else:
                        x[out + at] = x[out + at - 1] + np.exp(theta[lo + at])
                        log_volume += theta[lo + at]
        else:
            for c in range(copies):
                z, cells = theta[lo + c * (width - 1) :], x[out + c * width :]
                total, high = 0.0, -np.inf
                for i in range(width - 1, -1, -1):
                    if i < width - 1:
                        total += z[i] / np.sqrt((i + 1.0) * (i + 2.0))
                    cells[i] = total - (z[i - 1] * i / np.sqrt(i * (i + 1.0)) if i > 0 else 0.0)
                    high = max(high, cells[i])
                total = 0.0
                for i in range(width):
                    total += np.exp(cells[i] - high)
                log_total = high + np.log(total)
                for i in range(width):
                    log_volume += cells[i] - log_total
                    cells[i] = np.exp(cells[i] - log_total)
                log_volume += 0.5 * np.log(width)
    return log_volume


@helper
def pull_back(table, theta, x, slope, gradient):
    """Write the gradient in free coordinates, including the volume element, given the gradient ``slope`` in x."""
    for b in range(table.shape[0]):
        kind, lo, out, copies, width = table[b]
        if kind == FREE:
            for i in range(copies * width):
                gradient[lo + i] = slope[out + i]
        elif kind == POSITIVE:
            for i in range(copies * width):
                gradient[lo + i] = slope[out + i] * x[out + i] + 1.0
        elif kind == ORDERED:
            for c in range(copies):
                total = 0.0
                for i in range(width - 1, -1, -1):  # A coordinate moves its own number and all later ones.
                    at = c * width + i
                    total += slope[out + at]
                    gradient[lo + at] = total if i == 0 else total * np.exp(theta[lo + at]) + 1.0
        else:
            for c in range(copies):
                cells, pull, along = x[out + c * width :], slope[out + c * width :], gradient[lo + c * (width - 1) :]
                mean = 0.0
                for i in range(width):
                    mean += cells[i] * pull[i]
                total = 0.0
                for i in range(width):
                    weight = cells[i] * (pull[i] - mean) + 1.0 - width * cells[i]
                    if i > 0:
                        along[i - 1] = (total - i * weight) / np.sqrt(i * (i + 1.0))
                    total += weight


@dataclass(frozen=True)
class Call:
    """How a user's function is called.

    Parameters
    ----------
    layout : tuple
    order : tuple of str
        Arguments of the function: parameters, names of data, and "rows", "scale" and "gradient" if it takes them.
    columns : tuple of (name, kind, first column, shape of a row)
        Named observations, which are columns of the rows.
    constants : tuple of (name, kind, first constant, shape)
        Other named data. If there are any, ``rows`` is a pair of the rows and all constants.
    """

    layout: tuple
    order: tuple
    columns: tuple = ()
    constants: tuple = ()

    @property
    def writes_gradient(self):
        """Whether the function itself writes the gradient."""
        return "gradient" in self.order

    def source(self):
        """Source of ``call(x, rows, scale, slope)``, which passes the function its parameters, data and gradient."""
        parts, written, at = {"rows": "rows", "scale": "scale"}, [], 0
        for name, shape, _, copies, width in self.layout:
            end = at + copies * width
            reshaped = "" if len(shape) == 1 else f".reshape({shape})"
            parts[name] = f"x[{at}:{end}]{reshaped}" if shape else f"x[{at}]"
            written.append(f"slope[{at}:{end}]{reshaped}")
            at = end
        parts["gradient"] = f"Gradient({', '.join(written)})"
        suffix = {NUMBER: "", WHOLE: ".astype(int64)", BOOLEAN: " != 0.0"}
        rows = "rows[0]" if self.constants else "rows"
        for name, kind, first, shape in self.columns:
            end = first + math.prod(shape)
            part = f"whole({rows}[:, {first}:{end}]).reshape(({rows}.shape[0], {', '.join(map(str, shape))}))"
            parts[name] = part + suffix[kind]
        for name, kind, first, shape in self.constants:
            if shape:
                parts[name] = f"rows[1][{first}:{first + math.prod(shape)}].reshape({shape})" + suffix[kind]
            else:
                number = {NUMBER: "rows[1][{}]", WHOLE: "int64(rows[1][{}])", BOOLEAN: "rows[1][{}] != 0.0"}[kind]
                parts[name] = number.format(first)
        return f"def call(x, rows, scale, slope):\n    return function({', '.join(parts[n] for n in self.order)})\n"

    def of(self, function, whole=lambda part: part):
        """The function ``call(x, rows, scale, slope)``, not yet compiled; ``whole`` makes columns contiguous."""
        names = {"function": function, "Gradient": namedtuple("Gradient", [part[0] for part in self.layout])}
        names |= {"whole": whole, "int64": np.int64}
        exec(self.source(), names)  # In numba, nothing else splits an array into arguments of different shapes.
        return names["call"]


def python_call(callback):
    """The jitted ``call(x, rows, scale, slope)`` for a Python function with the same arguments."""

    def call(x, rows, scale, slope):
        with numba.objmode(value="float64"):
            value = callback(x, rows, scale, slope)
        return value

    return numba.njit(call)


def with_gradient(call, layout):
    """The jitted log density and gradient in free coordinates, for a call that writes the gradient."""
    table, _, n_numbers = table_of(layout)

    def log_density_and_gradient(theta, rows, scale, gradient):
        x, slope = np.empty(n_numbers), np.zeros(n_numbers)
        value = constrain(table, theta, x)
        value += call(x, rows, scale, slope)
        pull_back(table, theta, x, slope, gradient)
        return value

    return numba.njit(log_density_and_gradient)


def by_differences(call, layout):
    """The same, for a call that writes no gradient, by central differences in free coordinates."""
    table, _, n_numbers = table_of(layout)

    def log_density_and_gradient(theta, rows, scale, gradient):
        x, slope, moved = np.empty(n_numbers), np.zeros(n_numbers), theta.copy()
        value = constrain(table, theta, x)
        value += call(x, rows, scale, slope)
        if not np.isfinite(value):
            gradient[:] = np.nan
            return value
        for k in range(theta.size):
            step = _STEP * (1.0 + abs(theta[k]))
            moved[k] = theta[k] + step
            high = constrain(table, moved, x)
            high += call(x, rows, scale, slope)
            moved[k] = theta[k] - step
            low = constrain(table, moved, x)
            low += call(x, rows, scale, slope)
            moved[k] = theta[k]
            gradient[k] = (high - low) / (2.0 * step)
        return value

    return numba.njit(log_density_and_gradient)


def compiled_density(function, call, wrap):
    """`with_gradient` or `by_differences` of a user's function, compiled once per process and key of `frozen_in`.

    Raises numba's error if the function cannot be compiled, and TypeError if it does not return a number.
    """
    return _compiled(function, call, wrap, frozen_in(function))


@lru_cache(maxsize=64)
def _compiled(function, call, wrap, _frozen):
    plain, options = (function.py_func, function.targetoptions) if is_jitted(function) else (function, {})
    # If a positive number underflows, dividing by it must give inf, as in NumPy, not raise an exception.
    options = {"error_model": "numpy", "fastmath": options.get("fastmath", False)}
    jitted = numba.njit(call.of(numba.njit(**options)(plain), np.ascontiguousarray))
    vector, rows = numba.types.Array(numba.float64, 1, "C"), numba.types.Array(numba.float64, 2, "C", readonly=True)
    if call.constants:
        rows = numba.types.Tuple((rows, numba.types.Array(numba.float64, 1, "C", readonly=True)))
    jitted.compile((vector, rows, numba.float64, vector))
    returned = jitted.nopython_signatures[0].return_type
    if not isinstance(returned, (numba.types.Float, numba.types.Integer, numba.types.Boolean)):
        raise TypeError(f"it returns {returned}, not a number")
    return wrap(jitted, call.layout)


def is_compiled(function):
    """Whether a function is jitted by numba."""
    return is_jitted(function)
