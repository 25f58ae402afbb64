"""Gradients of a log density of named parameters: user-written, from JAX or autograd, or finite differences."""

import inspect
import math
import pickle
from dataclasses import dataclass

import numpy as np

from ..kernels._failures import Failures, current, recorded_in
from ..kernels.models import named
from ..utils._warnings import warn_user
from ._named_data import named_rows, names_in, plain_rows
from ._parameters import RESERVED

MOST_DIFFERENCES = 30  # free coordinates above which a warning is issued; each costs two evaluations of the log density
SOURCES = ("jax", "autograd", "differences")
_FEW_ROWS = 5
# Exceptions that indicate a programming error, rather than a point outside of the domain of the function.
_MISTAKES = (IndexError, TypeError, AttributeError, NameError, KeyError)

HOW = (
    "Write it as f(mu, tau, eta, ...), an argument for each name in parameters, in any order, and add where needed: "
    "names of data, or rows for all of them; scale, N/n, by which to multiply sums over rows; gradient, to write the "
    "derivatives: gradient.mu[()] = ... of a number, gradient.eta[:] = ... of an array. Return the log density."
)


class PythonCall:
    """A Python function that compiled code calls, with its exceptions recorded.

    Compiled code would lose an exception. Instead it is added to the `Failures` of the thread, and the log density is
    minus infinity.

    Parameters
    ----------
    function : callable
        ``function(x, rows, scale, slope)`` returns the log density and may write its gradient into ``slope``.
    """

    def __init__(self, function):
        self.function = function

    def __call__(self, x, rows, scale, slope):
        failures = current()
        if failures is not None and failures.fatal is not None:  # the run will end with that error
            return math.nan
        try:
            return float(self.function(x, rows, scale, slope))
        except BaseException as error:
            if failures is None:
                raise
            failures.add(error)
            slope[:] = math.nan
            return -math.inf

    def __reduce__(self):
        # numba tries to pickle every object that compiled code calls. numba 0.61 tolerates a PicklingError, but not for
        # example the TypeError of a function whose closure contains an open file.
        raise pickle.PicklingError("It is called where it is.")


def name_of(function):
    """The name of a function for error messages."""
    return getattr(function, "__name__", repr(function))


