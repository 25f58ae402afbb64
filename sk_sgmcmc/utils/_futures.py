"""Waiting for Dask futures on a cluster that may lose some or all of its workers."""

import time
from contextlib import contextmanager

from ..exceptions import WorkersLostError

PATIENCE_SECONDS = 60.0  # how long to wait for a cluster that has no worker
_POLL_SECONDS = 0.5


@contextmanager
def losses(client):
    """Context that turns Dask's errors about lost workers and connections into `WorkersLostError`."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    try:
        yield
    except WorkersLostError:
        raise
    except (CancelledError, KilledWorker) as error:
        raise WorkersLostError(f"Workers of the Dask cluster were lost ({type(error).__name__}: {error}).") from error
    except Exception as error:
        if client.status == "running":
            raise
        raise WorkersLostError(f"The connection to the Dask cluster was lost ({error}).") from error


def results_of(client, futures):
    """The results of futures, a list; raises `WorkersLostError` if no worker is left to compute them."""
    futures = list(futures)
    with losses(client):
        wait_for(client, futures)
        for future in futures:  # raises the error of the first future that failed, not the first error to occur
            if future.status == "error":
                future.result()
        return client.gather(futures)


def wait_for(client, futures, needed=frozenset()):
    """Wait for futures; raises `WorkersLostError` if the cluster has no worker for too long.

    Returns True when the futures have ended, or False as soon as one of the ``needed`` workers is lost.
    """
    from distributed import wait

    alone_since = None
    while True:
        try:
            wait(futures, timeout=_POLL_SECONDS)
            return True
        except TimeoutError as error:
            error.__traceback__ = None  # a reference cycle through our frames, which would keep all shards in memory
            present = _workers(client)
            if needed - present:
                return False
            if present:
                alone_since = None
                continue
            alone_since = alone_since or time.monotonic()
            if time.monotonic() - alone_since > PATIENCE_SECONDS:
                raise WorkersLostError(
                    f"The Dask cluster has had no worker for {PATIENCE_SECONDS:.0f} seconds."
                ) from None
        except Exception:  # `client.gather` raises it again, with the cause
            return True


def _workers(client):
    """The set of the workers' addresses; empty if the scheduler cannot be reached."""
    try:
        return set(client.nthreads() if client.status == "running" else ())
    except Exception:  # a failed connection may raise anything
        return set()
