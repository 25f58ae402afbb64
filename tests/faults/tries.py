"""One try of each kind of fault: hit a fit in another process, and say what is wrong with what it left.

Each function returns whether all is well, and a few words.
"""

import contextlib
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

import joblib
import numpy as np

from sk_sgmcmc.callbacks import load_checkpoint
from sk_sgmcmc.exceptions import DamagedFileError
from sk_sgmcmc.utils import _files
from tests.faults.child import MODELS, data_of, same_draws

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 300.0  # seconds that a child may take, on a machine that does much else


class TooLate(Exception):
    """The fit had ended before it was hit: no try."""


@cache
def uninterrupted(name):
    """The model after a fit that nothing disturbs, and how long that took."""
    MODELS[name]().set_params(n_iter=100).fit(*data_of(name))  # compiled
    began = time.monotonic()
    model = MODELS[name]().fit(*data_of(name))
    return model, time.monotonic() - began


def _start(folder, **asked):
    command = [sys.executable, "-W", "ignore", "-m", "tests.faults.child", json.dumps({"folder": str(folder), **asked})]
    with open(folder / "said", "wb") as said:
        return subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said, start_new_session=True)


def _wait_for(child, path):
    """Until the child has made a file; False where it ended first."""
    deadline = time.monotonic() + LONGEST
    while not path.exists():
        if child.poll() is not None:
            return path.exists()
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {path.name} after {LONGEST} s")
        time.sleep(0.002)
    return True


def _end(child):
    """End the child and the processes that it has started: a session of its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _said(folder):
    return (folder / "said").read_text(errors="replace")[-2000:]


def killed(folder, model, where, share):
    """Kill -9 at a moment after the first save; what was saved loads, and goes on to the draws of an unhurt fit."""
    whole, seconds = uninterrupted(model)
    path = folder / "model.joblib"
    child = _start(folder, do="fit_to_be_killed", model=model, where=where)
    try:
        if not _wait_for(child, path):
            return False, f"ended before a save: {_said(folder)}"
        time.sleep(share * seconds)
        if child.poll() is not None:
            raise TooLate
    finally:
        _end(child)
    saved = load_checkpoint(path)
    if not 0 < saved.n_iter_ <= saved.n_iter:
        return False, f"saved after {saved.n_iter_} steps"
    said = f"saved after {saved.n_iter_} of {saved.n_iter} steps"
    return same_draws(saved.resume(*data_of(model)), whole), said


def interrupted(folder, model, where, how, share, pause, warm):
    """Ctrl-C: "one", "two" (the second after a pause), or one to the "group" of processes, as a terminal sends it.

    One leaves a fitted estimator that goes on to the draws of an undisturbed fit. After a second one it may instead be
    as it was before; nothing in between.
    """
    whole, seconds = uninterrupted(model)
    child = _start(folder, do="fit_to_be_interrupted", model=model, where=where, warm=warm)
    try:
        if not _wait_for(child, folder / "begun"):
            return False, f"ended before the fit: {_said(folder)}"
        time.sleep(share * seconds)
        (os.killpg if how == "group" else os.kill)(child.pid, signal.SIGINT)
        if how == "two":
            time.sleep(pause)
            os.kill(child.pid, signal.SIGINT)
        sent = time.monotonic()
        if not _wait_for(child, folder / "answer"):
            return False, f"gave no answer, exit status {child.poll()}: {_said(folder)}"
        delay = time.monotonic() - sent
        answer = pickle.loads((folder / "answer").read_bytes())
    finally:
        _end(child)
    return _judged(answer, model, how, whole, delay)


def _judged(answer, name, how, whole, delay):
    model, error = answer["model"], answer["error"]
    if error == "NoneType":
        if same_draws(model, whole):
            raise TooLate
        return False, "ended early without a word"
    if delay > 60:
        return False, f"took {delay:.0f} s"
    if not answer["handler"]:
        return False, "the handler of SIGINT was not put back"
    if error == "KeyboardInterrupt":
        if how == "two" and answer["as before"]:
            return same_draws(model.fit(*data_of(name)), whole), "as before"
        return False, f"{error}: {answer['message']}, as before: {answer['as before']}"
    if error != "FitInterrupted" or f"interrupted after {model.n_iter_} steps" not in answer["message"]:
        return False, f"{error}: {answer['message']}, after {model.n_iter_} steps"
    if model.n_iter_ != min(chain.step for chain in model._chains):
        return False, f"says {model.n_iter_} steps, made {[chain.step for chain in model._chains]}"
    for values in model.samples_.values():
        if not np.all(np.isfinite(values)):
            return False, "draws that are not finite"
    said = f"fitted after {model.n_iter_} of {whole.n_iter_} steps, {delay:.1f} s after the signal"
    return same_draws(model.resume(*data_of(name)), whole), said


def full_disk(folder, model, seeds):
    """For each seed the answer after a disk was full in the middle of a fit."""
    return _asked(folder, do="fits_on_a_full_disk", model=model, seeds=seeds)


def no_memory(folder, seeds):
    """For each seed the answer after memory gave out in a fit."""
    return _asked(folder, do="fits_without_memory", seeds=seeds)


def _asked(folder, **asked):
    child = _start(folder, **asked)
    try:
        if not _wait_for(child, folder / "answer"):
            return [(False, f"exit {child.returncode}: {_said(folder)}")] * len(asked["seeds"])
        return [(not wrong, wrong) for wrong in pickle.loads((folder / "answer").read_bytes()).values()]
    finally:
        _end(child)


@cache
def _saved(name):
    model = MODELS[name]().set_params(n_iter=200).fit(*data_of(name))
    return model, joblib.hash(model.samples_)


def damaged(folder, model, seed):
    """A file with bits flipped, bytes overwritten, cut out or put in, or cut short, is refused by one error.

    The few bytes that frame the model may change without effect: then the model is the one that was saved.
    """
    rng, path = np.random.default_rng(seed), folder / "model.joblib"
    saved, answer = _saved(model)
    _files.write_checkpoint(saved, path)
    whole = path.read_bytes()
    if joblib.hash(load_checkpoint(path).samples_) != answer:
        return False, "the whole file has other draws"
    for kind in ("flip", "head", "overwrite", "cut out", "put in", "shorten"):
        content = bytearray(whole)
        at = int(rng.integers(len(whole)))
        length = int(rng.integers(1, 200))
        if kind == "flip":
            content[at] ^= 1 << int(rng.integers(8))
        elif kind == "head":
            content[int(rng.integers(100))] ^= 1 << int(rng.integers(8))
        elif kind == "overwrite":
            content[at : at + length] = bytes(len(content[at : at + length]))
        elif kind == "cut out":
            del content[at : at + length]
        elif kind == "put in":
            content[at:at] = bytes(length)
        else:
            del content[at:]
        if bytes(content) == whole:
            continue
        path.write_bytes(content)
        try:
            loaded = load_checkpoint(path)
        except DamagedFileError as error:
            if str(path) not in str(error) or "damaged" not in str(error):
                return False, f"{kind} at {at}: {error}"
        else:
            if (kind != "head" and 200 < at < len(whole) - 200) or joblib.hash(loaded.samples_) != answer:
                return False, f"{kind} at {at}: loaded"
        if kind != "head" and not _load_finds(path, answer):
            return False, f"{kind} at {at}: joblib.load gives other draws"
    return True, ""


def _load_finds(path, answer):
    """Whether `joblib.load` raises, or gives the model that was saved."""
    try:
        model = joblib.load(path)
    except Exception:
        return True
    return joblib.hash(model.samples_) == answer
