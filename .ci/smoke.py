"""Run every long script in its short setting: ``python .ci/smoke.py``. Each must end well and print something.

All run in this process, which spares them the imports. Pages of the gallery run whole in the build of the
documentation.
"""

import contextlib
import io
import os
import runpy
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])  # for processes of scripts
sys.path.insert(0, str(ROOT))


def fault_of(script):
    """Run a script; what is wrong with it, or None."""
    printed = io.StringIO()
    sys.argv = [str(script), "--smoke"]
    sys.path.insert(0, str(script.parent))
    before = set(sys.modules)
    try:
        with contextlib.redirect_stdout(printed):
            runpy.run_path(str(script), run_name="__main__")
    except SystemExit as end:
        if end.code:
            return f"{printed.getvalue()}ended with {end.code}"
    except Exception:
        return printed.getvalue() + traceback.format_exc()
    finally:
        sys.path.remove(str(script.parent))
        for name in set(sys.modules) - before:  # files next to scripts may share names
            if str(ROOT / "examples") in (getattr(sys.modules[name], "__file__", None) or ""):
                del sys.modules[name]
    return None if printed.getvalue().strip() else "it prints nothing"


def main():
    """Run all scripts; 1 if any fails."""
    scripts = sorted(
        path for part in ("reproduce", "benchmarks") for path in (ROOT / "examples" / part).glob("[!_]*.py")
    )
    assert scripts
    n_failed = 0
    for script in scripts:
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            fault = fault_of(script)
        n_failed += fault is not None
        print(
            f"{'FAILED' if fault else 'ran':<8}{time.perf_counter() - began:5.0f} s  {script.relative_to(ROOT)}",
            flush=True,
        )
        if fault:
            print(fault)
    print(f"{len(scripts)} scripts, {n_failed} failed")
    return int(n_failed > 0)


if __name__ == "__main__":
    sys.exit(main())
