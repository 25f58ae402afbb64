"""Hashes of the draws of every sampler in every model: ``python -m tests.goldens.hashes`` from the root.

Compares with `hashes.json` and ends with status 1 where something differs; ``--write`` writes it anew instead. A hash
covers the names, types, shapes and bytes of all arrays in ``samples_``; answers are compared to a relative 1e-7.

Exponentials, factorisations and products differ in their last bits between processors, and so do draws. On another
processor than the one of the file, answers alone are compared.
"""

import argparse
import hashlib
import json
import multiprocessing
import pickle
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from llvmlite.binding import get_host_cpu_name
from threadpoolctl import threadpool_info

import tests.conftest  # noqa: F401  (names the folder of compiled kernels by their sources: never stale ones)
from sk_sgmcmc import sample
from tests.goldens.hash_cases import DATA, TARGETS, made, public
from tests.goldens.hash_table import CASES
from tests.goldens.make import here

PATH = Path(__file__).parent / "hashes.json"
REFUSED, DIVERGED = "refused", "diverged"
N_ITER, STOPS = 8, (2, 6)
# Asked of each fitted model that has them, with the rows of the fit.
ANSWERS = {
    "score": {"SphericalAdmixtureModel": {"n_temperatures": 10}},
    "transform": {},
    "predict_proba": {},
    "log_perplexity": {"SphericalAdmixtureModel": {"n_proportions": 10}},
}
# The same draws as "fit".
EQUAL_TO_FIT, AS_FIT = ("jobs", "resume"), "as fit"


def digest(samples):
    """Hash of the draws: names, types, shapes and bytes; 64 bits of it, since all are in one file."""
    total = hashlib.sha256()
    for name in sorted(samples):
        value = np.ascontiguousarray(samples[name])
        total.update(f"{name} {value.dtype.str} {value.shape}\n".encode())
        total.update(value.tobytes())
    return total.hexdigest()[:16]


def new(case, **more):
    """The estimator of a case, not fitted."""
    params = {"n_iter": N_ITER, "n_chains": 2, "random_state": 0, **case.params, **more}
    return public(case.what)().set_params(**{name: made(value) for name, value in params.items()})


def _call(method, data):
    args, given = data
    return method(*args, **given)


class _StopAt:
    def __init__(self, step):
        self.step = step

    def __call__(self, estimator, step):
        return step >= self.step


def _fit(case, data, _):
    return _call(new(case).fit, data.whole)


def _jobs(case, data, _):
    return _call(new(case, n_jobs=2).fit, data.whole)


def _resume(case, data, _):
    """Stopped twice, in the burn-in and after it, and saved each time."""
    model = _call(new(case, callbacks=_StopAt(STOPS[0])).fit, data.whole)
    for stop in (STOPS[1], None):
        model = pickle.loads(pickle.dumps(model)).set_params(callbacks=stop and _StopAt(stop))
        _call(model.resume, data.whole)
    return model


def _stream(case, data, _):
    model = new(case)
    for block in data.blocks:
        _call(model.partial_fit, block)
    return model


def _after(case, data, fitted):
    fitted = _fit(case, data, None) if fitted is None else fitted
    return _call(fitted.partial_fit, data.blocks[0])


def _sample(case, data, _):
    params = {"n_iter": N_ITER, "n_chains": 2, "random_state": 0, **case.params}
    return sample(TARGETS[case.what]()(), **{name: made(value) for name, value in params.items()})


WAYS = {"fit": _fit, "jobs": _jobs, "resume": _resume, "stream": _stream, "after": _after, "sample": _sample}


def _answer(model, name, more, data):
    """One number for all that is answered."""
    (X, *y), given = data
    y = y if name == "score" else []
    if name != "score" or not hasattr(model, "predict_proba"):
        given = {key: value for key, value in given.items() if key == "metadata"}
    found = np.asarray(getattr(model, name)(X, *y, **given, **more.get(type(model).__name__, {})), dtype=float)
    weights = 1.0 + np.arange(found.size) % 7
    return float(f"{found.ravel() @ weights / found.size:.12g}")


def run(case):
    """Hashes and answers of a case by what was done, and why something was refused."""
    found, why, fitted = {}, {}, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = None if case.ways == ("sample",) else DATA[case.data]()
        for way in case.ways:
            try:
                model = WAYS[way](case, data, fitted)
            except ValueError as error:
                found[way] = DIVERGED if isinstance(error, FloatingPointError) else REFUSED
                why[way] = " ".join(str(error).split())
                continue
            found[way] = digest(model.samples_)
            if way in EQUAL_TO_FIT and found[way] == found.get("fit"):
                found[way] = AS_FIT
            if way == "fit":
                fitted = model
                for answer, more in ANSWERS.items():
                    if hasattr(model, answer):
                        found[answer] = _answer(model, answer, more, data.whole)
    return found, why


