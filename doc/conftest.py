"""Pages whose examples need an optional package are left out of the doctests where it is missing."""

import importlib.util
import os

_REQUIRED = os.environ.get("SK_SGMCMC_REQUIRE_ALL", "0") == "1"  # then a missing package is a failure
_NEEDS = {"user_guide/out_of_core.rst": "dask", "user_guide/converged.rst": "arviz", "getting_started.rst": "pandas",
          "user_guide/latent_classes.rst": "pandas", "user_guide/topic_models.rst": "pandas",
          "user_guide/covariates.rst": "formulaic", "user_guide/keywords.rst": "pandas",
          "user_guide/reading_topics.rst": "pandas", "user_guide/updating.rst": "pandas",
          "user_guide/gamma_process.rst": "pandas"}  # fmt: skip
collect_ignore = [page for page, package in _NEEDS.items() if not (_REQUIRED or importlib.util.find_spec(package))]
