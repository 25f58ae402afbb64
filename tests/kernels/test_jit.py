"""How kernels become compiled: what they do where numba's cache is damaged, full or absent, and without a compiler."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sk_sgmcmc import sample
from sk_sgmcmc.kernels._jit import _CacheFiles, _digest_of
from sk_sgmcmc.samplers import Recipe
from sk_sgmcmc.targets import Density, GaussianMean
from tests.common.compare import ROOT
from tests.common.forked import run_with_numba
from tests.common.instances import ESTIMATORS

# A helper and two kernels of their own, so that a fresh cache costs seconds.
MODULE = """
import numpy as np
from sk_sgmcmc.kernels._jit import F1, F8, I8, OK, helper, kernel

@helper
def half(x):
    return 0.5 * x

@kernel(I8(F1, F8))
def fill(out, x):
    for i in range(out.shape[0]):
        out[i] = half(x) + i
    return OK

@kernel(I8(F1, F8))
def fill_more(out, x):
    for i in range(out.shape[0]):
        out[i] = half(x) + 2 * i
    return OK
"""
CALL = """
import json, warnings
import numpy as np
{before}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import kernels_of_a_test as made
    out, more = np.empty(2), np.empty(2)
    made.fill(out, 3.0)
    made.fill_more(more, 3.0)
print(json.dumps([out.tolist(), more.tolist(), [w.category.__name__ + ": " + str(w.message) for w in caught]]))
"""
RIGHT = [[1.5, 2.5], [1.5, 3.5]]


@pytest.fixture(scope="module")
def cached(tmp_path_factory):
    """A function that calls the kernels in a process of its own; their cache is in ``.folder``."""
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "kernels_of_a_test.py").write_text(MODULE)

    def call(before="", code=CALL):
        printed = run_with_numba(code.format(before=before), folder, call.folder)
        *answers, warned = json.loads(printed.splitlines()[-1])
        assert answers == RIGHT
        return warned

    call.folder = folder / "cache"
    call.folder.mkdir()
    assert call() == []
    return call


def files(folder, ending):
    return sorted(path for path in Path(folder).rglob(f"*.{ending}"))


@pytest.mark.parametrize(("ending", "damage"), [("nbi", "truncated"), ("nbc", "truncated"), ("nbi", "random")])
def test_a_damaged_cache_is_compiled_again_with_one_warning_and_mended(cached, ending, damage):
    whole = {path: path.read_bytes() for path in files(cached.folder, ending)}
    assert len(whole) == 3
    for path, content in whole.items():
        half = len(content) // 2
        path.write_bytes(content[:half] if damage == "truncated" else np.random.default_rng(0).bytes(half))
    (warned,) = cached()
    assert warned.startswith("RuntimeWarning: numba's cache in") and str(cached.folder) in warned
    assert "delete that folder" in warned and "writable only by you" in warned
    assert cached() == []  # the files were written anew


FULL_DISK = """
import resource, signal
import sk_sgmcmc.kernels._jit
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
"""


@pytest.mark.skipif(os.name == "nt", reason="resource limits")
def test_a_full_disk_costs_the_cache_and_not_the_fit(cached):
    for path in cached.folder.rglob("*.nb?"):
        path.unlink()
    (warned,) = cached(FULL_DISK)
    assert warned.startswith("RuntimeWarning: numba's cache in") and "cannot be written (OSError" in warned
    assert "NUMBA_CACHE_DIR" in warned and "writable only by you" in warned
    assert not files(cached.folder, "nbc")
    assert cached() == []
    assert len(files(cached.folder, "nbc")) == 3


NO_PLACE = """
import numba.core.caching as caching
caching.CacheImpl._locator_classes = []
"""


def test_without_any_place_for_a_cache_the_kernels_still_compile(cached):
    (warned,) = cached(NO_PLACE)
    assert "no writable place" in warned and "a folder writable only by you" in warned


SCREEN = """
import io, sys
class Screen(io.StringIO):
    pass
sys.stderr = Screen()
sys.stderr.isatty = lambda: {}
"""
SHOWN = CALL.replace("for w in caught]]", "for w in caught] + [sys.stderr.getvalue()]]")


def test_a_line_says_that_it_compiles_to_who_waits_at_a_screen(cached):
    assert cached(SCREEN.format(True), SHOWN) == [""]  # nothing to compile
    for path in cached.folder.rglob("*.nb?"):
        path.unlink()
    (line,) = cached(SCREEN.format(True), SHOWN)
    assert line.count("compiling") == line.count("\n") == 1 and "sk_sgmcmc.warm_up" in line
    for path in cached.folder.rglob("*.nb?"):
        path.unlink()
    assert cached(SCREEN.format(False), SHOWN) == [""]  # a log file


OTHER_KERNELS = """
import sk_sgmcmc.kernels._jit as jit
jit._digest_of = lambda folder: "0123456789ab"
"""


def test_another_text_of_any_kernel_compiles_all_again(cached):
    assert cached() == []
    before = {path: path.stat().st_mtime_ns for path in files(cached.folder, "nbc")}
    assert len(before) == 3
    assert cached(OTHER_KERNELS) == []
    after = {path: path.stat().st_mtime_ns for path in files(cached.folder, "nbc")}
    assert len(after) == 6 and before.items() <= after.items()
    for path in after.keys() - before.keys():
        path.unlink()
        path.with_name(path.name.replace(".1.nbc", ".nbi")).unlink()


def test_each_signature_has_files_of_its_own(tmp_path):
    """So that of two processes that compile two signatures at once, none leaves the other's code under its own."""
    theirs, ours = (_CacheFiles(str(tmp_path), "f", "stamp") for _ in range(2))
    assert theirs.load("int64") is ours.load("float64") is None  # neither finds an index
    theirs.save("int64", "of whole numbers")
    ours.save("float64", "of fractions")
    assert [ours.load("int64"), theirs.load("float64")] == ["of whole numbers", "of fractions"]
    assert len(files(tmp_path, "nbi")) == len(files(tmp_path, "nbc")) == 2
    ours.load("int64")
    ours.flush()
    assert [ours.load("int64"), ours.load("float64")] == [None, "of fractions"]


