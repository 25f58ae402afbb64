"""Pages whose examples need an optional package are left out of the doctests where it is missing."""

import importlib.util
import os

_REQUIRED = os.environ.get("SK_SGMCMC_REQUIRE_ALL", "0") == "1"  # then a missing package is a failure
collect_ignore = [] if _REQUIRED or importlib.util.find_spec("dask") else ["user_guide/dask.rst"]
