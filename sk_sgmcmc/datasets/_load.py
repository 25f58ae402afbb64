"""Corpora that need no download: docstrings of installed packages, and a sample of State of the Union addresses."""

import contextlib
import gzip
import hashlib
import importlib
import importlib.util
import inspect
import io
import json
import os
import pkgutil
import tempfile
import warnings
import zlib
from collections.abc import Sequence
from importlib import metadata, resources
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.utils import Bunch

from ..utils import as_table
from ..utils._sparse import well_formed
from ._home import cache_folder
from ._registry import CORPORA
from ._text import document_frequency_mask, make_count_vectorizer

# Import names of the required dependencies, and the distributions that provide them.
_PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "numba": "numba",
    "joblib": "joblib",
}
# Modules that have side effects on import (tests, build scripts, thread pools, drivers, switches), or that are copies
# of other projects.
_SKIPPED_MODULES = frozenset(
    "tests test testing conftest setup externals experimental distutils f2py cuda runtests pycc scripts misc "
    "cloudpickle parallel tbbpool omppool workqueue mypy_plugin".split()
)
# numba 0.61 has modules of a second type system, such as numba.core.typing.new_builtins. After one of them is imported,
# many later compilations in the process fail.
_SKIPPED_BEGINNINGS = ("_", "test", "new_")
_RECIPE = 1  # part of the cache's key; increase it when this module collects or counts differently
_MIN_TOKENS = 10  # shorter documents are left out


def load_docstrings(
    packages: Sequence[str] | None = None,
    *,
    min_df: float = 5,
    max_df: float = 0.5,
    return_text: bool = False,
    data_home: Path | None = None,
) -> Bunch:
    """Public docstrings of NumPy, SciPy, scikit-learn, numba and joblib as a corpus.

    Each docstring is a document. There are a few thousand; the number depends on the installed versions.

    Parameters
    ----------
    packages : sequence of str, default=None
        Import names of the packages to read. None: the five packages above. Importing a package runs its code, so
        name only packages that you trust.
    min_df : int or float, default=5
        Drop words in fewer documents (a share, if a float).
    max_df : int or float, default=0.5
        Drop words in more documents (a share, if a float).
    return_text : bool, default=False
        Whether to return the texts too.
    data_home : path-like, default=None
        Folder for the cache. None: ``sk_sgmcmc`` in scikit-learn's data home. If it cannot be written, each call reads
        the docstrings again.

    Returns
    -------
    data : sklearn.utils.Bunch
        ``data`` (also as ``counts``) : csr_matrix of int64, shape (n_documents, n_words).
        ``feature_names`` : ndarray of str, the words.
        ``metadata`` : table (DataFrame if pandas is installed, else Bunch) with the columns ``package``, ``module``
        (package and subpackage, such as ``scipy.stats``), ``name`` (full name) and ``kind`` (module, class, function
        or method).
        ``target`` : ndarray of int64, index of the package in ``target_names``.
        ``versions`` : dict, versions of the packages. ``text`` : list of str, if ``return_text``. ``DESCR`` : str.

    Notes
    -----
    Public modules are imported, except tests, build scripts and the like; modules that fail to import are left out.
    The docstrings of their public classes, functions and methods are collected, each text once and under its public
    name. Documents of fewer than 10 counted words, before ``min_df`` and ``max_df``, are left out. Documents are in the
    order of packages and names. `make_count_vectorizer` with ``ascii_only=True`` counts the words.
    """
    if isinstance(packages, str) or not all(isinstance(name, str) for name in packages or ()):
        raise TypeError(f"packages must be a list of names, such as ['numpy', 'scipy']; got {packages!r}.")
    names = tuple(_PACKAGES) if packages is None else tuple(dict.fromkeys(packages))
    if not names:
        raise ValueError("packages is empty; pass None for all, or for example packages=['numpy', 'scipy'].")
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(f"packages that are not installed: {missing}; leave them out, or install them with pip.")
    versions = {name: _version(name) for name in names}
    key = hashlib.sha256(json.dumps([_RECIPE, versions]).encode()).hexdigest()[:16]
    folder = cache_folder(data_home)
    path = None if folder is None else folder / f"docstrings-{key}.json.gz"
    cached = _read(path, names)
    if cached is None:
        cached = _count(_collect(names))
        _write(path, cached)
    counts = sparse.csr_matrix(
        (np.asarray(cached["data"]), np.asarray(cached["indices"]), np.asarray(cached["indptr"])),
        shape=(len(cached["name"]), len(cached["words"])),
        dtype=np.int64,
    )
    mask = document_frequency_mask(counts, min_df, max_df)
    counts = counts[:, np.flatnonzero(mask)]
    table = {column: np.array(cached[column]) for column in ("package", "module", "name", "kind")}
    place = {name: i for i, name in enumerate(names)}
    data = Bunch(
        data=counts,
        counts=counts,
        feature_names=np.array(cached["words"])[mask],
        metadata=as_table(table),
        target=np.array([place[name] for name in cached["package"]], dtype=np.int64),
        target_names=list(names),
        versions=versions,
        DESCR=f"{counts.shape[0]} docstrings with {counts.sum()} counted words of "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + ".",
    )
    if return_text:
        data.text = cached["text"]
    return data


