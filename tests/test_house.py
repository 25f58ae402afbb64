"""The house keeps its shape: which way imports point, what lies where, what is documented."""

import ast
import importlib
import importlib.metadata
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
import typing
import warnings
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.conftest import importorskip

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "sk_sgmcmc"
MODULES = sorted(PACKAGE.rglob("*.py"))

TOP_LEVEL = set(
    "pyproject.toml README.md LICENSE CHANGELOG.md CITATION.cff .gitignore "
    "sk_sgmcmc tests examples doc .github .ci".split()
)

# What each part of the package, a folder or a file beside them, may import of the others; `__init__`, which names what
# is public, may import all of them. From the ground up.
_MODEL = {"kernels", "samplers", "chains", "base", "metrics", "utils", "exceptions"}
MAY_IMPORT = {
    "kernels": set(),
    "exceptions": set(),
    "utils": {"exceptions"},
    "samplers": {"kernels", "utils", "exceptions"},
    "metrics": {"kernels", "utils"},
    "datasets": {"utils"},
    "chains": {"metrics", "utils", "exceptions"},
    "callbacks": {"utils"},
    "directions": {"chains", "utils"},
    "base": {"samplers", "chains", "callbacks", "utils", "exceptions"},
    "dense": _MODEL,
    "targets": _MODEL | {"dense"},
    "covariates": {"dense", "utils"},
    "density": _MODEL | {"dense"},
    "linear_model": _MODEL | {"dense"},
    "mixture": _MODEL | {"dense", "directions", "covariates"},
    "topic": _MODEL | {"dense", "directions", "covariates"},
    "inspection": {"covariates", "metrics", "topic", "utils"},
    "model_selection": {"metrics", "utils"},
    "warm_up": {"datasets", "density", "linear_model", "mixture", "targets", "topic"},
}
# Folders that all topic models of counts share: each may import those before it.
TOPIC_FOLDERS = ("_counts", "_minibatch", "_estimator")
# What some parts may import of others' packages, at the top of a file or inside a function. Of scikit-learn, metrics
# take `Bunch` and checks of arrays, so only its utils.
THIRD_PARTIES = {
    "kernels": {"numpy", "llvmlite", "numba"},
    "metrics": {"numpy", "scipy", "joblib", "sklearn.utils"},
    "datasets": {"numpy", "scipy", "sklearn"},
}
# Only these may be imported at the top of a file anywhere in the package; others are optional and wait for their use.
HARD_DEPENDENCIES = {"numpy", "scipy", "sklearn", "joblib"}


# ---------------------------------------------------------------------------------------------------------- reading


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def dotted_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(dotted):
    """``sk_sgmcmc.topic._lda`` -> ``topic``; ``sk_sgmcmc.base`` -> ``base``; the package itself -> ````."""
    return [*dotted.split("."), ""][1]


