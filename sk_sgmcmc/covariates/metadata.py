"""Encoding of metadata of documents, or of the rows of another table, in any accepted form as numeric columns."""

from collections import Counter
from collections.abc import Mapping
from copy import copy
from numbers import Real

import numpy as np
from scipy import sparse

from ..dense.rows import DenseRows, SparseRows, moments, refuse_extremes
from ..utils._sparse import well_formed
from ..utils._tables import declared_levels
from ..utils._warnings import warn_of_index_column, warn_of_levels, warn_user

_DENSE_COLUMNS = 64  # Up to this number of columns, encoded levels are dense.
_SHOWN = 5  # Unknown levels quoted in a message.


class MetadataEncoder:
    """Encodes metadata as numeric columns.

    Numbers stay as they are, and other columns become one column of 0 and 1 per level. Columns with numbers other than
    0 and 1 are standardised before they are multiplied by coefficients.

    Attributes
    ----------
    columns : list of str or None
        Names of the columns of metadata; None if they have no names.
    names : list of str
        Names of the encoded columns.
    levels : list
        For each column of metadata, its levels, or None for numbers.
    shift, scale : ndarray of shape (n_metadata,)
        Mean and standard deviation by which an encoded column is standardised; 0 and 1 if it is not.
    """

    formula = None
    _added = ()  # Columns that `with_levels_of` added: for each, the index of its column of metadata, and of its level.
    takes_metadata = property(lambda self: bool(self.levels), doc="Whether documents may have metadata.")
    _no_effect = "Such entries have no effect: their prior mean."

    def fit(self, metadata):
        """Learn columns and levels from metadata; None for a model without metadata."""
        self.columns, columns = columns_of(metadata)
        is_sparse = sparse.issparse(columns)
        self.levels = [None] * (columns.shape[1] if is_sparse else len(columns))
        labels = self._labels()
        if not is_sparse:
            self._find_levels(columns, labels)
        self.names, is_level = [], []
        for label, levels in zip(labels, self.levels, strict=True):
            self.names += self._names_of(label, levels)
            is_level += [levels is not None] * (1 if levels is None else len(levels))
        self.fills = np.zeros(len(labels))  # Values for missing numbers: 0 until the means are known.
        if metadata is None:
            self.shift, self.scale = np.zeros(0), np.ones(0)
            return self
        if not is_sparse:
            for j, column in enumerate(columns):
                if self.levels[j] is None and (values := numbers(column, labels[j])).size:
                    known = values[~np.isnan(values)]
                    self.fills[j] = known.mean() if known.size else 0.0
        encoded = self._encoded(columns, [])
        if encoded.shape[0] == 0:
            raise ValueError("metadata has no rows; give one for each document of X.")
        self._standardise(encoded, np.array(is_level, dtype=bool))
        return self

    def _find_levels(self, columns, labels):
        """Set the levels of columns, and warn about columns that are hardly categorical."""
        pairs = list(zip(columns, labels, strict=True))
        self.levels = [None if is_numeric(column, label) else levels_of(column, label) for column, label in pairs]
        warn_of_index_column(labels, "metadata")
        for (column, label), levels in zip(pairs, self.levels, strict=True):
            if levels is not None:
                n_levels = len({value for value in column if not is_missing(value)})
                warn_of_levels(levels, n_levels, len(column), f"metadata column {label!r}")

    def _standardise(self, encoded, is_level):
        mean, spread, varies = moments(encoded, np.ones(encoded.shape[0]))
        plain = is_level | _is_binary(encoded) | ~varies
        self.shift, self.scale = np.where(plain, 0.0, mean), np.where(plain, 1.0, spread)

    @property
    def n_metadata(self):
        """Number of encoded columns."""
        return len(self.names)

    def encode(self, metadata, n_docs, handle_unknown):
        """Encoded columns of documents.

        Parameters
        ----------
        metadata : as for `fit`
            None for documents without metadata.
        n_docs : int or None
            Expected number of rows.
        handle_unknown : {"warn", "ignore", "error"}
            What to do about unknown levels and missing values.

        Returns
        -------
        encoded : ndarray or csr_array of shape (n_docs, n_metadata)
        """
        if metadata is None:
            return self._of_nothing(n_docs)
        _, columns = columns_of(metadata, self.columns)
        n_columns = columns.shape[1] if sparse.issparse(columns) else len(columns)
        if n_columns != len(self.levels):
            raise ValueError(
                f"metadata has {n_columns} columns, but the model was fitted with {len(self.levels)}"
                f"{f': {self.columns}' if self.columns else ''}; pass the same columns."
            )
        n_rows = columns.shape[0] if sparse.issparse(columns) else len(columns[0])
        if n_docs is not None and n_rows != n_docs:
            raise ValueError(
                f"metadata has {n_rows} rows and X has {n_docs}; give one row of metadata for each document."
            )
        troubles = []
        encoded = self._encoded(columns, troubles)
        if troubles and handle_unknown != "ignore":
            what = "; ".join(troubles)
            if handle_unknown == "error":
                raise ValueError(
                    f'metadata has {what}. Correct them, or set handle_unknown="warn": such entries then have no '
                    "effect (their prior mean), and partial_fit learns new levels."
                )
            warn_user(f"metadata has {what}. {self._no_effect}")
        return encoded

    def with_levels_of(self, metadata):
        """An encoder that also knows the levels of further metadata, or this one if there are no new levels.

        New levels of a column come after its known ones, and their encoded columns after all others, so that encoded
        rows with known levels only get further zeros.

        Returns
        -------
        encoder : MetadataEncoder
        added : dict of str to list
            New levels of each column that has any.
        """
        columns, added = columns_of(metadata, self.columns)[1], {}
        if sparse.issparse(columns) or len(columns) != len(self.levels):  # The latter is refused by `encode`.
            return self, added
        wider = copy(self)
        wider.levels, wider.names, wider._added = list(self.levels), list(self.names), list(self._added)
        for j, (column, label, levels) in enumerate(zip(columns, self._labels(), self.levels, strict=True)):
            if levels is None:
                continue
            known = set(levels)
            new = [level for level in levels_of(column, label) if level not in known]
            if new:
                added[label], wider.levels[j] = new, levels + new
                wider.names += self._names_of(label, new)
                wider._added += [(j, len(levels) + i) for i in range(len(new))]
        n_added = wider.n_metadata - self.n_metadata
        wider.shift, wider.scale = np.append(self.shift, np.zeros(n_added)), np.append(self.scale, np.ones(n_added))
        return (wider if added else self), added

    def widened(self, encoded):
        """Encoded columns of an encoder that knew fewer levels, with columns of 0 for the others."""
        n_added = self.n_metadata - encoded.shape[1]
        if not sparse.issparse(encoded) and not self._is_sparse:
            return np.pad(encoded, ((0, 0), (0, n_added)))
        return sparse.csr_array(sparse.hstack([encoded, sparse.csr_array((encoded.shape[0], n_added))]))

    @property
    def _is_sparse(self):
        return sum(len(levels) for levels in self.levels if levels is not None) > _DENSE_COLUMNS

    def _cells(self):
        """A pair for each encoded column: the index of its metadata column, and of its level (0 for numbers)."""
        n_added = Counter(j for j, _ in self._added)
        n_first = [1 if levels is None else len(levels) - n_added[j] for j, levels in enumerate(self.levels)]
        return [(j, i) for j, n in enumerate(n_first) for i in range(n)] + list(self._added)

    @staticmethod
    def _names_of(label, levels):
        """Names of the encoded columns of a column of metadata."""
        return [label] if levels is None else [f"{label}={level}" for level in levels]

    def _of_nothing(self, n_docs):
        """Encoded columns of documents without metadata."""
        encoded = np.zeros((n_docs, self.n_metadata))
        encoded[:, [i for i, levels in enumerate(self._owner()) if levels is None]] = self.fills[
            [j for j, levels in enumerate(self.levels) if levels is None]
        ]
        return encoded

    def _labels(self):
        """Names of the columns of metadata; "x0", "x1" and so on if they have none."""
        return [str(name) for name in self.columns] if self.columns else [f"x{j}" for j in range(len(self.levels))]

    def _owner(self):
        """For each encoded column, the levels of its column of metadata, or None for numbers."""
        return [levels for levels in self.levels for _ in range(1 if levels is None else len(levels))]

    def _encoded(self, columns, troubles):
        """Encode columns; descriptions of unknown and missing values are appended to the list ``troubles``."""
        if sparse.issparse(columns):
            if not np.all(np.isfinite(columns.data)):
                raise ValueError("Sparse metadata must be finite; fill in missing values, or use a DataFrame.")
            refuse_extremes(columns, self._labels(), "metadata")
            return columns
        parts = []
        pairs = zip(columns, self._labels(), self.levels, self.fills, strict=True)
        for j, (column, label, levels, fill) in enumerate(pairs):
            if levels is None:
                values = numbers(column, label)
                missing = np.isnan(values)
                missing_in(missing.sum(), label, troubles)
                parts.append(np.where(missing, fill, values)[:, None])
                continue
            codes = self._codes_of(column, j, troubles)
            known = np.flatnonzero(codes >= 0)
            shape = (codes.size, len(levels))
            parts.append(sparse.csr_array((np.ones(known.size), (known, codes[known])), shape=shape))
        if self._is_sparse:
            encoded = sparse.csr_array(sparse.hstack([sparse.csr_array(part) for part in parts], format="csr"))
        else:
            encoded = np.hstack([part.toarray() if sparse.issparse(part) else part for part in parts])
        if not self._added:
            return encoded
        cells = self._cells()
        place = {cell: i for i, cell in enumerate(sorted(cells))}
        return encoded[:, [place[cell] for cell in cells]]

    def _codes_of(self, column, j, troubles):
        """Indices of the levels of column ``j``; -1 if missing, -2 if unknown; both are added to ``troubles``."""
        place, label = {level: i for i, level in enumerate(self.levels[j])}, self._labels()[j]
        column = list(column)
        codes = np.array([-1 if is_missing(v) else place.get(v, -2) for v in column], dtype=np.int64)
        missing_in(np.sum(codes == -1), label, troubles)
        if np.any(codes == -2):
            unknown = list(dict.fromkeys(str(column[i]) for i in np.flatnonzero(codes == -2)))
            shown = ", ".join(map(repr, unknown[:_SHOWN])) + (", ..." if len(unknown) > _SHOWN else "")
            troubles.append(f"unknown levels in {label!r}: {shown}")
        return codes

    def smooth_precisions(self, scales):
        """Columns with a smooth prior, and its precision: an empty list without a formula."""
        return []

    # Fitted models keep the metadata as a table of encoded columns, from which effects are computed later.

    @property
    def covariates(self):
        """Names of the covariates: the columns of metadata."""
        return self._labels()

    def table(self, metadata):
        """Metadata in the form in which a fitted model keeps them."""
        return self.encode(metadata, None, "ignore")

    def encoded_table(self, table):
        """Encoded columns of a table."""
        return table

    def _places(self, j):
        """Indices of the encoded columns of column ``j`` of metadata, in the order of its levels."""
        return [i for i, (column, _) in enumerate(self._cells()) if column == j]

    def column_of(self, table, j):
        """Column ``j`` of metadata from a table: numbers, or indices of levels, with -1 for none."""
        part = table[:, self._places(j)]
        part = part.toarray() if sparse.issparse(part) else part
        return part[:, 0] if self.levels[j] is None else np.where(part.any(axis=1), part.argmax(axis=1), -1)

    def interact(self, a, b):
        """Whether the effect of one covariate depends on the other one, of two names of covariates."""
        return False

    def with_value(self, table, j, value):
        """A copy of a table in which column ``j`` of metadata has one value, a number or the index of a level."""
        places, is_number = self._places(j), self.levels[j] is None
        own = np.zeros(table.shape[1])
        own[places[0 if is_number else value]] = value if is_number else 1.0
        others = np.ones(table.shape[1])
        others[places] = 0.0
        if sparse.issparse(table):
            own = sparse.csr_array(np.ones((table.shape[0], 1))) @ sparse.csr_array(own[None])
            return sparse.csr_array(table @ sparse.diags_array(others) + own)
        return table * others + own

    def rows(self, encoded):
        """Encoded columns, standardised, with an intercept as the last column."""
        return (SparseRows if sparse.issparse(encoded) else DenseRows)(encoded, self.shift, self.scale, True)

    def as_given(self, coef):
        """Coefficients of unstandardised columns, intercept first, from those of standardised ones, intercept last."""
        slopes = coef[..., :-1] / self.scale
        return np.concatenate([coef[..., -1:] - (slopes @ self.shift)[..., None], slopes], axis=-1)


