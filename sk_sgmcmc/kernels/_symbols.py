"""Names of compiled functions that cannot be mistaken for each other.

numba names the machine code of a function by its module, its qualified name, its types, and a number that each process
counts from 1. Its cache files contain these names, for a kernel and for all functions that the kernel calls. Files
written by two processes may therefore use the same name for different code. A third process that loads both calls
whichever it loaded first. It may then silently confuse two variants made by a factory. Besides, a function is optimised
again within each of its callers, so the last bits of a draw would depend on what the process loaded before.

Here each compilation uses a new unique name, and a kernel contains private copies of the functions that it calls.
"""

import uuid

from llvmlite.binding import Linkage
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

# Prefixes of the names of compiled functions. numba's passes know its runtime functions by name, so these are kept.
_MANGLED = ("_ZN", "cfunc._ZN")


class _Library(JITCodeLibrary):
    """Machine code in which only the compiled function itself can be found by name."""

    def _finalize_final_module(self):
        # Callers optimise this copy together with their own code. numba would copy the final module, in which the
        # functions are private.
        self._shared_module = self._final_module.clone()
        for function in _defined(self._shared_module):
            if function.linkage == Linkage.external:
                function.linkage = "linkonce_odr"
            elif function.name.startswith(_MANGLED):
                function.linkage = "private"
        # Optimisation is complete, so this changes no instruction. "private" functions have no symbol. The linker would
        # find an "internal" symbol in its table of all objects and might call it from another object. The optimiser may
        # have changed the arguments of such a function to suit its own callers.
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
