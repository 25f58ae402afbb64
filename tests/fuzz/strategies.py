"""Hypothesis strategies that draw descriptions of cases; see `inputs` for what a description is."""

import importlib.util
import inspect

from hypothesis import strategies as st
from sklearn.utils._param_validation import StrOptions, make_constraint
from sklearn.utils._param_validation import generate_valid_param as one_valid

import sk_sgmcmc
from sk_sgmcmc import inspection, samplers
from sk_sgmcmc.samplers._registry import SAMPLERS, fitting_pair
from tests.fuzz import inputs
from tests.fuzz.calls import ANSWERS, FITS, MUST, PLOTS, PROPERTIES, plots_of, values_of

ESTIMATORS = (
    "BayesianLDA", "DMRTopicModel", "StructuralTopicModel", "GammaProcessTopicModel", "SphericalAdmixtureModel",
    "DPCategoricalMixture", "BayesianLogisticRegression", "BayesianGaussian", "VonMisesFisherMixture",
    "BayesianLinearRegression", "BayesianPoissonRegressor", "TopicRegressor", "TopicClassifier",
    "BayesianNegativeBinomialRegressor", "LatentClassModel",
)  # fmt: skip
COUNT_MODELS = ESTIMATORS[:4]
COUNT_REGRESSIONS = ("BayesianPoissonRegressor", "BayesianNegativeBinomialRegressor")

# Every estimator with every sampler that fits it, by name.
PAIRS = tuple(
    (name, sampler)
    for name in ESTIMATORS
    for sampler, make in SAMPLERS.items()
    if fitting_pair(make(), getattr(sk_sgmcmc, name)._offers)
)
# Those of `tests/common/instances.py`, whose kernels other tests compile anyhow.
COMPILED = (
    *((name, None) for name in ESTIMATORS),
    ("BayesianLDA", "scir"), ("BayesianLDA", "gibbs"), ("BayesianLDA", "sgrld"),
    ("DMRTopicModel", "gibbs"), ("StructuralTopicModel", "gibbs"), ("GammaProcessTopicModel", "gibbs"),
    ("SphericalAdmixtureModel", "gsgnht"), ("SphericalAdmixtureModel", "gmc-b-gibbs"),
    ("VonMisesFisherMixture", "gsgnht"), ("VonMisesFisherMixture", "gmc"),
    ("BayesianLogisticRegression", "sgld"), ("BayesianLogisticRegression", "hmc"),
    ("BayesianLogisticRegression", "sghmc-em"), ("BayesianGaussian", "sgnht"),
    ("BayesianLinearRegression", "gibbs"), ("BayesianLinearRegression", "sghmc"), ("BayesianLinearRegression", "hmc"),
    ("BayesianPoissonRegressor", "sghmc"), ("BayesianNegativeBinomialRegressor", "sghmc"),
    ("TopicRegressor", "gibbs"), ("TopicClassifier", "gibbs"),
    ("DPCategoricalMixture", "scir"), ("DPCategoricalMixture", "sgrld"), ("DPCategoricalMixture", "gibbs"),
    ("LatentClassModel", "gibbs"),
)  # fmt: skip


def _available(forms):
    """Those of forms, named by the package that makes them, whose package is installed."""
    missing = tuple(name for name in ("pandas", "polars") if importlib.util.find_spec(name) is None)
    return tuple(form for form in forms if not form.startswith(missing))


LABELS, WEIGHTS, METADATA_FORMS = map(_available, (inputs.LABELS, inputs.WEIGHTS, inputs.METADATA_FORMS))


def _np(dtype, value):
    return {"~": "np", "type": dtype, "of": value}


def _pair(*values):
    return {"~": "tuple", "of": list(values)}


def _full(value, *shape, dtype="float64"):
    return {"~": "full", "of": value, "shape": list(shape), "dtype": dtype}


def _constraint(name, shape):
    return {"~": "constraint", "of": name, "shape": shape}


def _sampler(name, **params):
    return {"~": "sampler", "of": name, "params": params}


# ------------------------------------------------------------------------------------------------ what is passed at all

