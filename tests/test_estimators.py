"""What all estimators promise, on each of `tests.common.instances.ESTIMATORS`."""

import inspect
import pickle
import signal
import warnings

import joblib
import numba
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import sk_sgmcmc
from sk_sgmcmc.base import BaseSGMCMC
from sk_sgmcmc.chains import chain as chain_module
from sk_sgmcmc.chains import run
from sk_sgmcmc.samplers import PSGHMC, SCIR
from sk_sgmcmc.samplers._registry import make_sampler
from tests.common.compare import StopAt, assert_same_draws, run_python
from tests.common.instances import CHECKED, COUNTS, DEFAULTS, ESTIMATORS
from tests.conftest import importorskip

# Cases without metadata are about what all estimators share.
pytestmark = pytest.mark.filterwarnings("ignore:No metadata were given")
each = pytest.mark.parametrize("case", ESTIMATORS, ids=lambda case: case.id)
each_class = pytest.mark.parametrize("case", DEFAULTS, ids=lambda case: case.id)
each_class_with_steps = pytest.mark.parametrize("case", [c for c in DEFAULTS if c.has_steps], ids=lambda case: case.id)
each_count_model = pytest.mark.parametrize("case", COUNTS, ids=lambda case: case.id)

EXPECTED_FAILURES = {}  # scikit-learn's check -> reason; none is allowed


def test_every_estimator_is_in_the_list():
    classes = {value for value in vars(sk_sgmcmc).values() if inspect.isclass(value) and issubclass(value, BaseSGMCMC)}
    assert classes == {type(case.estimator) for case in ESTIMATORS} == {type(case.estimator) for case in DEFAULTS}


def test_no_failure_is_expected():
    assert EXPECTED_FAILURES == {}


@parametrize_with_checks(CHECKED, expected_failed_checks=lambda _: EXPECTED_FAILURES)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ---------------------------------------------------------------------------------------------------- reproducible


@each
def test_same_seed_gives_same_arrays(case):
    model = case.fitted()
    first = {name: value.copy() for name, value in model.samples_.items()}
    assert all(np.all(np.isfinite(value)) for value in first.values())
    model.fit(*case.data_of())  # the same object again
    for name, value in first.items():
        np.testing.assert_array_equal(value, model.samples_[name])
    other = case.fitted(random_state=1)
    assert any(not np.array_equal(first[name], other.samples_[name]) for name in first)


@each
def test_n_jobs_changes_no_draw(case):
    assert_same_draws(case.fitted(n_chains=3, n_jobs=1), case.fitted(n_chains=3, n_jobs=2))
    # More threads than chains: they share the documents of a minibatch.
    assert_same_draws(case.fitted(), case.fitted(n_jobs=4))


@pytest.mark.xdist_group("loky")
@each_class
def test_other_processes_change_no_draw(case):
    data = case.data_of()
    whole = case.fitted(n_chains=2)
    # Everything goes to other processes as memory maps, which chains must not find read-only.
    with joblib.parallel_config(backend="loky", n_jobs=2, max_nbytes=1):
        assert_same_draws(whole, case.fitted(n_chains=2))
        stopped = case.fitted(n_chains=2, callbacks=StopAt(12))
        assert_same_draws(whole, stopped.set_params(callbacks=None).resume(*data))
    assert stopped.score(*data) == whole.score(*data)


def test_threads_of_joblib_change_no_draw():
    case = next(case for case in DEFAULTS if case.id == "logistic")
    whole = case.fitted(n_chains=2)
    with joblib.parallel_config(backend="threading", n_jobs=-1):
        assert_same_draws(whole, case.fitted(n_chains=2))


@each_class
def test_a_chain_does_not_depend_on_the_number_of_chains(case):
    one, two = case.draws(case.fitted()), case.draws(case.fitted(n_chains=2))
    assert two.shape[0] == 2
    assert not np.array_equal(two[0], two[1])
    # Components may be numbered otherwise, so compare what does not depend on it.
    axis = min(1, one[0].ndim - 1)
    np.testing.assert_array_equal(np.sort(one[0], axis=axis), np.sort(two[0], axis=axis))


