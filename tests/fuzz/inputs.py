"""From a description of a case, which is plain JSON, to the objects that a user would pass.

A description holds numbers, strings, lists and dicts only, so that a case found by one process is run by another, is
written to a file, and is replayed months later. What JSON does not know is a dict with the key "~"; see `make`.
"""

import atexit
import contextlib
import datetime
import functools
import itertools
import os
import shutil
import tempfile
import time
import uuid

import numpy as np
from scipy import sparse

from sk_sgmcmc import callbacks, samplers, targets
from sk_sgmcmc.datasets import CountBlocks

# --------------------------------------------------------------------------------------------------------- parameters


def make(value, sizes=None):
    """The object that a description stands for; ``sizes`` gives the lengths that arrays of a model's shape need."""
    if isinstance(value, list):
        return [make(each, sizes) for each in value]
    if not isinstance(value, dict):
        return value
    of = value.get("of")
    match value["~"]:
        case "np":
            return np.dtype(value["type"]).type(of)
        case "tuple":
            return tuple(make(each, sizes) for each in of)
        case "array":
            return np.array(of, dtype=value.get("dtype"))
        case "full":
            shape = [(sizes or {}).get(size, size) for size in value["shape"]]
            return np.full(shape, of, dtype=value.get("dtype", float))
        case "dict":
            return {make(key, sizes): make(each, sizes) for key, each in of}
        case "object":
            return object()
        case "sampler" | "schedule":
            parameters = {name: make(each, sizes) for name, each in value.get("params", {}).items()}
            return getattr(samplers, of)(**parameters)
        case "RandomState":
            return np.random.RandomState(of)
        case "constraint":
            return getattr(targets, of)(make(value["shape"]))
        case "callback":
            return _CALLBACKS[of]
        case "Checkpoint":
            return callbacks.Checkpoint(os.path.join(_scratch(), f"{uuid.uuid4().hex}.joblib"), seconds=0.0)
        case "HeldOutScore":
            case = sizes["case"]
            X, y = rows({**case["data"], "odd": []}), case.get("y")
            return callbacks.HeldOutScore(X, None if y is None else labels(y, case["data"]["n"]), every=value["every"])
        case "metadata":
            n = sizes["N"] if value["n"] is None else value["n"]
            return metadata(sizes["case"].get("metadata"), n)
        case "of rows":
            return of_rows(of, sizes["N"])
        case "names":
            return [f"w{j}" for j in range(max(sizes["V"] + of, 0))]
    raise ValueError(f"unknown description {value!r}")


def _go_on(estimator, step):
    return False


def _exit(estimator, step):
    os._exit(3)


def _sleep(estimator, step):
    time.sleep(3600)


def _stop(estimator, step):
    return step >= 2


def _refuse(estimator, step):
    raise ValueError(f"A callback of the fuzzer ends the fit, whatever the data, after {step} steps.")


# Usual ones, and two by which the tests end and block a worker.
_CALLBACKS = {"go on": _go_on, "stop": _stop, "refuse": _refuse, "exit": _exit, "sleep": _sleep}