# Passed for any parameter. Those that ask for work, and get it, have smaller ones: nobody can refuse a long run.
SMALL_ODDITIES = (
    0, -1, 1, 2, None, True, False, 0.0, -0.0, 0.5, 1.0, 1.5, -1.0, float("nan"), "", "auto", "text", [], [1], [1, 2],
    _pair(), _pair(1, 2), _pair(1.0, -1.0), _np("int8", 3), _np("uint8", 2), _np("int16", 3), _np("uint64", 3),
    _np("float32", 0.5), _np("float16", 0.5), _np("bool_", True), _np("float64", float("nan")),
    {"~": "array", "of": 2}, {"~": "array", "of": [2]}, {"~": "array", "of": [0.5, 0.5]}, {"~": "dict", "of": []},
    {"~": "object"},
)  # fmt: skip
ODDITIES = (*SMALL_ODDITIES, float("inf"), float("-inf"), 1e300, 1e-300, 1e12, 1e-12, 10**20, -(10**20))
WORK = {
    "n_iter", "n_chains", "n_sweeps", "n_inner", "n_doc_draws", "n_leapfrog", "n_fixed_point", "n_particles",
    "n_momenta", "n_jobs", "verbose", "n_components", "every",
}  # fmt: skip

# What each parameter may sensibly be. Numbers of rows and columns are 2 to 30.
PRIORS = (0.01, 0.5, 1, 20.0, 1e-6, 1e4, _np("float32", 0.5))
SENSIBLE = {
    "n_iter": (2, 3, 5, 9, _np("int8", 4), _np("uint8", 4), _np("int64", 4)),
    "burn_in": (0, 0.0, 0.5, 0.9, 1, _np("int8", 1), _np("float32", 0.25)),
    "thin": ("auto", 1, 2, _np("uint8", 1)),
    "batch_size": ("auto", 1, 2, 5, _np("int8", 4), _np("uint8", 4), 10**6),
    "n_chains": (1, 2, 3, _np("int8", 2), _np("uint8", 2)),
    "n_jobs": (None, 1, 2, -1, _np("int8", 2)),
    "random_state": (0, 7, 2**32 - 1, _np("int32", 3), _np("uint8", 3), None, {"~": "RandomState", "of": 0}),
    "verbose": (0, False),
    "callbacks": (
        None, {"~": "callback", "of": "go on"}, [], [{"~": "callback", "of": "go on"}], {"~": "callback", "of": "stop"},
        {"~": "callback", "of": "refuse"}, {"~": "Checkpoint"}, {"~": "HeldOutScore", "every": 1},
        [{"~": "Checkpoint"}, {"~": "HeldOutScore", "every": 2}, {"~": "callback", "of": "stop"}],
    ),
    "n_components": (1, 2, 3, 5, 12, _np("int8", 3), _np("uint8", 3), _np("int64", 3)),
    "doc_topic_prior": ("auto", *PRIORS, _full(0.5, "K"), _full(0.5, "K", dtype="float32"), _full(1, "V")),
    "topic_word_prior": (
        "auto", *PRIORS, _full(0.1, "V"), _full(0.1, "K", "V"), _full(1, "K", "V", dtype="int64"), _full(0.1, "V", "K"),
    ),
    "assignments": ("auto", "stored", "fresh"),
    "n_sweeps": (_pair(1, 1), _pair(1, 2), [0, 1], _pair(_np("int8", 1), 2)),
    "init": ("random", "soft", "centroids"),
    "total_samples": (None, 1, 100, 1e6, 1e300, _np("int8", 100)),
    "new_features": ("error", "extend"),
    "keep_rows": ("auto", True, False, 1, 40, _np("int8", 60), _np("bool_", False)),
    "keep_documents": ("auto", True, False, 1, 40, _np("int8", 60), _np("bool_", False)),
    "topic_prior": ("dirichlet", "normal"),
    "topic_prior_scale": PRIORS,
    "whiten": (True, False, _np("bool_", False)),
    "coef_sampler": (None, "sgld", "sghmc", "sgnht", "sg-nphmc", "hmc", _sampler("SGHMC", step_size=0.01)),
    "metadata_prior_scale": PRIORS,
    "dispersion": ("shared", "topic"),
    "feedback": (True, False, _np("bool_", False)),
    "coef_prior_scale": PRIORS,
    "dispersion_prior_scale": PRIORS,
    "intercept_prior_scale": PRIORS,
    "metadata_columns": (None, 1, 2, [0], [0, -1], "w1", ["w0", "w2"], ["absent"], 10**6, _np("int8", 1), [True]),
    "handle_unknown": ("warn", "error", "ignore"),
    "kappa0": (None, "auto", *PRIORS),
    "kappa1": (None, "auto", *PRIORS),
    "sigma": (None, "auto", *PRIORS),
    "normalize": (True, False, _np("bool_", True)),
    "n_inner": (1, 2, 5, _np("uint8", 3)),
    "n_doc_draws": (None, _pair(1, 1), _pair(2, 1), [0, 2]),
    "proportions": ("stored", "fresh"),
    "atoms_per_round": PRIORS,
    "concentration_prior": (1.0, 1e-6, 1e6, _pair(1.0, 1.0), [1, 2], _pair(1e-3, 1e3), _pair(1.0, 0.0), _pair(1.0)),
    "rate_prior": (_pair(1.0, 1.0), [1, 2], _pair(1e-6, 1e6), _pair(0.0, 1.0), _pair(1.0, float("nan"))),
    "scale_prior": (_pair(0.01, 0.01), [1, 2], _pair(1e6, 1e-6), _pair(-1.0, 1.0)),
    "likelihood": ("multinomial", "bernoulli", "categorical", "mixed"),
    "category_prior": (*PRIORS, _full(0.5, "V"), _full(0.5, "K"), _full(0.5, 3), [0.5, 0.5]),
    "partition_loss": ("vi", "binder"),
    "prior_scale": (*PRIORS, "auto"),
    "prior": ("normal", "laplace"),
    "noise_scale_prior": (None, *PRIORS),
    "fit_intercept": (True, False, _np("bool_", False)),
    "class_weight": (
        None, "balanced", {"~": "dict", "of": [[0, 1.0], [1, 2.0]]}, {"~": "dict", "of": [["yes", 3]]},
        {"~": "dict", "of": [[0, -1.0]]}, {"~": "dict", "of": [[0, 0], [1, 0]]},
    ),
    "control_variates": (True, False),
    "with_replacement": (True, False),
    "batch_order": ("shuffled", "palindromic"),
    "mean_prior": (None, _full(0.0, "V"), _full(1, "V", dtype="int32"), _full(1e6, "V"), _full(0.0, "K"), [0.0]),
    "mean_precision_prior": (0, 0.0, *PRIORS, 1e6),
    "degrees_of_freedom_prior": (None, 1.0, 3, 50.0, 1e4, 1e8, _np("int8", 40)),
    "covariance_prior": (None, [[1.0]], _full(1.0, "V", "V"), _full(0.0, "V", "V"), _full(1.0, "V")),
    "kappa": ("auto", *PRIORS, 1e8, _full(5.0, "K"), _full(5.0, "V")),
    "kappa_prior_scale": PRIORS,
    "seed_words": (
        None, {"~": "dict", "of": [["w0", 0]]}, {"~": "dict", "of": [["w0", 0], ["w1", [0, 1]]]},
        {"~": "dict", "of": [["A", ["w0", "w1"]]]}, {"~": "dict", "of": [["absent", 0]]},
        {"~": "dict", "of": [["w0", 9]]},
    ),
    "seed_weight": PRIORS,
    "formula": (
        None, "~ 1", "~ number", "~ text", "~ number + text", "~ number * bool", "~ bs(number, df=4)", "~ absent",
        "number +", "~ {__import__('os')}",
    ),
    "spline_prior": ("smooth", "independent"),
    "content": (None, "text", "bool", "number", "absent"),
    "keywords": (
        None, {"~": "dict", "of": [["A", ["w0", "w1"]]]}, {"~": "dict", "of": [["A", ["w1"]], ["B", ["w1", "w2"]]]},
        {"~": "dict", "of": [["A", ["absent"]]]}, {"~": "dict", "of": [["A", 3]]},
    ),
    "topics_sampler": (None, "scir", "sgrld", "gibbs", "sghmc", "hmc", "no-such-sampler"),
    "weights": ("replication", "survey"),
    "weight_concentration_prior": PRIORS,
    "columns": (
        "auto", {"~": "dict", "of": [[0, "continuous"]]}, {"~": "dict", "of": [[0, "ordinal"], [1, "count"]]},
        {"~": "dict", "of": [["w0", "categorical"]]}, {"~": "dict", "of": [[0, "other"]]},
    ),
    "ordinal_prior": PRIORS,
    "count_prior": PRIORS,
    "continuous_prior": ((0.1, 2.0, 0.5), [1.0, 1.0, 1.0], (0.1, 2.0), (0.0, 1.0, 1.0)),
    "n_starts": (0, 1, 10),
    "weight_concentration_prior_type": ("dirichlet_process", "dirichlet_distribution"),
}  # fmt: skip

