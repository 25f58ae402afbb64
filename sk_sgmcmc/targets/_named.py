"""User-defined densities of named, constrained parameters, and log likelihoods at their draws."""

import inspect
import time

import numpy as np

from ..dense.tuning import DenseGradient, check_finite, check_gradient, check_scale, points_away
from ..kernels.models import user
from ..utils._warnings import warn_user
from ._density import BATCH, MANY_ROWS, Density
from ._gradients import SOURCES, call_of, free_density, name_of, try_once
from ._named_data import arrays_of, names_in, plain_rows
from ._parameters import Layout

_HOW = (
    "Write it as f(mu, tau, y, ...), with names of parameters and of data (or rows), and return an array: the log "
    "likelihood of each observation."
)


class PointwiseLogLikelihood:
    """A user's function for the log likelihood of each observation.

    Parameters
    ----------
    function : callable
        Function whose arguments are named like parameters and data.
    layout : Layout
    data : dict, DataFrame, array or None
    """

    def __init__(self, function, layout, data):
        self._function, self._label = function, f"log_likelihood={name_of(function)}"
        try:
            arguments = list(inspect.signature(getattr(function, "py_func", function)).parameters)
        except (TypeError, ValueError):
            raise TypeError(f"log_likelihood={function!r} must be a function. {_HOW}") from None
        named = [] if data is None else names_in(data)
        unknown = [name for name in arguments if name not in (*layout.names, *named, "rows")]
        if unknown or ("rows" in arguments and data is None):
            raise ValueError(
                f"{self._label} takes {', '.join(unknown or ['rows'])}, not among the parameters "
                f"{', '.join(layout.names)}" + (f" or the data {', '.join(named)}" if named else "") + f". {_HOW}"
            )
        self._parameters = [name for name in layout.names if name in arguments]
        parts, _ = arrays_of(data, [name for name in named if name in arguments])
        self._data = {name: part if part.ndim else part[()] for name, part in parts.items()}
        if "rows" in arguments:
            self._data["rows"] = plain_rows(data)

    def at(self, values):
        """The log likelihood of each observation, given a dict of parameters."""
        found = self._function(**{name: values[name] for name in self._parameters}, **self._data)
        return np.asarray(found, dtype=np.float64)

    def check(self, values):
        """Raise unless the function returns an array at these parameters."""
        try:
            found = self.at(values)
        except Exception as error:
            raise ValueError(f"{self._label} raises {type(error).__name__} at the start: {error}. {_HOW}") from error
        if found.ndim == 0:
            raise ValueError(f"{self._label} returns the number {found}: do not sum. {_HOW}")

    def of_draws(self, samples):
        """The log likelihoods at all draws, (n_chains, n_kept, n_observations); NaN where the function raises.

        Exceptions are reported in one warning.
        """
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
            raise ValueError(f"{self._label} returns arrays of shapes {shape} and {different}. {_HOW}")
        if failed:
            warn_user(
                f"{self._label} raised an exception at {failed} of {len(found)} draws, first {type(first).__name__}: "
                f"{first}. log_likelihood_ contains NaN there.",
                RuntimeWarning,
            )
        found = [np.full(shape, np.nan) if each is None else each for each in found]
        return np.reshape(found, (n_chains, n_kept, *shape))


_TIMED = 3  # calls to time; the fastest is reported as the cost of a call


