"""What every test shares: seeds, the kernels' cache folder, which tests are collected, strict imports."""

import gc
import importlib
import importlib.util
import os
import signal
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


# Before anything imports numba or NumPy, which read these once. The matrices of tests are small: threads of BLAS would
# wait for each other at several times the cost of the work, all the more beside other processes.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / "sk_sgmcmc_tests"))
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# A shell ignores Ctrl-C in what it runs in the background, and so would the tests of interrupts, for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    """Let processes of xdist compile each kernel once between them."""
    if hasattr(config, "workerinput"):
        from tests.common import compile_once  # not above: it imports numba, which must not be loaded before

        compile_once.install(os.environ["NUMBA_CACHE_DIR"])


# ------------------------------------------------------------------------------------------------------------- seeds


def _seeds():
    """Seeds named by ``SK_SGMCMC_TEST_SEEDS``: unset: 42; ``all``: 0 to 99; else a list such as ``3,17`` or ``0-9``."""
    text = os.environ.get("SK_SGMCMC_TEST_SEEDS", "").strip()
    if not text:
        return [42]
    if text == "all":
        return list(range(100))
    seeds = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        seeds.extend(range(int(first), int(last or first) + 1))
    return seeds


def pytest_generate_tests(metafunc):
    """Give ``global_random_seed`` its values, with the seed in the test's name."""
    if "global_random_seed" in metafunc.fixturenames:
        seeds = _seeds()
        metafunc.parametrize("global_random_seed", seeds, ids=[f"seed{seed}" for seed in seeds], scope="session")


# -------------------------------------------------------------------------------------------------------- collection

# Ray is so large that no extra installs it.
collect_ignore = [] if importlib.util.find_spec("ray") else ["test_ray.py"]

# Most tests fit chains that are too short on purpose. Tests about warnings catch them whatever stands here.
SHORT_CHAINS = pytest.mark.filterwarnings(
    "default::sklearn.exceptions.ConvergenceWarning",
    "ignore:The draws have not converged:sklearn.exceptions.ConvergenceWarning",
    "ignore:The topics still change:sklearn.exceptions.ConvergenceWarning",
)


def _group(item):
    """What is tested: the case or class of estimator, else the file."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    if hasattr(params.get("case"), "id"):
        return params["case"].id
    return type(params["estimator"]).__name__ if "check" in params else item.path.name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Keep tests of one thing in one process, and leave out, rather than skip, those on real data where there are none.

    Kernels are compiled at their first use: two processes that share a case compile all of its kernels twice.
    """
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            if not item.get_closest_marker("xdist_group"):  # of those who share processes that they start
                item.add_marker(pytest.mark.xdist_group(_group(item)))
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(SHORT_CHAINS, append=False)  # first, so that marks of the test itself take precedence
    left_out = [item for item in items if _lacks_data(item) or _lacks_array_api(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _lacks_data(item):
    """Whether a test reads real data sets, and they are not there."""
    folder = os.environ.get("SK_SGMCMC_DATA")
    return item.get_closest_marker("real_data") and not (folder and Path(folder).is_dir())


def _lacks_array_api(item):
    """Whether a check of scikit-learn needs SciPy's switch, which tests/test_array_api.py sets in another process."""
    return "check_array_api_input" in item.name and not os.environ.get("SCIPY_ARRAY_API")


@pytest.fixture(scope="session")
def data_folder():
    """Folder of the real data sets; only for tests marked ``real_data``."""
    return Path(os.environ["SK_SGMCMC_DATA"])


@pytest.fixture(scope="session")
def two_dask_workers():
    """A Dask cluster of two processes, for all tests of the group "dask"."""
    from tests.common.clusters import forked_workers, new_cluster

    with forked_workers(), new_cluster() as cluster:
        yield cluster


@pytest.fixture
def uncollected():
    """Python's collector stands still: what is given back must not have waited for it in a cycle of references."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


# ---------------------------------------------------------------------------------------------------- optional parts


def importorskip(name, reason=None):
    """Import an optional package; where it is missing, skip, or fail if ``SK_SGMCMC_REQUIRE_ALL=1``.

    A skipped test is not a passed test, so continuous integration asks for all of them.

    Use it as ``from tests.conftest import importorskip`` or as the fixture of the same name.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if os.environ.get("SK_SGMCMC_REQUIRE_ALL") == "1":
            pytest.fail(f"{name} cannot be imported, and SK_SGMCMC_REQUIRE_ALL=1 asks for every package: {error}")
        pytest.skip(reason or f"{name} cannot be imported: {error}", allow_module_level=True)


@pytest.fixture(name="importorskip", scope="session")
def _importorskip():
    return importorskip