STEPS = ("auto", 1e-8, 1e-4, 0.01, 0.1, 1, 10.0, 1e3, 0.0, -0.1, _np("float32", 0.1))
SCHEDULES = (
    {"~": "schedule", "of": "ConstantStep", "params": {"step_size": 0.01}},
    {"~": "schedule", "of": "PolynomialDecay", "params": {"initial": 0.01, "offset": 10.0}},
    {"~": "schedule", "of": "CyclicalStep", "params": {"initial": 0.01, "cycle_length": 2}},
)
OF_SAMPLERS = {
    "step_size": (*STEPS, *SCHEDULES),
    "friction": ("auto", 0.1, 1, 10.0, 1e6, 0.0),
    "temperature": (0.1, 1, 2.0, 0.0),
    "n_leapfrog": (1, 2, 5, _np("int8", 2)),
    "jitter": (0, 0.2, 0.9, 1.0),
    "target_accept": (0.2, 0.85, 0.99),
    "n_particles": (1, 2, 5, _np("int8", 3)),
    "bandwidth": ("median", "he"),
    "form": ("mass", "white"),
    "drive": ("kinetic", "likelihood"),
    "start_scale": (0, 0.1, 1.0, 1e3),
    "parameterization": ("expanded-mean", "expanded-natural", "reduced-mean", "reduced-natural"),
    "kind": ("det", "fgh"),
    "scheme": ("baoab", "aboba", "ubu", "euler"),
    "max_depth": (1, 2, 5, _np("int8", 2), 21),
    "mass": (
        None,
        "auto",
        "diagonal",
        "full",
        1.0,
        [1.0, 2.0],
        {"~": "schedule", "of": "MonteCarloEM", "params": {"every": 2, "n_momenta": 5}},
    ),
    "preconditioner": (None, [1.0, 2.0], "rmsprop"),
    "thermostat": (None, 0.5, "scalar"),
    "gradient_noise": (0.0, 1.0, "estimated"),
    "n_inner": (1, 3),
    "n_fixed_point": (1, 5),
    "tolerance": (1e-9, 1e-3, 0.0),
    "exponent": (0.51, 0.8, 1.0),
    "offset": (0.0, 5.0),
}
CLASSES = tuple(
    name
    for name in samplers.__all__
    if isinstance(getattr(samplers, name), type)
    and issubclass(getattr(samplers, name), samplers.Sampler)
    and name not in ("Sampler", "Recipe", "ParticleRecipe")
)
CLASS_OF = {name: make.__name__ for name, make in SAMPLERS.items()}