class NamedDensity(Density):
    """A log density of named parameters, as a density in unconstrained ("free") coordinates.

    Parameters
    ----------
    log_density : callable
        Function whose arguments are the parameters by name and, optionally, data, rows, scale and gradient.
    parameters : dict
        See `sample`.
    data : array-like of shape (n_samples, n_columns), dict of arrays, DataFrame or None, default=None
    gradient : {"jax", "autograd", "differences"} or None, default=None
        Where derivatives come from; see `sample`.
    log_likelihood : callable, default=None
        See `sample`.

    Attributes
    ----------
    layout : Layout
    free : FreeDensity
    scales : bool
        Whether the function takes a scale, so that it can be evaluated on minibatches.
    seconds : float
        Time of a call on all rows. Set by the checks before sampling.
    """

    def __init__(self, log_density, parameters, data=None, gradient=None, log_likelihood=None):
        if gradient is not None and gradient not in SOURCES:
            raise ValueError(f"gradient={gradient!r} must be None or one of {', '.join(map(repr, SOURCES))}.")
        self.log_density, self.parameters, self.gradient = log_density, parameters, gradient
        self.layout = Layout(parameters)
        call, rows = call_of(log_density, self.layout, data)
        try_once(log_density, call, self.layout, rows)
        self.free = free_density(log_density, call, self.layout, gradient, rows)
        self.scales = "scale" in call.order
        self.pointwise = None
        if log_likelihood is not None:
            self.pointwise = PointwiseLogLikelihood(log_likelihood, self.layout, data)
        self._constants = np.zeros(0)
        if call.constants:
            rows, self._constants = rows
        no_rows = data is None or (call.constants and not call.columns)
        super().__init__(self.free.jitted, self.layout.n_free, data=None if no_rows else rows)

    def _signal(self, controlled=False):
        return user.user_signal(self.log_density_and_gradient, controlled, self._constants.size > 0)

    def _rows(self):
        X, _, shape = super()._rows()
        return X, self._constants, shape

    def _public(self, theta, aux, sampler):
        return self.layout.constrained(theta[..., 0])

    def _hidden(self, name):
        return False

    def _labels(self):
        return self.layout.labels()

    def _check_batches(self, n_batch, n_rows):
        if n_batch < n_rows and not self.scales:
            default = f", the default above {MANY_ROWS} rows," if n_batch == BATCH and n_rows > MANY_ROWS else ""
            raise ValueError(
                f"Minibatches of {n_batch} rows{default} need an argument scale of log_density="
                f"{name_of(self.log_density)}: multiply sums over rows, and nothing else, by it. Or read all rows at "
                'each step: sampler="nuts".'
            )

    def _starts(self, sampler, n_chains, dense, rng):
        return self._given_starts({}, sampler, n_chains, dense, rng)

    def _given_starts(self, init, sampler, n_chains, dense, rng):
        if not isinstance(init, dict) or not set(init) <= set(self.layout.names):
            raise ValueError(
                f"init={init!r} must be a dict of arrays by the names of parameters: {', '.join(self.layout.names)}."
            )
        by_chain = [{} for _ in range(n_chains)]
        for name, shape, *_ in self.layout.parts:
            if name not in init:
                continue
            try:
                value = np.asarray(init[name], dtype=float)
            except (TypeError, ValueError):
                raise ValueError(f"init[{name!r}]={init[name]!r} must be numbers of shape {shape}.") from None
            if value.shape not in (shape, (n_chains, *shape)):
                raise ValueError(
                    f"init[{name!r}] has shape {value.shape}; give {shape}, or {(n_chains, *shape)} for each chain."
                )
            for c, chain in enumerate(by_chain):
                chain[name] = value if value.shape == shape else value[c]
        return [self._start_near(self.layout.free(chain), dense, rng) for chain in by_chain]

    def _check(self, dense, starts):
        gradient = DenseGradient(dense, starts[0].shape)
        for start in starts:
            check_finite(gradient, start)
        theta = starts[0]
        if self.pointwise is not None:
            self.pointwise.check(self.layout.constrained(theta.ravel()))
        places = [(theta, "at the start"), *points_away(gradient, theta)]
        for point, where in places:
            for name, *_, free, _ in self.layout.blocks():
                own = np.zeros(theta.size)
                own[free] = np.random.default_rng(0).standard_normal(free.stop - free.start)
                try:
                    check_gradient(gradient, point, own, f" of {name}", where)
                except ValueError as error:
                    if not self.free.by_differences:
                        raise
                    raise ValueError(
                        f"Differences of log_density={name_of(self.log_density)} along {name}, {where}, depend on "
                        "their step: it is not smooth there. Give its gradient, or write it in float64 throughout."
                    ) from error
            if dense.n_batch < dense.n_rows:
                check_scale(gradient, point)
        took = []
        for _ in range(_TIMED):
            began = time.perf_counter()
            gradient(theta.ravel())
            took.append(time.perf_counter() - began)
        self.seconds = min(took)

    def _gradient_checks(self, gradient, draws):
        return [] if self.free.by_differences else super()._gradient_checks(gradient, draws)

    def _more_results(self, samples):
        found = {"gradient_": f"{self.free.described}, {1e6 * self.seconds:.2g} microseconds a call"}
        return found if self.pointwise is None else found | {"log_likelihood_": self.pointwise.of_draws(samples)}

    def _dispersed_starts(self, approximation, n_chains, rng):
        """Starts that are twice as far from the mode as draws of the approximation."""
        mode = approximation.mode
        return [(mode + 2.0 * (draw - mode))[:, None] for draw in approximation.draws(n_chains, rng)]
