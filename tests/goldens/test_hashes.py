"""Draws do not change unnoticed; a resumed fit, and one by two jobs, have the draws of a plain one."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tests.goldens.cases import CASES
from tests.goldens.hashes import AS_FIT, differences, run, saved, this_machine

ROOT = Path(__file__).resolve().parents[2]
# The last bits of these cases depend on the kernels that were compiled before theirs, so only results are compared.
WITHOUT_BITS = ("DMRTopicModel, None, dispersion by topic", "StructuralTopicModel, None, dispersion by topic")


def agrees_alone(name, folder):
    """Whether the draws of a case are those of its hashes in a process of its own, which compiles all kernels again."""
    command = [sys.executable, "-m", "tests.goldens.hashes", "--only", name]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder)}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_draws_are_those_of_the_hashes(name, tmp_path):
    golden = saved()
    bits = golden["made on"] == this_machine() and name not in WITHOUT_BITS
    found = run(next(case for case in CASES if case.name == name))
    differ = list(differences(golden["cases"][name], found, bits))
    if differ and not list(differences(golden["cases"][name], found, bits=False)):
        # Only bits. What the process has run before must not change them either, but that is no change of draws.
        warnings.warn(f"Among other tests, draws have other bits: {differ}", stacklevel=1)
        differ = [] if agrees_alone(name, tmp_path) else differ
    assert not differ, (
        f"Draws or results have changed: {differ}. If that is meant, say so in CHANGELOG.md and run "
        f'python -m tests.goldens.hashes --write --only "{name}".'
    )


def test_each_case_has_its_hashes_and_resumed_fits_have_those_of_the_plain_one():
    entries = saved()["cases"]
    assert list(entries) == [case.name for case in CASES]
    for name, entry in entries.items():
        if "fit" in entry:
            assert entry["jobs"] == entry["resume"] == AS_FIT, name