def _version(name):
    try:
        return metadata.version(_PACKAGES.get(name, name))
    except metadata.PackageNotFoundError:
        return str(getattr(_import(name), "__version__", "unknown"))


# ------------------------------------------------------------------------------------------------- reading docstrings


def _import(name):
    """Import a module without output or warnings; returns None if that fails."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except (Exception, SystemExit):  # some modules exit on import
            return None


def _public_modules(package):
    """The public modules of a package, breadth first, and by name within a package."""
    found, waiting = [], [package]
    while waiting:
        name = waiting.pop(0)
        module = _import(name)
        if module is None:
            continue
        found.append(module)
        below = sorted(info.name for info in pkgutil.iter_modules(getattr(module, "__path__", [])))
        waiting += [
            f"{name}.{sub}" for sub in below if not sub.startswith(_SKIPPED_BEGINNINGS) and sub not in _SKIPPED_MODULES
        ]
    return found


def _docstring(obj):
    """Cleaned docstring of an object, not inherited, or an empty string."""
    try:
        text = obj.__doc__
    except Exception:  # descriptors may raise any exception
        return ""
    return inspect.cleandoc(text) if isinstance(text, str) else ""


def _members(module, package):
    """Yield the public classes and callables of a module that belong to the package as (name, object), by name."""
    for name in sorted(vars(module)):
        obj = vars(module)[name]
        if name.startswith("_") or inspect.ismodule(obj):
            continue
        home = getattr(obj, "__module__", None)
        if not isinstance(home, str):
            # Ufuncs do not record their origin. They count as members of modules that list them in __all__.
            if name not in getattr(module, "__all__", ()):
                continue
            home = package
        elsewhere = home.split(".")[0] != package or not _SKIPPED_MODULES.isdisjoint(home.split("."))
        if elsewhere or type(obj).__name__ == "fortran":
            continue  # f2py generates hundreds of docstrings of LAPACK wrappers from one template
        if inspect.isclass(obj) or inspect.isroutine(obj) or (callable(obj) and hasattr(obj, "__name__")):
            yield name, obj


def _home_of(obj, module):
    """Public module of an object: the public part of its module's path if known, else ``module``."""
    home = getattr(obj, "__module__", None)
    if not isinstance(home, str):
        return module.__name__
    parts = home.split(".")
    private = [i for i, part in enumerate(parts) if part.startswith("_")]
    return ".".join(parts[: private[0]] if private else parts)


def _documents_of(package, seen):
    """Yield (package, module, name, kind, text) of the documents of a package whose text is not in the set ``seen``."""

    def document(home, name, kind, obj):
        text = _docstring(obj)
        if text and text not in seen:
            seen.add(text)
            yield package, ".".join(home.split(".")[:2]), name, kind, text

    for module in _public_modules(package):
        yield from document(module.__name__, module.__name__, "module", module)
        for name, obj in _members(module, package):
            home = _home_of(obj, module)
            is_class = inspect.isclass(obj)
            yield from document(home, f"{home}.{name}", "class" if is_class else "function", obj)
            for attribute in sorted(vars(obj)) if is_class else ():
                value = vars(obj)[attribute]
                if isinstance(value, (staticmethod, classmethod)):
                    value = value.__func__
                if not attribute.startswith("_") and (inspect.isroutine(value) or isinstance(value, property)):
                    yield from document(home, f"{home}.{name}.{attribute}", "method", value)


def _collect(names):
    """Documents of all packages, sorted by name within each package."""
    documents, seen = [], set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # access to deprecated attributes warns
        for package in names:
            documents += sorted(_documents_of(package, seen), key=lambda document: document[2])
    return documents


def _count(documents):
    """Count the words of the documents; returns a dict of lists, the content of the cache."""
    vectorizer = make_count_vectorizer(max_df=1.0, ascii_only=True, dtype=np.int64)
    counts = vectorizer.fit_transform([document[4] for document in documents] + ["placeholder"])[:-1]
    long_enough = np.flatnonzero(np.asarray(counts.sum(axis=1)).ravel() >= _MIN_TOKENS)
    if long_enough.size == 0:
        raise ValueError(f"the packages have no public docstring of {_MIN_TOKENS} counted words; name others.")
    counts = counts[long_enough]
    counts.sort_indices()
    columns = zip(*(documents[i] for i in long_enough), strict=True)
    out = dict(zip(("package", "module", "name", "kind", "text"), map(list, columns), strict=True))
    out.update(words=vectorizer.get_feature_names_out().tolist())
    out.update({part: getattr(counts, part).tolist() for part in ("data", "indices", "indptr")})
    return out