class NoCovariates(MetadataEncoder):
    """Encodes metadata as no columns, for a formula without covariates."""

    takes_metadata = True

    def with_levels_of(self, metadata):
        """As for `MetadataEncoder`; there are no levels."""
        return self, {}

    def fit(self, metadata):
        """Learn nothing."""
        return super().fit(None)

    def encode(self, metadata, n_docs, handle_unknown):
        """As for `MetadataEncoder`, with no columns."""
        if n_docs is None:
            n_docs = len(columns_of(metadata)[1][0])
        return self._of_nothing(n_docs)


def columns_of(metadata, wanted=None):
    """Names of the columns of metadata, or None, and the columns: a list of 1-d arrays, or a csr_array of floats.

    If columns have names, only those in ``wanted`` are selected, in this order.
    """
    if metadata is None:
        return None, []
    metadata = well_formed(metadata, "metadata")
    if sparse.issparse(metadata) and metadata.shape[1] <= _DENSE_COLUMNS:
        metadata = metadata.toarray()
    if sparse.issparse(metadata):
        encoded = sparse.csr_array(metadata, dtype=np.float64, copy=True)
        encoded.sum_duplicates()
        encoded.eliminate_zeros()
        return None, encoded
    if hasattr(metadata, "collect"):
        raise TypeError(f"metadata is a {type(metadata).__name__}, which holds no rows yet; pass metadata.collect().")
    if hasattr(metadata, "to_frame") and len(getattr(metadata, "shape", (0, 0))) == 1:
        metadata = metadata.to_frame()
    if isinstance(metadata, Mapping) or hasattr(metadata, "columns"):
        names = list(metadata.columns if hasattr(metadata, "columns") else metadata)
        if len(set(names)) != len(names):
            raise ValueError("The columns of metadata have repeated names; each must have its own.")
        if wanted is not None:
            lacking = [name for name in wanted if name not in names]
            if lacking:
                raise ValueError(f"metadata lacks the columns {lacking}; it has {names}.")
            names = wanted
        # A Mapping may describe a single document: {"year": 1999, "party": "none"}.
        columns = [_plain(metadata[name], name) for name in names]
        lengths = {len(column) for column in columns}
        if len(lengths) > 1:
            raise ValueError(f"The columns of metadata have different lengths: {sorted(lengths)}.")
        if not columns:
            raise ValueError("metadata has no columns; pass metadata=None for a model without.")
        return names, columns
    if isinstance(metadata, str):
        raise ValueError(
            f"metadata={metadata!r} is a str; pass the table of documents as metadata=, and a formula of its columns "
            "as formula= when you make the model."
        )
    array = metadata if isinstance(metadata, np.ndarray) else np.array(metadata, dtype=object)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"metadata has shape {array.shape}; pass one row per document and at least one column.")
    return None, list(array.T)


