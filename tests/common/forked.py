"""Short programs, each in a process of its own, which is forked from one that has imported numba.

A new interpreter would spend two seconds on that.
"""

import atexit
import json
import os
import subprocess
import sys
from functools import cache

from tests.common.compare import ROOT

SERVER = """
import json, os, sys, traceback
import numba, numpy
import sk_sgmcmc.kernels._jit

def run(asked):
    os.chdir(asked["folder"])
    os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = asked["cache"]
    sys.path.insert(0, asked["folder"])
    exec(compile(asked["code"], "<string>", "exec"), {"__name__": "__main__"})

for line in sys.stdin:
    pipes = [os.pipe(), os.pipe()]
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for number, (_, end) in enumerate(pipes, start=1):
                os.dup2(end, number)
            run(json.loads(line))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(status)
    said = []
    for start, end in pipes:
        os.close(end)
        with open(start) as file:
            said.append(file.read())
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), *said]), flush=True)
"""


@cache
def _server():
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    atexit.register(server.kill)
    return server


def run_with_numba(code, folder, cache):
    """Run code in a folder, whose modules it may import, with numba's cache in another; returns what it prints."""
    if hasattr(os, "fork"):
        asked = {"code": code, "folder": str(folder), "cache": str(cache)}
        server = _server()
        server.stdin.write(json.dumps(asked) + "\n")
        server.stdin.flush()
        status, printed, errors = json.loads(server.stdout.readline())
    else:
        path = os.pathsep.join([str(ROOT), str(folder)])
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=300, check=False,
            env=os.environ | {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(cache)},
        )  # fmt: skip
        status, printed, errors = done.returncode, done.stdout, done.stderr
    assert status == 0, errors
    return printed