def call_of(function, layout, data):
    """The `named.Call` of a user's function, and its rows; raises if arguments do not match parameters and data."""
    try:
        arguments = inspect.signature(getattr(function, "py_func", function)).parameters
    except (TypeError, ValueError):
        raise TypeError(f"The arguments of log_density={function!r} cannot be read. {HOW}") from None
    shown = f"log_density={name_of(function)}"
    gathered = [name for name, each in arguments.items() if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    named_data = names_in(data)
    known = {*layout.names, *RESERVED, *named_data}
    unknown = [name for name in arguments if name not in known]
    missing = [name for name in layout.names if name not in arguments]
    if gathered or unknown or missing:
        faults = [f"takes {', '.join(gathered)}, whose names are unknown"] if gathered else []
        unknown = [name for name in unknown if name not in gathered]
        offered = f"the parameters {', '.join(layout.names)}" + (
            f" or data {', '.join(named_data)}" if named_data else ""
        )
        faults += [f"takes {', '.join(unknown)}, not among {offered}"] if unknown else []
        faults += [f"does not take {', '.join(missing)}"] if missing else []
        raise ValueError(f"{shown} {' and '.join(faults)}. {HOW}")
    if "rows" in arguments or not named_data:
        if (data is not None) != ("rows" in arguments):
            fault = "takes rows, but data=None" if data is None else "has no argument rows, but data are given"
            raise ValueError(f"{shown} {fault}. {HOW}")
        beside = [name for name in arguments if name in named_data and name not in (*layout.names, *RESERVED)]
        if beside:
            raise ValueError(f"{shown} takes rows, which are all of the data, and {', '.join(beside)} too. {HOW}")
        rows = np.zeros((1, 1)) if data is None else plain_rows(data)
        return named.Call(layout.parts, tuple(arguments)), rows
    both = [name for name in named_data if name in (*layout.names, *RESERVED)]
    if both:
        raise ValueError(f"{', '.join(both)} cannot be a name of data and of something else; rename the data.")
    taken = [name for name in arguments if name in named_data]
    if not taken:
        raise ValueError(f"{shown} takes none of the data {', '.join(named_data)}. {HOW}")
    rows, columns, constants, fixed = named_rows(data, taken)
    return named.Call(layout.parts, tuple(arguments), columns, fixed), (rows, constants) if fixed else rows


def _some_rows(call, rows):
    """A few rows; all rows for a function without scale, which may have a parameter for each row."""
    if "scale" not in call.order:
        return rows
    return (rows[0][:_FEW_ROWS], rows[1]) if call.constants else rows[:_FEW_ROWS]


def _n_rows(call, rows):
    return len(rows[0] if call.constants else rows)


def try_once(function, call, layout, rows):
    """Call a user's function in Python; raises if the function has a programming error or returns no number.

    A function with scale is called with a few rows, since it must accept minibatches. It is called with all rows as
    well if it takes constant arrays, since one of them may have been intended as rows.
    """
    _try(function, call, layout, _some_rows(call, rows))
    if "scale" in call.order and any(shape for *_, shape in call.constants):
        _try(function, call, layout, rows)


def _try(function, call, layout, rows):
    theta = np.random.default_rng(0).uniform(0.1, 0.5, layout.n_free)
    x = np.concatenate([value.ravel() for value in layout.constrained(theta).values()])
    shapes = ", ".join(f"{name} {shape}" for name, shape, *_ in layout.parts)
    shapes += f", rows {rows.shape}" if "rows" in call.order else ""
    shapes += "".join(f", {name} {(_n_rows(call, rows), *shape)}" for name, _, _, shape in call.columns)
    shapes += "".join(f", {name} {shape}" for name, _, _, shape in call.constants)
    with np.errstate(all="ignore"):
        try:
            value = call.of(getattr(function, "py_func", function))(x, rows, 1.0, np.zeros(x.size))
        except _MISTAKES as error:
            fault = f"raises {type(error).__name__}: {error}"
        except Exception as error:  # perhaps the point is outside of the function's domain
            if not any(word in str(error) for word in ("shape", "broadcast", "dimension", "size")):
                return
            fault = f"raises {type(error).__name__}: {error}"
        else:
            if value is None:
                fault = "returns None, not a number; end it with return"
            elif isinstance(value, tuple):
                fault = "returns a tuple, not the log density alone; write derivatives into an argument gradient"
            elif np.iscomplexobj(value):
                fault = f"returns the complex number {value}; take its real part"
            elif np.ndim(value) != 0:
                fault = f"returns an array of shape {np.shape(value)}, not a number; sum it"
            else:
                try:
                    float(value)
                    return
                except (TypeError, ValueError):
                    fault = f"returns {value!r}, not a number"
    raise ValueError(f"log_density={name_of(function)} {fault}. It was called with the shapes {shapes}. {HOW}")


def library_of(function):
    """The library, "jax" or "autograd", that a function refers to by a global or nonlocal name, or None."""
    inner = inspect.unwrap(function)
    if type(function).__module__.startswith("jax"):
        return "jax"
    code = getattr(inner, "__code__", None)
    if code is None:
        return None
    around = inspect.getclosurevars(inner)
    for value in (*around.globals.values(), *around.nonlocals.values()):
        module = getattr(value, "__name__", "") if inspect.ismodule(value) else getattr(value, "__module__", "") or ""
        if module.split(".")[0] in ("jax", "autograd"):
            return module.split(".")[0]
    return None


def _by_jax(call, function, constants):
    import jax

    inner = call.of(function)

    def density(x, rows, scale):
        return inner(x, rows if constants is None else (rows, constants), scale, None)

    both = jax.jit(jax.value_and_grad(density))
    doubles = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64
    known = {}  # all rows as an array on JAX's device, so that they are transferred only once

    def evaluate(x, rows, scale, slope):
        rows = rows if constants is None else rows[0]
        with doubles(True):
            if scale == 1.0:
                key = rows.__array_interface__["data"][0], rows.shape
                if key not in known:
                    known.clear()
                    known[key] = jax.numpy.array(rows)
                rows = known[key]
            value, found = both(x, rows, scale)
            slope[:] = found
            return value

    return evaluate


def _by_autograd(call, function, constants):
    import autograd

    inner = call.of(function)
    both = autograd.value_and_grad(lambda x, rows, scale: inner(x, rows, scale, None))

    def evaluate(x, rows, scale, slope):
        value, found = both(x, rows, scale)
        slope[:] = found
        return value

    return evaluate


@dataclass(frozen=True)
class FreeDensity:
    """A log density and its gradient in free coordinates.

    Parameters
    ----------
    jitted : jitted function of (theta, rows, scale, gradient)
    described : str
        Description of the gradient for users.
    by_differences : bool
        Whether the gradient consists of finite differences of the log density.
    python : PythonCall or None
        The Python function that compiled code calls. None: everything is compiled.
    """

    jitted: object
    described: str
    by_differences: bool
    python: object


def free_density(function, call, layout, source, rows):
    """The `FreeDensity` of a user's function.

    Parameters
    ----------
    function : callable
    call : named.Call
    layout : Layout
    source : str or None
        One of `SOURCES`. None: the gradient that the function writes, else that of the library it uses, else
        differences.
    rows : ndarray, or pair of ndarray
        All rows; with the constants if the function takes any.

    Returns
    -------
    FreeDensity
    """
    if call.writes_gradient and source is not None:
        raise ValueError(
            f"gradient={source!r}, but {name_of(function)} has an argument gradient; leave one of them out."
        )
    if source is None and not call.writes_gradient:
        source = library_of(function)
    if source in ("jax", "autograd"):
        try:
            differentiated = {"jax": _by_jax, "autograd": _by_autograd}[source]
            evaluate = differentiated(call, function, rows[1] if call.constants else None)
        except ImportError as error:
            raise ImportError(f"gradient={source!r} needs {source}, which is not installed.") from error
        python = PythonCall(evaluate)
        slope = np.zeros(layout.n_numbers)
        point = np.concatenate([v.ravel() for v in layout.constrained(np.full(layout.n_free, 0.1)).values()])
        some = _some_rows(call, rows)
        with recorded_in(Failures()) as failures:
            python(point, some, 1.0 if _n_rows(call, some) == _n_rows(call, rows) else 2.0, slope)
        failures.raise_fatal()
        if failures.n and not isinstance(failures.error, (ArithmeticError, np.linalg.LinAlgError)):
            raise ValueError(
                f"{source} cannot differentiate log_density={name_of(function)}: {failures.error}"
            ) from failures.error
        return FreeDensity(named.with_gradient(named.python_call(python), layout.parts), source, False, python)
    by_differences = not call.writes_gradient
    if by_differences and layout.n_free > MOST_DIFFERENCES:
        warn_user(
            f"log_density={name_of(function)} has no gradient, so each of its {layout.n_free} coordinates is "
            f"differentiated by differences, and a step evaluates the function {2 * layout.n_free + 1} times. To save "
            "time, add an argument gradient and write the derivatives into it, or write the function with jax.numpy or "
            'autograd.numpy and pass gradient="jax" or "autograd".'
        )
    wrap = named.by_differences if by_differences else named.with_gradient
    described = f"differences, {2 * layout.n_free} evaluations each" if by_differences else "its own"
    try:
        return FreeDensity(named.compiled_density(function, call, wrap), described, by_differences, None)
    except Exception as error:
        if named.is_compiled(function):
            raise ValueError(f"numba cannot compile log_density={name_of(function)}: {error}. {HOW}") from error
    python = PythonCall(call.of(function))
    jitted = wrap(named.python_call(python), layout.parts)
    return FreeDensity(jitted, f"{described}, in Python", by_differences, python)
