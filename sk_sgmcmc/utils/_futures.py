"""Waiting for futures of Dask, of a cluster that may lose its workers, or all of them."""

import time
from contextlib import contextmanager

from ..exceptions import WorkersLostError

PATIENCE_SECONDS = 60.0  # without any worker, until a wait is given up
_POLL_SECONDS = 0.5


@contextmanager
def losses(client):
    """Raise `WorkersLostError` instead of Dask's errors of workers and connections."""
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
    """Results of futures, a list; raises `WorkersLostError` if no worker is left to compute them."""
    futures = list(futures)
    with losses(client):
        wait_for(client, futures)
        for future in futures:  # of several errors the first in order, not in time
            if future.status == "error":
                future.result()
        return client.gather(futures)


def wait_for(client, futures, needed=frozenset()):
    """Wait for futures; raises `WorkersLostError` if there is no worker for too long.

    Returns whether they were waited for, which ends if one of the ``needed`` workers is lost.
    """
    from distributed import wait

    alone_since = None
    while True:
        try:
            wait(futures, timeout=_POLL_SECONDS)
            return True
        except TimeoutError as error:
            error.__traceback__ = None  # a circle with frames of Dask, and so of ours, that holds all shards
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
        except Exception:  # `client.gather` raises it again with its reason
            return True


def _workers(client):
    """Addresses of the workers; none if the scheduler cannot be reached."""
    try:
        return set(client.nthreads() if client.status == "running" else ())
    except Exception:  # of the connection
        return set()
