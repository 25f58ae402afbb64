"""How Sphinx builds the documentation: ``sphinx-build -W doc doc/_build/html``."""

import importlib
import inspect
import os
import pkgutil
import re
import sys
import warnings
from pathlib import Path

DOC = Path(__file__).resolve().parent
sys.path.insert(0, str(DOC.parent))

from docutils import nodes  # noqa: E402
from docutils.utils.math.latex2mathml import tex2mathml  # noqa: E402
from sklearn.exceptions import ConvergenceWarning  # noqa: E402
from sphinx import addnodes  # noqa: E402
from sphinx_gallery.sorting import ExplicitOrder  # noqa: E402

import sk_sgmcmc  # noqa: E402

project = "sk_sgmcmc"
author = "the sk_sgmcmc developers"
project_copyright = author
version = release = sk_sgmcmc.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "_comparison_second_run.rst",
    "_comparison_tables.rst",
    "user_guide/_calibration_table.rst",
    "user_guide/_spread_table.rst",
    "_templates",
    "auto_examples/**/*.ipynb",
    "Thumbs.db",
    ".DS_Store",
]
templates_path = ["_templates"]
default_role = "py:obj"
nitpicky = True  # a name in single backticks that leads nowhere is an error
html_math_renderer = "mathml"
# conf.py holds functions, which Sphinx cannot pickle; scripts that are no pages of the gallery may share a name
suppress_warnings = ["config.cache", "sphinx_gallery.duplicate_filename"]

html_theme = "pydata_sphinx_theme"
html_title = "sk_sgmcmc"
html_theme_options = {
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 5,
}
# On the site of all versions (.github/workflows/docs.yml), a menu leads from each version to the others. The build
# reads no file of the site, so it works offline. Other builds have no menu.
if os.environ.get("SK_SGMCMC_DOC_VERSION"):
    html_theme_options |= {
        "switcher": {
            "json_url": f"{os.environ['SK_SGMCMC_DOC_URL']}/switcher.json",
            "version_match": os.environ["SK_SGMCMC_DOC_VERSION"],
        },
        "check_switcher": False,
        "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"],
        "show_version_warning_banner": True,
    }
html_sidebars = {
    name: [] for name in ("index", "install", "getting_started", "comparison", "faq", "glossary", "whats_new")
}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False

# The buttons copy code without prompts and without what it prints.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# For the builder "linkcheck" (.github/workflows/linkcheck.yml). Anchors on GitHub exist only in the browser.
linkcheck_ignore = [r"https?://(localhost|127\.0\.0\.1)([:/]|$)"]
linkcheck_retries = 3
linkcheck_timeout = 30
linkcheck_anchors = True
linkcheck_anchors_ignore_for_url = [r"https://github\.com/"]

numpydoc_show_class_members = False
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"  # "fit()" fits in the narrow column, "BayesianLDA.fit()" does not


_PUBLIC = "callbacks datasets exceptions inspection metrics model_selection samplers targets".split()


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
        if type(value).__module__ == "sklearn.utils._metadata_requests":  # set_fit_request and its like
            continue
        if isinstance(value, property):
            properties.append(member)
        elif callable(getattr(cls, member, None)) and not inspect.isclass(value):
            methods.append(member)
    return {"methods": methods, "properties": properties}


autosummary_generate = True
autosummary_context = {"own_methods": _own_methods}

# The order of the gallery. Pages not listed here come last, by name.
FOLDERS = ["recipes", "studies"]
PAGES = """
docstrings own_csv number_of_topics converged arviz covariates words_by_group keywords over_time topic_explorer
survey grid_search updates out_of_core regression topics_as_predictors own_density save_and_resume
sparse_dirichlet bias_order gamma_process visitors
""".split()