@each
def test_chunk_length_changes_no_draw(case, monkeypatch):
    monkeypatch.setattr(run, "PIECE_SECONDS", 1e9)  # a single piece
    whole = case.fitted(n_chains=2)
    monkeypatch.setattr(run, "PIECE_SECONDS", 0.0)
    assert_same_draws(whole, case.fitted(n_chains=2))
    assert_same_draws(whole, case.fitted(n_chains=2, n_jobs=2))


@each_class
def test_random_state_may_be_none_or_a_generator_state(case):
    with_state = case.fitted(random_state=np.random.RandomState(3))
    assert_same_draws(with_state, case.fitted(random_state=np.random.RandomState(3)))
    a, b = case.fitted(random_state=None), case.fitted(random_state=None)
    assert not np.array_equal(case.draws(a), case.draws(b))


# -------------------------------------------------------------------------------------------------------- no globals


@each_class
def test_fit_touches_no_global(case, capsys):
    def state():
        return (
            pickle.dumps(np.random.get_state()),  # noqa: NPY002
            numba.get_num_threads(), np.geterr(),
            signal.getsignal(signal.SIGINT), numba.config.THREADING_LAYER,
        )  # fmt: skip

    before = state()
    case.fitted(n_jobs=2).score(*case.data_of())
    assert state() == before
    assert capsys.readouterr() == ("", "")


@each_class
def test_a_refused_fit_restores_the_interrupt_handler(case):
    before = signal.getsignal(signal.SIGINT)
    X, *y = case.data_of()
    with pytest.raises(ValueError):
        case.new().fit(X * np.nan, *y)
    assert signal.getsignal(signal.SIGINT) is before


# -------------------------------------------------------------------------------------------------------- parameters


@each_class
def test_constructor_arguments_are_never_changed(case):
    sampler = make_sampler(case.sampler)
    if case.has_steps:
        sampler.set_params(step_size=0.01)
    model = case.new()
    if case.streams:
        model.set_params(sampler=sampler)
    before = {name: pickle.dumps(value) for name, value in model.get_params().items()}
    model.fit(*case.data_of())
    assert {name: pickle.dumps(value) for name, value in model.get_params().items()} == before
    assert model.sampler_ is not model.sampler
    assert not hasattr(sampler, "step_size_")


@pytest.mark.parametrize("given", ["name", None, "object"])
@each_class_with_steps
def test_step_size_is_set_however_the_sampler_was_given(case, given):
    given = {"name": case.sampler, None: None, "object": make_sampler(case.sampler).set_params(step_size=0.1)}[given]
    model = case.new(sampler=given)
    model.set_params(sampler__step_size=0.025)
    assert model.get_params()["sampler__step_size"] == 0.025
    model.fit(*case.data_of())
    assert model.sampler_.step_size == 0.025
    assert model.sampler_._hyper(0, 1)[0, 0] == 0.025
    # The order of keys does not matter, and a sampler set at the same time counts.
    model = case.new().set_params(sampler__step_size=0.5, sampler=case.sampler)
    assert model.sampler.step_size == 0.5
    with pytest.raises(ValueError, match="stepsize"):
        case.new().set_params(sampler__stepsize=0.5)


@each_class
def test_clone_of_a_fitted_estimator_is_not_fitted(case):
    data = case.data_of()
    sampler = make_sampler(case.sampler)
    if case.has_steps:
        sampler.set_params(step_size=0.05)
    model = case.fitted(sampler=sampler)
    twin = clone(model)
    assert twin.sampler is not model.sampler and repr(twin.sampler) == repr(model.sampler)
    for method in ("transform", "perplexity", "predict", "predict_proba", "score_samples"):
        with pytest.raises((NotFittedError, AttributeError)):
            getattr(twin, method)(data[0])
    for method in ("score", "resume"):
        with pytest.raises(NotFittedError):
            getattr(twin, method)(*data)
    assert_same_draws(model, twin.fit(*data))


DOCUMENTS = ["river water bank fish", "bank money loan money", "fish water river boat", "loan bank credit money"] * 6


