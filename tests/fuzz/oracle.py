"""What must hold of every call, whatever it was given.

It works, and then answers are finite, have the shapes that they should, and rows that must sum to 1 or have unit
length do; or it is refused by a ValueError or TypeError that says what is wrong, and then the estimator is what it was.
Either way the caller's data and parameters stay as they were, and so do NumPy's random numbers and error state, the
filters of warnings and the handler of Ctrl-C; and nobody is warned by NumPy or SciPy of what happened inside.
"""

import copy
import functools
import hashlib
import inspect
import pickle
import re
import signal
import sys
import traceback
import warnings
from pathlib import Path

import joblib
import numpy as np
from scipy import linalg, sparse
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError

import sk_sgmcmc
from sk_sgmcmc import inspection, samplers, targets
from sk_sgmcmc import targets as manifold_targets
from sk_sgmcmc.callbacks import Callback
from sk_sgmcmc.datasets import CountBlocks
from sk_sgmcmc.exceptions import ChainDivergedError
from tests.fuzz import inputs
from tests.fuzz.calls import ANSWERS, FITS, PLOTS, PROPERTIES

PACKAGE = Path(sk_sgmcmc.__file__).parent
HARNESS = Path(__file__).parent

FITTED, REFUSED = "fitted", "refused"


class FaultError(Exception):
    """What must hold does not; ``cause`` tells faults apart that have different causes."""

    def __init__(self, cause, detail=""):
        super().__init__(f"{cause}{': ' if detail else ''}{detail}")
        self.cause = cause


def require(holds, cause, detail=""):
    """Raise a fault where something does not hold."""
    if not holds:
        raise FaultError(cause, detail)


# -------------------------------------------------------------------------------------------------- what stays as it is


def content(given):
    """Hash of what a user passed, by its content alone."""
    if sparse.issparse(given):
        if given.format in ("csr", "csc"):
            parts = (given.data, given.indices, given.indptr, given.shape)
        elif given.format == "coo":
            parts = (given.data, given.row, given.col, given.shape)
        else:
            parts = (given.toarray(), given.format)
        return joblib.hash(parts)
    if isinstance(given, np.ndarray) and given.dtype != object:
        head = (given.dtype.str, given.shape, given.strides, bool(given.flags.writeable))
        return (*head, hashlib.sha256(np.ascontiguousarray(given).tobytes()).hexdigest())
    if isinstance(given, dict):
        return {name: content(each) for name, each in given.items()}
    if isinstance(given, Callback):  # which remembers what it saw
        return repr(given)
    if isinstance(given, list) and any(isinstance(each, Callback) for each in given):
        return [content(each) for each in given]
    if isinstance(given, CountBlocks):
        return [content(each) for each in given.items]
    module = type(given).__module__.split(".")[0]
    if module in ("pandas", "polars"):  # whose objects remember what they were asked
        columns = {name: given[name] for name in given.columns} if hasattr(given, "columns") else {"": given}
        index = list(getattr(given, "index", []))
        return repr([(name, str(each.dtype), each.to_list()) for name, each in columns.items()] + index)
    try:
        return joblib.hash(given)
    except Exception:  # an object() and the like
        return repr(given)


def surroundings():
    """What of the process no call may change."""
    return {
        "NumPy's random state": hashlib.sha256(pickle.dumps(np.random.get_state())).hexdigest(),  # noqa: NPY002
        "filters of warnings": list(warnings.filters),
        "NumPy's error state": np.geterr(),
        "handler of Ctrl-C": signal.getsignal(signal.SIGINT),
    }


# -------------------------------------------------------------------------------------------- how calls may be refused

_SPOKEN_OF = set("X y data input array features feature rows target labels documents chains".split())


@functools.cache
def _words():
    """What finds one of the names of which a refusal must give one."""
    words = _SPOKEN_OF | {"metadata", "sample_weight", "sampler", "step_size"}
    modules = (sk_sgmcmc, samplers, targets, manifold_targets, inspection)
    for each in (getattr(module, name) for module in modules for name in dir(module) if name[0] != "_"):
        if callable(each) and getattr(each, "__module__", "").startswith("sk_sgmcmc"):
            words |= set(inspect.signature(each).parameters)
            for name in dir(each) if isinstance(each, type) else ():
                if name[0] != "_" and inspect.isfunction(getattr(each, name)):
                    words |= set(inspect.signature(getattr(each, name)).parameters)
    return re.compile("|".join(rf"\b{re.escape(word)}\b" for word in words))