def _rarely(draw, one_in):
    return draw(st.integers(1, one_in)) == one_in


# --------------------------------------------------------------------------------------------------------- strategies


@st.composite
def sampler_values(draw, name):
    """A sampler by its name, or as an object with some parameters."""
    if name is None or draw(st.booleans()):
        return name
    cls = CLASS_OF[name]
    known = sorted(getattr(samplers, cls)().get_params(deep=False))
    params = {}
    for parameter in draw(st.lists(st.sampled_from(known), max_size=4, unique=True)) if known else []:
        params[parameter] = draw(parameter_values(parameter, _allowed(cls, parameter) | OF_SAMPLERS))
    return _sampler(cls, **params)


def _allowed(cls, parameter):
    """Values of a sampler's parameter by its own declaration, for one that ``OF_SAMPLERS`` does not know."""
    constraints = [make_constraint(c) for c in getattr(samplers, cls)._parameter_constraints.get(parameter, ())]
    values = [v for c in constraints for v in (sorted(c.options) if isinstance(c, StrOptions) else [one_valid(c)])]
    values = [value for value in values if value is None or isinstance(value, str | bool | int | float)]
    return {parameter: tuple(values)} if values else {}


@st.composite
def parameter_values(draw, name, sensible=SENSIBLE, odd=16):
    """What a parameter is set to: mostly what it may be, else anything."""
    if name in sensible and not _rarely(draw, odd):
        return draw(st.sampled_from(sensible[name]))
    return draw(st.sampled_from(SMALL_ODDITIES if name in WORK else ODDITIES))


