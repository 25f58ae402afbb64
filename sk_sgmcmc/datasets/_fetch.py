"""Public data sets, read from a folder on this machine."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io

import numpy as np
from scipy import sparse
from sklearn.datasets import fetch_20newsgroups, load_svmlight_file
from sklearn.utils import Bunch

from ..utils import as_table
from ..utils._files import load_arrays, load_sparse, naming
from ..utils._sparse import well_formed
from ..utils._typing import Path
from ._home import data_folders
from ._registry import CORPORA, TABLES
from ._text import make_count_vectorizer

_AGAIN = "get the data again"
_LARGEST_TEXT = 2**28  # largest size of an unpacked text file, in bytes
# Columns of metadata that contain names, which are text even if they look like numbers.
_NAMES = frozenset("filename curid id newid title booktitle authors blog".split())


def fetch_corpus(name: str, *, data_home: Path | None = None) -> Bunch:
    """Read a public corpus as a document-term matrix.

    Parameters
    ----------
    name : str
        Name of the corpus: "20newsgroups", "wikipedia", "acl_abstracts", "acl2020_abstracts", "sotu_paragraphs",
        "poliblog5k", "reuters21578", "ap", "20news_different", "msweb" or "nltcs".
    data_home : path-like, default=None
        The folder that contains ``<name>/counts.npz`` and so on. None: the folder in the environment variable
        ``SK_SGMCMC_DATA``, then ``sk_sgmcmc`` in scikit-learn's data home.

    Returns
    -------
    data : sklearn.utils.Bunch
        ``data`` (also as ``counts``) : csr_matrix, shape (n_documents, n_features); a dense ndarray of 0 and 1 for
        "nltcs". ``feature_names`` : ndarray of str. ``metadata`` : table of the documents (DataFrame if pandas is
        installed, else Bunch). ``DESCR`` : str.
        If there are labels: ``target``, ndarray of int64, and ``target_names``.
        If there is a split: ``train``, ``test`` (for "nltcs" also ``valid``), the indices of the rows.
        For "20news_different" also ``tfidf``, csr_matrix with unit rows; for "msweb" also ``areas``, a table.

    Raises
    ------
    OSError
        If the files are not found, or do not fit together. The message lists the folders searched, the expected files
        and the source of the data set.
    ValueError
        If a file is damaged, or its data would not fit in memory. The message names the file.
    """
    facts = _facts(name, CORPORA, "fetch_corpus")
    folder_name = "binary" if name == "nltcs" else name
    folder = _find(name, folder_name, facts, data_home)
    if name == "nltcs":
        return _read_nltcs(folder, facts)
    sizes = None
    if facts.parts:
        parts = [load_sparse(folder / f"counts_{part}.npz", how=_AGAIN) for part in facts.parts]
        sizes = [part.shape[0] for part in parts]
        counts = _stacked(parts, f"the counts of {name!r} in {folder}")
        labels = [label for part in facts.parts for label in _lines(folder / f"labels_{part}.txt")]
    else:
        counts = load_sparse(folder / "counts.npz", how=_AGAIN)
        labels = _lines(folder / "labels.txt")
    counts = sparse.csr_matrix(counts)
    names = np.array(_lines(folder / "vocab.txt"))
    columns = _read_table(folder / "meta.csv")
    if labels and facts.target:
        columns.setdefault(facts.target, np.array(labels))
    if sizes:
        columns["split"] = np.repeat(facts.parts, sizes)
    wrong = {key: len(column) for key, column in columns.items() if len(column) != counts.shape[0]}
    if names.size != counts.shape[1] or wrong:
        raise OSError(
            f"the files of {name!r} in {folder} do not fit together: counts of shape {counts.shape}, {names.size} "
            f"lines in vocab.txt, other lengths {wrong}; get the data again. {_how_to_get(name, facts)}"
        )
    return _bunch(counts, names, columns, facts, _extras(name, folder, facts, counts))


def _stacked(parts, what):
    """Stack sparse matrices vertically to a csr_matrix; raises if their numbers of columns differ."""
    widths = {part.shape[1] for part in parts}
    if len(widths) > 1:
        raise ValueError(f"{what} have {sorted(widths)} columns, but must have the same number; {_AGAIN}.")
    return sparse.csr_matrix(sparse.vstack(parts, format="csr"))


def _extras(name, folder, facts, counts):
    """Additional items of the Bunch that only some data sets have."""
    if name == "20news_different":
        files = [folder / f"tfidf_{part}.npz" for part in facts.parts]
        if all(file.exists() for file in files):
            tfidf = _stacked([load_sparse(file, how=_AGAIN) for file in files], f"the tf-idf rows in {folder}")
            if tfidf.shape != counts.shape:
                raise ValueError(
                    f"the tf-idf rows in {folder} have the shape {tfidf.shape}, but the counts {counts.shape}."
                )
            return {"tfidf": tfidf}
    if name == "msweb" and (folder / "areas.csv").exists():
        return {"areas": as_table(_read_table(folder / "areas.csv"))}
    return {}


def _bunch(counts, names, columns, facts, extras):
    """The Bunch of a corpus, with its labels and split if it has any."""
    data = Bunch(
        data=counts,
        counts=counts,
        feature_names=names,
        metadata=as_table(columns),
        DESCR=facts.description,
        **extras,
    )
    if facts.target in columns:
        target_names, data.target = np.unique(columns[facts.target], return_inverse=True)
        data.target = data.target.astype(np.int64)
        data.target_names = target_names.tolist()
    split = columns.get("split" if facts.parts else facts.split)
    if split is not None:
        split = np.char.lower(np.asarray(split).astype(str))
        for part in facts.parts or ("train", "test"):
            data[part] = np.flatnonzero(split == part)
    return data


def _read_nltcs(folder, facts):
    path = folder / "nltcs.npz"
    parts = list(load_arrays(path, facts.parts).values())
    if any(part.ndim != 2 or part.dtype.kind not in "biuf" or part.shape[1] != parts[0].shape[1] for part in parts):
        shapes = [part.shape for part in parts]
        raise ValueError(f"'{path}' holds arrays of shapes {shapes}, but must hold numbers with the same columns.")
    X = np.concatenate(parts)
    columns = {"split": np.repeat(facts.parts, [len(part) for part in parts])}
    return _bunch(X, np.array([f"question{j:02d}" for j in range(X.shape[1])]), columns, facts, {})


def fetch_table(name: str, *, data_home: Path | None = None) -> Bunch:
    """Read a public table for classification.

    Parameters
    ----------
    name : str
        Name of the table: "australian", "heart", "a9a" or "covertype".
    data_home : path-like, default=None
        The folder that contains ``tabular/<file>``. None: as for `fetch_corpus`.

    Returns
    -------
    data : sklearn.utils.Bunch
        ``data`` : ndarray of float64, for "a9a" csr_matrix, shape (n_samples, n_features), not scaled.
        ``target`` : ndarray of int64, as published. ``feature_names`` : ndarray of str. ``DESCR`` : str.
        For "a9a" also ``train`` and ``test``, the indices of the rows.

    Raises
    ------
    OSError
        As for `fetch_corpus`.
    """
    facts = _facts(name, TABLES, "fetch_table")
    folder = _find(name, "tabular", facts, data_home)
    extras, names = {}, None
    if name == "a9a":
        parts = [_read_svmlight(folder / file) for file in facts.files]
        n_train = parts[0][0].shape[0]
        X = sparse.csr_matrix(sparse.vstack([part[0] for part in parts]))
        y = np.concatenate([part[1] for part in parts])
        extras = {"train": np.arange(n_train), "test": np.arange(n_train, X.shape[0])}
    elif name == "covertype":
        X, y, names = _read_covertype(folder / facts.files[0])
    else:
        path = folder / facts.files[0]
        found = load_arrays(path, ("X", "y", "feature_names?"))
        X, y, names = found["X"], found["y"], found.get("feature_names")
        _refuse_other_lengths(path, {"y": y}, X, names)
        X = X.astype(np.float64)
    names = [f"x{j}" for j in range(X.shape[1])] if names is None else names
    return Bunch(data=X, target=y.astype(np.int64), feature_names=np.array(names), DESCR=facts.description, **extras)


def fetch_20newsgroups_counts(*, data_home: Path | None = None, download_if_missing: bool = True) -> Bunch:
    """20 Newsgroups as counts, which scikit-learn downloads if necessary.

    Parameters
    ----------
    data_home : path-like, default=None
        As for `fetch_corpus`. If there is no ``20newsgroups/counts.npz``, the posts are read with
        `sklearn.datasets.fetch_20newsgroups`, which receives this ``data_home``, and their words are counted.
    download_if_missing : bool, default=True
        Whether scikit-learn may download the posts. False: raise OSError if the data are not on this machine.

    Returns
    -------
    data : sklearn.utils.Bunch
        As from ``fetch_corpus("20newsgroups")``. Downloaded posts give the same rows and columns.
    """
    facts = CORPORA["20newsgroups"]
    try:
        return fetch_corpus("20newsgroups", data_home=data_home)
    except FileNotFoundError as error:
        not_found = error
    home = None if data_home is None else str(data_home)
    options = {"remove": ("headers", "footers", "quotes"), "shuffle": False, "data_home": home}
    try:
        train, test = (
            fetch_20newsgroups(subset=subset, download_if_missing=download_if_missing, **options)
            for subset in ("train", "test")
        )
    except OSError as error:
        raise OSError(f"{not_found} scikit-learn's own fetcher failed as well: {error}") from error
    vectorizer = make_count_vectorizer(min_df=20, ascii_only=True, dtype=np.int32)
    counts = sparse.vstack([vectorizer.fit_transform(train.data), vectorizer.transform(test.data)], format="csr")
    counts.sort_indices()
    labels = [source.target_names[i] for source in (train, test) for i in source.target]
    columns = {
        "split": np.repeat(["train", "test"], [len(train.data), len(test.data)]),
        "category": np.array(labels),
    }
    return _bunch(sparse.csr_matrix(counts), vectorizer.get_feature_names_out().astype(str), columns, facts, {})


def _named(name):
    """Make the function ``fetch_<name>`` of one data set."""

    def fetch(*, data_home: Path | None = None) -> Bunch:
        return fetch_corpus(name, data_home=data_home)

    fetch.__name__ = fetch.__qualname__ = f"fetch_{name}"
    fetch.__module__ = "sk_sgmcmc.datasets"
    fetch.__doc__ = f"""{CORPORA[name].title}

    Parameters
    ----------
    data_home : path-like, default=None
        As for `fetch_corpus`.

    Returns
    -------
    data : sklearn.utils.Bunch
        As for ``fetch_corpus("{name}")``.
    """
    return fetch


fetch_wikipedia = _named("wikipedia")
fetch_acl_abstracts = _named("acl_abstracts")
fetch_acl2020_abstracts = _named("acl2020_abstracts")
fetch_sotu_paragraphs = _named("sotu_paragraphs")
fetch_poliblog5k = _named("poliblog5k")
fetch_reuters21578 = _named("reuters21578")
fetch_ap = _named("ap")
fetch_20news_different = _named("20news_different")
fetch_msweb = _named("msweb")
fetch_nltcs = _named("nltcs")


# ------------------------------------------------------------------------------------------------------------ finding


def _facts(name, registry, whom):
    if not isinstance(name, str):
        raise TypeError(f"name must be the name of one data set, such as {next(iter(registry))!r}; got {name!r}.")
    if name not in registry:
        raise ValueError(f"{whom} has no data set {name!r}; it has {', '.join(map(repr, registry))}.")
    return registry[name]


def _find(name, folder_name, facts, data_home):
    """The folder that contains all files of a data set; raises if there is none."""
    looked = [folder / folder_name for folder in data_folders(data_home)]
    for folder in looked:
        if all((folder / file).is_file() for file in facts.files):
            return folder
    raise FileNotFoundError(
        f"the data set {name!r} was not found. Looked for {', '.join(facts.files)} in: "
        f"{', '.join(map(str, looked))}. {_how_to_get(name, facts)}"
    )


def _how_to_get(name, facts):
    if name in TABLES:
        layout = f"<folder>/tabular/{', '.join(facts.files)}"
    elif name == "nltcs":
        layout = "<folder>/binary/nltcs.npz with the arrays train, valid, test"
    else:
        layout = (
            f"<folder>/{name}/ with {', '.join(facts.files)} (scipy.sparse.save_npz, rows are documents; one word per "
            "line) and, if there are any, meta.csv (with a header) and labels.txt, one line per row"
        )
    return (
        f"Expected layout: {layout}. The set is published at {facts.source}; counts are made by: {facts.recipe}. "
        "Then pass data_home=<folder> or set the environment variable SK_SGMCMC_DATA to it. "
        "load_docstrings(), load_sotu() and make_lda() need no files."
    )


# ------------------------------------------------------------------------------------------------------------ reading


def _refuse_other_lengths(path, columns, X, names=None):
    """Raise unless X is a numeric matrix, and the lengths of ``columns`` and ``names`` fit its rows and columns."""
    numbers = all(each.dtype.kind in "biuf" for each in (X, *columns.values()))
    lengths = {name: column.shape for name, column in columns.items()}
    if X.ndim != 2 or not numbers or any(shape != X.shape[:1] for shape in lengths.values()):
        raise ValueError(f"'{path}' holds rows of shape {X.shape} and {lengths}, which must be numbers of one length.")
    if names is not None and names.shape != X.shape[1:]:
        raise ValueError(f"'{path}' holds {names.size} names for {X.shape[1]} columns.")


def _read_covertype(path):
    """Read the covertype data: rows, labels and names of the columns."""
    found = load_arrays(path, ("numeric", "wilderness", "soil", "cover_type", "feature_names"))
    numeric, codes = found["numeric"], {"wilderness": (found["wilderness"], 4), "soil": (found["soil"], 40)}
    _refuse_other_lengths(path, {name: found[name] for name in ("wilderness", "soil", "cover_type")}, numeric)
    for name, (code, n) in codes.items():
        if code.size and not (code.min() >= 0 and code.max() < n):
            raise ValueError(f"'{path}': {name} must be codes of 0 to {n - 1}; got {code.min()} to {code.max()}.")
    if numeric.shape[1] != 10 or len(found["feature_names"]) < 10:
        raise ValueError(f"'{path}': numeric must have 10 columns with names; got shape {numeric.shape}.")
    # Fill X in place, since the table may have 21 million entries.
    X = np.zeros((numeric.shape[0], 54))
    X[:, :10] = numeric
    for (code, _), first in zip(codes.values(), (10, 14), strict=True):
        X[np.arange(X.shape[0]), first + code.astype(np.intp)] = 1.0
    names = [*found["feature_names"][:10], *(f"Wilderness_Area_{j}" for j in range(4))]
    return X, found["cover_type"], [*names, *(f"Soil_Type_{j}" for j in range(40))]


def _read_svmlight(path):
    """Read rows and labels of a compressed file in svmlight format."""
    with naming(path, _AGAIN), gzip.open(path) as file:
        content = file.read(_LARGEST_TEXT + 1)
        if len(content) > _LARGEST_TEXT:
            raise ValueError(f"it unpacks to more than {_LARGEST_TEXT / 2**20:.0f} MiB")
        X, y = load_svmlight_file(io.BytesIO(content), n_features=123, zero_based=False)
        return well_formed(X, "the matrix"), y


def _lines(path):
    """Lines of a text file; an empty list if there is no file."""
    if not path.exists():
        return []
    # Do not use splitlines(), which also splits at separators that may occur within a line.
    with naming(path, _AGAIN):
        return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _read_table(path):
    """Columns of a CSV file with a header, whole numbers as int64; an empty dict if there is no file."""
    if not path.exists():
        return {}
    with naming(path, _AGAIN), path.open(encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file)) or [[]]
        while rows and not rows[-1]:
            rows.pop()
        if not header or len(set(header)) < len(header):
            raise ValueError(f"its first line must name the columns, each by a name of its own; got {header}")
        for i, row in enumerate(rows):
            if len(row) != len(header):
                raise ValueError(f"row {i + 1} has {len(row)} entries, but the header {len(header)}")
    columns = {}
    for j, key in enumerate(header):
        values = [row[j] for row in rows]
        column = np.array(values, dtype=str)
        if key not in _NAMES:
            with contextlib.suppress(ValueError, OverflowError):
                column = column.astype(np.int64)
        columns[key] = column
    return columns
