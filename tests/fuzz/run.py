"""Fuzz for as long as you like: ``python -m tests.fuzz.run --seconds 3600 --jobs 2``.

Cases are drawn by the strategies that the tests use, and each runs in a worker process: one that crashes or hangs is
counted, replaced, and stops nothing else. What is neither fitted nor refused is made smaller, written to a file as one
line of JSON for each cause, and run again by ``--replay FILE``. The exit status is 1 where there is any.
"""

import argparse
import collections
import contextlib
import copy
import faulthandler
import json
import multiprocessing
import os
import signal
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: workers are as many as cores
os.environ.setdefault("MPLBACKEND", "Agg")

from tests.fuzz.calls import MUST

FAULTS = ("fault", "crash", "hang", "harness")
MEMORY = 8 * 2**30  # of a worker's addresses: what asks for more is found, and not the machine's end
SHRINKING = 60  # attempts to make a case smaller


# ------------------------------------------------------------------------------------------------------------- worker


def _work(pipe, errors):
    """Judge the cases that come through a pipe, until None does."""
    sys.stdout.flush()
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)  # where a crash leaves its trace
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with contextlib.suppress(ImportError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    from tests.fuzz.oracle import FaultError, judge

    while (case := pipe.recv()) is not None:
        began = time.perf_counter()
        try:
            verdict, said = judge(case)
        except FaultError as fault:
            verdict, said = "fault", [fault.cause, str(fault)]
        except BaseException as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(frame.filename).name}:{frame.lineno}"
            verdict, said = "harness", [f"{type(error).__name__} at {place}", f"{error}"[:500]]
        pipe.send((verdict, said, time.perf_counter() - began))


class Worker:
    """A process that judges cases one after another."""

    def __init__(self, errors):
        self.errors, self.process = errors, None

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, self.errors), daemon=True)
        self.process.start()
        theirs.close()

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.pipe.close()
        self.process = None

    def judge(self, case, seconds):
        """(verdict, [cause, detail], time) of a case."""
        # What may have written where it should not must not be the cause of another case's end, nor that of this.
        alone = is_malformed(case)
        if alone:
            self.stop()
        if self.process is None:
            self.start()
        began = time.perf_counter()
        try:
            self.pipe.send(case)
            if self.pipe.poll(seconds):
                verdict = self.pipe.recv()
            else:
                verdict = ("hang", [f"{describe(case)} still running after {seconds:g} s", ""], seconds)
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            name = signal.Signals(-code).name if code and code < 0 else f"exit status {code}"
            verdict = ("crash", [f"{name} in {describe(case)}", ""], time.perf_counter() - began)
        if alone or verdict[0] in ("hang", "crash") or "MemoryError" in str(verdict[1]):
            self.stop()
        return verdict


def is_malformed(case):
    """Whether indices of sparse data are wrong."""
    metadata = case.get("metadata") or {}
    return case["data"].get("form", "").startswith("malformed") or metadata.get("form") == "malformed"


def describe(case):
    """A few words on a case."""
    if case["what"] == "sample":
        return f"sample({case['target']}, {_short(case['call'].get('sampler'))})"
    form = case["data"]["form"] if is_malformed(case) else ""
    return f"{case['what']}({_short(case['params'].get('sampler'))}) {form}".strip()


def _short(sampler):
    return sampler["of"] if isinstance(sampler, dict) else sampler


# -------------------------------------------------------------------------------------------------------------- cases


def draw_cases(seed, n):
    """``n`` or so different cases; the same for the same seed and the same version of hypothesis."""
    import hypothesis

    from tests.fuzz.strategies import cases

    drawn = {}

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=n, database=None, deadline=None, phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )  # fmt: skip
    @hypothesis.given(cases())
    def draw(case):
        drawn.setdefault(json.dumps(case, sort_keys=True), case)

    draw()
    return list(drawn.values())


def smaller(case):
    """Cases with one thing less than a case has, the largest things first."""
    for key in ("twice", "blocks", "sample_weight", "exposure", "metadata"):
        if key in case:
            yield {name: value for name, value in case.items() if name != key}
    for i in reversed(range(1, len(case.get("ops", [])))):
        yield {**case, "ops": case["ops"][:i] + case["ops"][i + 1 :]}
    for i, (op, which, *more) in enumerate(case.get("ops", [])):
        for name in more[0] if more else ():
            if name not in MUST.get(op, ()):
                less = {key: value for key, value in more[0].items() if key != name}
                yield {**case, "ops": case["ops"][:i] + [[op, which, less]] + case["ops"][i + 1 :]}
    for part in ("params", "call", "data"):
        for name in case.get(part, {}):
            if part != "data" or name in ("odd", "dtype"):
                yield {**case, part: {k: v for k, v in case[part].items() if k != name}}
    for part in ("params", "call"):
        for name, value in case.get(part, {}).items():
            if isinstance(value, dict) and value.get("params"):
                for inner in value["params"]:
                    less = copy.deepcopy(case)
                    del less[part][name]["params"][inner]
                    yield less
    if case["data"].get("form") not in (None, "dense"):
        yield {**case, "data": {**case["data"], "form": "dense"}}
    for op, which, *_ in [case["ops"][0]] if case.get("ops") else []:
        if op != "fit":
            yield {**case, "ops": [["fit", which], *case["ops"][1:]]}


