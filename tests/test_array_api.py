"""scikit-learn's checks of arrays from other libraries, which SciPy takes only if a variable is set at its import."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.common.instances import CHECKED

CHECKS = Path(__file__).with_name("test_estimators.py")


def test_checks_of_other_arrays_pass():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "check_array_api_input", CHECKS]
    result = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"SCIPY_ARRAY_API": "1"}, cwd=CHECKS.parents[1],
        check=False,
    )  # fmt: skip
    if result.returncode == pytest.ExitCode.NO_TESTS_COLLECTED and os.environ.get("SK_SGMCMC_REQUIRE_ALL") != "1":
        pytest.skip("this version of scikit-learn makes no such checks")
    assert result.returncode == 0, result.stdout + result.stderr
    (passed,) = re.findall(r"(\d+) passed", result.stdout)
    assert int(passed) >= len(CHECKED) and "skipped" not in result.stdout
