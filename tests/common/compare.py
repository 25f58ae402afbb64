"""Helpers of the common checks."""

import contextlib
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

from sk_sgmcmc.callbacks import Callback

ROOT = Path(__file__).resolve().parents[2]


def assert_same_draws(a, b):
    """Two fitted estimators hold the same draws, bit for bit."""
    assert a.samples_.keys() == b.samples_.keys()
    for name, value in a.samples_.items():
        np.testing.assert_array_equal(value, b.samples_[name], err_msg=name)


class StopAt(Callback):
    """End a run after a number of steps, as a callback may."""

    def __init__(self, step):
        super().__init__(1)
        self.step = step

    def __call__(self, estimator, step):
        return step == self.step


class PressCtrlC(Callback):
    """Press Ctrl-C after a number of steps: the interpreter gets a real SIGINT."""

    def __init__(self, step):
        super().__init__(1)
        self.step = step

    def __call__(self, estimator, step):
        if step == self.step:
            signal.raise_signal(signal.SIGINT)
        return False


@contextlib.contextmanager
def interrupted():
    """The block ends by KeyboardInterrupt, and warns of it."""
    import pytest

    with (
        pytest.warns(UserWarning, match="Interrupted after") as caught,
        pytest.raises(KeyboardInterrupt, match="fitted so far") as error,
    ):
        yield error
    assert "sk_sgmcmc" not in Path(caught[0].filename).parts, "the warning points into the package"


def mapped_files(folder):
    """How many memory maps of files in a folder this process has, named or not; Linux lists them."""
    return sum(str(folder) in line for line in Path("/proc/self/maps").read_text().splitlines())


def run_python(code, *args, timeout=120):
    """Run code in a fresh interpreter that finds this package; returns what it prints."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, args)],
        cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