_COUNT_ODDITIES = (
    "empty row", "empty column", "all zero", "all one", "constant column", "fractional", "nearly nothing",
    "smallest number", "one count of 1e5", "equal rows", "equal columns", "negative zero",
)  # fmt: skip
_PLAIN_FORMS = _available((
    "dense", "fortran", "strided", "read-only", "memory map", "list", "csr_array", "csr_matrix", "csc_array",
    "csc_matrix", "coo_array", "coo_matrix", "lil_array", "dok_array", "wide indices", "untidy", "doubled",
    "read-only sparse", "pandas", "pandas nullable", "pandas sparse", "polars", "tuple", "matrix with mask",
))  # fmt: skip
_WRONG_FORMS = tuple(
    name for name in inputs.FORMS if name in _available(inputs.FORMS) and name not in (*_PLAIN_FORMS, *inputs.MALFORMED)
)
_DTYPES = (
    "float64", "float32", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint64", "bool", "object",
    ">f8",
)  # fmt: skip


@st.composite
def data(draw, kinds, *, malformed=False):
    """A description of rows: mostly usable ones, in any form and type."""
    described = {
        "kind": draw(st.sampled_from(kinds)),
        "n": draw(st.sampled_from((14, 14, 14, 25, 3, 2, 1))),
        "d": draw(st.sampled_from((6, 6, 6, 9, 3, 2, 1))),
        "seed": draw(st.integers(0, 3)),
        "form": draw(st.sampled_from(("dense", "csr_array", *_PLAIN_FORMS))),
    }
    if draw(st.booleans()):
        described["dtype"] = draw(st.sampled_from(_DTYPES))
    if _rarely(draw, 3):
        usual = _COUNT_ODDITIES if described["kind"] != "normal" else tuple(inputs.ODD_NUMBERS)
        described["odd"] = [draw(st.sampled_from(tuple(inputs.ODD_NUMBERS) if _rarely(draw, 4) else usual))]
        if _rarely(draw, 4):
            described["odd"].append(draw(st.sampled_from(usual)))
    if _rarely(draw, 30):
        described["n" if draw(st.booleans()) else "d"] = 0
    if _rarely(draw, 20):
        described["form"] = draw(st.sampled_from(_WRONG_FORMS))
    elif malformed and _rarely(draw, 40):
        described["form"] = draw(st.sampled_from(tuple(inputs.MALFORMED)))
    return described


# Models of directions also take counts, as texts in TF-IDF or plain counts.
KINDS = {
    "SphericalAdmixtureModel": ("normal", "counts"),
    "VonMisesFisherMixture": ("normal", "counts"),
    "BayesianLogisticRegression": ("normal", "normal", "counts"),
    "BayesianGaussian": ("normal",),
    "BayesianLinearRegression": ("normal", "normal", "counts"),
    "BayesianPoissonRegressor": ("normal", "normal", "counts"),
    "BayesianNegativeBinomialRegressor": ("normal", "normal", "counts"),
    "LatentClassModel": ("normal", "counts", "binary", "codes"),
}
DP_KINDS = {"multinomial": ("counts",), "bernoulli": ("binary",), "categorical": ("codes", "binary")}
DP_KINDS["mixed"] = KINDS["LatentClassModel"]

# Rows that answers and further fits are asked about: those of the first fit, or others.
OTHER_ROWS = ("same", "same", "same", "one row", "seed", "empty rows", "narrow", "wide", "nan", "other form", "no rows")


