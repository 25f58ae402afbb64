"""Callbacks of scikit-learn (1.9 and later) watch our fits; ours can be printed, and work beside them."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from sk_sgmcmc import BayesianLDA, DMRTopicModel
from sk_sgmcmc.callbacks import Callback, Checkpoint, HeldOutScore, as_callbacks
from sk_sgmcmc.utils._sklearn import callback
from tests.common.compare import assert_same_draws
from tests.common.instances import DEFAULTS
from tests.conftest import importorskip

# Below scikit-learn 1.9 there is nothing to watch with; the last tests are about any release.
each_watched = pytest.mark.parametrize("case", DEFAULTS, ids=lambda case: case.id)


class Recorder:
    """Follows the protocol of `sklearn.callback.FitCallback`."""

    def __init__(self, stop_after=None):
        self.events, self.stop_after, self.scores = [], stop_after, []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.parent is None, context.max_subtasks))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None, metadata=None):
        self.events.append(("end", context.parent is None, context.max_subtasks))
        self.scores.append(fitted_estimator.score(X, y, **metadata))
        return self.stop_after == len(self.scores)


if callback:

    @each_watched
    def test_a_watched_fit_reports_its_tasks_and_has_the_same_draws(case):
        recorder = Recorder()
        model = case.new().set_callbacks(recorder).fit(*case.data_of())
        assert_same_draws(case.fitted(), model)
        steps = [event for event in recorder.events if event[1:] == (False, 0)]
        assert steps == [("begin", False, 0), ("end", False, 0)] * 16
        first, begin, *_, end, last = recorder.events
        assert (first, begin, end, last) == ("setup", ("begin", True, 16), ("end", True, 16), "teardown")
        assert np.all(np.isfinite(recorder.scores))
        assert recorder.scores[-1] == pytest.approx(model.score(*case.data_of()))
        assert "_given_to_fit" not in vars(model) and "_skl_callbacks" not in vars(pickle.loads(pickle.dumps(model)))

    @each_watched
    def test_the_scoring_monitor_scores(case):
        def score(estimator, X, y):
            return estimator.score(X, y)

        monitor = callback.ScoringMonitor(scoring={"own": score})
        model = case.new(n_iter=40).set_callbacks(monitor).fit(*case.data_of())
        logged = [row["own"] for row in monitor.get_logs().data]
        assert len(logged) == 21 and np.all(np.isfinite(logged))
        assert logged[0] == pytest.approx(model.score(*case.data_of()))

    def test_a_callback_ends_a_fit_early():
        case = DEFAULTS[0]
        model = case.new().set_callbacks(Recorder(stop_after=5)).fit(*case.data_of())
        assert model.n_iter_ == 5

    def test_a_fit_that_fails_is_torn_down():
        recorder = Recorder()

        def fail(estimator, step):
            raise RuntimeError("no")

        case = DEFAULTS[0]
        model = case.new(callbacks=fail).set_callbacks(recorder)
        with pytest.raises(RuntimeError, match="no"):
            model.fit(*case.data_of())
        assert recorder.events[-1] == "teardown" and not hasattr(model, "_callback_fit_ctx")
        recorder.events.clear()
        with pytest.raises(ValueError):
            model.set_params(n_iter=0).fit(*case.data_of())
        assert recorder.events == []

    def test_metadata_reach_the_score():
        X = DEFAULTS[0].X()
        recorder = Recorder()
        model = DMRTopicModel(2, n_iter=4, random_state=0).set_callbacks(recorder)
        model.fit(X, metadata=(np.arange(X.shape[0]) % 2)[:, None])
        assert len(recorder.scores) == 5

    def test_progress_bars_go_through_a_grid_search(capsys):
        importorskip("rich")
        case = DEFAULTS[0]
        model = case.new().set_callbacks(callback.ProgressBar()).fit(*case.data_of())
        assert "BayesianLDA" in capsys.readouterr().out
        search = GridSearchCV(clone(model).set_callbacks(), {"n_components": [2, 3]}, cv=2)
        search.set_callbacks(callback.ProgressBar()).fit(*case.data_of())
        assert "GridSearchCV" in capsys.readouterr().out


def test_a_class_is_no_callback():
    with pytest.raises(TypeError, match=r"must be a callback from sk_sgmcmc\.callbacks"):
        BayesianLDA(2, callbacks=HeldOutScore).fit(np.ones((3, 3)))


def test_callbacks_of_ours_print_what_they_were_given():
    X = np.zeros((7, 3))
    for made, expected in (
        (HeldOutScore(X, every=5), "HeldOutScore(X=<ndarray of shape (7, 3)>, every=5)"),
        (HeldOutScore(X, metadata=X), "HeldOutScore(X=<ndarray of shape (7, 3)>, metadata=<ndarray of shape (7, 3)>)"),
        (Checkpoint("fit.joblib"), "Checkpoint(path='fit.joblib')"),
        (Callback(3), "Callback(every=3)"),
        (as_callbacks(print)[0], "print"),
    ):
        assert repr(made) == expected
    assert "HeldOutScore(X=<ndarray" in repr(BayesianLDA(callbacks=HeldOutScore(X)))