def shrink(case, cause, worker, seconds):
    """The smallest case found by leaving out one thing after another that ends in the same way."""
    attempts, progress = 0, True
    while progress and attempts < SHRINKING:
        progress = False
        for less in smaller(case):
            attempts += 1
            if attempts > SHRINKING:
                break
            _, said, _ = worker.judge(less, seconds)
            if said and said[0] == cause:
                case, progress = less, True
                break
    return case


# -------------------------------------------------------------------------------------------------------------- table


class Table:
    """What has been found so far."""

    def __init__(self, output):
        self.output, self.began = Path(output), time.perf_counter()
        self.verdicts, self.of, self.causes, self.slowest = collections.Counter(), {}, {}, (0.0, "")

    def add(self, case, verdict, said, seconds):
        """Count a case; whether its cause is a new one."""
        self.verdicts[verdict] += 1
        self.of.setdefault(case["what"], collections.Counter())[verdict] += 1
        self.slowest = max(self.slowest, (seconds, describe(case)))
        if verdict not in FAULTS:
            return False
        count, example = self.causes.get((verdict, said[0]), (0, None))
        self.causes[verdict, said[0]] = (count + 1, example)
        return count == 0

    def keep(self, case, verdict, said):
        """Write the smallest case of a cause to the file."""
        self.causes[verdict, said[0]] = (self.causes[verdict, said[0]][0], case)
        with self.output.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"verdict": verdict, "cause": said[0], "detail": said[1], "case": case}) + "\n")

    def __str__(self):
        columns = ("fitted", "refused", *FAULTS)
        lines = [f"{'':<28}{'cases':>8}" + "".join(f"{name:>9}" for name in columns)]
        for name, counts in [*sorted(self.of.items()), ("in all", self.verdicts)]:
            lines.append(f"{name:<28}{sum(counts.values()):>8}" + "".join(f"{counts[c]:>9}" for c in columns))
        lines.append(
            f"{time.perf_counter() - self.began:.0f} s; slowest case {self.slowest[0]:.1f} s, {self.slowest[1]}"
        )
        for (verdict, cause), (count, _) in sorted(self.causes.items(), key=lambda item: -item[1][0]):
            lines.append(f"{count:>6} x {verdict}: {cause}")
        return "\n".join(lines)

    @property
    def faults(self):
        return sum(self.verdicts[verdict] for verdict in FAULTS)


# ---------------------------------------------------------------------------------------------------------------- main


def _arguments(argv):
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="for how long to draw cases")
    parser.add_argument("--seed", type=int, default=0, help="of the first round; the next one has the next seed")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--round", type=int, default=100, help="cases drawn from one seed")
    parser.add_argument("--limit", type=float, default=180.0, help="seconds after which a case hangs")
    parser.add_argument("--output", default="fuzz-faults.jsonl", help="where faults are added, one a line")
    parser.add_argument("--replay", help="run the cases of this file and no others")
    parser.add_argument("--no-shrink", action="store_true", help="keep cases as they were drawn")
    return parser.parse_args(argv)


def main(argv=None):
    """Run, print the table, and return the exit status."""
    given = _arguments(argv)
    table = Table(given.output)
    errors = f"{given.output}.stderr"
    if given.replay:
        worker = Worker(errors)
        for line in Path(given.replay).read_text(encoding="utf-8").splitlines():
            case = json.loads(line)["case"]
            verdict, said, seconds = worker.judge(case, given.limit)
            table.add(case, verdict, said, seconds)
            print(f"{verdict}: {said[0] if verdict in FAULTS else said}\n    {json.dumps(case)}", flush=True)
        worker.stop()
    else:
        seeds = iter(range(given.seed, sys.maxsize))
        with ThreadPoolExecutor(given.jobs) as pool:  # a thread for each worker, which waits for it
            for each in [pool.submit(_rounds, seeds, table, given, errors) for _ in range(given.jobs)]:
                each.result()
    print(table)
    return int(table.faults > 0)


def _rounds(seeds, table, given, errors):
    """Rounds of cases, each in the order of their estimators, so that what is compiled is used."""
    worker, end = Worker(errors), table.began + given.seconds
    while time.perf_counter() < end:
        seed = next(seeds)
        for case in sorted(draw_cases(seed, given.round), key=lambda case: (is_malformed(case), describe(case))):
            if time.perf_counter() > end:
                break
            verdict, said, seconds = worker.judge(case, given.limit)
            if table.add(case, verdict, said, seconds):
                if not given.no_shrink and verdict != "hang":
                    case = shrink(case, said[0], worker, given.limit)
                table.keep(case, verdict, said)
                print(f"seed {seed}, {verdict}: {said[0]}: {said[1]}\n    {json.dumps(case)}", flush=True)
    worker.stop()


if __name__ == "__main__":
    sys.exit(main())