def same(a, b, bits=True):
    """Whether two entries are equal: answers but for rounding, and without ``bits`` any two hashes."""
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.isclose(a, b, rtol=1e-7, atol=1e-12))
    return a == b or (not bits and _is_hash(a) and _is_hash(b))


def _is_hash(entry):
    return isinstance(entry, str) and entry not in (REFUSED, DIVERGED, AS_FIT)


def broken_promises(found):
    """Fits by two jobs, and resumed ones, whose draws are not those of the plain fit: (case, way)."""
    for name, each in found.items():
        for way in EQUAL_TO_FIT:
            if way in each and each[way] not in (AS_FIT, each["fit"]):  # equal where both are refused
                yield name, way


def differences(expected, found, bits=True):
    """What differs between two tables of all hashes: (case, what was done, expected, found)."""
    for name in expected | found:
        before, now = expected.get(name, {}), found.get(name, {})
        for way in before | now:
            if not same(before.get(way), now.get(way), bits):
                yield name, way, before.get(way, "not there"), now.get(way, "not there")


def processor():
    """What the last bits of exponentials, products and factorisations depend on."""
    pools = threadpool_info()
    kernels = sorted({pool["architecture"] for pool in pools if pool.get("internal_api") == "openblas"})
    return {"openblas": kernels, "llvm": get_host_cpu_name()}


def saved():
    return json.loads(PATH.read_text(encoding="utf-8"))


def write(hashes):
    """Write all hashes, a line for each case."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in hashes.items())
    place = f'"here": {json.dumps(here())}, "processor": {json.dumps(processor())}'
    PATH.write_text(f'{{{place}, "hashes": {{\n{lines}\n}}}}\n', encoding="utf-8")


def _run_all(cases, n_jobs):
    if n_jobs == 1:
        yield from map(run, cases)
        return
    with ProcessPoolExecutor(n_jobs, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(run, cases, chunksize=8)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write hashes.json and compare with nothing")
    parser.add_argument("--only", default="", metavar="SUBSTRING", help="run cases whose name contains it")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    parser.add_argument("--why", action="store_true", help="print why calls are refused")
    parser.add_argument("--times", action="store_true", help="print the slowest cases (one process)")
    options = parser.parse_args(argv)
    cases = [case for case in CASES if options.only in case.name]
    golden = saved() if PATH.exists() else {"here": None, "processor": None, "hashes": {}}
    bits = (golden["here"], golden["processor"]) == (here(), processor())
    if not options.write and not bits:
        print(f"The hashes are of {golden['processor']}, and this is {processor()}: answers alone are compared.")

    found, seconds, start = {}, {}, time.perf_counter()
    for case, (found[case.name], why) in zip(cases, _run_all(cases, options.jobs), strict=True):
        now = time.perf_counter()
        seconds[case.name], start = now - start, now
        if options.why:
            for way, reason in why.items():
                print(f"{found[case.name][way]}: {case.name} | {way}: {reason}")
    if options.times:
        for name in sorted(seconds, key=seconds.get)[-25:]:
            print(f"{seconds[name]:7.2f} s  {name}")

    broken = list(broken_promises(found))
    for name, way in broken:
        print(f"not the draws of fit: {name} | {way}")
    n_found = sum(map(len, found.values()))
    if options.write:
        before = golden["hashes"] if options.only else {}
        write({case.name: (before | found)[case.name] for case in CASES if case.name in before | found})
        n_refused = sum(list(each.values()).count(REFUSED) for each in found.values())
        print(f"{n_found} entries of {len(found)} cases written, of which {n_refused} are refused.")
        return int(bool(broken))

    expected = golden["hashes"]
    if options.only:
        expected = {name: value for name, value in expected.items() if name in found}
    differ = list(differences(expected, found, bits))
    for name, way, before, now in differ:
        print(f"differs: {name} | {way}: {before} before, {now} now")
    equal = "are equal" if bits else "have equal answers"
    print(f"{n_found - len(differ)} entries of {len(found)} cases {equal}, {len(differ)} differ.")
    return int(bool(differ or broken))


if __name__ == "__main__":
    sys.exit(main())
