"""Kernel modules that are imported, and their functions compiled, at first use.

Importing numba takes a good part of a second. The packages of kernels therefore provide their modules as `LazyModule`.
A plain import at the top of a file, such as ``from ..kernels.samplers import simplex``, costs nothing, and shows where
a function comes from. The first access to an attribute, such as ``simplex.scir_step``, imports the module.

Import modules this way, never functions: ``from ..kernels.samplers.simplex import scir_step`` imports the module at
once. Within this package, numba is loaded anyway, so functions are imported as usual.
"""

import importlib
import importlib.util
from types import ModuleType


class LazyModule(ModuleType):
    """A module that is imported when one of its attributes is first needed."""

    def __getattr__(self, name):
        value = getattr(importlib.import_module(self.__name__), name)
        self.__dict__[name] = value  # stored, because a step looks up a dozen kernels
        return value


def lazy_modules(package):
    """A ``__getattr__`` for a package that provides its modules as `LazyModule`."""

    def get(name):
        spec = None if name.startswith("__") else importlib.util.find_spec(f"{package}.{name}")
        if spec is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        is_package = spec.submodule_search_locations is not None
        return importlib.import_module(spec.name) if is_package else LazyModule(spec.name)

    return get
