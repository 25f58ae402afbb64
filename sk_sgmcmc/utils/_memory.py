"""The memory that this process may still allocate, as far as the system reports it."""

import os
from pathlib import Path


def available_memory():
    """Bytes that this process can still allocate; infinity if unknown.

    The smallest of three numbers: the free memory of the machine, and what is left of the limit `resource.RLIMIT_AS`
    and of the limit of a container.
    """
    return min(_of_machine(), _of_process(), _of_container())


def _of_machine():
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    try:  # the total, if the free amount is unknown
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows
        return float("inf")


def _of_process():
    try:
        import resource
    except ImportError:  # Windows
        return float("inf")
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return float("inf") if limit == resource.RLIM_INFINITY else max(0, limit - _taken(0))


def _of_container():
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        for line in _lines(path):
            if line.strip().isdigit():
                return max(0, int(line) - _taken(1))
    return float("inf")


def _taken(column):
    """Bytes that this process uses: address space (column 0) or resident memory (1); 0 if the system reports none."""
    for line in _lines("/proc/self/statm"):
        return int(line.split()[column]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _lines(path):
    try:
        return Path(path).read_text(encoding="ascii").splitlines()
    except OSError:
        return []
