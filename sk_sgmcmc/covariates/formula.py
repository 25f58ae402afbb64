"""Encoding of metadata by a formula, with the optional library formulaic."""

import warnings
from collections.abc import Mapping

import numpy as np
from scipy import sparse

from ..dense.rows import refuse_extremes
from .formula_language import FUNCTIONS, RefusedExpression, columns_in
from .metadata import _DENSE_COLUMNS, MetadataEncoder, columns_of, missing_in, numbers
from .smoothness import Smoothness, grid, is_basis

_INTERCEPT = "Intercept"


def parsed(formula):
    """Parse a formula with formulaic; raises unless it has only a right-hand side, with at least one covariate."""
    try:
        from formulaic import Formula, SimpleFormula
    except ImportError as error:
        raise ImportError(
            f"formula={formula!r} needs formulaic, which is not installed. Try `pip install formulaic`."
        ) from error
    try:
        found = Formula(formula)
    except Exception as error:
        why = _first_line(error)
        raise _bad(formula, "the wildcard . is not known; name the columns" if "`.`" in why else why) from error
    if not isinstance(found, SimpleFormula):
        raise _bad(formula, "it has several parts, but only covariates are wanted, not what they explain")
    if not any(factor.eval_method.value != "literal" for factor in _factors(found)):
        raise _bad(formula, "it has no covariates, so metadata would have no effect")
    for factor in _factors(found):
        try:
            _names_in(factor)
        except RefusedExpression as error:
            raise _bad(
                formula, str(error),
                f"A formula may use columns of metadata, numbers, and {', '.join(sorted(FUNCTIONS))}, np.log and the "
                "like. Compute anything else first, as a further column of metadata.",
            ) from None  # fmt: skip
    return found


def is_constant(formula):
    """Whether a formula has no covariates, as "~ 1"."""
    return formula.replace(" ", "").lstrip("~") in ("1", "")


def _bad(formula, why, remedy='Write a formula of the columns of metadata, such as "~ party * bs(year, df=4)".'):
    return ValueError(f"formula={formula!r}: {why}. {remedy}")


def _first_line(error):
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__


def _factors(found):
    """The distinct factors of a formula, in their order."""
    return list({factor.expr: factor for term in found for factor in term.factors}.values())


def _names_in(factor):
    """Names of the columns of metadata that a factor uses."""
    return {factor.expr} if factor.eval_method.value == "lookup" else columns_in(factor.expr)