def _plain(column, name):
    """A column as an object with a length: a single value as a list, a polars column converted without pyarrow."""
    if isinstance(column, str) or not hasattr(column, "__len__"):
        return [column]
    dtype = getattr(column, "dtype", None)
    if not hasattr(dtype, "is_temporal"):  # Only dtypes of polars have it.
        return column
    if dtype.is_temporal():
        raise _unusable(dtype, name)
    if dtype.is_numeric() or str(dtype) == "Boolean":
        values = [np.nan if value is None else float(value) for value in column.to_list()]
        return np.array(values, dtype=np.float64)
    return column if declared_levels(column) is not None else column.to_list()


def missing_in(n, label, troubles):
    """Append the number of missing values of a column to the list ``troubles``, unless it is 0."""
    if n:
        troubles.append(f"{n} missing values in {label!r}")


def _unusable(dtype, name):
    return ValueError(
        f"metadata column {str(name)!r} is of type {dtype}, which cannot be used; turn it into a number, for example a "
        "year, or into text."
    )


def is_missing(value):
    """Whether a value is None, NaN or pandas' NA."""
    if value is None:
        return True
    same = value == value
    return not isinstance(same, (bool, np.bool_)) or not same


def _kind(column):
    return getattr(getattr(column, "dtype", None), "kind", "O")