def test_the_digest_of_a_folder_is_that_of_every_file(tmp_path):
    (tmp_path / "math").mkdir()
    for name in ("_jit.py", "math/a.py"):
        (tmp_path / name).write_text("1")
    digest = _digest_of.__wrapped__
    found = [digest(tmp_path)]
    (tmp_path / "math" / "a.py").write_text("2")
    found.append(digest(tmp_path))
    (tmp_path / "math" / "a.py").rename(tmp_path / "math" / "b.py")
    found.append(digest(tmp_path))
    assert digest(tmp_path) == found[-1] and len(set(found)) == 3


STRICT = """
import json, warnings
import numpy as np
{before}
warnings.simplefilter("error")
import kernels_of_a_test as made
out, more = np.empty(2), np.empty(2)
try:
    made.fill(out, 3.0)
except RuntimeWarning as warning:
    warned = [str(warning)]
made.fill(out, 3.0)
made.fill_more(more, 3.0)
print(json.dumps([out.tolist(), more.tolist(), warned]))
"""


def test_where_warnings_are_errors_the_second_call_works(cached):
    """And importing kernels does not warn, so that no module is left half imported."""
    (warned,) = cached(NO_PLACE, code=STRICT)
    assert "no writable place" in warned


# --------------------------------------------------------------------------------------------- without a compiler

_COMPARED = [
    "lda", "lda-fresh", "lda-flat", "lda-particles", "dmr", "gamma-process-fresh", "vmf", "logistic", "logistic-hmc",
    "gaussian", "dp",
]  # fmt: skip


def answers(names):
    """Scores of small fits by their names, and the mean of a density of one's own and of a recipe."""
    import numba

    @numba.njit
    def normal(theta, rows, scale, gradient):
        gradient[0] = 1.0 - theta[0]
        return -0.5 * (1.0 - theta[0]) ** 2

    @numba.njit
    def langevin(z, slope, D, Q, div_D, div_Q):
        for i in range(z.size):
            D[i, i] = 1.0

    out = {}
    for case in ESTIMATORS:
        if case.id in names:
            model = case.new(n_iter=4).fit(*case.data_of())
            out[case.id] = float(model.score(*case.data_of()))
    rows = np.random.default_rng(0).normal(size=(20, 2))
    runs = {"density": (Density(normal, dim=1), "hmc"), "recipe": (GaussianMean(rows), Recipe(langevin))}
    for name, (target, sampler) in runs.items():
        draws = sample(target, sampler, n_iter=20, random_state=0).samples_
        out[name] = float(next(iter(draws.values())).mean())
    return out


LOOPS = """
import numpy as np
from numba import types
from sk_sgmcmc.kernels._jit import F1, F8, I8, kernel

@kernel(I8(F1, I8))
def entry(x, i):
    if i >= x.size:
        raise ValueError("no such entry")
    return i + x.size

def loop(signature):
    @kernel(I8(types.FunctionType(signature), F1, I8))
    def of_kernel(function, x, i):
        return function(x, i)
    return of_kernel
"""


def test_kernels_in_loops_are_found_once_raise_and_are_checked(tmp_path):
    (tmp_path / "loops_of_a_test.py").write_text(LOOPS)
    script = """
import numpy as np
from numba import types
from sk_sgmcmc.kernels._jit import F1, F8, I8
import loops_of_a_test as made

x, right, wrong = np.ones(3), made.loop(I8(F1, I8)), made.loop(F8(F1, F8))
for _ in range(3):
    print(right(made.entry.compiled, x, 2))
for loop, i in ((right, 3), (wrong, 2), (right, 3)):
    try:
        loop(made.entry.compiled, x, i)
    except Exception as error:
        print(type(error).__name__)
print(right(made.entry.compiled, x, 1))
"""
    said = run_with_numba(script, tmp_path, tmp_path / "cache").split()
    assert said == ["5", "5", "5", "ValueError", "TypeError", "ValueError", "4"]


def test_with_the_compiler_off_python_gives_the_same_answers():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c",
         "import json, sys; from tests.kernels.test_jit import answers; print(json.dumps(answers(sys.argv[1:])))",
         *_COMPARED],
        cwd=ROOT, capture_output=True, text=True, timeout=300, check=False, env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    interpreted = json.loads(done.stdout)
    compiled = answers(_COMPARED)
    assert interpreted.keys() == compiled.keys() == {*_COMPARED, "density", "recipe"}
    for name, value in compiled.items():
        assert interpreted[name] == pytest.approx(value, rel=1e-5), name
