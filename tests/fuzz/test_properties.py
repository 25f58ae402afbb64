"""A thousand cases, the same in every run; `tests.fuzz.run` draws more. And faults that must be found."""

import inspect
import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import sk_sgmcmc
from sk_sgmcmc import BayesianGaussian, inspection, targets
from sk_sgmcmc.base import BaseSGMCMC
from sk_sgmcmc.samplers._registry import SAMPLERS, fitting_pair
from tests.fuzz import calls, inputs, oracle, run, strategies

# No database and no clock: the cases are the same everywhere. Indices that are wrong would end the process where they
# are not refused; those are left to `run`, whose workers may die, and to tests of their own.
PROFILE = settings(
    max_examples=1000, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
)
FOUND = [json.loads(line) for line in (Path(__file__).parent / "found.jsonl").read_text().splitlines()]


@PROFILE
@given(case=strategies.cases(common=True, malformed=False))
def test_every_call_works_or_is_refused_and_changes_nothing_else(case):
    oracle.judge(case)


@pytest.mark.parametrize("case", FOUND, ids=lambda case: case["what"])
def test_what_was_found_stays_mended(case):
    oracle.judge(case)


# ------------------------------------------------------------------------------------------------ what would be found


def gaussian(*ops, **params):
    return {
        "what": "BayesianGaussian",
        "params": {"n_iter": 4, "random_state": 0, **params},
        "data": {"kind": "normal", "n": 14, "d": 3, "seed": 0, "form": "dense"},
        "ops": [["fit", "same"], *([op, "same"] for op in ops)],
        "twice": True,
    }


def _nan(fit):
    def broken(self, X, y=None):
        fit(self, X)
        self.samples_["mean"][0, 0, 0] = np.nan
        return self

    return broken


def _writing(fit):
    def broken(self, X, y=None):
        fit(self, X)
        X[0, 0] += 1.0
        return self

    return broken


def _forgetting(fit):
    def broken(self, X, y=None):
        fit(self, X)
        self.n_iter = 5
        return self

    return broken


def _global(fit):
    def broken(self, X, y=None):
        np.random.random()  # noqa: NPY002
        return fit(self, X)

    return broken


def _restless(fit):
    def broken(self, X, y=None):
        fit(self, X)
        self.samples_["mean"] += np.random.default_rng().random()
        return self

    return broken


def _warning(fit):
    def broken(self, X, y=None):
        warnings.warn("overflow encountered", RuntimeWarning, stacklevel=1)
        return fit(self, X)

    return broken


def _filtering(fit):
    def broken(self, X, y=None):
        warnings.simplefilter("ignore")
        return fit(self, X)

    return broken


def _failing(error):
    def of(fit):
        def broken(self, X, y=None):
            raise error

        return broken

    return of


def _leaving(fit):
    def broken(self, X, y=None):
        self.half_done_ = True
        raise ValueError("n_iter is refused, but something was left behind.")

    return broken


@pytest.mark.parametrize(
    "broken, cause",
    [
        (_nan, r"samples_\['mean'\] is not finite"),
        (_writing, "changed the caller's data"),
        (_forgetting, "changed parameters"),
        (_global, "NumPy's random state"),
        (_restless, "the same seed gives other draws"),
        (_warning, "RuntimeWarning from .*overflow"),
        (_filtering, "filters of warnings"),
        (_failing(KeyError("x")), "KeyError"),
        (_failing(ValueError("wrong")), "says hardly anything"),
        (_failing(ValueError("there is something rather wrong here")), "names no parameter"),
        (_leaving, "a refused fit changed the estimator"),
    ],
)
def test_a_broken_fit_is_found(broken, cause, monkeypatch):
    assert oracle.judge(gaussian("score"))[0] == oracle.FITTED
    monkeypatch.setattr(BayesianGaussian, "fit", broken(BayesianGaussian.fit))
    monkeypatch.setattr(oracle, "HARNESS", oracle.PACKAGE / "none")  # a warning that is raised here counts, too
    with pytest.raises(oracle.FaultError, match=cause):
        oracle.judge(gaussian("score"))


@pytest.mark.parametrize("answer", [np.nan, np.zeros(3), None])
def test_a_score_that_is_no_finite_number_is_found(answer, monkeypatch):
    monkeypatch.setattr(BayesianGaussian, "score", lambda self, X, y=None: answer)
    with pytest.raises(oracle.FaultError, match="score is n"):
        oracle.judge(gaussian("score"))


