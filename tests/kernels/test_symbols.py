"""Kernels whose machine code comes from files of different processes call their own functions."""

from tests.common.forked import run_with_numba

# Two functions of one name, as a factory makes them, too long to be compiled into their callers. Each process that
# compiles one of the kernels gives the same number, the second, to the function that it calls.
MODULE = """
import math
from sk_sgmcmc.kernels._jit import F1, F8, helper, kernel

def made(k):
    def total(x):
        s = 0.0
        for i in range(x.shape[0]):
            a = x[i]
            s += math.sin(a) * math.cos(a + k) + math.exp(-a * k) * math.log1p(a * a + k) + math.tanh(a - k)
            if s > 1e6:
                s -= math.sin(s * k)
            for j in range(int(a)):
                s += math.pow(abs(a) + k, 0.3 * j) + math.sinh(a / k) + math.atan(a * k) + math.sqrt(a * a + k)
        return s
    return helper(total)

total_2, total_3 = made(2.0), made(3.0)

@kernel(F8(F1))
def by_2(x):
    return total_2(x) + total_2(x + 1.0) * total_2(x + 2.0) + total_2(x + 3.0)

@kernel(F8(F1))
def by_3(x):
    return total_3(x) + total_3(x + 1.0) * total_3(x + 2.0) + total_3(x + 3.0)

def linkages(x):
    (result,) = by_2.compiled.overloads.values()
    module = result.library._final_module
    return {f.linkage.name for f in module.functions if "total" in f.name and not f.is_declaration}

if __name__ == "__main__":
    import sys
    import numpy as np
    import twins as here
    for name in sys.argv[1:]:
        print(getattr(here, name)(np.ones(3)))
"""


def said_by(folder, *names, first=""):
    """What a process of its own prints for the kernels, called in this order."""
    code = f"{first}\nimport sys, runpy; sys.argv = {['twins', *names]}; runpy.run_module('twins', run_name='__main__')"
    return run_with_numba(code, folder, folder / "cache").split()


def test_functions_of_one_name_are_not_mistaken_for_each_other(tmp_path):
    (tmp_path / "twins.py").write_text(MODULE, encoding="utf-8")
    alone = said_by(tmp_path, "by_2") + said_by(tmp_path, "by_3")
    assert alone[0] != alone[1]
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")}
    assert said_by(tmp_path, "by_2", "by_3") == alone
    assert said_by(tmp_path, "by_3", "by_2") == alone[::-1]
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")} == files  # nothing was compiled again


def test_helpers_are_hidden_within_a_kernel(tmp_path):
    """With any other linkage, another object may call them by name, though they may take other arguments by then."""
    (tmp_path / "twins.py").write_text(MODULE, encoding="utf-8")
    assert said_by(tmp_path, "linkages") == ["{'private'}"]


def test_by_the_names_of_numba_they_are(tmp_path):
    """If this fails, numba tells them apart by itself, and ``kernels/_symbols.py`` can go."""
    (tmp_path / "twins.py").write_text(MODULE, encoding="utf-8")
    plain = "import numba.core.compiler, sk_sgmcmc.kernels._jit as j; j.OwnNames = numba.core.compiler.Compiler"
    alone = said_by(tmp_path, "by_2", first=plain) + said_by(tmp_path, "by_3", first=plain)
    assert said_by(tmp_path, "by_2", "by_3", first=plain) == [alone[0], alone[0]]