# -------------------------------------------------------------------------------------------------------------- cache


def _read(path, names=tuple(_PACKAGES)):
    """The cached dict, or None if it is missing or damaged."""
    if path is None or not path.exists():
        return None
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            cached = json.load(file)
        lengths = {len(cached[column]) for column in ("package", "module", "name", "kind", "text")}
        lengths.add(len(cached["indptr"]) - 1)
        sound = len(lengths) == 1 and len(cached["data"]) == len(cached["indices"]) == cached["indptr"][-1]
        shape = len(cached["name"]), len(cached["words"])
        arrays = [np.asarray(cached[part], dtype=np.int64) for part in ("data", "indices", "indptr")]
        sound = sound and set(cached["package"]) <= set(names)
        well_formed(sparse.csr_matrix(tuple(arrays), shape=shape))
    except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError, OverflowError, zlib.error):
        return None
    return cached if sound else None


def _write(path, cached):
    """Write the cache atomically, since another process may be writing it too; errors are ignored."""
    if path is None:
        return
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
        with os.fdopen(handle, "wb") as raw, gzip.open(raw, "wt", compresslevel=3, encoding="utf-8") as file:
            json.dump(cached, file)
        os.replace(temporary, path)
    except OSError:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


_OF_ADDRESSES = ("year", "president", "party", "type")
_SAMPLE = (
    "Every third paragraph with its text, and the words that occur in at least ten of these: a sample that comes with "
    "the package (fetch_sotu_paragraphs reads the counts of all paragraphs). As works of the government of the United "
    "States, the addresses are in the public domain: the texts may be used and redistributed without restriction."
)


def load_sotu(*, return_text: bool = False) -> Bunch:
    """Every third paragraph of the State of the Union addresses, 1790 to 2020: word counts, metadata and text.

    There are 6,829 paragraphs of 240 addresses by 42 presidents, with 4,214 distinct words. The addresses are in the
    public domain, as works of the government of the United States. Counts and texts are part of the package;
    `fetch_sotu_paragraphs` reads the counts of all paragraphs from a folder.

    Parameters
    ----------
    return_text : bool, default=False
        Whether to return the texts too.

    Returns
    -------
    data : sklearn.utils.Bunch
        ``data`` (also as ``counts``) : csr_matrix of int64, shape (6829, 4214).
        ``feature_names`` : ndarray of str, the words.
        ``metadata`` : table (DataFrame if pandas is installed, else Bunch) with the columns ``address`` (0 to 239),
        ``paragraph`` (its number in the address), ``year``, ``president``, ``party`` and ``type`` ("speech" or
        "written"). ``text`` : list of str, if ``return_text``. ``DESCR`` : str.

    Notes
    -----
    `make_count_vectorizer` with ``ascii_only=True`` and ``vocabulary=feature_names`` counts the words of the texts.

    Examples
    --------
    >>> from sk_sgmcmc.datasets import load_sotu
    >>> addresses = load_sotu(return_text=True)
    >>> addresses.counts.shape
    (6829, 4214)
    >>> list(addresses.metadata)
    ['address', 'paragraph', 'year', 'president', 'party', 'type']
    >>> addresses.text[0][:57]
    'I embrace with great satisfaction the opportunity which n'
    """
    file = resources.files(__package__) / "sotu.npz"
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
        words = np.array(arrays["words"].tobytes().decode().split("\n"))
        address, paragraph = (arrays[name].astype(np.int64) for name in ("address", "paragraph"))
        columns = {"address": address, "paragraph": paragraph}
        columns |= {name: arrays[name][address] for name in _OF_ADDRESSES}
        # The flat indices of nonzero entries are stored as differences, which take half the space.
        places = np.cumsum(arrays["gaps"], dtype=np.int64)
        counts = sparse.csr_matrix(
            (arrays["counts"].astype(np.int64), np.divmod(places, words.size)), shape=(address.size, words.size)
        )
    data = Bunch(
        data=counts,
        counts=counts,
        feature_names=words,
        metadata=as_table(columns),
        DESCR=f"{CORPORA['sotu_paragraphs'].description}\n{_SAMPLE}",
    )
    if return_text:
        packed = (resources.files(__package__) / "sotu_texts.txt.gz").read_bytes()
        data.text = gzip.decompress(packed).decode().split("\n")
    return data