class _PageOrder:
    """Sorts the pages of a folder by their places in ``PAGES``."""

    def __init__(self, folder):
        pass

    def __call__(self, name):
        page = name.removeprefix("plot_").removesuffix(".py")
        return (PAGES.index(page), "") if page in PAGES else (len(PAGES), page)

    def __repr__(self):
        return "_PageOrder"  # without an address, which would make every build a new one


def _refuse_warnings(gallery_conf, page):
    """Let a page fail if it prints a warning about its draws; a build ends with a list of the pages that failed.

    A page whose short runs are its subject says so, and filters the warning in its own code.
    """
    warnings.filterwarnings("error", category=DeprecationWarning, module=r"sk_sgmcmc(\.|$)")
    warnings.filterwarnings("error", category=ConvergenceWarning)


def _set_style(gallery_conf, page):
    """Use one style for all figures. Sphinx-Gallery resets it before each page."""
    import matplotlib.pyplot as plt

    plt.style.use(DOC / "gallery.mplstyle")


sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "backreferences_dir": "generated/backreferences",  # for the directive "minigallery"
    "doc_module": ("sk_sgmcmc",),
    "reference_url": {"sk_sgmcmc": None},  # names in the code of a recipe lead to their pages
    "gallery_dirs": ["auto_examples"],
    "subsection_order": ExplicitOrder([f"../examples/{folder}" for folder in FOLDERS]),
    "within_subsection_order": _PageOrder,
    "thumbnail_size": (800, 560),
    "filename_pattern": r"[/\\]plot_",
    "ignore_pattern": r"[/\\](benchmarks|reproduce|side_by_side)[/\\]|[/\\]_",
    "reset_modules": ("matplotlib", _set_style, _refuse_warnings),
    "min_reported_time": 1,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
}

# -------------------------------------------------------- pages of samplers, from their declarations and docstrings


def _public_classes(attribute):
    """Public classes anywhere in the package that declare ``attribute``, by name."""
    found = {}
    for info in pkgutil.iter_modules(sk_sgmcmc.__path__, "sk_sgmcmc."):
        if not info.name.split(".")[1].startswith("_") and info.name != "sk_sgmcmc.kernels":
            for name, value in vars(importlib.import_module(info.name)).items():
                if inspect.isclass(value) and not name.startswith(("_", "Base")) and getattr(value, attribute, None):
                    found[name] = value
    return dict(sorted(found.items()))


def _table(header, rows, widths="50 50"):
    """A list-table in reStructuredText."""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in [header, *rows]:
        for i, cell in enumerate(row):
            lines.append(f"   {'* -' if i == 0 else '  -'} {cell}")
    return "\n".join(lines) + "\n"


def _write_sampler_table():
    from sk_sgmcmc.samplers._registry import SAMPLERS

    models = _public_classes("_offers")
    alike = {}
    for name, sampler in sorted(SAMPLERS.items()):
        fits = getattr(sampler, "_fits", ())
        fitting = ", ".join(f"`{model}`" for model, cls in models.items() if any(pair in fits for pair in cls._offers))
        label = getattr(sampler, "__name__", type(sampler).__name__)
        alike.setdefault(fitting, []).append(f"`{label}` (``{name}``)")
    rows = [(", ".join(names), fitting or "none yet") for fitting, names in alike.items()]
    text = _table(("samplers (and their names)", "targets and models that they fit"), rows)
    estimators = [cls for cls in models.values() if hasattr(cls, "fit")]
    pairs = sum(any(pair in make._fits for pair in cls._offers) for make in SAMPLERS.values() for cls in estimators)
    text += f"\n``tests/test_compatibility.py`` fits each of the {pairs} pairs with an estimator to a stated quality.\n"
    _write("sampler_table.inc", text)


