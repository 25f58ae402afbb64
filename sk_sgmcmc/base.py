"""Base class of all estimators, which chooses the sampler, runs and resumes chains, and checks their draws."""

from __future__ import annotations

from contextlib import suppress
from copy import copy, deepcopy
from dataclasses import field
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from typing import Any, Literal, Self, cast

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from .callbacks import FitTasks, as_callbacks
from .chains.checks import (
    NO_DRAWS,
    NOT_CONVERGED,
    TOO_FEW_DRAWS,
    check_enough_draws,
    checks_table,
    convergence_checks,
    warn_if_fired,
)
from .chains.convergence import MIN_KEPT, Diagnosis, rounded_up
from .chains.interrupts import deferred_interrupt, interrupts_between_calls
from .chains.run import run_chains
from .exceptions import FitInterrupted, WorkersLostError
from .samplers._base import Sampler, is_same
from .samplers._registry import check_fits, make_sampler
from .utils._numbers import MAX_JOBS, check_n_jobs, plain_integers
from .utils._parameters import keyword_parameters
from .utils._seeds import seed_sequence
from .utils._sklearn import BaseEstimator, CallbackSupport, Interval, StrOptions, with_callbacks
from .utils._tables import as_table
from .utils._typing import Callbacks, FloatArray, Function, RandomState, Table
from .utils._warnings import warn_user
from .utils.blocks import CountsLike

# Attributes for scikit-learn's callbacks, which exist only during a fit.
_OF_A_FIT = (
    "_skl_callbacks", "_skl_callbacks_to_teardown", "_callback_fit_ctx", "_parent_callback_ctx", "_given_to_fit",
)  # fmt: skip


def fits_anew(fit: Function) -> Function:
    """Decorate ``fit`` like `all_or_nothing`, and remove the fitted attributes of an earlier fit before it begins."""
    return _all_or_nothing(fit, with_callbacks(fit), _forget)


def all_or_nothing(method: Function) -> Function:
    """Decorate a method so that it leaves its estimator unchanged if it rejects its input, fails or is interrupted.

    If it raises `FitInterrupted` or `WorkersLostError` for this estimator, its changes stay: the estimator is then
    fitted with the draws made so far. The method works on copies of the existing chains, which it would change.
    """
    return _all_or_nothing(method, method, _copy)


def _forget(estimator):
    given = estimator.__dict__.items()
    kept = {name: value for name, value in given if not name.endswith("_") and name != "_deferred"}
    estimator.__dict__ = kept  # a single assignment, which Ctrl-C cannot interrupt halfway


def _copy(estimator):
    estimator.__dict__.update(estimator._copied_state())


def _all_or_nothing(method, run, prepare):
    @wraps(method)
    def refusing(self, *args, **kwargs):
        before = self.__dict__.copy()
        try:
            prepare(self)
            with plain_integers(self), interrupts_between_calls():
                return run(self, *args, **kwargs)
        except (FitInterrupted, WorkersLostError) as interrupted:
            if interrupted.estimator_ is not self:  # raised by another fit, inside a callback of this one
                self.__dict__ = before
            raise
        except BaseException:
            self.__dict__ = before  # a single assignment, which another Ctrl-C cannot interrupt halfway
            raise

    return cast(Function, refusing)