@st.composite
def arguments(draw, call, function):
    """Arguments of a call besides rows: those that it must have, and a few others."""
    taken = [name for name in inspect.signature(function).parameters if values_of(call, name)]
    must = [name for name in MUST.get(call, ()) if name in taken]
    more = draw(st.lists(st.sampled_from(taken), max_size=2, unique=True)) if taken else []
    given = {}
    for name in [*must, *(name for name in more if name not in must)]:
        odd = _rarely(draw, 20)
        given[name] = draw(st.sampled_from(SMALL_ODDITIES if odd else values_of(call, name)))
    return given


@st.composite
def operations(draw, name, parameters, *, common=False):
    """What is done one after another, a fit first."""
    cls = getattr(sk_sgmcmc, name)
    model, fits = cls(), [op for op in FITS if hasattr(cls, op)]
    answers = [op for op in ANSWERS if hasattr(model, op)]  # some methods are there for some models alone
    shown = [each for each in PROPERTIES if hasattr(cls, each)]
    done = [[draw(st.sampled_from(("fit", "fit", "fit", *fits))), "same"]]
    kinds = ("answer", "answer", "answer", "fit", "copy", "set", "property") + (() if common else ("plot",))
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(kinds))
        if kind == "answer":
            op = draw(st.sampled_from(answers))
            rows = draw(st.sampled_from(OTHER_ROWS)) if ANSWERS[op] else None
            done.append([op, rows, draw(arguments(op, getattr(model, op)))])
        elif kind == "plot" and PLOTS:
            op = draw(st.sampled_from(sorted(PLOTS) if _rarely(draw, 10) else plots_of(model)))
            rows = "same" if PLOTS[op] else None
            show = getattr(inspection, op)
            done.append([op, rows, draw(arguments(op, getattr(show, "from_estimator", show)))])
        elif kind == "property":
            done.append([draw(st.sampled_from(shown)), None])
        elif kind == "fit":
            done.append([draw(st.sampled_from(fits)), draw(st.sampled_from(OTHER_ROWS))])
        elif kind == "copy":
            done.append([draw(st.sampled_from(("pickle", "pickle", "deepcopy", "deepcopy", "clone"))), None])
        else:
            parameter = draw(st.sampled_from(parameters))
            done.append(["set_params", {parameter: draw(parameter_values(parameter))}])
    return done


