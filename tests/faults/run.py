"""Hit many fits at random moments, and print how many left what they should.

``python -m tests.faults.run --kills 50 --signals 60 --full-disks 20 --files 20 --memory 10``
"""

import argparse
import itertools
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.faults import tries

SIGNALS = list(itertools.product(("one", "two", "group"), ("main", "threads", "loky")))
EXTRA_SIGNALS = [("one", "multiprocessing"), ("two", "multiprocessing"), ("group", "multiprocessing")]


def retried(attempt, folder, rng, **given):
    """One try that came in time, at a random moment of the fit."""
    longest = 0.8
    for number in itertools.count():
        place = folder / str(number)
        place.mkdir(parents=True)
        try:
            return attempt(place, share=rng.uniform(0.0, longest), **given)
        except tries.TooLate:
            longest *= 0.6


def kills(n, folder, rng):
    """Answers of n kills."""
    for i in range(n):
        where = ("main", "threads", "loky")[i % 3]
        model = ("logistic", "dp")[i // 3 % 2]
        yield f"kill -9, {where}", *retried(tries.killed, folder / f"kill{i}", rng, model=model, where=where)


def signals(n, folder, rng, kinds=SIGNALS):
    """Answers of n fits that were interrupted."""
    for i in range(n):
        how, where = kinds[i % len(kinds)]
        model = ("logistic", "dp")[i // len(kinds) % 2]
        given = {"model": model, "where": where, "how": how, "pause": rng.choice([0.0, rng.uniform(0.0, 1.0)])}
        given["warm"] = where == "loky" and bool(rng.uniform() < 0.75)
        yield f"SIGINT {how}, {where}", *retried(tries.interrupted, folder / f"signal{i}", rng, **given)


def full_disks(n, folder, rng):
    """Answers of n fits whose disk is full."""
    for model, part in (("logistic", range(0, n, 2)), ("dp", range(1, n, 2))):
        place = folder / f"disk-{model}"
        place.mkdir()
        if part:
            for answer in tries.full_disk(place, model, list(part)):
                yield f"full disk, {model}", *answer


def files(n, folder, rng):
    """Answers of n files, each damaged in six ways."""
    place = folder / "files"
    place.mkdir()
    for i in range(n):
        yield "damaged file", *tries.damaged(place, ("logistic", "dp")[i % 2], i)


def memory(n, folder, rng):
    """Answers of n fits without memory."""
    place = folder / "memory"
    place.mkdir()
    for answer in tries.no_memory(place, list(range(n))) if n else ():
        yield "no memory", *answer


def main(arguments=None):
    """Print a table; returns the number of failures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (
        ("kills", 50), ("signals", 60), ("multiprocessing", 6), ("full-disks", 20), ("files", 20), ("memory", 10),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    rng, counts, began = np.random.default_rng(asked.seed), {}, time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "more").mkdir()
        for kind, passed, said in itertools.chain(
            kills(asked.kills, folder, rng),
            signals(asked.signals, folder, rng),
            signals(asked.multiprocessing, folder / "more", rng, EXTRA_SIGNALS),
            full_disks(asked.full_disks, folder, rng),
            files(asked.files, folder, rng),
            memory(asked.memory, folder, rng),
        ):
            counts.setdefault(kind, []).append(passed)
            print(f"{time.monotonic() - began:7.1f} s  {'passed' if passed else 'FAILED'}  {kind}: {said}", flush=True)
    print(f"\n{'kind':<30}{'tries':>7}{'passed':>8}{'failed':>8}")
    for kind, passed in sorted(counts.items()):
        print(f"{kind:<30}{len(passed):>7}{sum(passed):>8}{len(passed) - sum(passed):>8}")
    every = [one for passed in counts.values() for one in passed]
    print(f"{'all':<30}{len(every):>7}{sum(every):>8}{len(every) - sum(every):>8}")
    return len(every) - sum(every)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
