"""Pages whose examples need an optional package are left out of the doctests where it is missing."""

import importlib.util
import os

_REQUIRED = os.environ.get("SK_SGMCMC_REQUIRE_ALL", "0") == "1"  # then a missing package is a failure
_NEEDS = {
    "getting_started.rst": "pandas",
    "user_guide/coming_from.rst": "pandas",
    "user_guide/converged.rst": "pandas",
    "user_guide/covariates.rst": "formulaic",
    "user_guide/diagnostics.rst": "pandas",
    "user_guide/gamma_process.rst": "pandas",
    "user_guide/keywords.rst": "pandas",
    "user_guide/latent_classes.rst": "pandas",
    "user_guide/linear_models.rst": "pandas",
    "user_guide/mixtures.rst": "pandas",
    "user_guide/out_of_core.rst": "dask",
    "user_guide/own_density.rst": "pandas",
    "user_guide/reading_topics.rst": "pandas",
    "user_guide/reproducibility.rst": "pandas",
    "user_guide/scoring.rst": "pandas",
    "user_guide/topic_models.rst": "pandas",
    "user_guide/updating.rst": "pandas",
    "user_guide/which_estimator.rst": "pandas",
}
collect_ignore = [page for page, package in _NEEDS.items() if not (_REQUIRED or importlib.util.find_spec(package))]
