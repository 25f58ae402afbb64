"""Log likelihood of each observation at each draw, by a user's function, for comparisons of models."""

import inspect

import numpy as np

from ..utils._warnings import warn_user
from ._gradients import name_of
from ._named_data import arrays_of, names_in, plain_rows

_HOW = (
    "Write it as f(mu, tau, y, ...), with names of parameters and of data (or rows), and return an array: the log "
    "likelihood of each observation."
)


class PointwiseLogLikelihood:
    """A user's function for the log likelihood of each observation.

    Parameters
    ----------
    function : callable
        Of parameters and data by name.
    layout : Layout
    data : dict, DataFrame, array or None
    """

    def __init__(self, function, layout, data):
        self._function, self._shown = function, f"log_likelihood={name_of(function)}"
        try:
            arguments = list(inspect.signature(getattr(function, "py_func", function)).parameters)
        except (TypeError, ValueError):
            raise TypeError(f"log_likelihood={function!r} must be a function. {_HOW}") from None
        named = [] if data is None else names_in(data)
        unknown = [name for name in arguments if name not in (*layout.names, *named, "rows")]
        if unknown or ("rows" in arguments and data is None):
            raise ValueError(
                f"{self._shown} takes {', '.join(unknown or ['rows'])}, not among the parameters "
                f"{', '.join(layout.names)}" + (f" or the data {', '.join(named)}" if named else "") + f". {_HOW}"
            )
        self._parameters = [name for name in layout.names if name in arguments]
        parts, _ = arrays_of(data, [name for name in named if name in arguments])
        self._data = {name: part if part.ndim else part[()] for name, part in parts.items()}
        if "rows" in arguments:
            self._data["rows"] = plain_rows(data)

    def at(self, values):
        """The log likelihood of each observation at parameters by name."""
        found = self._function(**{name: values[name] for name in self._parameters}, **self._data)
        return np.asarray(found, dtype=np.float64)

    def check(self, values):
        """Raise unless the function returns an array at these parameters."""
        try:
            found = self.at(values)
        except Exception as error:
            raise ValueError(f"{self._shown} raises {type(error).__name__} at the start: {error}. {_HOW}") from error
        if found.ndim == 0:
            raise ValueError(f"{self._shown} returns the number {found}: do not sum. {_HOW}")

    def of_draws(self, samples):
        """At all draws, (n_chains, n_kept, n_observations); NaN with a warning where the function raises."""
        n_chains, n_kept = next(iter(samples.values())).shape[:2]
        found, failed, first = [], 0, None
        for c in range(n_chains):
            for t in range(n_kept):
                try:
                    found.append(self.at({name: value[c, t] for name, value in samples.items()}))
                except Exception as error:
                    found.append(None)
                    failed, first = failed + 1, first or error
        shape = next((each.shape for each in found if each is not None), (0,))
        different = next((each.shape for each in found if each is not None and each.shape != shape), None)
        if different is not None:
            raise ValueError(f"{self._shown} returns arrays of shapes {shape} and {different}. {_HOW}")
        if failed:
            warn_user(
                f"{self._shown} raised an exception at {failed} of {len(found)} draws, first {type(first).__name__}: "
                f"{first}. log_likelihood_ contains NaN there.",
                RuntimeWarning,
            )
        found = [np.full(shape, np.nan) if each is None else each for each in found]
        return np.reshape(found, (n_chains, n_kept, *shape))