def test_a_worker_that_ends_or_hangs_is_counted_and_replaced(tmp_path):
    worker, table = run.Worker(str(tmp_path / "stderr")), run.Table(tmp_path / "faults.jsonl")
    try:
        for callback, verdict, cause in [
            ("exit", "crash", "exit status 3"),
            ("sleep", "hang", "still running after 8 s"),
            ("go on", "fitted", ""),
        ]:
            case = gaussian(callbacks={"~": "callback", "of": callback})
            # The callback sleeps for an hour.
            found, said, seconds = worker.judge(case, 8.0 if callback == "sleep" else 300.0)
            assert found == verdict and cause in str(said)
            if table.add(case, found, said, seconds):
                table.keep(case, found, said)
    finally:
        worker.stop()
    assert [json.loads(line)["verdict"] for line in table.output.read_text().splitlines()] == ["crash", "hang"]
    assert table.faults == 2 and "in all" in str(table)


def test_a_fault_is_made_as_small_as_it_can_be():
    class Judge:
        def judge(self, case, seconds):
            broken = case["data"].get("odd") == ["nan"] and "thin" in case["params"]
            return "fault", ["cause" if broken else "another"], 0.0

    case = gaussian("score", "pickle", thin=2, burn_in=1)
    case["data"] |= {"odd": ["nan"], "form": "csc_matrix", "dtype": "float32"}
    small = run.shrink(case, "cause", Judge(), 1.0)
    assert small["params"] == {"thin": 2} and small["ops"] == [["fit", "same"]]
    assert small["data"] == {"kind": "normal", "n": 14, "d": 3, "seed": 0, "form": "dense", "odd": ["nan"]}


def test_descriptions_are_json_and_all_of_them_can_be_made():
    sizes = {"K": 2, "V": 3, "N": 5, "case": gaussian()}
    for values in (*strategies.SENSIBLE.values(), strategies.ODDITIES, strategies.SCHEDULES):
        for value in values:
            inputs.make(json.loads(json.dumps(value)), sizes)
    for values in (*calls.ARGUMENTS.values(), *calls.SPECIAL.values()):
        for value in values:
            inputs.make(json.loads(json.dumps(value)), sizes)
    data = {"kind": "counts", "n": 5, "d": 4, "seed": 0}
    for form in (*strategies._PLAIN_FORMS, *strategies._WRONG_FORMS, *inputs.MALFORMED):
        inputs.rows({**data, "form": form})
    for odd in inputs.ODD_NUMBERS:
        assert inputs.rows({**data, "form": "dense", "odd": [odd]}).shape == (5, 4)
    for kind in strategies.LABELS:
        inputs.labels(kind, 5)
    for kind in strategies.WEIGHTS:
        inputs.weights(kind, 5)
    for form in strategies.METADATA_FORMS:
        inputs.metadata({"form": form, "columns": list(inputs.METADATA_COLUMNS)[:3]}, 5)


def public_classes():
    return {name: each for name in sk_sgmcmc.__all__ if isinstance(each := getattr(sk_sgmcmc, name), type)}


def test_all_pairs_of_estimators_and_samplers_are_drawn():
    assert len(strategies.PAIRS) == len(set(strategies.PAIRS)) >= 91
    assert {name for name, _ in strategies.PAIRS} == set(strategies.ESTIMATORS)
    estimators = {name for name, cls in public_classes().items() if issubclass(cls, BaseSGMCMC)}
    assert set(strategies.ESTIMATORS) == estimators, "list the estimator in tests/fuzz/strategies.py"
    of_targets = {
        sampler for target in strategies.TARGETS if hasattr(targets, target) for sampler, make in SAMPLERS.items()
        if fitting_pair(make(), getattr(targets, target)._offers)
    }  # fmt: skip
    drawn = {sampler for _, sampler in strategies.PAIRS} | of_targets
    assert set(SAMPLERS) == drawn, "no estimator or target of tests/fuzz/strategies.py takes the sampler"


@pytest.mark.parametrize("name", strategies.ESTIMATORS)
def test_all_parameters_and_methods_are_drawn(name):
    cls = getattr(sk_sgmcmc, name)
    model = cls()
    lacking = model.get_params(deep=False).keys() - strategies.SENSIBLE.keys() - {"sampler"}
    assert not lacking, f"give sensible values in tests/fuzz/strategies.py: {sorted(lacking)}"
    known = {*calls.FITS, *calls.ANSWERS, *calls.PROPERTIES, *calls.NOT_DRAWN}
    methods = {each for each in dir(cls) if each[0] != "_" and not each.endswith("_request")}
    attributes = {each for each in methods if not callable(getattr(cls, each, None)) and not each.endswith("_")}
    assert not methods - known - attributes, f"list in tests/fuzz/calls.py: {sorted(methods - known - attributes)}"
    for method in methods & calls.ANSWERS.keys():
        for argument in inspect.signature(getattr(cls, method)).parameters:
            assert calls.values_of(method, argument) or argument in calls.NEVER, f"no values of {method}({argument}=)"


def test_all_plots_are_drawn():
    assert set(inspection.__all__) == {*calls._PLOTS, *calls._EXPORTS, "NumberOfTopicsDisplay", "topic_report"}
