"""A few of the hashes; all of them are compared by ``python -m tests.goldens.hashes``."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tests.goldens.hash_table import CASES
from tests.goldens.hashes import broken_promises, differences, processor, run, saved
from tests.goldens.make import here

# Of each kind of chain one, by samplers whose kernels other tests compile anyhow.
FEW = (
    "BayesianLDA, None",
    "BayesianLDA, scir, seeded topics, batch",
    "BayesianLDA, gibbs, documents' prior",
    "DMRTopicModel, coef sgnht, fresh",
    "GammaProcessTopicModel, None, fresh",
    "SphericalAdmixtureModel, gsgnht, batch",
    "DPCategoricalMixture, scir, categorical, survey, batch",
    "BayesianLogisticRegression, sgld, three classes, batch",
    "BayesianGaussian, sgnht",
    "VonMisesFisherMixture, gmc, process",
    "sample DirichletCategorical, scir, batch",
)


def agrees_alone(name, folder):
    """Whether the draws of a case are those of its hashes in a process of its own, which compiles all kernels anew."""
    command = [sys.executable, "-m", "tests.goldens.hashes", "--only", name]
    root = Path(__file__).resolve().parents[2]
    return not subprocess.run(
        command, cwd=root, env=os.environ | {"NUMBA_CACHE_DIR": str(folder)}, check=False
    ).returncode


@pytest.mark.parametrize("name", FEW)
def test_draws_are_those_of_the_hashes(name, tmp_path):
    golden = saved()
    bits = (golden["here"], golden["processor"]) == (here(), processor())
    case = next(case for case in CASES if case.name == name)
    differ = list(differences({name: golden["hashes"][name]}, {name: run(case)[0]}, bits))
    if differ and not list(differences({name: golden["hashes"][name]}, {name: run(case)[0]}, bits=False)):
        # Last bits alone. What the process has run before must not change them either, but that is no change of draws.
        warnings.warn(f"Among other tests, draws have other bits: {differ}", stacklevel=1)
        differ = [] if agrees_alone(name, tmp_path) else differ
    assert not differ, (
        f"Draws or answers have changed: {differ}. If that is meant, say so in CHANGELOG.md and run "
        "python -m tests.goldens.hashes --write."
    )


def test_each_case_has_its_hashes():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    hashes = saved()["hashes"]
    assert list(hashes) == names
    assert all(set(case.ways) <= hashes[case.name].keys() for case in CASES)


def test_resumed_fits_and_those_by_two_jobs_have_the_hash_of_the_plain_one():
    assert not list(broken_promises(saved()["hashes"]))
