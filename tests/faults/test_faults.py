"""A few tries of each kind of fault; `tests.faults.run` makes hundreds."""

import sys

import numpy as np
import pytest

from tests.faults import run, tries

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals, limits and /proc as Linux has them")


@pytest.mark.parametrize("where", ["main", "loky"])
def test_what_a_killed_fit_saved_goes_on_to_the_same_draws(where, tmp_path):
    passed, said = run.retried(tries.killed, tmp_path, np.random.default_rng(0), model="logistic", where=where)
    assert passed, said


@pytest.mark.parametrize(
    "how, where", [("one", "main"), ("two", "threads"), ("group", "loky"), ("group", "multiprocessing")]
)
def test_an_interrupted_fit_is_fitted_or_as_it_was(how, where, tmp_path):
    given = {"model": "logistic", "how": how, "where": where, "pause": 0.05, "warm": where == "loky"}
    passed, said = run.retried(tries.interrupted, tmp_path, np.random.default_rng(1), **given)
    assert passed, said


def test_a_full_disk_ends_no_fit_and_harms_no_file(tmp_path):
    for passed, said in tries.full_disk(tmp_path, "logistic", [0, 1, 2, 3]):
        assert passed, said


@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_file_is_refused(seed, tmp_path):
    passed, said = tries.damaged(tmp_path, "logistic", seed)
    assert passed, said


def test_a_fit_without_memory_is_a_memory_error_that_leaves_nothing_behind(tmp_path):
    for passed, said in tries.no_memory(tmp_path, [0, 1]):
        assert passed, said


def test_the_script_counts_tries_and_says_by_its_exit_that_some_failed(monkeypatch, capsys):
    none = ["--kills", "0", "--signals", "0", "--multiprocessing", "0", "--full-disks", "0", "--memory", "0"]
    monkeypatch.setattr(tries, "damaged", lambda folder, model, seed: (seed != 1, "so it is"))
    assert run.main([*none, "--files", "3"]) == 1
    said = capsys.readouterr().out
    assert "FAILED  damaged file: so it is" in said
    assert said.splitlines()[-1].split() == ["all", "3", "2", "1"]
    monkeypatch.setattr(tries, "damaged", lambda folder, model, seed: (True, ""))
    assert run.main([*none, "--files", "3"]) == 0