@pytest.mark.xdist_group("loky")
@each_count_model
def test_grid_search_in_a_pipeline(case):
    pipeline = make_pipeline(CountVectorizer(), case.new(n_components=2))
    name = pipeline.steps[-1][0]
    grid = [
        {f"{name}__sampler": [None, "scir", SCIR(0.5)], f"{name}__sampler__step_size": [0.1, 1.0]},
        {f"{name}__sampler__step_size": [0.2]},
        {f"{name}__sampler": ["sgrld", "gibbs"]},
    ]
    search = GridSearchCV(pipeline, grid, cv=2, n_jobs=2, error_score="raise").fit(DOCUMENTS)
    scores = search.cv_results_["mean_test_score"]
    assert len(scores) == 9 and np.all(np.isfinite(scores)) and np.all(scores < 0)
    assert grid[0][f"{name}__sampler"][2].step_size == 0.5  # the grid's own object is untouched
    assert search.best_estimator_.transform(DOCUMENTS).shape == (24, 2)
    serial = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(DOCUMENTS)
    np.testing.assert_array_equal(serial.cv_results_["mean_test_score"], scores)


@each_class
def test_narrow_integers_of_numpy_are_integers(case):
    """They overflow in products, such as that of numbers of chains, topics and words."""
    given = {"n_iter": 16, "n_chains": 2, "thin": 2, "burn_in": 4, "random_state": 3, "verbose": 0, "n_jobs": 2}
    given |= {
        name: value
        for name, value in case.new().get_params(deep=False).items()
        if isinstance(value, int) and not isinstance(value, bool) and name not in given
    }
    whole = case.fitted(**given)
    narrow = {name: np.int8(value) for name, value in given.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # of what overflows and goes on
        model = case.fitted(**narrow)
    assert_same_draws(whole, model)
    assert model.score(*case.data_of()) == whole.score(*case.data_of())
    assert all(model.get_params()[name] is value for name, value in narrow.items()), "parameters were changed"
    model.set_params(n_iter=np.uint8(0))
    with pytest.raises(ValueError, match="n_iter"):
        model.fit(*case.data_of())
    assert model.n_iter.dtype == np.uint8


def test_narrow_integers_do_not_overflow_with_many_words():
    model = sk_sgmcmc.BayesianLDA(np.int8(3), n_iter=np.int8(4), random_state=0).fit(np.ones((40, 60)))
    assert_same_draws(sk_sgmcmc.BayesianLDA(3, n_iter=4, random_state=0).fit(np.ones((40, 60))), model)


@pytest.mark.parametrize("n_jobs", [0, 10**20])
@each_class
def test_a_number_of_threads_that_cannot_be_is_refused_alike_by_all_that_use_threads(case, n_jobs):
    data = case.data_of()
    model = case.fitted().set_params(n_jobs=n_jobs)
    of_rows = {"score": data, "transform": data[:1], "perplexity": data[:1]} if hasattr(model, "perplexity") else {}
    if case.id == "sam":
        of_rows = {"score": data}
    for name, arguments in {"fit": data, **({"partial_fit": data} if case.streams else {}), **of_rows}.items():
        with pytest.raises(ValueError, match=r"n_jobs.*1024") as caught:
            getattr(model, name)(*arguments)
        assert str(n_jobs) in str(caught.value)


BAD_PARAMETERS = [
    ("n_iter", 0), ("n_iter", 2.5), ("n_iter", -1), ("burn_in", 1.0), ("burn_in", -0.1), ("burn_in", 16),
    ("burn_in", 99), ("burn_in", 1.5), ("thin", 0), ("thin", "all"), ("thin", 1000), ("n_chains", 0),
    ("batch_size", 0), ("batch_size", 91), ("batch_size", "all"), ("n_jobs", "two"), ("n_jobs", 0),
    ("random_state", -1), ("random_state", "a"), ("sampler", "metropolis"), ("sampler", 3), ("callbacks", 3),
    ("callbacks", [3]),
]  # fmt: skip


@each_class
def test_a_bad_parameter_is_named_and_nothing_is_changed(case):
    X, *y = case.data_of()
    model = case.fitted()
    before, given = pickle.dumps(model.__getstate__()), case.new().get_params()
    for name, value in BAD_PARAMETERS:
        model.set_params(**{name: value})
        with pytest.raises((ValueError, TypeError), match=name):
            model.fit(X[:, :-1], *y)
        model.set_params(**{name: given[name]})
        assert pickle.dumps(model.__getstate__()) == before, (name, value)


@each_class
def test_every_parameter_is_checked_by_name_in_fit_and_partial_fit(case):
    class NoValue:
        pass

    for name, constraints in case.estimator._parameter_constraints.items():
        if constraints == "no_validation":
            continue
        for method in ("fit", "partial_fit") if case.streams else ("fit",):
            with pytest.raises((ValueError, TypeError), match=name):
                getattr(case.new(**{name: NoValue()}), method)(*case.data_of())


@pytest.mark.parametrize("bad", ["wrong", "unknown"])
@each_class
def test_a_sampler_that_does_not_fit_is_refused_before_the_data_are_seen(case, bad):
    class Untouchable:
        def __getattribute__(self, name):
            raise AssertionError("the data were looked at")

    name = case.wrong_sampler if bad == "wrong" else "no-such-sampler"
    data = [Untouchable()] * len(case.data_of())
    with pytest.raises(ValueError) as caught:
        case.new(sampler=name).fit(*data)
    message = str(caught.value)
    assert case.sampler in message
    assert (type(make_sampler(name)).__name__ if bad == "wrong" else name) in message
    assert f"Samplers that fit {type(case.estimator).__name__}: " in message
    if case.streams:
        with pytest.raises(ValueError, match=case.sampler):
            case.new(sampler=name).partial_fit(*data)


@each_class
def test_thin_and_burn_in_say_which_draws_are_kept(case):
    def kept(**params):
        return case.draws(case.fitted(**params))

    whole = kept(n_iter=20, burn_in=5, thin=1)
    assert whole.shape[1] == 15
    for fraction in (0.25, np.float32(0.25)):
        np.testing.assert_array_equal(kept(n_iter=20, burn_in=fraction, thin=1), whole)
    assert kept(n_iter=20, burn_in=0, thin=1).shape[1] == 20
    assert kept(n_iter=20, burn_in=5, thin=4).shape[1] == 3
    assert kept(n_iter=1, burn_in=0.5).shape[1] == 1


def test_thin_auto_keeps_at_most_100_draws_within_the_stated_memory():
    assert chain_module.DrawPlan(10**6, 0.5, "auto", 1).n_draws == 100
    for n_iter in (1, 7, 199, 200, 201, 1000, 12345):
        for bytes_per_draw in (
            1,
            chain_module.DRAW_MEMORY // 7,
            chain_module.DRAW_MEMORY // 2,
            5 * chain_module.DRAW_MEMORY,
        ):
            plan = chain_module.DrawPlan(n_iter, 0.5, "auto", bytes_per_draw)
            assert 1 <= plan.n_draws <= 100
            assert plan.n_draws == 1 or plan.n_draws * bytes_per_draw <= chain_module.DRAW_MEMORY
            assert sum(plan.wants(step) for step in range(n_iter + 1)) == plan.n_draws


@each_count_model
def test_thin_auto_keeps_fewer_draws_where_they_are_large(case, monkeypatch):
    one = case.draws(case.fitted(n_iter=60))
    monkeypatch.setattr(chain_module, "DRAW_MEMORY", 5 * one[0, 0].nbytes + 1)
    fewer = case.draws(case.fitted(n_iter=60))
    assert fewer.shape[1] == 5 and fewer.nbytes <= chain_module.DRAW_MEMORY
    assert case.draws(case.fitted(n_iter=60, n_chains=2)).shape[1] == 2


# ------------------------------------------------------------------------------------------------ saving and output


def test_pickles_hold_nothing_compiled(tmp_path):
    expected = ""
    for case in ESTIMATORS:
        model = case.fitted()
        joblib.dump(model, tmp_path / f"{case.id}.joblib")
        expected += f"{case.id} {list(model.samples_)}\n"
        again = pickle.loads(pickle.dumps(model))
        assert again.score(*case.data_of()) == model.score(*case.data_of())
        np.testing.assert_array_equal(case.answer(again), case.answer(model))
    printed = run_python(
        "import sys; sys.modules['numba'] = None\n"
        "import joblib\n"
        "for name in sys.argv[2:]:\n"
        "    model = joblib.load(f'{sys.argv[1]}/{name}.joblib')\n"
        "    repr(model), hasattr(model, 'top_words') and model.top_words(3, interval=None)\n"
        "    print(name, list(model.samples_))\n"
        "assert not any(name.startswith(('numba.', 'llvmlite')) for name in sys.modules)",
        tmp_path,
        *[case.id for case in ESTIMATORS],
    )
    assert printed == expected


@each_count_model
def test_pickles_hold_no_data(case):
    X = case.X()
    model = case.new(sampler="sgrld", assignments="fresh").fit(X)
    big = case.new(sampler="sgrld", assignments="fresh").fit(X[np.arange(90).repeat(20)])
    assert len(pickle.dumps(big)) < len(pickle.dumps(model)) + 2 * X.sum() + 20_000


@each_count_model
def test_set_output_and_feature_names(case):
    pandas = importorskip("pandas")
    X = case.X()
    frame = pandas.DataFrame(X.toarray(), columns=[f"w{i}" for i in range(40)], index=[f"d{i}" for i in range(90)])
    model, name = case.new().set_output(transform="pandas").fit(frame), type(case.estimator).__name__
    out = model.transform(frame)
    assert list(out.columns) == list(model.get_feature_names_out())
    assert [column[:3] for column in out.columns] == ["0_w", "1_w", "2_w"]
    unnamed = case.new().fit(X)
    assert list(unnamed.get_feature_names_out()) == [f"{name.lower()}{k}" for k in range(3)]
    assert list(out.index) == list(frame.index)
    assert list(model.feature_names_in_) == list(frame.columns) and model.n_features_in_ == 40
    np.testing.assert_array_equal(out, unnamed.transform(X))
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match=f"39 features, but {name} is expecting 40"):
        case.new().fit(X).transform(X[:, :-1])