@st.composite
def estimator_cases(draw, pairs=PAIRS, *, common=False, malformed=True):
    """An estimator, its parameters, data and what is done with them."""
    name, sampler = draw(st.sampled_from(pairs))
    if _rarely(draw, 20):
        sampler = draw(st.sampled_from((*SAMPLERS, "no-such-sampler", 3)))
    cls = getattr(sk_sgmcmc, name)
    known = sorted(cls().get_params(deep=False).keys() - {"sampler"})
    params = {"n_iter": draw(st.integers(2, 5)), "random_state": draw(st.integers(0, 3))}
    if "n_components" in known:
        params["n_components"] = draw(st.integers(1, 4))
    if "n_inner" in known:
        params["n_inner"] = 2
    usual = {"n_particles": 3}
    is_name = isinstance(sampler, str) and sampler in SAMPLERS
    if sampler is not None:
        params["sampler"] = draw(sampler_values(sampler)) if is_name else sampler
        if isinstance(params["sampler"], dict):
            has = getattr(samplers, params["sampler"]["of"])().get_params(deep=False)
            params["sampler"]["params"] = {k: v for k, v in usual.items() if k in has} | params["sampler"]["params"]
    for parameter in draw(st.lists(st.sampled_from(known), max_size=5, unique=True)):
        params[parameter] = draw(parameter_values(parameter))
    kinds = KINDS.get(name, ("counts",))
    if name == "DPCategoricalMixture":
        if "likelihood" not in params:
            params["likelihood"] = draw(st.sampled_from(tuple(DP_KINDS)))
        likelihood = params["likelihood"]
        kinds = DP_KINDS.get(likelihood if isinstance(likelihood, str) else "", ("counts",))
    case = {
        "what": name,
        "params": params,
        "data": draw(data(kinds, malformed=malformed)),
        "ops": draw(operations(name, known, common=common)),
    }
    if name in COUNT_MODELS and _rarely(draw, 6):
        case["blocks"] = draw(st.integers(1, 3))
    if name in ("BayesianLinearRegression", *COUNT_REGRESSIONS, "TopicRegressor"):
        case["y"] = draw(st.sampled_from(("two", "uint8", "floats", "continuous", "list", "three")))
        if _rarely(draw, 6):
            case["y"] = draw(st.sampled_from(LABELS))
    if name in ("BayesianLogisticRegression", "TopicClassifier"):
        case["y"] = draw(st.sampled_from(_available(("two", "two", "two", "three", "text", "pandas", "polars"))))
        if _rarely(draw, 6):
            case["y"] = draw(st.sampled_from(LABELS))
    weighted = ("BayesianLogisticRegression", "BayesianLinearRegression", *COUNT_REGRESSIONS)
    if name in (*weighted, "DPCategoricalMixture", "LatentClassModel") and _rarely(draw, 4):
        case["sample_weight"] = draw(st.sampled_from(WEIGHTS))
    if name in COUNT_REGRESSIONS and _rarely(draw, 3):
        case["exposure"] = draw(st.sampled_from(WEIGHTS))
    if name in ("DMRTopicModel", "StructuralTopicModel", "LatentClassModel") and not _rarely(draw, 5):
        forms = (*METADATA_FORMS, *(("malformed",) if malformed and _rarely(draw, 20) else ()))
        case["metadata"] = {
            "form": draw(st.sampled_from(forms)),
            "columns": draw(st.lists(st.sampled_from(inputs.METADATA_COLUMNS), min_size=1, max_size=3, unique=True)),
        }
        if _rarely(draw, 20):
            case["metadata"]["more"] = draw(st.sampled_from((-1, 1)))
    if _rarely(draw, 6):
        case["twice"] = True
    return case


# Targets of `sample`: how each is built, and on which it may be asked for by name.
TARGETS = {
    "DirichletCategorical": ("categories", "concentration", "n_categories"),
    "GammaPoisson": ("shape", "rate"),
    "LogNormalMedian": ("log_scale", "prior_location", "prior_scale"),
    "GaussianMean": ("precision", "prior_precision"),
    "Density": ("check_gradient", "control_variates", "start"),
    "RestrictedGaussian": ("quadratic", "linear_terms"),
    "ExponentialMixture": ("weights", "n_rows"),
    "ChainedVonMisesFisher": ("kappa", "prior_kappa"),
    "MatrixCompletion": ("factor_scales", "noise_scale"),
    "function": ("parameters", "gradient", "data"),
}
OF_TARGETS = {
    "categories": ([0, 1, 1, 2], [0], [0, 2], {"~": "array", "of": [0, 1, 200], "dtype": "uint8"}, [0.5], [-1, 0]),
    "concentration": (0.1, 1e-6, 1e6, [0.1, 0.5, 2.0], {"~": "array", "of": [1, 1, 1], "dtype": "int8"}),
    "n_categories": (None, 3, 5, _np("int8", 4), 1),
    "shape": PRIORS,
    "rate": PRIORS,
    "log_scale": PRIORS,
    "prior_location": (0.0, -3, 1e6),
    "prior_scale": PRIORS,
    "precision": (None, [[1.0, 0.2], [0.2, 1.0]], [[1.0, 2.0], [2.0, 1.0]], _full(1.0, "V", "V")),
    "prior_precision": (0, 0.0, *PRIORS),
    "check_gradient": (True, False),
    "control_variates": (True, False),
    "start": (None, [0.0, 0.0], [1.0, -1.0], [0.0], [float("nan"), 0.0], [1e300, 0.0]),
    "quadratic": (None, [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 5.0]], _full(1.0, "V", "V")),
    "linear_terms": (None, [[0.1] * 6, [-0.1] * 6], [[1.0]], [[1e6] * 6]),
    "weights": (None, [1.0, 2.0], [1.0], [0.0, 1.0]),
    "n_rows": (1, 2, _np("int8", 2)),
    "kappa": PRIORS,
    "prior_kappa": PRIORS,
    "parameters": (
        {"~": "dict", "of": [["mu", []], ["tau", _constraint("Positive", [])], ["p", _constraint("Simplex", 3)]]},
        {"~": "dict", "of": [["mu", 1], ["tau", _constraint("Positive", 1)], ["p", _constraint("Simplex", [2, 2])]]},
        {"~": "dict", "of": [["mu", []], ["tau", []], ["p", [3]]]},
        {"~": "dict", "of": [["mu", []], ["tau", []]]}, {"~": "dict", "of": [["mu", 0], ["tau", 1], ["p", "three"]]},
    ),
    "gradient": (None, "differences", "torch"),
    "data": (None, _full(1.0, 4, 2), _full(1, 4, 1, dtype="int8"), [[1.0], [2.0]], _full(float("nan"), 3, 1), [1.0]),
    "factor_scales": ([1.0], [2.0, 1.0], [1.0] * 9, [-1.0]),
    "noise_scale": PRIORS,
    "n_iter": (1, 2, 5, 9, _np("int8", 4)),
    "batch_size": ("auto", 1, 2, _np("int8", 2), 10**6),
    "with_replacement": ("auto", True, False),
    "batch_order": ("shuffled", "palindromic"),
    "geometry": (
        None, "sphere", "simplex", "stiefel", "euclidean", "positive", "torus",
        [_pair("sphere", 1), _pair("simplex", 1)], [_pair("stiefel", 2)], [_pair("sphere", 5)], [["sphere", 2]],
    ),
    "init": (
        None, {"~": "dict", "of": [["mu", 0.1]]}, {"~": "dict", "of": [["tau", -1.0]]}, [0.1, 0.2], _full(0.5, 2, 3),
        _full(float("nan"), 3), [0.2, 0.3, 0.5], [[0.6, 0.8]], "mean",
    ),
    **{name: SENSIBLE[name] for name in ("burn_in", "thin", "n_chains", "n_jobs", "random_state", "verbose")},
}  # fmt: skip
CALL = (
    "n_iter", "batch_size", "with_replacement", "batch_order", "geometry", "init", "burn_in", "thin", "n_chains",
    "n_jobs", "random_state", "verbose",
)  # fmt: skip