@functools.cache
def _scratch():
    """A folder for files that last as long as this process."""
    folder = tempfile.mkdtemp(prefix="fuzz-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def of_rows(kind, n):
    """Times or texts of ``n`` rows."""
    i = np.arange(n)
    match kind:
        case "numbers":
            return np.linspace(0.0, 1.0, n)
        case "years":
            return (1990 + i % 3).tolist()
        case "texts":
            return [f"text {k % 4}" for k in i]
        case "dates":
            return np.datetime64("2020-01-01") + i
        case "equal":
            return np.ones(n)
        case "nan":
            return np.where(i == 0, np.nan, 1.0)
        case "short":
            return ["a"] * max(n - 1, 0)
    raise ValueError(kind)


def blocks(X, n_blocks, form):
    """Counts in so many blocks; what cannot be cut is one block as it is."""
    if not (sparse.issparse(X) or isinstance(X, np.ndarray)) or X.ndim != 2:
        return CountBlocks([X])
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiub":
        # SciPy knows no other order of bytes, and no float16.
        X = sparse.csr_array(X.astype(np.float32 if X.dtype == np.float16 else X.dtype.newbyteorder("=")))
    cuts = np.linspace(0, X.shape[0], n_blocks + 1).astype(int)
    can = getattr(X, "format", "") == "csr" and form not in MALFORMED  # SciPy may crash where it cuts these
    parts = [X[a:b] for a, b in itertools.pairwise(cuts)] if can else [X]
    return CountBlocks(parts, shard_tokens=30)


# --------------------------------------------------------------------------------------------------------------- rows


def rows(data):
    """X as described by ``data``, and what else has to live as long as it does."""
    return FORMS[data["form"]](spoilt(data), data)


def numbers(data):
    """Plain float64 rows of a kind."""
    rng = np.random.default_rng(data["seed"])
    n, d = data["n"], data["d"]
    groups = np.arange(n) % 2
    if data["kind"] == "counts":
        # Two groups that use other halves of the columns.
        side = (np.arange(d) < (d + 1) // 2)[None, :] == (groups == 0)[:, None]
        return rng.poisson(np.where(side, 1.5, 0.3)).astype(float)
    if data["kind"] == "binary":
        return (rng.random((n, d)) < np.where(groups, 0.8, 0.2)[:, None]).astype(float)
    if data["kind"] == "codes":
        return rng.integers(0, 3, (n, d)).astype(float)
    centre = np.where(groups, 2.0, -2.0)[:, None] * np.linspace(1.0, 0.2, d)[None, :]
    return rng.normal(size=(n, d)) + centre


def _set(place, value):
    def change(X):
        X[place] = value
        return X

    return change


def _scaled(factor, offset=0.0):
    def change(X):
        X[:, :1] = X[:, :1] * factor + offset
        return X

    return change


# What is odd about numbers. Each gets a float64 array of its own.
ODD_NUMBERS = {
    "nan": _set((0, 0), np.nan),
    "infinite": _set((0, -1), np.inf),
    "minus infinite": _set((-1, 0), -np.inf),
    "negative": _set((0, 0), -1.0),
    "negative zero": _set((0, 0), -0.0),
    "empty row": _set((slice(0, 1),), 0.0),
    "empty column": _set((slice(None), slice(0, 1)), 0.0),
    "all zero": _set((slice(None),), 0.0),
    "all one": _set((slice(None),), 1.0),
    "constant column": _set((slice(None), slice(0, 1)), 3.0),
    "fractional": lambda X: X * 0.37,
    "nearly nothing": lambda X: X * 1e-300,
    "smallest number": _set((0, 0), 5e-324),
    "one count of 1e5": _set((0, 0), 1e5),
    "one count of 1e8": _set((0, 0), 1e8),
    "one entry of 1e15": _set((0, 0), 1e15),
    "one entry of 1e300": _set((0, 0), 1e300),
    "column of scale 1e8": _scaled(1e8),
    "column of scale 1e300": _scaled(1e300),
    "column of scale 1e-12": _scaled(1e-12),
    "column of offset 2000": _scaled(1.0, 2000.0),
    "column of offset 1e9": _scaled(1.0, 1e9),
    "all of scale 1e200": lambda X: X * 1e200,
    "equal columns": lambda X: np.repeat(X[:, :1], X.shape[1], axis=1),
    "equal rows": lambda X: np.repeat(X[:1], X.shape[0], axis=0),
    "unit rows": lambda X: X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9),
}


def spoilt(data):
    """Rows of numbers, with what is odd about them."""
    X = numbers(data)
    for odd in data.get("odd", []):
        if X.size:
            X = ODD_NUMBERS[odd](X)
    return X


def _as(X, data):
    """In the data's type of number, C order."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(X.astype(data.get("dtype", "float64")))


def _sparse(kind):
    def form(X, data):
        X = _as(X, data)
        if X.dtype.kind == "O" or X.dtype in ("float16", ">f8"):  # which SciPy does not store
            X = X.astype(float)
        return getattr(sparse, kind)(X)

    return form


def _wide(X, data):
    """With 64-bit indices."""
    X = _sparse("csr_array")(X, data)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def _untidy(X, data):
    """Entries of a row in reverse order, and a stored zero."""
    X = _sparse("csr_array")(X, data)
    if X.nnz:
        X.data[0] = 0
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        X.indices[start:stop] = X.indices[start:stop][::-1].copy()
        X.data[start:stop] = X.data[start:stop][::-1].copy()
    X.has_sorted_indices = False
    return X


def _doubled(X, data):
    """Every entry written twice, as halves."""
    X = _sparse("coo_array")(X * 0.5, {**data, "dtype": "float64"})
    i, j = X.row, X.col
    both = np.concatenate([X.data, X.data])
    return sparse.coo_array((both, (np.concatenate([i, i]), np.concatenate([j, j]))), shape=X.shape)


def _read_only(X, data):
    X = _as(X, data)
    X.flags.writeable = False
    return X


def _read_only_sparse(X, data):
    X = _sparse("csr_array")(X, data)
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    return X


def _memory_map(X, data):
    X = _as(X, data)
    if not X.size or X.dtype == object:
        return X
    handle, path = tempfile.mkstemp(suffix=".npy")
    os.close(handle)
    np.save(path, X)
    mapped = np.load(path, mmap_mode="r")
    with contextlib.suppress(OSError):  # of Windows, which keeps what is open
        os.unlink(path)
    return mapped


def _strided(X, data):
    return np.repeat(_as(X, data), 2, axis=1)[:, ::2]


def _names(X):
    return [f"w{j}" for j in range(X.shape[1])]


def _pandas(X, data):
    import pandas as pd

    return pd.DataFrame(_as(X, data), columns=_names(X))


def _pandas_nullable(X, data):
    import pandas as pd

    return pd.DataFrame(X, columns=_names(X)).astype("Float64")


def _pandas_sparse(X, data):
    import pandas as pd

    return pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X), columns=_names(X))


def _polars(X, data):
    import polars as pl

    X = _as(X, data)
    return pl.DataFrame({name: X[:, j].tolist() for j, name in enumerate(_names(X))}, strict=False)


def _spoil_indices(spoil):
    """A CSR array whose indices are wrong; an unchecked kernel reads or writes wherever they point."""

    def form(X, data):
        X = sparse.csr_array(X)
        if X.nnz > 1:
            spoil(X)
        return X

    return form


def _index(place, value):
    def spoil(X):
        X.indices[place] = value

    return spoil


def _pointer(place, value):
    def spoil(X):
        X.indptr[place] = value

    return spoil


def _shorten(X):
    X.indices = X.indices[:-1]


MALFORMED = {
    "malformed: index 1e8": _spoil_indices(_index(-1, 10**8)),
    "malformed: index just too large": _spoil_indices(lambda X: X.indices.__setitem__(0, X.shape[1])),
    "malformed: index -1": _spoil_indices(_index(0, -1)),
    "malformed: index -1e8": _spoil_indices(_index(0, -(10**8))),
    "malformed: pointer beyond the end": _spoil_indices(lambda X: X.indptr.__setitem__(-1, X.nnz + 10**7)),
    "malformed: pointer goes back": _spoil_indices(lambda X: X.indptr.__setitem__(1, X.nnz + 1)),
    "malformed: pointer negative": _spoil_indices(_pointer(1, -5)),
    "malformed: pointer begins late": _spoil_indices(_pointer(0, 1)),
    "malformed: fewer indices than entries": _spoil_indices(_shorten),
}

FORMS = {
    "dense": _as,
    "fortran": lambda X, data: np.asfortranarray(_as(X, data)),
    "strided": _strided,
    "read-only": _read_only,
    "memory map": _memory_map,
    "list": lambda X, data: _as(X, data).tolist(),
    "tuple": lambda X, data: tuple(map(tuple, _as(X, data).tolist())),
    "matrix with mask": lambda X, data: np.ma.masked_array(_as(X, data), mask=np.zeros(X.shape, dtype=bool)),
    "csr_array": _sparse("csr_array"),
    "csr_matrix": _sparse("csr_matrix"),
    "csc_array": _sparse("csc_array"),
    "csc_matrix": _sparse("csc_matrix"),
    "coo_array": _sparse("coo_array"),
    "coo_matrix": _sparse("coo_matrix"),
    "lil_array": _sparse("lil_array"),
    "dok_array": _sparse("dok_array"),
    "wide indices": _wide,
    "untidy": _untidy,
    "doubled": _doubled,
    "read-only sparse": _read_only_sparse,
    "pandas": _pandas,
    "pandas nullable": _pandas_nullable,
    "pandas sparse": _pandas_sparse,
    "polars": _polars,
    # what is no matrix of numbers
    "None": lambda X, data: None,
    "one row as a vector": lambda X, data: X[0] if len(X) else X.ravel(),
    "three dimensions": lambda X, data: X[:, :, None],
    "text": lambda X, data: X.astype(str),
    "words": lambda X, data: np.full(X.shape, "word", dtype=object),
    "complex": lambda X, data: X * 1j,
    "dates": lambda X, data: np.full(X.shape, np.datetime64("2020-01-01")),
    "ragged": lambda X, data: [row[: i + 1] for i, row in enumerate(X.tolist())],
    "a string": lambda X, data: "X",
    "an object": lambda X, data: object(),
    **MALFORMED,
}


# ---------------------------------------------------------------------------------------- labels, weights, metadata


def labels(kind, n):
    """Labels of ``n`` rows."""
    y = np.arange(n) % 2
    match kind:
        case "two":
            return y
        case "three":
            return np.arange(n) % 3
        case "list":
            return y.tolist()
        case "text":
            return np.where(y, "yes", "no")
        case "objects":
            return np.where(y, "yes", "no").astype(object)
        case "bool":
            return y.astype(bool)
        case "uint8":
            return (y * 255).astype(np.uint8)
        case "floats":
            return y.astype(float)
        case "negative":
            return y * 2 - 1
        case "read-only":
            y.flags.writeable = False
            return y
        case "one class":
            return np.zeros(n, dtype=int)
        case "one of its own":
            return (np.arange(n) == 0).astype(int)
        case "each of its own":
            return np.arange(n)
        case "continuous":
            return np.linspace(0.0, 1.0, n)
        case "nan":
            return np.where(y, np.nan, 1.0)
        case "infinite":
            return np.where(y, np.inf, 1.0)
        case "mixed":
            return np.array([1, "a"] * n, dtype=object)[:n]
        case "None among":
            return np.array([1, None] * n, dtype=object)[:n]
        case "short":
            return y[:-1]
        case "long":
            return np.append(y, 0)
        case "column":
            return y[:, None]
        case "two columns":
            return np.column_stack([y, y])
        case "None":
            return None
        case "a string":
            return "y"
        case "pandas":
            return _series(y)
        case "pandas categorical":
            return _series(np.where(y, "yes", "no"), "category")
        case "pandas text":
            return _series(np.where(y, "yes", "no"))
        case "pandas nullable":
            return _series(y, "Int64")
        case "pandas missing":
            return _series(np.where(y, np.nan, 1.0), "Int64")
        case "polars":
            import polars as pl

            return pl.Series("y", y.tolist())
        case "polars text":
            import polars as pl

            return pl.Series("y", np.where(y, "yes", "no").tolist())
    raise ValueError(kind)


def _series(values, dtype=None):
    import pandas as pd

    return pd.Series(values, dtype=dtype, name="y")


def weights(kind, n):
    """``sample_weight`` of ``n`` rows."""
    match kind:
        case "None":
            return None
        case "ones":
            return np.ones(n)
        case "whole":
            return np.arange(n) % 3
        case "fractional":
            return np.linspace(0.1, 2.0, n)
        case "some zero":
            return (np.arange(n) % 4 > 0).astype(float)
        case "zero":
            return np.zeros(n)
        case "list":
            return [1] * n
        case "uint8":
            return np.full(n, 200, dtype=np.uint8)
        case "float32":
            return np.linspace(0.1, 2.0, n, dtype=np.float32)
        case "bool":
            return np.arange(n) % 2 == 0
        case "number":
            return 2.0
        case "read-only":
            w = np.ones(n)
            w.flags.writeable = False
            return w
        case "negative":
            return np.linspace(-1.0, 1.0, n)
        case "nan":
            return np.where(np.arange(n) == 0, np.nan, 1.0)
        case "infinite":
            return np.where(np.arange(n) == 0, np.inf, 1.0)
        case "1e300":
            return np.full(n, 1e300)
        case "1e6":
            return np.full(n, 1e6)
        case "1e-300":
            return np.full(n, 1e-300)
        case "short":
            return np.ones(max(n - 1, 0))
        case "column":
            return np.ones((n, 1))
        case "two columns":
            return np.ones((n, 2))
        case "text":
            return np.full(n, "heavy")
        case "a string":
            return "balanced"
        case "pandas":
            return _series(np.linspace(0.1, 2.0, n))
        case "polars":
            import polars as pl

            return pl.Series("w", np.linspace(0.1, 2.0, n).tolist())
    raise ValueError(kind)


def _columns(n):
    """Columns of all types, as Python lists."""
    i = np.arange(n)
    return {
        "number": np.linspace(0.0, 1.0, n).tolist(),
        "year": (1990.0 + i).tolist(),
        "seconds": (1.6e9 + 86400.0 * i).tolist(),
        "text": np.where(i % 2, "a", "b").tolist(),
        "each its own": [f"name {k}" for k in i],
        "bool": (i % 2 == 0).tolist(),
        "constant": [1.0] * n,
        "missing": [None if k == 0 else float(k) for k in i],
        "missing text": [None if k == 0 else "a" for k in i],
        "all missing": [None] * n,
        "date": [datetime.date(2020, 1, 1) + datetime.timedelta(days=int(k)) for k in i],
        "when": [datetime.datetime(2020, 1, 1) + datetime.timedelta(hours=int(k)) for k in i],
        "int": i.tolist(),
        "mixed": [1 if k % 2 else "a" for k in i],
    }


METADATA_COLUMNS = tuple(_columns(2))


def metadata(described, n):
    """Metadata of ``n`` documents, in the form and with the columns that ``described`` gives."""
    if described is None:
        return None
    n = max(n + described.get("more", 0), 0)
    columns = {name: _columns(n)[name] for name in described.get("columns", ["number"])}
    match described["form"]:
        case "dict":
            return columns
        case "pandas":
            import pandas as pd

            return pd.DataFrame(columns, index=range(n))
        case "pandas categorical":
            import pandas as pd

            return pd.DataFrame(columns, index=range(n)).astype("category")
        case "pandas nullable":
            import pandas as pd

            return pd.DataFrame(columns, index=range(n)).convert_dtypes()
        case "polars":
            import polars as pl

            return pl.DataFrame(columns, strict=False)
        case "polars categorical":
            import polars as pl

            frame = pl.DataFrame(columns, strict=False)
            return frame.with_columns(pl.col(pl.String).cast(pl.Categorical))
        case "objects":
            return np.array(list(zip(*columns.values(), strict=True)), dtype=object).reshape(n, len(columns))
        case "list":
            return [list(row) for row in zip(*columns.values(), strict=True)]
        case "array":
            return np.column_stack([np.linspace(0.0, 1.0, n), np.arange(n) % 2])
        case "float32":
            return np.column_stack([np.linspace(0.0, 1.0, n), np.arange(n) % 2]).astype(np.float32)
        case "uint8":
            return (np.arange(2 * n).reshape(n, 2) % 200).astype(np.uint8)
        case "fortran":
            return np.asfortranarray(np.random.default_rng(0).normal(size=(n, 3)))
        case "sparse":
            return sparse.csr_array(np.eye(n, 3))
        case "csc":
            return sparse.csc_matrix(np.eye(n, 3))
        case "malformed":
            return _spoil_indices(_index(-1, 10**8))(np.eye(n, 3), {})
        case "vector":
            return np.linspace(0.0, 1.0, n)
        case "no columns":
            return np.zeros((n, 0))
        case "nan":
            return np.full((n, 2), np.nan)
        case "infinite":
            return np.where(np.arange(n)[:, None] == 0, np.inf, 1.0) * np.ones((1, 2))
        case "1e300":
            return np.linspace(-1e300, 1e300, n)[:, None]
        case "offset 1e9":
            return 1e9 + np.arange(n, dtype=float)[:, None]
        case "1e-300":
            return 1e-300 * np.arange(n, dtype=float)[:, None]
        case "three dimensions":
            return np.ones((n, 2, 2))
        case "complex":
            return np.ones((n, 2)) * 1j
        case "a string":
            return "metadata"
        case "a number":
            return 3.0
    raise ValueError(described["form"])


METADATA_FORMS = (
    "dict", "pandas", "pandas categorical", "pandas nullable", "polars", "polars categorical", "objects", "list",
    "array", "float32", "uint8", "fortran", "sparse", "csc", "vector", "no columns", "nan", "infinite", "1e300",
    "offset 1e9", "1e-300", "three dimensions", "complex", "a string", "a number",
)  # fmt: skip
LABELS = (
    "two", "three", "list", "text", "objects", "bool", "uint8", "floats", "negative", "read-only", "one class",
    "one of its own", "each of its own", "continuous", "nan", "infinite", "mixed", "None among", "short", "long",
    "column", "two columns", "None", "a string", "pandas", "pandas categorical", "pandas text", "pandas nullable",
    "pandas missing", "polars", "polars text",
)  # fmt: skip
WEIGHTS = (
    "None", "ones", "whole", "fractional", "some zero", "zero", "list", "uint8", "float32", "bool", "number",
    "read-only", "negative", "nan", "infinite", "1e300", "1e6", "1e-300", "short", "column", "two columns", "text",
    "a string", "pandas", "polars",
)  # fmt: skip