class FormulaEncoder(MetadataEncoder):
    """Encodes metadata as the columns of a formula.

    The columns of metadata that the formula uses are first converted to numbers and codes of levels. Every form of
    table and every type of column is therefore read in the same way as without a formula.

    Parameters
    ----------
    formula : str

    Attributes
    ----------
    columns, names, levels, fills, shift, scale
        As for `MetadataEncoder`; ``columns``, ``levels`` and ``fills`` have entries only for the columns used.
    smooth : list of Smoothness
        Priors of splines and polynomials.
    spec : ModelSpec
        The specification by which formulaic makes the columns, with knots and levels.
    """

    _no_effect = "Such entries count as the average of the fitted documents."

    def __init__(self, formula):
        parsed(formula)
        self.formula = formula

    def fit(self, metadata):
        """Learn columns, levels and knots."""
        found = parsed(self.formula)
        if metadata is None:
            raise _bad(self.formula, "no metadata were given", "Pass metadata=, a DataFrame or a dict of columns.")
        names = self._names_in(metadata)
        wanted = set().union(*(_names_in(factor) for factor in _factors(found)))
        used = [name for name in names if str(name) in wanted]
        if not used:
            raise _bad(self.formula, f"it uses no column of metadata, which has {names}")
        unknown = sorted(wanted - {str(name) for name in used})
        if unknown:
            raise _bad(self.formula, f"{unknown[0]!r} is no column of metadata, which has {names}")
        self.columns, columns = columns_of(metadata, used)
        if not len(columns[0]):
            raise ValueError("metadata has no rows; give one for each document of X.")
        labels = self._labels()
        self._find_levels(columns, labels)
        self._is_text = [levels is not None for levels in self.levels]
        self.fills = np.zeros(len(columns))
        codes = self._coded(columns, [])
        for j, levels in enumerate(self.levels):
            if levels is None and np.isfinite(codes[:, j]).any():
                self.fills[j] = np.nanmean(codes[:, j])
        self._set_shares(codes)
        self.spec, self._column_places = None, None
        self.spec = self._made(found, self._expanded(codes)[2])[1]
        self._take_levels_of_numbers(codes)
        self._column_places = [i for i, name in enumerate(self.spec.column_names) if name != _INTERCEPT]
        self.names = [self.spec.column_names[i] for i in self._column_places]
        if not self.names:  # The first level has no column, so columns with a single level leave nothing.
            constant = [
                f"{label!r} is {levels[0]!r}" for label, levels in zip(labels, self.levels, strict=True) if levels
            ]
            why = f"in all documents {' and '.join(constant) or 'its covariates have no value'}, so nothing varies"
            raise _bad(self.formula, why, "Fit documents that differ in it (with KFold(shuffle=True) in a search).")
        encoded = self._design(codes, [])
        self._standardise(encoded, np.zeros(len(self.names), dtype=bool))
        self._means = np.asarray(encoded.mean(axis=0)).ravel()
        self.smooth = self._smoothness(codes, encoded)
        return self

    def _names_in(self, metadata):
        """Names of the columns of a table; raises for other types."""
        if isinstance(metadata, Mapping):
            return list(metadata)
        if hasattr(metadata, "columns"):
            return list(metadata.columns)
        if hasattr(metadata, "to_frame") and getattr(metadata, "name", None) is not None:
            return [metadata.name]
        raise ValueError(
            f"formula={self.formula!r} needs metadata with named columns, but they are of type "
            f"{type(metadata).__name__}. Pass a DataFrame or a dict of columns, or leave out formula."
        )

    def encode(self, metadata, n_docs, handle_unknown):
        """As for `MetadataEncoder`, but a missing or unknown level counts as the average of all levels."""
        if metadata is not None:
            self._names_in(metadata)
        return super().encode(metadata, n_docs, handle_unknown)

    def with_levels_of(self, metadata):
        """Return this encoder, since new levels could change all columns of a formula."""
        return self, {}

    def _of_nothing(self, n_docs):
        return np.tile(self._means, (n_docs, 1))

    def _encoded(self, columns, troubles):
        return self._design(self._coded(columns, troubles), troubles)

    def table(self, metadata):
        """Metadata in the form in which they are kept: codes of the columns that the formula uses."""
        self._names_in(metadata)
        return self._coded(columns_of(metadata, self.columns)[1], [])

    def encoded_table(self, table):
        """Encoded columns of a table."""
        return self._design(table, [])

    def column_of(self, table, j):
        """As for `MetadataEncoder`."""
        return table[:, j]

    def interact(self, a, b):
        """As for `MetadataEncoder`: whether a term contains both."""
        terms = (set().union(*map(_names_in, term.factors)) for term in self.spec.formula)
        return any({a, b} <= {str(name) for name in names} for names in terms)

    def with_value(self, table, j, value):
        """A copy of a table in which column ``j`` has one value."""
        table = table.copy()
        table[:, j] = value
        return table

    # -- numbers and codes -----------------------------------------------------------------------------------------

    def _coded(self, columns, troubles):
        """Numbers and codes of levels, (n_rows, n_columns): NaN for a missing number, negative for unknown levels."""
        codes = np.empty((len(columns[0]), len(columns)))
        for j, (column, label) in enumerate(zip(columns, self._labels(), strict=True)):
            if self.levels[j] is not None:
                codes[:, j] = self._codes_of(column if self._is_text[j] else numbers(column, label), j, troubles)
                continue
            codes[:, j] = numbers(column, label)
            missing_in(np.isnan(codes[:, j]).sum(), label, troubles)
        return codes

    def _take_levels_of_numbers(self, codes):
        """Find the numeric columns that the formula reads as categories, as in C(year), and recode them."""
        for j, name in enumerate(self._labels()):
            for factor, (kind, state) in self.spec.encoder_state.items():
                if self.levels[j] is None and kind.value == "categorical" and self._variables(factor) == [name]:
                    found = [value for value in state["categories"] if not isinstance(value, (bool, np.bool_, str))]
                    known = codes[~np.isnan(codes[:, j]), j]
                    if found and np.isin(known, found).all():
                        self.levels[j] = found
                        codes[:, j] = self._codes_of(codes[:, j], j, [])
        self._set_shares(codes)

    def _set_shares(self, codes):
        """Set each level's share of the documents, the weight of the level in averages."""
        self._shares = [None] * len(self.levels)
        for j, levels in enumerate(self.levels):
            if levels is not None:
                known = codes[codes[:, j] >= 0, j].astype(np.int64)
                counts = np.bincount(known, minlength=len(levels))
                self._shares[j] = counts / counts.sum() if known.size else np.full(len(levels), 1.0 / len(levels))

    def _expanded(self, codes):
        """Replace each row with an unknown level by one copy per level, with the levels' shares as weights.

        Returns the original row of each new row, the weights, and the codes, in which missing numbers are filled.
        """
        owner, weight, codes = np.arange(len(codes)), np.ones(len(codes)), codes.copy()
        for j, levels in enumerate(self.levels):
            if levels is None:
                lacking = np.isnan(codes[:, j])
                codes[lacking, j] = self.fills[j]
                continue
            lacking = codes[:, j] < 0
            if not lacking.any():
                continue
            copies = np.repeat(codes[lacking], len(levels), axis=0)
            copies[:, j] = np.tile(np.arange(len(levels)), lacking.sum())
            shares = np.tile(self._shares[j], lacking.sum())
            codes = np.vstack([codes[~lacking], copies])
            weight = np.concatenate([weight[~lacking], np.repeat(weight[lacking], len(levels)) * shares])
            owner = np.concatenate([owner[~lacking], np.repeat(owner[lacking], len(levels))])
        return owner, weight, codes

    # -- columns of the formula ------------------------------------------------------------------------------------

    def _frame(self, codes):
        """A pandas table for formulaic, from codes without missing entries."""
        import pandas as pd

        table = {}
        for j, (name, levels) in enumerate(zip(self._labels(), self.levels, strict=True)):
            if levels is None:
                table[name] = codes[:, j]
            elif self._is_text[j]:
                table[name] = pd.Categorical.from_codes(codes[:, j].astype(np.int64), categories=levels)
            else:
                table[name] = np.asarray(levels)[codes[:, j].astype(np.int64)]
        return pd.DataFrame(table)

    def _made(self, spec, codes):
        """Columns of a formula or specification for codes without missing entries, and the specification."""
        from formulaic.errors import DataMismatchWarning

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                made = spec.get_model_matrix(self._frame(codes), output="sparse", na_action="ignore")
            except Exception as error:
                raise self._unmade(error) from error
        for each in caught:
            if issubclass(each.category, DataMismatchWarning):
                raise _bad(
                    self.formula, _first_line(each.message), "Fit with metadata that hold all categories, or drop them."
                )
        return sparse.csr_array(made.tocsr()), made.model_spec

    def _unmade(self, error):
        """The error to raise if formulaic cannot make the columns."""
        why = _first_line(error)
        if "beyond upper and/or lower bounds" in why:
            return _bad(
                self.formula, "metadata lie outside of the range that was fitted, where a spline is not defined",
                'Keep to that range, or hold the ends by bs(..., extrapolation="clip").',
            )  # fmt: skip
        return _bad(self.formula, why)

    def _design(self, codes, troubles):
        """The columns of the formula for codes, without the intercept; unknown levels are averaged."""
        owner, weight, complete = self._expanded(codes)
        columns = self._made(self.spec, complete)[0][:, self._column_places]
        if not np.isfinite(columns.data).all():
            bad = np.flatnonzero(np.bincount(columns.indices, ~np.isfinite(columns.data), columns.shape[1]))[0]
            raise _bad(
                self.formula, f"its column {self.names[bad]!r} is not finite",
                "Transform within the range of the metadata, for example log(1 + x) for counts.",
            )  # fmt: skip
        refuse_extremes(columns, self.names, "the formula's columns")
        if owner.size > len(codes):
            average = sparse.csr_array((weight, (owner, np.arange(owner.size))), shape=(len(codes), owner.size))
            columns = sparse.csr_array(average @ columns)
        return columns.toarray() if columns.shape[1] <= _DENSE_COLUMNS else columns

    # -- smooth functions ------------------------------------------------------------------------------------------

    def _variables(self, expression):
        """Names of the columns of metadata that a factor uses, in the order of the columns."""
        (found,) = [_names_in(each) for each in _factors(self.spec.formula) if each.expr == expression]
        return [name for name in self._labels() if name in found]

    def _smoothness(self, codes, encoded):
        """The smooth priors of all terms with exactly one basis of a numeric column."""
        place, labels, found = {name: i for i, name in enumerate(self.names)}, self._labels(), []
        for term in self.spec.structure:
            bases = [factor.expr for factor in term.term.factors if is_basis(factor.expr)]
            variables = self._variables(bases[0]) if len(bases) == 1 else []
            if len(variables) != 1 or self.levels[labels.index(variables[0])] is not None:
                continue
            j = labels.index(variables[0])
            values = codes[~np.isnan(codes[:, j]), j]
            points = grid(values)
            if points.size < 2:
                continue
            subnames, at_points = self._basis(bases[0], j, points)
            groups = {}
            for name in term.columns:
                (b,) = [b for b, subname in enumerate(subnames) if _holds(name, subname)]
                groups.setdefault(name.replace(subnames[b], "", 1), []).append((place[name], b))
            own = self._basis(bases[0], j, np.where(np.isnan(codes[:, j]), self.fills[j], codes[:, j]))[1]
            for group in groups.values():
                columns, which = map(list, zip(*group, strict=True))
                alone = len(term.term.factors) == 1
                spread = 1.0 if alone else _spread_of_factor(encoded[:, columns], own[:, which])
                smooth = Smoothness(columns, points, at_points[:, which], alone, spread)
                if not smooth.is_proper:
                    raise _bad(
                        self.formula, f"{bases[0]} has more functions than {variables[0]!r} has values",
                        "Lower df, or the degree.",
                    )  # fmt: skip
                found.append(smooth)
        return found

    def _basis(self, expression, j, values):
        """Names of the functions of a basis, and their values at ``values`` of column ``j`` of metadata."""
        from formulaic import Formula, ModelSpec

        spec = ModelSpec(
            formula=Formula(f"0 + {expression}"), transform_state=self.spec.transform_state,
            encoder_state=self.spec.encoder_state,
        )  # fmt: skip
        codes = np.zeros((values.size, len(self.levels)))
        codes[:, j] = values
        columns, made = self._made(spec, codes)
        return list(made.column_names), columns.toarray()

    def smooth_precisions(self, scales):
        """Columns of each smooth function, and the prior precision of their standardised coefficients."""
        return [(smooth.columns, smooth.precision(scales, self.scale)) for smooth in self.smooth]


def _holds(name, factor):
    """Whether the name of a column, which joins the names of its factors by colons, contains a factor's name."""
    return f":{factor}:" in f":{name}:"


def _spread_of_factor(columns, basis):
    """Standard deviation of the factor by which a basis is multiplied in ``columns``; 1 if its values are 0 and 1."""
    columns = columns.toarray() if sparse.issparse(columns) else columns
    square = np.sum(basis**2, axis=1)
    some = square > 1e-12 * square.max()
    factor = np.sum(columns * basis, axis=1)[some] / square[some]
    is_binary = np.all((np.abs(factor) < 1e-9) | (np.abs(factor - 1.0) < 1e-9))
    return 1.0 if is_binary or not factor.std() > 0.0 else float(factor.std())