@keyword_parameters
class BaseSGMCMC(CallbackSupport, BaseEstimator):
    """Base class of estimators fitted by a sampler.

    A subclass lists in ``_offers`` the signals that it can compute for a sampler, as pairs (geometry, signal) in order
    of preference. It names its default sampler in ``_default_sampler``, and implements

    ``fit``
        Check parameters, sampler (`_checked_sampler`) and data, in this order. Then make chains bound to their data,
        one for each of ``_chain_seeds()[1:]``, and pass them to `_run`.
    ``_bound_data(X, y)``
        Return the data in the form to which chains are bound, for `resume`.
    ``_set_fitted(chains)``
        Set fitted attributes from the kept draws of the chains.
    ``_monitored(chains)``
        Return quantities that cannot switch labels, at the kept draws, as the argument of `Diagnosis`. Called after
        `_set_fitted`.

    It may make checks of its own: ``_checks(chains)`` returns their results, and ``_check_definitions`` lists them.

    Docstrings of subclasses inherit the entries below, unless they describe a parameter themselves.

    Parameters
    ----------
    n_iter : int or None, default=None
        Number of steps. None: chosen by the sampler.
    n_chains : int, default=1
        Number of independent chains.
    n_jobs : int or None, default=None
        Number of threads, over chains. The draws do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed. Pass an int to get the same draws each time.
    verbose : int, default=0
        Set to 1 for a progress bar.

    Attributes
    ----------
    sampler_ : sampler object
        The sampler in use, with its step sizes in ``step_size_``.
    n_iter_ : int
        Number of steps made.
    checks_ : DataFrame, or Bunch of columns if pandas is not installed
        Checks of the draws of the last fit: ``check`` (its name), ``value``, ``limit`` and ``fired``. Empty after
        ``partial_fit`` has updated a topic model or a mixture. See "Warnings and what to do" in the user guide.
    trace_ : dict
        Held-out scores, if `HeldOutScore` was among the callbacks.
    n_features_in_, feature_names_in_
        See scikit-learn.

    Other Parameters
    ----------------
    sampler : str, sampler object or None, default=None
        Sampler of the posterior. None: the model's default.
    burn_in : float or int, default=0.5
        Steps to discard at the start, as a fraction (float) or a number (int).
    thin : int or "auto", default="auto"
        Keep every ``thin``-th step after burn-in. "auto" keeps at most 100 draws.
    batch_size : int or "auto", default="auto"
        Number of rows in a minibatch.
    callbacks : callback or list of callbacks, default=None
        Functions to call during `fit`, such as held-out scores and checkpoints; see `sk_sgmcmc.callbacks`.
    """

    sampler: str | Sampler | None = None
    n_iter: int | None = None
    burn_in: float = 0.5
    thin: int | Literal["auto"] = "auto"
    batch_size: int | Literal["auto"] = "auto"
    n_chains: int = 1
    n_jobs: int | None = None
    random_state: RandomState = None
    verbose: int = 0
    callbacks: Callbacks = None

    samples_: dict[str, FloatArray] = field(init=False)
    sampler_: Sampler = field(init=False)
    n_iter_: int = field(init=False)

    _offers = ()
    _default_sampler = None
    _unused_by_predictions = ("_chains", "trace_")  # attributes that methods with results row by row do not read
    # Parameters that may change between `fit` and `resume`, or that `resume` checks separately.
    _free = ("callbacks", "handle_unknown", "n_iter", "n_jobs", "partition_loss", "random_state", "verbose")
    _made_with = {}  # all other parameters, as they were when chains last ran
    _check_definitions = (NOT_CONVERGED, NO_DRAWS, TOO_FEW_DRAWS)  # of the checks that `fit` makes
    _drifts = None  # arguments of `Diagnosis.drift`, for models whose chains approach their limit ever more slowly

    _parameter_constraints = {
        "sampler": [str, Sampler, None],
        "n_iter": [Interval(Integral, 1, None, closed="left"), None],
        "burn_in": [Interval(Real, 0, 1, closed="left"), Interval(Integral, 1, None, closed="left")],
        "thin": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "batch_size": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Interval(Integral, None, -1, closed="right"), Interval(Integral, 1, MAX_JOBS, closed="both"), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "callbacks": [callable, list, tuple, None],
    }

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``sampler__...`` also works if ``sampler`` is a name or None.

        Parameters
        ----------
        **params : dict
            Parameters of the estimator, or of its sampler as ``sampler__name``. If ``sampler`` is a name or None, it is
            replaced by the sampler object first.

        Returns
        -------
        self : object
        """
        if any(key.startswith("sampler__") for key in params):
            # The estimator's own parameters first: the default sampler may depend on them.
            super().set_params(**{key: params.pop(key) for key in list(params) if not key.startswith("sampler__")})
            if self.sampler is None or isinstance(self.sampler, str):
                self.sampler = self._made_sampler(self.sampler or self._default_sampler)
        return super().set_params(**params)

    def _checked_sampler(self, *, streams=False):
        """The sampler object, and the (geometry, signal) that it shares with the model; raises if they do not fit.

        No data are needed, so errors come early. ``streams`` is True if rows arrive block by block, in `partial_fit`.
        """
        as_callbacks(self.callbacks)
        sampler = self._made_sampler(self._default_for(streams) if self.sampler is None else self.sampler)
        pair = check_fits(sampler, self._offered(), type(self).__name__)
        sampler._validate_params()
        return sampler, pair

    def _made_sampler(self, sampler):
        return make_sampler(sampler, self._offered(), type(self).__name__)

    def _default_for(self, streams):
        """Name of the sampler for ``sampler=None``; ``_default_sampler``, unless a subclass has several defaults."""
        return self._default_sampler

    def _offered(self):
        """The pairs in ``_offers`` that the parameters allow."""
        return self._offers

    def _refuse_large_batch(self, n, of="rows"):
        """Raise if ``batch_size`` is larger than the number of rows."""
        if isinstance(self.batch_size, Integral) and self.batch_size > n:
            raise ValueError(
                f"batch_size={self.batch_size} is larger than the {n} {of} of X; "
                'use batch_size="auto" or a smaller number.'
            )

    def _refuse_other_chains(self, sampler, present, **made_with):
        """Raise if the existing chains cannot continue with the current parameters.

        ``present`` is the sampler of the chains, and ``made_with`` are the other parameters that they were made with.
        """
        for name, value in {**made_with, "n_chains": len(self._chains)}.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name}={getattr(self, name)}, but the chains that partial_fit continues were made with "
                    f"{name}={value}; restore it, or call fit, or partial_fit on a clone, to start over."
                )
        if not sampler._is_compatible(present):
            raise ValueError(
                f"Cannot continue a fit by {present!r} with {sampler!r}: only the step size, friction and temperature "
                "may change. Restore the sampler, or call fit, or partial_fit on a clone, to start over."
            )

    def _shaping(self):
        """The parameters that affect chains, by name; parameter objects are cloned, since `set_params` changes them."""
        params = self.get_params(deep=False).items()
        return {
            name: clone(value) if hasattr(value, "get_params") and not isinstance(value, type) else value
            for name, value in params
            if name not in self._free
        }

    def _refuse_changes(self, names, method):
        """Raise if a parameter has changed since the chains ran that ``method`` continues."""
        for name in names:
            now, then = getattr(self, name), self._made_with.get(name, getattr(self, name))
            if not is_same(now, then):
                raise ValueError(
                    f"{name}={now!r} differs from {name}={then!r}, which shaped the chains that {method} continues; "
                    "restore it, or call fit to start over."
                )

    def _refuse_other_data(self, fingerprint, given="X"):
        """Raise if the ``fingerprint`` of the data passed to `resume` as ``given`` is not that of the fitted data."""
        if fingerprint != self._fingerprint:
            instead = ", or pass new rows to partial_fit" if hasattr(self, "partial_fit") else ""
            raise ValueError(
                f"resume continues with the data that were being fitted, but {given} differs from them; pass the same "
                f"again{instead}."
            )

    def _chain_seeds(self):
        return seed_sequence(self.random_state).spawn(self.n_chains + 1)

    def _threads_per_chain(self):
        """Number of threads for the rows of one chain, if all chains run at the same time."""
        return max(1, check_n_jobs(self.n_jobs) // self.n_chains)

    def _run(self, chains, n_iter):
        """Run chains to step ``n_iter``, then set the fitted attributes, also after Ctrl-C."""
        with deferred_interrupt() as stop:
            self._chains, self._planned_iter, self._made_with = chains, n_iter, self._shaping()
            self.__dict__.pop("_diagnostics", None)
            self._check_results = []  # an interrupted run has no checks
            if chains[0].step == 0:
                self.__dict__.pop("trace_", None)
            tasks = self._tasks(n_iter)
            callbacks = [*as_callbacks(self.callbacks), *tasks]
            for callback in callbacks:
                callback.start(self)
            n_jobs = min(self.n_chains, check_n_jobs(self.n_jobs))
            self._chains, _ = run_chains(
                chains,
                n_iter,
                n_jobs=n_jobs,
                verbose=self.verbose,
                callbacks=callbacks,
                view=self._view,
                stop=stop,
            )
            self._set_fitted(self._chains)
            self._diagnostics = None  # computed when first read
            self.n_iter_ = min(chain.step for chain in self._chains)
            for task in tasks:
                task.finish(self)
            cut_short = stop.is_set() or any(chain.failure is not None for chain in self._chains)
            note = "" if cut_short else self._checks_of_run(n_iter)  # Ctrl-C during the checks keeps the fit.
        self._raise_if_cut_short(n_iter, stop.is_set())
        warn_if_fired(self._check_results, note)
        return self

    def _checks_of_run(self, n_iter):
        """Check the draws of a run that was planned for ``n_iter`` steps; returns a note for the warning."""
        ended = "" if self.n_iter_ == n_iter else f"A callback ended the fit after {self.n_iter_} of {n_iter} steps"
        if ended and self.sampler_._draws_in_time and any(chain.n_kept == 0 for chain in self._chains):
            self._check_results = [self._no_draws(ended)]
            return ""
        self._check_results = [*self._checks(self._chains), *self._check_enough_draws()]
        return ended and f"{ended}: let it wait for longer first."

    def _check_enough_draws(self):
        """The check that enough draws were kept to judge convergence, in a list; empty if they were."""
        n_kept = min(chain.n_kept for chain in self._chains)
        if self._chains[0].plan.streams or not self.sampler_._draws_in_time:
            return []
        return check_enough_draws(n_kept, self._longer(2.0 * MIN_KEPT / max(1, n_kept)))

    def _no_draws(self, ended):
        """The failed check of a run that a callback ended before any draw was kept; ``ended`` says so in words."""
        meaning = (
            f"{ended}, before any draw was kept: burn-in takes {self._chains[0].plan.n_burn}. The fitted attributes "
            "contain a single state, which says nothing about uncertainty."
        )
        remedy = "Call resume(X) to continue, let the callback wait for longer, or set a smaller burn_in."
        return NO_DRAWS.fired(0, meaning, remedy)

    def _raise_if_cut_short(self, n_iter, is_interrupted):
        """Raise if the run lost its workers or was interrupted; called after the fitted attributes are set."""
        for failure in (chain.failure for chain in self._chains if chain.failure is not None):
            lost = WorkersLostError(
                f"{failure} The fitted attributes hold the draws up to the last checkpoint, after {self.n_iter_} of "
                f"{n_iter} steps, and resume(X) continues from there."
            )
            lost.estimator_ = self
            raise lost from failure
        if is_interrupted:
            with suppress(UserWarning):  # if warnings are errors, the exception below says the same
                warn_user(
                    f"Interrupted after {self.n_iter_} of {n_iter} steps; the fitted attributes hold the draws made so "
                    "far, and resume(X) continues from here."
                )
            interrupted = FitInterrupted(
                f"fit was interrupted after {self.n_iter_} steps; the estimator is fitted so far. It is the attribute "
                "estimator_ of this exception: in an interactive session, type `import sys; model = "
                "sys.last_value.estimator_` before anything else fails."
            )
            interrupted.estimator_ = self
            raise interrupted

    def _tasks(self, n_iter):
        """A list with the `FitTasks` that reports the run to scikit-learn's callbacks; empty if there are none."""
        if not hasattr(self, "_given_to_fit"):
            return []
        given = dict(self._given_to_fit)
        scored = signature(self.score).parameters
        metadata = {name: value for name, value in given.items() if name in scored and name not in ("X", "y")}
        return [FitTasks(self, n_iter, given["X"], given.get("y"), metadata)]

    @property
    def diagnostics_(self) -> Table:
        """Convergence of quantities that cannot switch labels; see the user guide, "Warnings and what to do".

        A DataFrame, or Bunch of columns if pandas is not installed: ``quantity``, ``mean`` over all kept draws, split
        ``r_hat``, ``ess`` (bulk effective sample size) and ``mcse`` (Monte Carlo standard error of the mean). The last
        three are NaN with fewer than 20 kept draws of a chain, for particles, and for quantities that never changed.
        """
        if "_diagnostics" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute 'diagnostics_' before it is fitted.")
        if self._diagnostics is None:
            self._diagnostics = self._diagnosis(self._chains).columns
        return as_table(self._diagnostics)

    def _diagnosis(self, chains):
        return Diagnosis(self._monitored(chains), in_time=self.sampler_._draws_in_time)

    def _monitored(self, chains):
        return {}

    @property
    def checks_(self) -> Table:
        """Checks of the draws of the last fit; see the user guide, "Warnings and what to do".

        A DataFrame, or Bunch of columns if pandas is not installed: ``check`` (its name), ``value``, ``limit``, and
        ``fired``, whether the value is beyond the limit. Checks that do not apply to the fit are left out. The table is
        empty after an interrupted fit, and after ``partial_fit`` has updated a topic model or a mixture. If a chain
        kept fewer than 20 draws, its convergence was not judged: ``too_few_draws`` has then fired, which is no warning
        by itself, since short runs are a choice.
        """
        if "_check_results" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute 'checks_' before it is fitted.")
        return as_table(checks_table(self._check_results))

    def _checks(self, chains):
        """Results of the checks of a finished run, a list of `Check`."""
        if chains[0].plan.streams:  # kept draws come from different posteriors, since the data grew between them
            return []
        diagnosis = self._diagnosis(chains)
        self._diagnostics = diagnosis.columns
        return self._convergence_checks(diagnosis)

    def _convergence_checks(self, diagnosis):
        return convergence_checks(diagnosis, self._remedy)

    def _remedy(self, found):
        """The remedy in a warning that draws are `Unsettled`."""
        return f"Use a larger n_iter, such as n_iter={self._longer(10)}; see diagnostics_."

    def _longer(self, factor):
        """Number of steps of a run that is ``factor`` times as long, rounded up."""
        return rounded_up(factor * self._planned_iter)

    def _refuse_width(self, n_columns, **given):
        """Raise unless X has as many columns as in `fit`; ``given`` are the other arguments of the calling method."""
        if n_columns != self.n_features_in_:
            raise ValueError(
                f"X has {n_columns} features, but {type(self).__name__} is expecting {self.n_features_in_} features as "
                "input."
            )

    def _copied_state(self):
        """Copies of the attributes that a run changes, by name; copied chains are bound to their data."""
        memo, state = {}, self.__dict__
        copied = {name: deepcopy(state[name], memo) for name in ("sampler_", "trace_") if name in state}
        if "_chains" in state:
            copied["_chains"] = [chain.copy(memo) for chain in state["_chains"]]
        return copied

    def _view(self, chains):
        """The estimator with the chains in their present state, which callbacks receive."""
        self._chains = chains
        return self

    def _held_out(self, X, y=None, **given):
        """Held-out data as the argument of `_present_score`, for `HeldOutScore`."""
        return X, y, given

    def _present_score(self, held_out):
        """Held-out score of the present state of the first chain."""
        X, y, given = held_out
        present, shown = self._chains[0].snapshot(), copy(self)
        present.n_kept = 0
        shown._set_fitted([present])
        return shown.score(X, y, **given)

    @all_or_nothing
    def resume(self, X: CountsLike, y: Any = None) -> Self:
        """Continue a fit that was interrupted or loaded from a checkpoint.

        The draws are the same as those of an uninterrupted ``fit``.

        Parameters
        ----------
        X : same type and content as passed to ``fit``
            The data. A saved estimator does not contain them, except early in a stream of a topic model.
        y : same as passed to ``fit``, default=None

        Returns
        -------
        self : object
            Fitted.
        """
        return self._resume(X, y)

    def _check_resumable(self):
        """Raise unless there are chains to continue, with the parameters and the number of steps of their fit."""
        check_is_fitted(self, "_chains")
        self._validate_params()
        if self.n_iter not in (None, self._planned_iter) and not self._chains[0].plan.streams:
            raise ValueError(
                f"n_iter={self.n_iter}, but resume ends the run of {self._planned_iter} steps that fit began, after "
                f"{self._chains[0].step} of them; set n_iter back, or call fit for a run of another length."
            )
        self._refuse_changes(self._made_with, "resume")

    def _resume(self, *data, **given):
        """Bind the chains to the data again, and continue."""
        self._check_resumable()
        bound = self._bound_data(*data, **given)
        for chain in self._chains:
            chain.bind(bound)
        return self._run(self._chains, self._planned_iter)

    def __getstate__(self):
        if self.__dict__.get("_diagnostics", ()) is None:  # not computed yet, and they may need the data
            self._diagnostics = self._diagnosis(self._chains).columns
        state = super().__getstate__()  # the attributes themselves, not a copy
        # Callbacks belong to one run, and may refer to files and validation data. An unfitted estimator keeps them,
        # since another process may be about to fit it.
        if "_chains" not in state:
            return state
        return {name: value for name, value in state.items() if name not in _OF_A_FIT} | {"callbacks": None}

    def __setstate__(self, state):
        super().__setstate__(state)
        # A model saved by an earlier version lacks parameters that were added since, which get their defaults.
        for name, parameter in signature(type(self)).parameters.items():
            self.__dict__.setdefault(name, parameter.default)