# ------------------------------------------------------------------------------------------------------- progress


@each_class
def test_verbose_shows_progress(case, capsys, monkeypatch):
    importorskip("tqdm")
    quiet = case.fitted()
    model = case.fitted(verbose=1)
    shown = capsys.readouterr()
    assert "16/16" in shown.err + shown.out
    assert_same_draws(quiet, model)
    # Without tqdm: lines.
    monkeypatch.setitem(__import__("sys").modules, "tqdm.auto", None)
    monkeypatch.setattr(run, "PIECE_SECONDS", 0.0)
    case.fitted(verbose=1, n_iter=40, callbacks=lambda estimator, step: False)
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "compiling" and lines[-1] == "step 40 of 40" and 5 <= len(lines) <= 12
    assert all(line.endswith(" s left") for line in lines[:-1])


@each_class
def test_repr_and_html_repr_are_short(case):
    sampler = make_sampler(case.sampler)
    if case.has_steps:
        sampler.set_params(step_size=0.05)
    model = case.fitted(sampler=sampler)
    assert repr(sampler) in repr(model)
    assert len(model._repr_html_()) < 200_000


def test_a_wrong_parameter_of_a_sampler_is_refused_by_name_before_data_are_looked_at():
    model = sk_sgmcmc.DMRTopicModel(2, sampler=PSGHMC(friction="auto"))
    for method in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="'friction' parameter of PSGHMC"):
            method("no data")