def _is_for_types(node):
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports_of(path, *, top_only=False):
    """All modules that a file imports, with dots resolved: pairs (dotted name, imported name or None).

    ``top_only`` leaves out those that wait for a call, or for a type checker.
    """
    package = dotted_name(path).split(".") if path.name == "__init__.py" else dotted_name(path).split(".")[:-1]
    tree = tree_of(path)
    if top_only:
        inside = {
            id(node)
            for function in ast.walk(tree)
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or _is_for_types(function)
            for node in ast.walk(function)
        }
    else:
        inside = set()
    found = []
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        if isinstance(node, ast.Import):
            found.extend((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join(base + ([node.module] if node.module else []))
            found.extend((module, alias.name) for alias in node.names)
    return found


def parts_imported(path):
    """Parts of our package that a file imports."""
    parts = set()
    for module, name in imports_of(path):
        if module == "sk_sgmcmc":
            parts.add(part_of(f"{module}.{name}") if name else "")
        elif module.startswith("sk_sgmcmc."):
            parts.add(part_of(module))
    return parts


def tracked_files():
    """Files that git knows; where there is no git, those that lie there."""
    try:
        listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
        names = [name for name in listing.split("\0") if name]
        if names:
            return [ROOT / name for name in names if (ROOT / name).exists()]
    except (OSError, subprocess.CalledProcessError):
        pass
    return [
        path
        for name in TOP_LEVEL
        for path in ([ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*"))
        if path.is_file() and not {"__pycache__", "_build", "auto_examples", "generated"} & set(path.parts)
    ]


def tracked_text():
    for path in tracked_files():
        try:
            yield path, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def _spelled(module, name):
    return f"{module}.{name}" if name else module


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def over(paths):
    """Make one test of a check that yields what is wrong with a file: it reports every fault in any of the files."""
    paths = list(paths)

    def decorate(check):
        def test():
            assert paths, "no files to check"
            faults = [f"{name_of(path)}: {fault}" for path in paths for fault in check(path)]
            assert not faults, "\n".join(["", *faults])

        # Not functools.wraps, by which pytest would see the check's argument and look for a fixture of that name.
        test.__name__, test.__doc__, test.check = check.__name__, check.__doc__, check
        return test

    return decorate


# ---------------------------------------------------------------------------------------------------------- imports


@over(MODULES)
def test_imports_point_one_way(path):
    part = part_of(dotted_name(path))
    imported = parts_imported(path)
    if part == "":  # sk_sgmcmc/__init__.py
        return
    if part not in MAY_IMPORT:
        yield f"{part} is new: say in tests/test_house.py and doc/developer what it may import"
    elif wrong := imported - MAY_IMPORT[part] - {part}:
        yield f"must not import {sorted(wrong)}"


def test_kinds_of_models_share_folders_and_do_not_import_each_other():
    kinds = {"targets", "density", "linear_model", "mixture", "topic"}
    shared = set().union(*(MAY_IMPORT[kind] for kind in kinds))
    assert not kinds & shared, "move what they share to a folder that none of them owns, such as covariates/"
    assert not [part for part in shared if MAY_IMPORT[part] & kinds]


@over([path for path in MODULES if path.parent.name in TOPIC_FOLDERS])
def test_folders_that_topic_models_share_import_in_one_direction(path):
    later = TOPIC_FOLDERS[TOPIC_FOLDERS.index(path.parent.name) + 1 :]
    wrong = {module for module, _ in imports_of(path) if module.startswith("sk_sgmcmc.topic.")}
    if wrong := sorted(module for module in wrong if module.split(".")[2] in later):
        yield f"must not import {wrong}"


def test_no_files_import_each_other_in_a_circle():
    """Wherever the imports stand: one inside a function hides a circle and does not undo it."""
    files = {dotted_name(path) for path in MODULES if path.name != "__init__.py"}
    imported = {
        dotted_name(path): {
            name for pair in imports_of(path) for name in (pair[0], _spelled(*pair)) if name in files
        }
        for path in MODULES
    }  # fmt: skip
    tuple(TopologicalSorter(imported).static_order())  # its CycleError names the files


@over(MODULES)
def test_kernels_of_models_are_imported_by_models_only(path):
    part = part_of(dotted_name(path))
    if part in {"samplers", "utils", "metrics", "datasets"}:
        signals = [m for m, n in imports_of(path) if m.startswith("sk_sgmcmc.kernels.models") or n == "models"]
        if signals:
            yield f"imports {signals}"


@over(MODULES)
def test_third_parties_stay_where_they_belong(path):
    part = part_of(dotted_name(path))
    everywhere = {module.split(".")[0] for module, _ in imports_of(path)} - sys.stdlib_module_names - {"sk_sgmcmc"}
    at_top = {module.split(".")[0] for module, _ in imports_of(path, top_only=True)}
    at_top -= sys.stdlib_module_names | {"sk_sgmcmc"}
    if part != "kernels":
        if "numba" in everywhere:
            yield "only kernels/ imports numba"
        if optional := at_top - HARD_DEPENDENCIES - {"numba"}:
            yield f"import {sorted(optional)} inside the function that needs it"
    if part in THIRD_PARTIES:
        for module, name in imports_of(path):
            if module.split(".")[0] in everywhere and not any(
                f"{module}.{name}.".startswith(f"{allowed}.") for allowed in THIRD_PARTIES[part]
            ):
                yield f"{part} must not import {_spelled(module, name)}"


@over(MODULES)
def test_one_file_warns_of_convergence(path):
    if path.name != "checks.py" and ("sklearn.exceptions", "ConvergenceWarning") in imports_of(path):
        yield "return a Check of chains/checks.py, and let the base class warn"


def _is_private(module, name):
    pieces = module.split(".") + ([name] if name else [])
    return pieces[0] == "sklearn" and any(piece.startswith("_") and piece != "__version__" for piece in pieces)


@over(MODULES)
def test_private_parts_of_scikit_learn_are_imported_in_utils_only(path):
    if part_of(dotted_name(path)) != "utils":
        yield from (f"imports {module}.{name}" for module, name in imports_of(path) if _is_private(module, name))


@over(MODULES)
def test_bases_of_scikit_learn_are_taken_from_utils(path):
    """There mypy sees types; below a base without any, it accepts every argument of a constructor."""
    imported = {name for module, name in imports_of(path) if module == "sklearn.base"}
    for node in ast.walk(tree_of(path)):
        names = [base.id for base in node.bases if isinstance(base, ast.Name)] if isinstance(node, ast.ClassDef) else ()
        yield from (f"line {node.lineno}: import {name} from utils/_sklearn.py" for name in names if name in imported)


@over(MODULES)
def test_sparse_data_come_in_by_one_door(path):
    """Checks of scikit-learn that let sparse matrices in are called in utils only, behind `well_formed`."""
    if part_of(dotted_name(path)) == "utils":
        return
    for module, name in imports_of(path):
        if module.startswith("sklearn") and name in {"validate_data", "check_X_y"}:
            yield f"imports {name}"
    for call in _calls(path):
        named = getattr(call.func, "id", getattr(call.func, "attr", ""))
        if named == "check_array" and "accept_sparse" in [keyword.arg for keyword in call.keywords]:
            yield f"line {call.lineno} lets sparse matrices in"


def test_importing_the_package_loads_neither_numba_nor_an_optional_package():
    code = (
        "import json, sys\n"
        "import sk_sgmcmc, sk_sgmcmc.samplers, sk_sgmcmc.metrics, sk_sgmcmc.datasets\n"
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 0, result.stderr
    loaded = set(json.loads(result.stdout.splitlines()[-1]))
    plain = subprocess.run(
        [
            sys.executable,
            "-c",
            "import json, sys, sklearn.base, sklearn.utils.validation; print(json.dumps(list(sys.modules)))",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    already = {name.split(".")[0] for name in json.loads(plain.stdout)}  # what scikit-learn itself brings
    heavy = set("numba llvmlite pandas matplotlib tqdm arviz pyLDAvis tomotopy jax blackjax dask".split())
    assert not (loaded & heavy) - already


# ----------------------------------------------------------------------------------------------------------- layout


def test_top_level_holds_nothing_else():
    found = {path.relative_to(ROOT).parts[0] for path in tracked_files()}
    assert found <= TOP_LEVEL, sorted(found - TOP_LEVEL)


# Functions of more than 60 lines of code, by their names, and why they are not divided.
LONG = {
    "recombine": "one move, accepted or refused as a whole",
    "sweep_in": "one compiled loop over tokens",
    "_sweep": "one compiled loop over tokens",
    "_sweep_by": "makes a compiled loop over tokens, which closes over its choices",
    "draw_assignments": "one compiled loop over tokens",
    "soft_pass": "one compiled loop over tokens",
    "admixture_gradient": "one compiled loop over documents",
    "run_topic_trajectories": "one trajectory, accepted or refused as a whole",
    "run_metropolis": "one trajectory, accepted or refused as a whole",
    "run_nuts": "one trajectory, accepted or refused as a whole",
    "run_dense": "one compiled loop over steps",
    "normal_wishart": "one gradient, whose parts share factorisations",
    "sample": "its parameters, and what each combination of them asks for",
}


def lines_of_code(function, text):
    """How many lines of a function are neither blank, nor comments, nor of a docstring."""
    docstrings = {
        line
        for node in ast.walk(function)
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node)
        for line in range(node.body[0].lineno, node.body[0].end_lineno + 1)
    }
    lines = text.splitlines()[function.lineno - 1 : function.end_lineno]
    return sum(
        number not in docstrings and bool(line.strip()) and not line.strip().startswith("#")
        for number, line in enumerate(lines, start=function.lineno)
    )


def test_long_functions_have_a_reason():
    long = {
        node.name: name_of(path)
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef) and lines_of_code(node, path.read_text(encoding="utf-8")) > 60
    }
    assert not long.keys() - LONG.keys(), f"divide them, or say why not in tests/test_house.py: {long}"
    assert not LONG.keys() - long.keys(), "these functions are no longer long"


def test_every_folder_of_the_package_is_a_package():
    folders = {path.parent for path in MODULES}
    assert not [name_of(folder) for folder in folders if not (folder / "__init__.py").exists()]


def test_only_ci_names_what_lies_beside_the_project():
    word = "../" + "shared"
    assert not [name_of(path) for path, text in tracked_text() if word in text and name_of(path) != ".ci/run"]


def test_no_file_names_a_place_on_one_machine():
    place = re.compile("/" + r"(?:work|opt/venv|root|home/\w+)/")
    assert not [name_of(path) for path, text in tracked_text() if place.search(text)]


def test_an_installed_wheel_holds_every_module():
    try:
        distribution = importlib.metadata.distribution("sk-sgmcmc")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed, only importable")
    installed = {str(file).replace(os.sep, "/") for file in distribution.files or []}
    if not any(name.startswith("sk_sgmcmc/") for name in installed):
        return  # an editable install: the checkout itself
    expected = {name_of(path) for path in tracked_files() if name_of(path).startswith("sk_sgmcmc/")}
    assert not expected - installed
    own = {name for name in installed if ".dist-info/" not in name and "__pycache__" not in name}
    assert {name.split("/")[0] for name in own} == {"sk_sgmcmc"}, "the wheel holds the package and nothing else"


# ---------------------------------------------------------------------------------------------------------- kernels


def _calls(path):
    return [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Call)]


@over(MODULES)
def test_no_global_random_numbers(path):
    allowed = {"Generator", "SeedSequence", "PCG64", "RandomState", "default_rng", "BitGenerator"}
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute) and node.attr not in allowed:
            value = node.value
            if value.attr == "random" and isinstance(value.value, ast.Name) and value.value.id in {"np", "numpy"}:
                yield f"line {node.lineno}: np.random.{node.attr}"
    for module, name in imports_of(path):
        if module == "random" or (module == "numpy.random" and name not in allowed):
            yield f"imports {_spelled(module, name)}"


@over(MODULES)
def test_no_full_fastmath_and_no_parallel_kernels(path):
    """Full fastmath breaks NaN guards; parallel=True aborts the process under threads. Chains are our parallelism."""
    for call in _calls(path):
        for keyword in call.keywords:
            is_true = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            if keyword.arg in {"fastmath", "parallel"} and is_true:
                yield f"line {call.lineno}: {keyword.arg}=True"
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                is_true = isinstance(value, ast.Constant) and value.value is True
                if isinstance(key, ast.Constant) and key.value in {"fastmath", "parallel"} and is_true:
                    yield f"line {node.lineno}: {key.value} is True"


@over(path for path in MODULES if "kernels" in path.parts)
def test_kernels_never_raise(path):
    """An exception inside a first-class function may be swallowed, so a kernel returns a status instead."""
    for function in ast.walk(tree_of(path)):
        if not isinstance(function, ast.FunctionDef):
            continue
        decorators = {
            d.func.id if isinstance(d, ast.Call) and isinstance(d.func, ast.Name) else getattr(d, "id", "")
            for d in function.decorator_list
        }
        if decorators & {"kernel", "helper"}:
            for node in ast.walk(function):
                if isinstance(node, ast.Raise):
                    yield f"line {node.lineno}: {function.name} raises"


# ------------------------------------------------------------------------------------------- README, version, CI


README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks_of_readme(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.M | re.S)


def shell_blocks():
    return blocks_of_readme("bash")


def test_readme_has_exactly_two_commands():
    blocks = [block.strip() for block in shell_blocks()]
    assert len(blocks) == 2
    assert all("\n" not in block for block in blocks)
    assert blocks[0].endswith("python examples/recipes/plot_docstrings.py")
    assert blocks[1].endswith('pip install ".[test]" && pytest -n auto')


@pytest.mark.skipif(os.name == "nt", reason="bash and awk are asked")
def test_ci_runs_the_second_command_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    function = re.search(r"^readme_command\(\) \{\n.*?^\}$", script, flags=re.M | re.S).group()
    said = subprocess.run(
        ["bash", "-euc", f"{function}\nreadme_command"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert said.strip() == shell_blocks()[1].strip()
    assert 'bash -euo pipefail -c "$command"' in script


def test_mutations_name_functions_that_exist():
    """Whether the functions still contain what is to be broken, ``python tests/mutations.py --check`` says."""
    from tests.mutations import FOLDERS, missing

    faults = {missing(mutation) for mutations in FOLDERS.values() for mutation in mutations} - {None}
    assert not faults, "mend tests/mutations.py: " + "\n".join(["", *sorted(faults)])


def test_the_example_in_the_readme_prints_what_it_shows(capsys):
    (code,), (shown,) = blocks_of_readme("python"), blocks_of_readme("text")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out
    number = r"\d\.\d\d"
    assert re.sub(number, "", printed) == re.sub(number, "", shown)
    # Draws differ between processors.
    pairs = zip(*(map(float, re.findall(number, text)) for text in (printed, shown)), strict=True)
    assert all(abs(a - b) < 0.025 for a, b in pairs)


def test_the_front_page_shows_the_example_of_the_readme():
    page = (ROOT / "doc" / "index.rst").read_text(encoding="utf-8")
    code = "".join(f"{line}\n" for line in re.findall(r"^>>> (.*)$", page, flags=re.M))
    (of_readme,), (shown,) = blocks_of_readme("python"), blocks_of_readme("text")
    assert code == of_readme.replace("\n\n", "\n")
    assert shown in page


def test_readme_is_short_and_its_links_lead_to_files_of_the_project():
    assert len(README.split()) <= 500
    links = re.findall(r"\]\((.*?)\)", README)
    assert len(links) > 5
    for link in links:
        page = re.sub(r"^https://sk-sgmcmc\.github\.io/sk_sgmcmc/(.*)\.html$", r"doc/\1.rst", link)
        page = re.sub(r"^https://(?:raw\.githubuser|github\.)[^/]*/sk-sgmcmc/sk_sgmcmc/(?:blob/)?main/", "", page)
        page = re.sub(r"^doc/auto_examples/(.*)\.rst$", r"examples/\1.py", page)
        page = page.replace("examples/index.py", "examples/GALLERY_HEADER.rst")  # sphinx-gallery writes these pages
        assert (ROOT / page).is_file(), link


@over([*sorted((ROOT / "doc").rglob("*.rst")), ROOT / "README.md"])
def test_no_page_installs_from_pypi(path):
    """There is no release yet."""
    if not {"auto_examples", "generated"} & set(path.parts) and re.search(
        r"pip install [\"']?sk-sgmcmc", path.read_text(encoding="utf-8")
    ):
        yield 'say `pip install .`, or `pip install ".[extra]"`'


COMMAND = re.compile(r"(examples/(?:\w+/)+\w+\.py)([^`#|\n]*)")


@over([*sorted((ROOT / "doc").rglob("*.rst")), ROOT / "README.md"])
def test_commands_in_the_documentation_exist(path):
    if {"auto_examples", "generated"} & set(path.parts):
        return
    for script, arguments in COMMAND.findall(path.read_text(encoding="utf-8").replace("\\\n", " ")):
        code = (ROOT / script).read_text(encoding="utf-8") if (ROOT / script).exists() else None
        options = re.findall(r"--[\w-]+", arguments)
        if code is None or any(f'"{option}"' not in code for option in options):
            yield f"{script} is missing, or has not all of {options}"


def test_version_is_written_once_and_the_changelog_agrees():
    code = tree_of(PACKAGE / "__init__.py")
    versions = [
        ast.literal_eval(node.value)
        for node in code.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__version__"
    ]
    assert len(versions) == 1
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.M)
    assert headings[0] == versions[0]
    # The code host reads the citation file at the root only. Between releases it names the last release.
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    released = next(heading for heading in headings if ".dev" not in heading)
    assert f"\nversion: {released}\n" in citation
    assert "version =" not in (ROOT / "pyproject.toml").read_text(encoding="utf-8").split("[project.optional")[0]


@over(sorted((ROOT / ".github" / "workflows").glob("*.yml")))
def test_actions_are_pinned_by_digest(path):
    """A tag can be moved to other code. The comment names the version, which Dependabot updates with the digest."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if "uses:" in line and not re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line):
            yield f"line {number}: {line.strip()}"


# ---------------------------------------------------------------------------------------------------- documentation


def public_objects():
    """Every public class and function, as (dotted name of the module that offers it, name)."""
    found = []
    for path in MODULES:
        dotted = dotted_name(path)
        if any(piece.startswith("_") for piece in dotted.split(".")[1:]):
            continue
        if part_of(dotted) in {"kernels", "utils"}:
            continue  # not what a user types
        for node in tree_of(path).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                found.extend((dotted, name) for name in ast.literal_eval(node.value))
    return found


def faults_of_docstring(thing):
    """What the docstring of a public class or function lacks."""
    from numpydoc import docscrape

    if not thing.__doc__:
        yield "no docstring"
        return
    if inspect.isclass(thing):
        doc = docscrape.ClassDoc(thing)
        signature = inspect.signature(thing) if thing.__init__ is not object.__init__ else inspect.Signature()
        # What fits or samples rests on a paper, or has relatives that a reader should know of.
        if (hasattr(thing, "fit") or getattr(thing, "_name", None)) and not (doc["References"] or doc["See Also"]):
            yield "neither References nor See Also"
    else:
        doc = docscrape.FunctionDoc(thing)
        signature = inspect.signature(thing)
        if not (doc["Returns"] or doc["Yields"]):
            yield "what does it return?"
    gathered = {p.name for p in signature.parameters.values() if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    entries = [*doc["Parameters"], *doc["Other Parameters"]]
    described = {piece.strip().lstrip("*") for p in entries for piece in p.name.split(",")}
    if missing := set(signature.parameters) - gathered - described:
        yield f"undocumented parameters {sorted(missing)}"
    if unknown := described - set(signature.parameters):
        yield f"parameters that do not exist {sorted(unknown)}"
    if not doc["Summary"]:
        yield "no summary line"


def test_public_objects_are_documented():
    importorskip("numpydoc.docscrape")
    things = [(f"{module}.{name}", getattr(importlib.import_module(module), name)) for module, name in public_objects()]
    things = [(name, thing) for name, thing in things if inspect.isclass(thing) or inspect.isfunction(thing)]
    assert things
    faults = [f"{name}: {fault}" for name, thing in things for fault in faults_of_docstring(thing)]
    assert not faults, "\n".join(["", *faults])


def objects_on_the_api_pages():
    """Everything that the pages of doc/api list; raises if they list what does not exist.

    The page of samplers is not among them: Sphinx makes it of ``__all__``.
    """
    listed, module = [], ""
    pages = sorted((ROOT / "doc" / "api").glob("*.rst"))
    for line in "\n".join(page.read_text(encoding="utf-8") for page in pages).splitlines():
        if match := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = match.group(1)
        elif match := re.fullmatch(r" {3}(\w+)", line):
            listed.append(getattr(importlib.import_module(module), match.group(1)))
    return listed


def test_public_objects_are_on_the_api_pages():
    listed = {id(thing) for thing in objects_on_the_api_pages()}
    missing = [
        f"{module}.{name}"
        for module, name in public_objects()
        if module != "sk_sgmcmc.samplers"
        and not name.startswith("__")
        and not inspect.ismodule(thing := getattr(importlib.import_module(module), name))
        and id(thing) not in listed
    ]
    assert not missing, f"not in doc/api: {missing}"


def functions_of(thing):
    """A public function, or the constructor and public methods and properties of a public class, by name."""
    if not inspect.isclass(thing):
        yield thing.__name__, inspect.unwrap(thing)
        return
    for cls in thing.__mro__:
        for name, value in vars(cls).items() if cls.__module__.startswith("sk_sgmcmc") else ():
            for part in ("__func__", "fget", "fn"):  # of class methods, properties and methods that only some have
                value = getattr(value, part, value)
            if inspect.isfunction(value) and (name in ("__init__", "__call__") or not name.startswith("_")):
                yield f"{cls.__name__}.{name}", inspect.unwrap(value)


def public_functions():
    """Public functions and methods by name."""
    things = [getattr(importlib.import_module(module), name) for module, name in public_objects()]
    functions = {name: function for thing in [*things, *objects_on_the_api_pages()] if callable(thing)
                 for name, function in functions_of(thing)}  # fmt: skip
    assert "CountTopicModel.fit" in functions
    return functions


def test_public_functions_and_methods_are_annotated():
    """And their annotations can be read when the program runs."""
    faults = []
    for name, function in public_functions().items():
        wanted = {*inspect.signature(function).parameters, "return"} - {"self", "cls"}
        if lacking := wanted - typing.get_type_hints(function).keys():
            faults.append(f"{name}: {sorted(lacking)}")
    assert not faults, "\n".join(["", *faults])


def test_help_names_the_types_of_parameters():
    """Annotations that Python evaluates show an alias such as ``CountsLike`` as what it stands for, 400 characters."""
    long = []
    for name, function in public_functions().items():
        signature = inspect.signature(function)
        texts = [*map(str, signature.parameters.values()), inspect.formatannotation(signature.return_annotation)]
        long += [f"{name}: {text}" for text in texts if len(text) > 120 or "sk_sgmcmc." in text]
    assert not long, "write `from __future__ import annotations` in the module of " + "\n".join(["", *long])


def test_type_checkers_find_the_types():
    assert (PACKAGE / "py.typed").read_bytes() == b""


# Pages of the documentation; those that Sphinx writes lie in folders of their own.
DOC_PAGES = [p for p in sorted((ROOT / "doc").rglob("*.rst")) if not {"auto_examples", "generated"} & set(p.parts)]


@over(DOC_PAGES)
def test_names_of_classes_are_links(path):
    """Single backticks make a link, which the build checks; double ones would set the name and leave it at that."""
    classes = {name for module, name in public_objects() if name[0].isupper()}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        for name in re.findall(r"(?<!`)``([\w.]+)``(?!`)", line):
            if name.rpartition(".")[2] in classes:
                yield f"line {number}: ``{name}``"


# The gallery, tables and other pages are as wide as they are; code is read on narrow screens.
_PROMPT = re.compile(r"^\s*(?:>>>|\.\.\.) (.*)$", flags=re.M)


def wide_code(text):
    """Lines of examples that are wider than 72 characters after the prompt."""
    return [line for line in _PROMPT.findall(text) if len(line) > 72]


@over(DOC_PAGES)
def test_code_in_the_documentation_is_narrow(path):
    yield from wide_code(path.read_text(encoding="utf-8"))


@over(MODULES)
def test_code_in_docstrings_is_narrow(path):
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            yield from wide_code(ast.get_docstring(node) or "")


GUIDE = ROOT / "doc" / "user_guide"
HOW_TO_PAGES = [
    GUIDE / f"{page}.rst"
    for page in re.findall(
        r"^   (\w+)$", (GUIDE / "index.rst").read_text(encoding="utf-8").split("Appendices")[0], re.M
    )
]


@over(HOW_TO_PAGES)
def test_how_to_page_is_short_and_complete(path):
    """A page says what the reader can do after it, prints a table, shows recipes, and can be read in five minutes."""
    text = path.read_text(encoding="utf-8")
    if (n_words := len(text.split())) > 900:
        yield f"{n_words} words, at most 900"
    if "\nAfter this page" not in text:
        yield 'say what the reader can do after it: "After this page you can ..."'
    if not re.search(r"^(?:>>>|\.\.\.) +print\(", text, flags=re.M):
        yield "print a table"
    recipes = text.partition("\nRecipes\n-------\n")[2].partition("\n---")[0]
    if not re.search(r"^\.\. minigallery::\n\n   \.\./examples/", recipes, flags=re.M):
        yield 'end with a section "Recipes" that shows pages of the gallery'


def test_terms_of_the_glossary_are_used():
    glossary = (ROOT / "doc" / "glossary.rst").read_text(encoding="utf-8")
    terms = set(map(str.lower, re.findall(r"^   (\w.*)$", glossary.split(".. glossary::")[1], flags=re.M)))
    pages = " ".join(" ".join(path.read_text(encoding="utf-8").split()) for path in DOC_PAGES)
    used = {link.rpartition("<")[2].rstrip(">").lower() for link in re.findall(r":term:`([^`]+)`", pages)}
    assert len(terms) > 20
    assert terms == used & terms, f"not used: {sorted(terms - used)}"


def test_a_name_without_a_target_fails_the_build_of_the_documentation():
    configuration = (ROOT / "doc" / "conf.py").read_text(encoding="utf-8")
    assert re.search(r"^nitpicky = True", configuration, flags=re.M)
    assert "nitpick_ignore" not in configuration
    assert 'sphinx-build" -W' in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


@over(sorted((ROOT / "examples").glob("*/plot_*.py")))
def test_gallery_example_has_a_title_and_an_answer(path):
    """Each example opens with a title and at least a sentence on the question that it answers."""
    text = ast.get_docstring(tree_of(path)) or ""
    lines = text.splitlines()
    if not (len(lines) >= 4 and set(lines[1]) == {"="} and len(lines[1]) >= len(lines[0])):
        yield "no title, underlined, with a sentence below it"


@over(sorted(p for d in ("reproduce", "benchmarks") for p in (ROOT / "examples" / d).glob("[!_]*.py")))
def test_long_script_has_a_short_setting(path):
    if '"--smoke"' not in path.read_text(encoding="utf-8"):
        yield "give it --smoke: seconds, and no peer package needed"


def test_the_oldest_versions_in_ci_are_the_floors():
    """The job "oldest" installs what pyproject.toml promises to be enough."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project = tomllib.loads(text)["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["examples"]
    floors = dict(re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement).groups() for requirement in wanted)
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    pins = dict(re.findall(r"([\w-]+)==([\d.]+)", workflow))
    for name, floor in floors.items():
        assert re.fullmatch(re.escape(floor) + r"(\.0)*", pins[name]), (
            f"{name}: floor {floor}, CI installs {pins[name]}"
        )


def test_hard_dependencies_are_these_five():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    dependencies = tomllib.loads(text)["project"]["dependencies"]
    names = {re.split(r"[<>=!~ ]", requirement)[0] for requirement in dependencies}
    assert names == {"numpy", "scipy", "scikit-learn", "numba", "joblib"}