def _write_check_table():
    """A list of the checks of a finished run, as they are defined, with what makes them."""
    from sk_sgmcmc.chains.checks import CHECKS
    from sk_sgmcmc.targets._checks import DEFINITIONS

    runs = {f"`{name}`": cls._check_definitions for name, cls in _public_classes("_check_definitions").items()}
    estimators = ", ".join(runs)
    runs["`sample <sk_sgmcmc.sample>`"] = DEFINITIONS
    text = ""
    for check in CHECKS.values():
        makers = ", ".join(name for name, definitions in runs.items() if check in definitions)
        makers = makers.replace(estimators, "all estimators")
        parts = {"Compares": check.quantity, "Allowed": check.allowed_values, "Try": check.remedy, "Made by": makers}
        text += f"``{check.name}``\n" + "".join(f"    | *{name}*: {part}.\n" for name, part in parts.items()) + "\n"
    _write("check_table.inc", text)


# Files of samplers in the order in which people look for them; a file not listed comes before the last of these.
SAMPLER_FILES = """
_reference _simplex _euclidean _thermostats _nuts _riemannian _mass _geodesic _admixture _particles _recipe _base
""".split()


def _write_sampler_page():
    """The API page of samplers: a section for each file, beneath the first line of its docstring."""
    files = {}
    for name in sk_sgmcmc.samplers.__all__:
        files.setdefault(getattr(sk_sgmcmc.samplers, name).__module__, []).append(name)
    places = {file: place for place, file in enumerate(SAMPLER_FILES)}
    unlisted = places["_base"] - 0.5
    text = """Samplers
========

Parameter objects for ``sampler=``, imported from ``sk_sgmcmc.samplers``; they can be cloned, printed and searched over
like any scikit-learn object. :doc:`../user_guide/which_sampler` helps to choose.

.. module:: sk_sgmcmc.samplers

.. currentmodule:: sk_sgmcmc.samplers
"""
    for file, names in sorted(files.items(), key=lambda item: places.get(item[0].rpartition(".")[2], unlisted)):
        heading = inspect.getdoc(sys.modules[file]).partition("\n")[0].rstrip(".")
        text += f"\n{heading}\n{'-' * len(heading)}\n\n.. autosummary::\n   :toctree: .\n   :nosignatures:\n\n"
        text += "".join(f"   {name}\n" for name in names)
    _write("samplers.rst", text)


def _write(name, text):
    """Write a generated page, but leave it as it is where nothing changed, so that Sphinx does not read it again."""
    target = DOC / "generated" / name
    target.parent.mkdir(exist_ok=True)
    if not target.exists() or target.read_text(encoding="utf-8") != text:
        target.write_text(text, encoding="utf-8")


_write_sampler_table()
_write_sampler_page()
_write_check_table()


# Where the documentation of other packages describes an object, by the beginning of its full name.
ELSEWHERE = {
    "sklearn.": "https://scikit-learn.org/stable/modules/generated/{}.html",
    "scipy.": "https://docs.scipy.org/doc/scipy/reference/generated/{}.html",
    "numpy.random.": "https://numpy.org/doc/stable/reference/random/bit_generators/generated/{}.html",
    "joblib.": "https://joblib.readthedocs.io/en/stable/generated/{}.html",
}


def _find_name(app, env, node, contnode):
    """A name without its module means the one object of the API pages called so; else one of another package."""
    if node.get("refdomain") != "py":
        return None
    domain, wanted = env.get_domain("py"), node["reftarget"]
    found = [
        name
        for name, of in domain.objects.items()
        if f".{name}".endswith(f".{wanted}") and not of.aliased and (of.objtype != "method" or "." in wanted)
    ]
    if len(found) == 1:
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", found[0], node, contnode)
    module, _, name = wanted.rpartition(".")
    for beginning, address in ELSEWHERE.items():
        if wanted.startswith(beginning) and hasattr(importlib.import_module(module), name):
            return nodes.reference("", "", contnode, internal=False, refuri=address.format(wanted))
    return None


# -------------------------------------------------------------------------- mathematics without a network or a script


_ACCENT = re.compile(r"(\\(?:hat|bar|tilde|dot) *(?:\{[^{}]*\}|\\[a-zA-Z]+|\w))(?=[_^'])")
_FUNCTION = r"<mi[^>]*>\w\w+</mi>\s*<mo>&ApplyFunction;"
_SPACE = '<mspace width="0.17em"/>'


