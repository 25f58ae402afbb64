"""Names of compiled functions that cannot be mistaken for each other.

numba names the machine code of a function by its module, its qualified name, its types, and a number that each process
counts from 1. The files of its cache hold such names, and those of all functions that a kernel calls. So files written
by two processes may give the same name to different code, and a third process, which loads both, calls whichever it
has loaded first: two variants that a factory makes are taken for each other, in silence; and since the code of one and
the same function is optimised anew within each of its callers, the last bits of a draw depend on what else the process
has loaded before.

Here each compilation draws a name of its own, and the functions that a kernel calls are its own, which nothing outside
its machine code can see.
"""

import uuid

from llvmlite.binding import Linkage
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

# How names of compiled functions begin. Those of numba's runtime stay as they are: its passes know them by name.
_MANGLED = ("_ZN", "cfunc._ZN")


class _Library(JITCodeLibrary):
    """Machine code in which nothing but the compiled function itself can be found by name."""

    def _finalize_final_module(self):
        # What callers take in and optimise with their own code. numba makes it of the final module: here too late.
        self._shared_module = self._final_module.clone()
        for function in _defined(self._shared_module):
            if function.linkage == Linkage.external:
                function.linkage = "linkonce_odr"
            elif function.name.startswith(_MANGLED):
                function.linkage = "private"
        # All optimisation is behind us, so that this changes no instruction. "private" leaves no symbol at all: the
        # linker of compiled code would find an "internal" one in the table that it keeps for all objects, and call it
        # from another, though its arguments may have been changed to suit its own callers.
        for function in _defined(self._final_module):
            if function.linkage != Linkage.external and function.name.startswith(_MANGLED):
                function.linkage = "private"
        super()._finalize_final_module()


def _defined(module):
    return [function for function in module.functions if not function.is_declaration]


class OwnNames(Compiler):
    """numba's compiler, for ``njit(pipeline_class=OwnNames)``."""

    def define_pipelines(self):
        state = self.state
        identity = state.func_id
        identity.unique_id = uuid.uuid4().hex
        identity.unique_name = f"{identity.func_qualname}${identity.unique_id}"
        if state.library is None:
            state.library = _Library(state.targetctx.codegen(), identity.func_qualname)
            state.library.enable_object_caching()
        return super().define_pipelines()