def is_numeric(column, label):
    """Whether a column is numeric; a column of objects is if all values that are not missing are numbers."""
    if declared_levels(column) is not None:
        return False
    if _kind(column) in "biuf":
        return True
    if _kind(column) in "mMc":
        raise _unusable(column.dtype, label)
    if _kind(column) in "US":
        return False
    known = [value for value in column if not is_missing(value)]
    return bool(known) and all(isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) for value in known)


def levels_of(column, label):
    """Levels of a column in order: the declared ones if there are any, else the sorted values that occur."""
    declared = declared_levels(column)
    if declared is not None:
        return declared
    try:
        found = {value for value in column if not is_missing(value)}
        return sorted(found, key=lambda value: (type(value).__name__, value))
    except TypeError as error:
        raise ValueError(
            f"metadata column {label!r} must hold numbers, texts or other simple values: {error}."
        ) from None


def numbers(column, label):
    """A column as floats, with NaN for missing values."""
    try:
        if _kind(column) in "biuf" and not hasattr(column, "isna"):
            values = np.asarray(column, dtype=np.float64)
        else:
            values = np.array([np.nan if is_missing(value) else float(value) for value in column])
    except (TypeError, ValueError) as error:
        raise ValueError(f"metadata column {label!r} was fitted as numbers, but now has others: {error}.") from None
    if np.isinf(values).any():
        raise ValueError(f"metadata column {label!r} contains infinity; it must be finite or missing.")
    refuse_extremes(np.where(np.isnan(values), 0.0, values)[:, None], [label], "metadata")
    return values


def _is_binary(encoded):
    """Whether each column contains only 0 and 1."""
    if not sparse.issparse(encoded):
        return np.all((encoded == 0) | (encoded == 1), axis=0)
    other = np.bincount(encoded.indices, encoded.data != 1.0, encoded.shape[1])
    return other == 0