@st.composite
def sample_cases(draw, *, common=False):
    """`sample` of a target, with a sampler that fits one of its geometries or any other."""
    from sk_sgmcmc import targets
    from sk_sgmcmc import targets as manifold_targets

    name = draw(st.sampled_from(sorted(TARGETS.keys() - {"Density", "function"} if common else TARGETS)))
    cls = targets.Density if name == "function" else getattr(targets, name, None) or getattr(manifold_targets, name)
    fitting = sorted(s for s, make_sampler in SAMPLERS.items() if fitting_pair(make_sampler(), cls._offers))
    sampler = draw(sampler_values(draw(st.sampled_from((None, *(() if common else fitting))))))
    if _rarely(draw, 20):
        sampler = draw(st.sampled_from((*SAMPLERS, "no-such-sampler", 3)))
    call = {"n_iter": draw(st.integers(2, 5)), "random_state": draw(st.integers(0, 3)), "sampler": sampler}
    for parameter in draw(st.lists(st.sampled_from(CALL), max_size=3, unique=True)):
        call[parameter] = draw(parameter_values(parameter, OF_TARGETS))
    params = {}
    for parameter in draw(st.lists(st.sampled_from(TARGETS[name]), max_size=2, unique=True)):
        params[parameter] = draw(parameter_values(parameter, OF_TARGETS))
    return {
        "what": "sample",
        "target": name,
        "params": params,
        "data": draw(st.sampled_from(({"n": 6, "d": 2}, {"n": 6, "d": 3}, {"n": 1, "d": 3}, {"n": 6, "d": 1}))),
        "call": call,
        **({"twice": True} if _rarely(draw, 6) else {}),
    }


def cases(*, common=False, malformed=True):
    """Cases of estimators and of `sample`; ``common`` draws those alone whose kernels other tests compile."""
    one = estimator_cases(COMPILED if common else PAIRS, common=common, malformed=malformed)
    return st.integers(0, 8).flatmap(lambda k: sample_cases(common=common) if k == 8 else one)
