"""Dask clusters whose processes start in a moment: they are forked from one that has imported and compiled everything.

A process that Dask starts as usual spends seconds on imports, and as many on loading compiled kernels.
"""

import contextlib
import multiprocessing
import os
from multiprocessing import forkserver

from tests.common.compare import ROOT
from tests.conftest import importorskip

dask = importorskip("dask")
distributed = importorskip("distributed")
TIMEOUT = 60


@contextlib.contextmanager
def forked_workers():
    """Let Dask fork its workers, where the system can; the process that they are forked from starts once."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        yield
        return
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        context = distributed.utils.get_mp_context()
        context.set_forkserver_preload(["distributed", "tests.common.preloaded"])
        path = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *([path] if path else [])])
        try:
            forkserver.ensure_running()
        finally:
            os.environ.pop("PYTHONPATH")
            if path is not None:
                os.environ["PYTHONPATH"] = path
        yield


def new_cluster(n_workers=2):
    """Workers of one thread each, in processes."""
    return distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    )
