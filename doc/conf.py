"""How Sphinx builds the documentation: ``sphinx-build -W doc doc/_build/html``."""

import importlib
import inspect
import pkgutil
import sys
import warnings
from pathlib import Path

DOC = Path(__file__).resolve().parent
sys.path.insert(0, str(DOC.parent))

import sk_sgmcmc  # noqa: E402

project = "sk_sgmcmc"
author = "the sk_sgmcmc developers"
project_copyright = author
version = release = sk_sgmcmc.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "user_guide/_calibration_table.rst",
    "user_guide/_spread_table.rst",
    "_templates",
    "auto_examples/**/*.ipynb",
    "Thumbs.db",
    ".DS_Store",
]
templates_path = ["_templates"]
default_role = "py:obj"
# conf.py holds functions, which Sphinx cannot pickle; scripts that are no pages of the gallery may share a name
suppress_warnings = ["config.cache", "sphinx_gallery.duplicate_filename"]

html_theme = "pydata_sphinx_theme"
html_title = "sk_sgmcmc"
html_theme_options = {"show_prev_next": False, "secondary_sidebar_items": ["page-toc"]}
html_show_sourcelink = False

numpydoc_show_class_members = False
autodoc_typehints = "none"


def _own_methods(fullname):
    """Public methods and properties that a class has from this package; scikit-learn documents its own."""
    module, _, name = fullname.rpartition(".")
    cls = getattr(importlib.import_module(module), name)
    methods, properties = [], []
    for member in sorted(dir(cls)):
        owner = next((base for base in cls.__mro__ if member in vars(base)), None)
        if member.startswith("_") or owner is None or not owner.__module__.startswith("sk_sgmcmc"):
            continue
        value = inspect.getattr_static(cls, member)
        if type(value).__module__.startswith("sklearn."):  # set_fit_request and its like: made by metadata routing
            continue
        if isinstance(value, property):
            properties.append(member)
        elif callable(getattr(cls, member, None)) and not inspect.isclass(value):
            methods.append(member)
    return {"methods": methods, "properties": properties}


autosummary_generate = True
autosummary_context = {"own_methods": _own_methods}

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": r"[/\\]plot_",
    "ignore_pattern": r"[/\\](benchmarks|reproduce)[/\\]|[/\\]_",
    "abort_on_example_error": True,
    "min_reported_time": 1,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
}

# A warning inside an example is a mistake in the example or in us.
warnings.filterwarnings("error", category=DeprecationWarning, module=r"sk_sgmcmc(\.|$)")


# ------------------------------------------------------------- which sampler fits which model, from the declarations


def _public_classes(attribute):
    """Public classes anywhere in the package that declare ``attribute``, by name."""
    found = {}
    for info in pkgutil.iter_modules(sk_sgmcmc.__path__, "sk_sgmcmc."):
        if not info.name.split(".")[1].startswith("_") and info.name != "sk_sgmcmc.kernels":
            for name, value in vars(importlib.import_module(info.name)).items():
                if inspect.isclass(value) and not name.startswith(("_", "Base")) and getattr(value, attribute, None):
                    found[name] = value
    return dict(sorted(found.items()))


def _table(header, rows):
    """A list-table in reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in [header, *rows]:
        for i, cell in enumerate(row):
            lines.append(f"   {'* -' if i == 0 else '  -'} {cell}")
    return "\n".join(lines) + "\n"


def _write_sampler_table():
    from sk_sgmcmc.samplers._registry import SAMPLERS

    models = _public_classes("_offers")
    rows = []
    for name, sampler in sorted(SAMPLERS.items()):
        fits = getattr(sampler, "_fits", ())
        fitting = [f"`{model}`" for model, cls in models.items() if any(pair in fits for pair in cls._offers)]
        moves = ", ".join(f"{signal} on: {geometry}" for geometry, signal in fits)
        label = getattr(sampler, "__name__", type(sampler).__name__)
        rows.append((f"``{name}``", f"`{label}`", moves, ", ".join(fitting) or "none yet"))
    target = DOC / "generated" / "sampler_table.inc"
    target.parent.mkdir(exist_ok=True)
    text = _table(("name", "class", "signal", "targets and models that it fits"), rows)
    estimators = [cls for cls in models.values() if hasattr(cls, "fit")]
    pairs = sum(any(pair in make._fits for pair in cls._offers) for make in SAMPLERS.values() for cls in estimators)
    text += f"\n``tests/test_compatibility.py`` fits each of the {pairs} pairs with an estimator to a stated quality.\n"
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")


_write_sampler_table()


def _of_one_name(app, env, node, contnode):
    """A name without its module means the one class or function of the API pages that is called so."""
    if node.get("refdomain") != "py":
        return None
    domain, wanted = env.get_domain("py"), node["reftarget"]
    found = [
        name for name, of in domain.objects.items() if name.rpartition(".")[2] == wanted and of.objtype != "method"
    ]
    if len(found) != 1:
        return None
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", found[0], node, contnode)


def setup(app):
    """Called by Sphinx."""
    app.connect("missing-reference", _of_one_name)