@pytest.mark.parametrize(
    "model, name",
    [
        (sk_sgmcmc.BayesianLDA(2, doc_topic_prior={}), "doc_topic_prior"),
        (sk_sgmcmc.BayesianLDA(2, topic_word_prior={}), "topic_word_prior"),
        (sk_sgmcmc.GammaProcessTopicModel(2, topic_word_prior={}), "topic_word_prior"),
        (sk_sgmcmc.SphericalAdmixtureModel(2, doc_topic_prior={}), "doc_topic_prior"),
        (sk_sgmcmc.VonMisesFisherMixture(2, kappa={}), "kappa"),
        (sk_sgmcmc.DPCategoricalMixture(category_prior={}), "category_prior"),
    ],
)
def test_priors_that_are_no_numbers_are_refused_by_name(model, name):
    with pytest.raises(ValueError, match=name):
        model.fit(np.ones((6, 4), dtype=int))


@pytest.mark.parametrize("model", [sk_sgmcmc.BayesianLogisticRegression(n_iter=4), sk_sgmcmc.BayesianLDA(2, n_iter=4)])
def test_a_minibatch_of_one_row_more_than_there_are_is_refused_and_of_all_is_taken(model):
    X, y = np.ones((6, 4), dtype=int) + np.eye(6, 4, dtype=int), [0, 1] * 3
    clone(model).set_params(batch_size=6).fit(X, y)
    with pytest.raises(ValueError, match="batch_size=7 is larger than the 6 "):
        clone(model).set_params(batch_size=7).fit(X, y)
