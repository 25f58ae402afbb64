"""scikit-learn's checks of arrays from other libraries, which SciPy takes only if a variable is set at its import."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.common.instances import CHECKED

ROOT = Path(__file__).resolve().parents[1]
# In a process of its own, since SciPy is imported here.
CODE = """
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.common.instances import CHECKED

@parametrize_with_checks(CHECKED)
def check_all(estimator, check):
    pass

n = 0
for mark in check_all.pytestmark:
    for estimator, check in mark.args[1]:
        if "check_array_api_input" in str(check):
            check(estimator)
            n += 1
print(n)
"""


def test_checks_of_other_arrays_pass():
    environment = os.environ | {"SCIPY_ARRAY_API": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "ignore", "-c", CODE]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    n_checks = int(done.stdout.split()[-1])
    if n_checks == 0 and os.environ.get("SK_SGMCMC_REQUIRE_ALL") != "1":
        pytest.skip("this version of scikit-learn makes no such checks")
    assert n_checks >= len(CHECKED)
