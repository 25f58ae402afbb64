"""Kernel modules that are loaded, and their functions compiled, at first use.

numba takes a good part of a second to import. So the packages of kernels provide their modules as `LazyModule`, and a
plain import at the top of a file, such as ``from ..kernels.samplers import simplex``, costs nothing: readers and tools
see where a function comes from, and the first ``simplex.scir_step`` loads the module. Import modules this way, never
functions: ``from ..kernels.samplers.simplex import scir_step`` loads at once. Within this package, where numba is
loaded anyway, functions are imported as usual.
"""

import importlib
import importlib.util
from types import ModuleType


class LazyModule(ModuleType):
    """Stands for a module until one of its attributes is needed."""

    def __getattr__(self, name):
        value = getattr(importlib.import_module(self.__name__), name)
        self.__dict__[name] = value  # found there from now on: a step looks up a dozen kernels
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