def check_refusal(error):
    """A refusal is a ValueError or TypeError, in words that name what is wrong."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if PACKAGE in Path(frame.filename).parents]
    place = f"{Path(ours[-1].filename).relative_to(PACKAGE)}:{ours[-1].name}" if ours else "outside of the package"
    kind = type(error).__name__
    require(isinstance(error, ValueError | TypeError), f"{kind} in {place}", str(error)[:300])
    message = str(error)
    last = Path(frames[-1].filename)
    if HARNESS in last.parents:
        return  # an error of the user's own callback
    if PACKAGE not in last.parents and any(part in ("sklearn", "pandas", "polars") for part in last.parts):
        return  # scikit-learn's own words, by which all estimators refuse such input
    # A NotFittedError is refused by scikit-learn's check above, and joblib hands on a divergence in another process.
    # Anything else is to be ours.
    require(len(message.split()) >= 4, f"{kind} in {place} says hardly anything", message)
    require(_words().search(message), f"{kind} in {place} names no parameter and no data", message[:300])
    require(
        PACKAGE in last.parents or isinstance(error, NotFittedError | ChainDivergedError),
        f"{kind} of {last.parent.name}/{last.name} let through in {place}", message[:300],
    )  # fmt: skip


_INTERNAL = (RuntimeWarning, linalg.LinAlgWarning, sparse.SparseEfficiencyWarning, DeprecationWarning, FutureWarning)


def check_warnings(caught):
    """Nobody is warned by NumPy, SciPy or numba of what happens inside."""
    for warning in caught:
        place = Path(warning.filename)
        inside = PACKAGE in place.parents
        is_notice = place.parent.name == "arviz"  # of its own next version, when it is imported
        if issubclass(warning.category, _INTERNAL) and HARNESS not in place.parents and not is_notice:
            where = place.relative_to(PACKAGE) if inside else f"{place.parent.name}/{place.name}"
            text = re.sub(r"[-+]?\d[\d.e+-]*", "#", str(warning.message))[:80]
            raise FaultError(f"{warning.category.__name__} from {where}: {text}", f"line {warning.lineno}")


# ------------------------------------------------------------------------------------------------- what answers must be


def _finite(name, value):
    value = np.asarray(value)
    if value.dtype.kind in "fc":
        require(np.isfinite(value).all(), f"{name} is not finite", f"{np.sum(~np.isfinite(value))} of {value.size}")


def _sums_to_one(name, value):
    value = np.asarray(value, dtype=float)
    require((value >= 0).all(), f"{name} is negative", f"{value.min()}")
    worst = np.abs(value.sum(axis=-1) - 1.0).max(initial=0.0)
    require(worst < 1e-5, f"{name} does not sum to 1", f"off by {worst:g}")


def _unit(name, value):
    worst = np.abs(np.linalg.norm(np.asarray(value, dtype=float), axis=-1) - 1.0).max(initial=0.0)
    require(worst < 1e-5, f"rows of {name} are not unit", f"off by {worst:g}")


def check_fitted(model, *, anew=True):
    """Fitted arrays are finite and have the shapes of the contract; ``anew``: by the parameters as they are now."""
    what = type(model).__name__
    chains = {value.shape[0] for value in model.samples_.values()}
    require(len(chains) == 1, "samples_ hold different numbers of chains", f"{chains}")
    require(not anew or chains == {int(model.n_chains)}, "samples_ lack chains", f"{chains}")
    for name, value in model.samples_.items():
        require(value.shape[1] >= 1, f"samples_[{name!r}] holds no draws", f"{value.shape}")
        _finite(f"{what}.samples_[{name!r}]", value)
    kept = {value.shape[1] for value in model.samples_.values()}
    require(len(kept) == 1, "samples_ hold different numbers of draws", f"{kept}")
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_") and isinstance(value, np.ndarray | float):
            _finite(f"{what}.{name}", value)
    d = model.n_features_in_
    if hasattr(model, "components_"):
        K = int(model.n_components) if anew else len(model.components_)
        width = model.components_.shape[1]
        require(model.components_.shape[0] == K, "components_ has a wrong shape", f"{model.components_.shape}")
        require(model.samples_["components"].shape[2:] == (K, width), "draws of components have a wrong shape")
        if what == "SphericalAdmixtureModel":
            _unit("components_", model.components_)
            _unit("samples_['components']", model.samples_["components"])
        else:
            _sums_to_one(f"{what}.components_", model.components_)
            _sums_to_one(f"{what}.samples_['components']", model.samples_["components"])
    match what:
        case "VonMisesFisherMixture":
            _unit("samples_['means']", model.samples_["means"])
            K = int(model.n_components) if anew else model.samples_["means"].shape[2]
            require(model.samples_["means"].shape[2:] == (K, d), "means have a wrong shape")
        case "BayesianLogisticRegression":
            n_classes = len(model.classes_)
            n_rows = 1 if n_classes == 2 else n_classes
            require(model.coef_.shape == (n_rows, d), "coef_ has a wrong shape", f"{model.coef_.shape}")
            require(model.intercept_.shape == (n_rows,), "intercept_ has a wrong shape")
            require(model.samples_["coef"].shape[2:] == (n_rows, d), "draws of coef have a wrong shape")
        case "BayesianLinearRegression" | "BayesianPoissonRegressor" | "BayesianNegativeBinomialRegressor":
            require(model.coef_.shape == (d,), "coef_ has a wrong shape", f"{model.coef_.shape}")
            require(np.isscalar(model.intercept_), "intercept_ is no number")
            require(model.samples_["coef"].shape[2:] == (d,), "draws of coef have a wrong shape")
        case "TopicRegressor" | "TopicClassifier":
            require(model.coef_.shape == (K,), "coef_ has a wrong shape", f"{model.coef_.shape}")
            require(model.samples_["coef"].shape[2:] == (K,), "draws of coef have a wrong shape")
            _finite("samples_['coef']", model.samples_["coef"])
        case "BayesianGaussian":
            require(model.samples_["mean"].shape[2:] == (d,), "draws of the mean have a wrong shape")
            precision = model.samples_["precision"]
            require(precision.shape[2:] == (d, d), "draws of the precision have a wrong shape")
            require(np.allclose(precision, np.swapaxes(precision, -1, -2)), "a precision is not symmetric")
        case "DPCategoricalMixture":
            require(model.n_clusters_ >= 1, "n_clusters_ is below 1", f"{model.n_clusters_}")
            require((model.samples_["n_clusters"] >= 1).all(), "a draw has no cluster")
        case "LatentClassModel":
            K = model.samples_["weights"].shape[2]
            require(model.weights_.shape == (K,), "weights_ has a wrong shape", f"{model.weights_.shape}")
            _sums_to_one("samples_['weights']", model.samples_["weights"])
            _finite("samples_['components']", model.samples_["components"])
            if hasattr(model, "coef_"):
                shape = (K, len(model.metadata_names_) + 1)
                require(model.coef_.shape == shape, "coef_ of metadata has a wrong shape", f"{model.coef_.shape}")
        case "DMRTopicModel" | "StructuralTopicModel":
            shape = (K, len(model.metadata_names_) + 1)
            require(model.coef_.shape == shape, "coef_ of metadata has a wrong shape", f"{model.coef_.shape}")


def _length(X):
    return X.shape[0] if hasattr(X, "shape") else len(X)


def check_answer(model, op, X, answer):
    """An answer about rows is finite and has the shape that it should."""
    name = f"{type(model).__name__}.{op}"
    match op:
        case "transform" | "predict_proba" | "fit_transform":
            _finite(name, answer)
            _sums_to_one(name, answer)
            require(answer.shape[0] == _length(X), f"{name} has a wrong shape", f"{answer.shape}")
            if op == "predict_proba":
                require(answer.shape[1] == len(model.classes_), f"{name} has a wrong shape", f"{answer.shape}")
        case "predict" | "fit_predict":
            if isinstance(answer, tuple):  # with standard deviations
                for part in answer:
                    _finite(name, part)
                answer = answer[0]
            require(answer.shape == (_length(X),), f"{name} has a wrong shape", f"{answer.shape}")
            if hasattr(model, "classes_"):
                require(np.isin(answer, model.classes_).all(), f"{name} answers what is no class")
        case "score" | "perplexity":
            require(isinstance(answer, float | np.floating), f"{name} is no number", f"{answer!r}"[:100])
            if is_regressor(model) and _length(X) < 2:
                return  # scikit-learn's R2 of one row is NaN, with a warning
            _finite(name, answer)
            if op == "perplexity":
                require(answer >= 1.0 - 1e-9, f"{name} is below 1", f"{answer}")
        case "score_samples":
            require(answer.shape == (_length(X),), f"{name} has a wrong shape", f"{answer.shape}")
            _finite(name, answer)
        case "co_clustering":
            require(answer.shape == (_length(X), _length(X)), f"{name} has a wrong shape", f"{answer.shape}")
            require((np.asarray(answer) >= 0).all() and (np.asarray(answer) <= 1 + 1e-9).all(), f"{name} is no share")
        case "decision_function":
            _finite(name, answer)
            require(len(answer) == _length(X), f"{name} has a wrong shape", f"{answer.shape}")
        case "predict_interval" | "predict_uncertainty" | "exact_posterior":
            for part in answer.values() if isinstance(answer, dict) else answer:
                _finite(name, part)


def check_table(name, answer):
    """Limits of intervals in a table are numbers in order."""
    if not hasattr(answer, "columns"):
        return
    columns = [column for column in answer.columns if isinstance(column, str)]
    if {"low", "high"} <= set(columns):
        low, high = (np.asarray(answer[column], dtype=float) for column in ("low", "high"))
        if name.endswith(".effects"):  # Documents may not determine a regression; then nothing is a number.
            point = np.asarray(answer["difference" if "difference" in columns else "prevalence"], dtype=float)
            low, high = low[~np.isnan(point)], high[~np.isnan(point)]
        if name.startswith("Topic") and name.endswith(".coef_table"):  # nor a coefficient
            known = ~np.isnan(np.asarray(answer["mean"], dtype=float))
            low, high = low[known], high[known]
        require(np.isfinite(low).all() and np.isfinite(high).all(), f"{name} has limits that are not finite")
        require((low <= high + 1e-12).all(), f"{name} has limits in the wrong order")


# ---------------------------------------------------------------------------------------------------------- estimators


def _other_rows(case, which):
    """The description of rows that an operation is given, and how many there are."""
    data = dict(case["data"])
    match which:
        case "one row":
            data["n"] = 1
        case "seed":
            data["seed"] += 1
        case "empty rows":
            data["odd"] = ["all zero"]
        case "narrow":
            data["d"] = max(data["d"] - 1, 1)
        case "wide":
            data["d"] += 1
        case "nan":
            data["odd"] = ["nan"]
        case "other form":
            data["form"] = "csr_array" if data["form"] in ("dense", "list", "pandas") else "dense"
        case "no rows":
            data["n"] = 0
    return data


_WITH_METADATA = (
    *FITS, "transform", "score", "perplexity", "transform_draws", "topic_info", "representative_docs",
    "topic_correlation", "topics_over_time",
)  # fmt: skip


def _close_figures():
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


class _Run:
    """One estimator, and what is done with it one after another."""

    def __init__(self, case):
        self.case = case
        self.parameter_sizes = {
            "K": _whole(case["params"].get("n_components"), 10), "V": case["data"]["d"], "N": case["data"]["n"],
            "case": case,
        }  # fmt: skip
        params = {name: inputs.make(value, self.parameter_sizes) for name, value in case["params"].items()}
        self.model = getattr(sk_sgmcmc, case["what"])(**params)
        self.was_fitted = False
        self.outcomes = []

    def given(self, op, which, more):
        """Arguments of an operation, of which ``more`` describes those that are not rows."""
        case, data = self.case, _other_rows(self.case, which)
        sizes = {**self.parameter_sizes, "N": data["n"]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            named = {name: inputs.make(value, sizes) for name, value in more.items()}
            if which is None:
                return (), named
            X = inputs.rows(data)
            positional = (inputs.blocks(X, case["blocks"], data["form"]) if "blocks" in case else X,)
            if "y" in case and op in (*FITS, "score"):
                positional = (*positional, inputs.labels(case["y"], data["n"]))
            if op == "regress":
                positional = (*positional, inputs.labels(case.get("y", "floats"), data["n"]))
            if "sample_weight" in case and op in ("fit", "partial_fit"):
                named["sample_weight"] = inputs.weights(case["sample_weight"], data["n"])
            if "exposure" in case and op in (*FITS, "score", "predict", "predict_interval"):
                named["exposure"] = inputs.weights(case["exposure"], data["n"])
            if "metadata" in case and op in _WITH_METADATA:
                named.setdefault("metadata", inputs.metadata(case["metadata"], data["n"]))
        return positional, named

    def asked(self, op):
        """The method, property or plot of an operation; None where the estimator lacks it."""
        if op in PROPERTIES:
            return lambda: getattr(self.model, op)
        if op in PLOTS:
            show = getattr(inspection, op)
            return functools.partial(getattr(show, "from_estimator", show), self.model)
        return getattr(self.model, op, None)

    def call(self, op, which, more):
        """One operation, and what must hold of it."""
        if op == "set_params":
            ((name, value),) = which.items()
            self.model.set_params(**{name: inputs.make(value, self.parameter_sizes)})
            return
        if op in ("pickle", "clone", "deepcopy"):
            if op == "clone":
                self.model, self.was_fitted = clone(self.model), False
            else:
                self.model = pickle.loads(pickle.dumps(self.model)) if op == "pickle" else copy.deepcopy(self.model)
            return
        method = self.asked(op)
        if method is None:
            return
        args, kwargs = self.given(op, which, more)
        before = [content(each) for each in (*args, *kwargs.values())]
        parameters = self.model.get_params(deep=True)
        random_state = parameters.pop("random_state", None)  # one that is an object moves on, as in all of scikit-learn
        parameters_before = {name: content(value) for name, value in parameters.items()}
        estimator_before = joblib.hash(_but_seed(self.model))
        around = surroundings()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            filters = list(warnings.filters)
            answer = error = None
            try:
                answer = method(*args, **kwargs)
            except Exception as raised:
                error = raised
            finally:
                _close_figures()
            require(filters == list(warnings.filters), f"{op} changed the filters of warnings")
        for name, value in surroundings().items():
            require(value == around[name], f"{op} changed {name}")
        after = [content(each) for each in (*args, *kwargs.values())]
        require(after == before, f"{op} changed the caller's data")
        now = self.model.get_params(deep=True)
        require(now.pop("random_state", None) is random_state, f"{op} changed random_state")
        now = {name: content(value) for name, value in now.items()}
        changed = [name for name in now if now[name] != parameters_before.get(name)]
        require(not changed, f"{op} changed parameters", f"{changed}")
        if error is not None:
            left = joblib.hash(_but_seed(self.model)) == estimator_before
            require(left, f"a refused {op} changed the estimator", f"{type(error).__name__}: {str(error)[:150]}")
            if op in PROPERTIES and isinstance(error, AttributeError) and not self.was_fitted:
                return  # as of any attribute of a fit
            check_refusal(error)
        check_warnings(caught)
        if error is not None:
            message = re.sub(r"0x[0-9a-f]+", "0x…", str(error))  # The address of an object that was passed.
            self.outcomes.append((op, f"{type(error).__name__}: {message}"))
            return
        if op in FITS:
            self.was_fitted = True
            check_fitted(self.model, anew=op != "resume")
        elif op not in ("exact_posterior", "exact_samples"):
            require(self.was_fitted, f"{op} answers before any fit")
        if op in ANSWERS or op in ("fit_transform", "fit_predict"):
            if args:
                check_answer(self.model, op, args[0], answer)
            check_table(f"{type(self.model).__name__}.{op}", answer)
            seeded = kwargs.get("random_state", 0) is not None and op not in ("exact_samples", "merge_topics")
            if op in ANSWERS and seeded:
                again = getattr(self.model, op)(*args, **kwargs)
                require(joblib.hash(again) == joblib.hash(answer), f"{op} answers otherwise when asked again")
        self.outcomes.append((op, FITTED))

    def run(self):
        for op, which, *more in self.case["ops"]:
            self.call(op, which, *more or [{}])
        return self


def _but_seed(model):
    return {name: value for name, value in vars(model).items() if name not in ("random_state", "callbacks")}


def _whole(value, default):
    value = inputs.make(value)
    return int(value) if isinstance(value, int | np.integer) and 1 <= value <= 1000 else default


def _judge_estimator(case):
    run = _Run(case).run()
    fits = [outcome for op, outcome in run.outcomes if op in FITS]
    seeds = [case["params"].get("random_state")]
    seeds += [of["random_state"] for op, of, *_ in case["ops"] if op == "set_params" and "random_state" in of]
    if case.get("twice") and FITTED in fits and all(type(seed) is int for seed in seeds):
        again = _Run(case).run()
        require(run.outcomes == again.outcomes, "a second run ends otherwise")
        for name, value in getattr(run.model, "samples_", {}).items():
            same = np.array_equal(value, again.model.samples_[name])
            require(same, "the same seed gives other draws", name)
    return FITTED if FITTED in fits else REFUSED, run.outcomes


# -------------------------------------------------------------------------------------------------------------- sample


def _log_density(theta, rows, scale, gradient):
    total = -0.5 * (theta[0] ** 2 + theta[1] ** 2)
    gradient[0], gradient[1] = -theta[0], -theta[1]
    for i in range(rows.shape[0]):
        residual = rows[i, 0] - theta[0]
        gradient[0] += scale * residual
        total -= 0.5 * scale * residual**2
    return total


def _named_log_density(mu, tau, p):
    return -0.5 * np.sum(mu**2) - np.sum(tau**2) + np.sum(np.log(p))


_JITTED = {}


def target_of(case):
    """The target of a case of `sample`."""
    n, d = case["data"]["n"], case["data"]["d"]
    X = np.random.default_rng(0).normal(size=(n, d))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    name = case["target"]
    params = {key: inputs.make(value, {"K": n, "V": d}) for key, value in case["params"].items()}
    match name:
        case "function":
            return _named_log_density
        case "DirichletCategorical":
            params.setdefault("categories", np.arange(n) % d)
        case "GammaPoisson":
            params["counts"] = np.abs(X).round()
        case "LogNormalMedian":
            params["values"] = np.exp(X)
        case "GaussianMean":
            params["rows"] = X
        case "Density":
            if not _JITTED:
                import numba

                _JITTED["density"] = numba.njit(_log_density)
            params |= {"log_density_and_gradient": _JITTED["density"], "dim": 2, "data": X}
        case "RestrictedGaussian":
            params["linear"] = X[:2]
        case "ExponentialMixture":
            params["directions"] = X
        case "ChainedVonMisesFisher":
            params["directions"] = unit
        case "MatrixCompletion":
            params = {"matrix": X, "factor_scales": [1.0], "noise_scale": 1.0, **params}
    return (getattr(targets, name, None) or getattr(manifold_targets, name))(**params)


def _call_sample(case):
    """Draws, or None where the call is refused."""
    sizes = {"K": case["data"]["n"], "V": case["data"]["d"]}
    target = target_of(case)
    call = {name: inputs.make(value, sizes) for name, value in case["call"].items()}
    if case["target"] == "function":
        usual = {"parameters": {"mu": (), "tau": targets.Positive(), "p": targets.Simplex(3)}}
        call |= usual | {name: inputs.make(value, sizes) for name, value in case["params"].items()}
    random_state = call.pop("random_state")
    passed = [target, *call.values()]
    before = [content(_parts(each)) for each in passed]
    around = surroundings()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = error = None
        try:
            answer = sk_sgmcmc.sample(target, **call, random_state=random_state)
        except Exception as raised:
            error = raised
    for name, value in surroundings().items():
        require(value == around[name], f"sample changed {name}")
    require([content(_parts(each)) for each in passed] == before, "sample changed the caller's data")
    if error is not None:
        check_refusal(error)
    check_warnings(caught)
    if error is not None:
        return None, f"{type(error).__name__}: {error}"
    for name, value in answer.samples_.items():
        require(value.shape[0] == int(call.get("n_chains", 1)), f"sample: {name} lacks chains", f"{value.shape}")
        require(value.shape[1] >= 1, f"sample: {name} holds no draws", f"{value.shape}")
        if name != "log_omega":
            _finite(f"sample of {case['target']}: {name}", value)
    if "omega" in answer.samples_:
        _sums_to_one("sample: omega", answer.samples_["omega"])
    return answer, FITTED


def _parts(given):
    """An object with parameters as a dict of them, a function as nothing."""
    if hasattr(given, "get_params"):
        return {name: _parts(value) for name, value in given.get_params(deep=False).items()}
    return None if callable(given) else given


def _judge_sample(case):
    answer, outcome = _call_sample(case)
    if answer is None:
        return REFUSED, [("sample", outcome)]
    if case.get("twice") and type(case["call"]["random_state"]) is int:
        again, _ = _call_sample(case)
        for name, value in answer.samples_.items():
            same = np.array_equal(value, again.samples_[name], equal_nan=True)
            require(same, "the same seed gives other draws", f"sample: {name}")
    return FITTED, [("sample", FITTED)]


def judge(case):
    """Run a case: "fitted" or "refused" and what its operations came to; raises `FaultError`."""
    return _judge_sample(case) if case["what"] == "sample" else _judge_estimator(case)
