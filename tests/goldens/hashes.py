"""Run the golden fits and compare their draws, bit for bit: ``python -m tests.goldens.hashes`` from the root.

A hash covers the names, types, shapes and bytes of all arrays in ``samples_``; results of the fitted model are compared
to a relative 1e-7. ``--only TEXT`` runs the cases whose names contain the text; ``--write`` writes their entries of
`hashes.json` instead of comparing them. Status 1 means that something differs.

Exponentials, factorisations and products differ in their last bits between processors, and so do draws. On another
processor than that of the file, only the results are compared.
"""

import argparse
import hashlib
import json
import pickle
import platform
import sys
import warnings
from pathlib import Path

import numpy as np
from llvmlite.binding import get_host_cpu_name
from threadpoolctl import threadpool_info

import tests.conftest  # noqa: F401  (names the folder of compiled kernels by their sources: never stale ones)
from sk_sgmcmc import sample
from tests.goldens.cases import CASES, DATA, TARGETS, made, public

PATH = Path(__file__).parent / "hashes.json"
REFUSED, AS_FIT = "refused", "as fit"
USUAL = {"n_iter": 8, "n_chains": 2, "random_state": 0}
STOPS = (2, 6)
# Read from each fitted model that has them, for the rows of the fit: (method, arguments that some models need).
RESULTS = {
    "score": {"SphericalAdmixtureModel": {"n_temperatures": 10}},
    "transform": {},
    "predict_proba": {},
    "log_perplexity": {"SphericalAdmixtureModel": {"n_proportions": 10}},
}


def digest(samples):
    """Hash of the draws: names, types, shapes and bytes; 64 bits of it, since all are in one file."""
    total = hashlib.sha256()
    for name in sorted(samples):
        value = np.ascontiguousarray(samples[name])
        total.update(f"{name} {value.dtype.str} {value.shape}\n".encode())
        total.update(value.tobytes())
    return total.hexdigest()[:16]


# ------------------------------------------------------------------------------------------ what is done with each case


def new(case, **more):
    """The estimator of a case, not fitted."""
    params = USUAL | case.params | more
    return public(case.what)().set_params(**{name: made(value) for name, value in params.items()})


def _call(method, data):
    args, given = data
    return method(*args, **given)


def _fit(case, data, **more):
    return _call(new(case, **more).fit, data.whole)


class _StopAt:
    def __init__(self, step):
        self.step = step

    def __call__(self, estimator, step):
        return step >= self.step


def _resumed(case, data):
    """Stopped twice, in the burn-in and after it, and saved each time."""
    model = _fit(case, data, callbacks=_StopAt(STOPS[0]))
    for stop in (STOPS[1], None):
        model = pickle.loads(pickle.dumps(model)).set_params(callbacks=stop and _StopAt(stop))
        _call(model.resume, data.whole)
    return model


def _stream(case, data):
    model = new(case)
    for block in data.blocks:
        _call(model.partial_fit, block)
    return model


def _result(model, name, data):
    """One number for all that a method returns."""
    (X, *y), given = data
    y = y if name == "score" else []
    if name != "score" or not hasattr(model, "predict_proba"):
        given = {key: value for key, value in given.items() if key == "metadata"}
    more = RESULTS[name].get(type(model).__name__, {})
    found = np.asarray(getattr(model, name)(X, *y, **given, **more), dtype=float)
    weights = 1.0 + np.arange(found.size) % 7
    return float(f"{found.ravel() @ weights / found.size:.12g}")


def _run_estimator(case):
    data = DATA[case.data]()
    fitted = _fit(case, data)
    found = {"fit": digest(fitted.samples_)}
    found |= {name: _result(fitted, name, data.whole) for name in RESULTS if hasattr(fitted, name)}
    for way, run_it in {
        "jobs": lambda: _fit(case, data, n_jobs=2),
        "resume": lambda: _resumed(case, data),
        "stream": lambda: _stream(case, data),
        "after": lambda: _call(fitted.partial_fit, data.blocks[0]),
    }.items():
        try:
            draws = digest(run_it().samples_)
        except (ValueError, AttributeError):  # some samplers refuse `partial_fit`, and some estimators have none
            draws = REFUSED
        found[way] = AS_FIT if draws == found["fit"] and way in ("jobs", "resume") else draws
    return found


def run(case):
    """Hashes and results of a case, by what was done."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.data is not None:
            return _run_estimator(case)
        params = {name: made(value) for name, value in (USUAL | case.params).items()}
        return {"sample": digest(sample(TARGETS[case.what]()(), **params).samples_)}


# ------------------------------------------------------------------------------------------------------------ comparing


def differences(expected, found, bits=True):
    """What differs between two entries: (what was done, expected, found); without ``bits``, hashes may."""
    for way in expected | found:
        before, now = expected.get(way), found.get(way)
        if isinstance(before, float) and isinstance(now, float):
            equal = bool(np.isclose(before, now, rtol=1e-7, atol=1e-12))
        else:
            equal = before == now or (not bits and way in ("fit", "stream", "after", "sample"))
        if not equal:
            yield way, before, now


def this_machine():
    """What the last bits of exponentials, products and factorisations depend on."""
    pools = threadpool_info()
    kernels = sorted({pool["architecture"] for pool in pools if pool.get("internal_api") == "openblas"})
    return {
        "system": platform.system(), "machine": platform.machine(), "openblas": kernels, "llvm": get_host_cpu_name(),
    }  # fmt: skip


def saved():
    """What the file holds: the machine, and the entries by case."""
    return json.loads(PATH.read_text(encoding="utf-8"))


def write(entries):
    """Write all entries, a line for each case."""
    lines = ",\n".join(f"{json.dumps(case.name)}: {json.dumps(entries[case.name])}" for case in CASES)
    PATH.write_text(f'{{"made on": {json.dumps(this_machine())},\n"cases": {{\n{lines}\n}}}}\n', encoding="utf-8")


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write the cases to hashes.json")
    parser.add_argument("--only", default="", metavar="TEXT", help="run cases whose name contains it")
    options = parser.parse_args(argv)
    golden = saved()
    bits = golden["made on"] == this_machine()
    if not bits:
        print(f"The hashes are of {golden['made on']}, and this is {this_machine()}: only results are compared.")
    # The file holds the bits of one machine: on another, all cases are written, if results of the others are the same.
    found = {case.name: run(case) for case in CASES if options.only in case.name or (options.write and not bits)}
    compared = [name for name in found if not (options.write and options.only in name)]
    differ = [
        (name, *each) for name in compared for each in differences(golden["cases"].get(name, {}), found[name], bits)
    ]
    for name, way, before, now in differ:
        print(f"differs: {name} | {way}: {before} before, {now} now")
    if options.write and not differ:
        write(golden["cases"] | found)
        print(f"{len(found)} cases written.")
        return 0
    print(f"{len(found)} cases, {len(differ)} differences.")
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main())