def _mathml(tex, as_block=False):
    """Equation in MathML, mended where docutils differs from TeX."""
    tex = re.sub(r"(frac) *(\d) *(\d)", r"\1{\2}{\3}", tex)  # it reads the 12 of \frac12 as one number,
    tex = tex2mathml(_ACCENT.sub(r"{\1{}}", tex), as_block=as_block)  # sets the k of \hat a_k beneath the a,
    tex = re.sub(r"(<mtd>\s*<mo)>", r'\1 form="infix">', tex)  # puts no space before an = that begins a column,
    tex = re.sub(rf"(</m[a-z]*[^or]>\s*)(?={_FUNCTION})", rf"\1{_SPACE}", tex)  # and none around the log of 2 log x
    return re.sub(r"(<mo>&ApplyFunction;</mo>)(?=\s*<(?!mo|/))", rf"\1{_SPACE}", tex)


def _visit_math(self, node):
    """Write an equation as MathML, which browsers render by themselves."""
    if isinstance(node, nodes.math):
        self.body.append(_mathml(node.astext()))
    else:
        for tex in node.astext().split("\n\n"):
            aligned = "\\\\" in tex or "&" in tex
            tex = rf"\begin{{aligned}}{tex}\end{{aligned}}" if aligned and r"\begin{" not in tex else tex
            self.body.append(f'<div class="math">{_mathml(tex, as_block=True)}</div>\n')
    raise nodes.SkipNode


# Methods and properties by estimator, in the order of the API page.
ESTIMATORS = {
    name: {member for of in _own_methods(f"sk_sgmcmc.{name}").values() for member in of}
    for name in re.findall(r"^   ([A-Z]\w+)$", (DOC / "api" / "estimators.rst").read_text(encoding="utf-8"), re.M)
}
_NAME = re.compile(r"(?:\w+\.)*(\w+)(?:\(.*\))?", re.DOTALL)


def _public_names():
    """Names that the package and its public modules offer."""
    modules = [importlib.import_module(f"sk_sgmcmc.{folder}".rstrip(".")) for folder in ("", *_PUBLIC)]
    for module in modules:
        for name, value in vars(module).items():
            if getattr(value, "__module__", "").startswith("sk_sgmcmc"):
                yield name


def _link_names(app, doctree):
    """Make links of names that stand as code.

    Of methods everywhere but on their own pages: to the estimator named last before in the paragraph, else to the first
    on the page; and of public names in the changelog, which is Markdown for readers elsewhere.
    """
    page = app.env.docname
    if page.startswith("generated/"):
        return
    text, public, near = doctree.astext(), set(_public_names()) if page == "whats_new" else (), None
    for node in list(doctree.findall()):
        if isinstance(node, nodes.paragraph):
            near = None
        elif isinstance(node, addnodes.pending_xref):
            name = node["reftarget"].rpartition(".")[2]
            near = name if name in ESTIMATORS else near
        elif isinstance(node, nodes.literal) and isinstance(node.parent, nodes.paragraph):
            found = _NAME.fullmatch(node.astext())
            name = found and found[1]
            on_page = [near, *(each for each in ESTIMATORS if each in text)]
            owner = next((each for each in on_page if name in ESTIMATORS.get(each, ())), None)
            target = name if name in public else owner and f"{owner}.{name}"
            if target:
                near = target if target in ESTIMATORS else near
                how = {"refdomain": "py", "reftype": "obj", "refexplicit": True, "refwarn": True, "refdoc": page}
                link = addnodes.pending_xref("", reftarget=target, **how)
                node.replace_self(link)
                link += node


def setup(app):
    """Called by Sphinx."""
    app.connect("doctree-read", _link_names)
    app.connect("missing-reference", _find_name)
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_math, None))
