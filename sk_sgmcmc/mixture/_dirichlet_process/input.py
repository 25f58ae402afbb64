"""Check the input of a Dirichlet-process mixture and encode it as sparse cells."""

from numbers import Real

import numpy as np
from sklearn.utils import check_array

from ...chains.growth import RECOGNISED
from ...utils import Corpus
from ...utils._containers import refuse_containers
from ...utils._fingerprint import digest
from ...utils._numbers import holds_texts, real_array
from ...utils._sklearn import check_sample_weight, validate_data
from ...utils._tables import aligned
from ...utils.corpus import warn_of_other_values
from .._mixed.columns import Priors
from .._mixed.layout import CanonicalOrder, MixedLayout
from .._mixed.rows import MixedRows
from .cells import (
    CATEGORICAL,
    KIND_OF,
    MIXED,
    MULTINOMIAL,
    Cells,
    RowData,
    encode_binary,
    encode_categories,
    encode_counts,
    find_levels,
    places_of_levels,
    warn_of_categories,
    with_cells_at,
)

MAX_ROWS = 10**9
_MOST_BYTES = 2**32  # limit on the memory of rows repeated by their weights
# Weights are rejected if they make more than _MANY_ROWS rows and repeat rows more than _MOST_REPEATS times on average,
# because sampling would take hours.
_MANY_ROWS, _MOST_REPEATS = 2 * 10**6, 1000


class CheckedInput:
    """Checks of rows, weights and priors of `DPCategoricalMixture`."""

    _level_places = None  # index of each level in chains; None: the order of ``categories_``
    _kept = None  # the `RowData` to which `partial_fit` appends
    _known = frozenset()  # digests of the blocks in these rows
    _forgot = False  # whether `forget_rows` dropped the labels, without which chains cannot continue
    _weight_seen = 0.0  # total weight of the rows seen
    _pending = 0.0  # number of stored entries that came since the last sweeps over all rows

    def _checked_concentration(self):
        given = self.concentration_prior
        if isinstance(given, Real):
            return float(given)
        if len(given) != 2 or not all(isinstance(v, Real) and 0 < v < np.inf for v in given):
            raise ValueError(
                f"concentration_prior={given!r} must be the shape and the rate of a Gamma distribution, two positive "
                "numbers such as (1.0, 1.0), or one positive number that is the concentration itself."
            )
        return float(given[0]), float(given[1])

    def _checked_rows(self, X, sample_weight, *, reset):
        (sample_weight,) = aligned(X, sample_weight=sample_weight)
        if self._is_mixed(reset):
            return self._checked_mixed_rows(X, sample_weight, reset=reset)
        X = self._encoded(X, reset=reset)
        weight = self._checked_weights(X, sample_weight, np.diff(X.indptr))
        if reset:
            is_nominal = self._layout.kind == CATEGORICAL
            self._level_places = places_of_levels(X, weight, self._layout.block) if is_nominal else None
        return X, weight

    def _is_mixed(self, reset):
        return (KIND_OF[self.likelihood] if reset else self._layout.kind) == MIXED

    def _checked_mixed_rows(self, X, sample_weight, *, reset):
        """As `_checked_rows`, for columns of several kinds."""
        X = checked_table(self, X, reset=reset)
        n, p = X.shape
        weight = self._checked_weights(np.broadcast_to(np.int8(0), (n, 1)), sample_weight, np.full(n, p))
        if reset:
            self._layout = MixedLayout.fit(X, self.columns, weight, Priors(self._checked_category_prior()))
            self.column_kinds_ = {column.name: column.kind for column in self._layout.columns}
        cells = self._layout.encode(X)
        if reset:
            self._order = CanonicalOrder.make(self._layout, cells, weight)
            self._level_places = self._order.entries
        return cells, weight

    def _checked_category_prior(self):
        prior = real_array("category_prior", self.category_prior)
        shapes = (), (self.n_features_in_,)
        if prior.shape not in shapes or not np.all(prior > 0) or not np.all(np.isfinite(prior)):
            raise ValueError(
                f"category_prior={self.category_prior!r} must be a positive number, or one for each of the "
                f"{self.n_features_in_} columns."
            )
        return prior

    def _checked_weights(self, X, sample_weight, n_entries):
        if sample_weight is None:
            return None
        weight = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weight.max() > 0:
            raise ValueError("sample_weight must have at least one non-zero number.")
        if self.weights == "survey":
            weight = scaled_to_effective_size(weight)
        total = weight.sum()
        needed = np.sum(np.maximum(np.round(weight), 1.0) * (40.0 + 20.0 * n_entries), where=weight > 0)
        if needed > _MOST_BYTES:
            raise ValueError(
                f"sample_weight sums to {weight.sum():g}; a weight w stands for w equal rows, and these would need "
                f"about {needed / 2**30:.3g} GiB; the limit is {_MOST_BYTES / 2**30:g} GiB. For survey weights "
                'that sum to a population, use weights="survey". Otherwise scale the weights down, say '
                f"sample_weight / {needed / _MOST_BYTES:.2g}, which widens the posterior."
            )
        if total > max(_MANY_ROWS, _MOST_REPEATS * weight.size):
            raise ValueError(
                f"sample_weight sums to {total:g} for only {weight.size} rows; a weight w stands for w equal rows, and "
                'so many take hours. For survey weights that sum to a population, use weights="survey". Otherwise '
                f"scale the weights down, say sample_weight / {total / _MANY_ROWS:.2g}, which widens the posterior."
            )
        return weight

    def _encoded(self, X, reset=False):
        """Check rows and encode them as sparse cells, see `Cells`; ``reset`` sets the layout of the cells."""
        whom = type(self).__name__
        # A fitted model keeps its likelihood even if the parameter has been changed since.
        kind = KIND_OF[self.likelihood] if reset else self._layout.kind
        if kind == MIXED:
            return self._layout.encode(checked_table(self, X, reset=False))
        if kind == CATEGORICAL:
            X = checked_table(self, X, reset=reset)
            if reset:
                self.categories_ = find_levels(X)
            encoded = encode_categories(X, self.categories_)
            sizes = [len(of) for of in self.categories_]
        else:
            refuse_containers(X)
            if holds_texts(X):
                raise ValueError(
                    f"X holds texts (strings), and likelihood={self.likelihood!r} reads numbers; for columns of "
                    'categories use likelihood="categorical".'
                )
            checked = validate_data(
                self, X, reset=reset, accept_sparse=True, dtype=[np.float64, np.float32, np.int64, np.int32],
                ensure_all_finite=False,
            )  # fmt: skip
            encoded = (encode_counts if kind == 0 else encode_binary)(checked, whom)
            if reset and kind == MULTINOMIAL:
                warn_of_other_values(Corpus(encoded.indptr, encoded.indices, encoded.data, encoded.shape[1]), whom)
                warn_of_categories(encoded)
            sizes = [encoded.shape[1]] if kind == 0 else [2] * checked.shape[1]
        if reset:
            self._layout = Cells.make(kind, sizes, self._checked_category_prior())
        return encoded

    # -- data of the chains --------------------------------------------------------------------------------------

    def _taken(self, X, weight, n_batch, total):
        """Convert encoded rows to the `RowData` of the chains, and record their fingerprint for `resume`."""
        self._data_args = n_batch, total
        data = self._row_data(X, weight)
        self._fingerprint = data.fingerprint()
        return data

    def _row_data(self, X, weight):
        if self._layout.kind == MIXED:
            return MixedRows.make(X, weight, self._order, *self._data_args)
        X = X if self._level_places is None else with_cells_at(self._level_places, X)
        return RowData.make(X, weight, self._layout, *self._data_args)

    def _digest(self, X, weight):
        """A digest by which a repeated block is recognised; None for small blocks, which may be equal by chance."""
        weights = () if weight is None or np.all(weight == 1.0) else (weight,)
        if self._layout.kind == MIXED:
            return None if X.size < RECOGNISED else digest(X, *weights)
        if X.nnz < RECOGNISED:
            return None
        return digest(X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data, *weights)

    def _bound_data(self, X, sample_weight=None):
        if self._forgot:
            raise ValueError(
                "resume needs the labels of the rows, but forget_rows dropped them; call fit, or partial_fit with "
                "other rows."
            )
        X, weight = self._checked_rows(X, sample_weight, reset=False)
        data = self._row_data(X, weight)
        self._refuse_other_data(data.fingerprint(), "X (or sample_weight)")
        return self._kept if self._has_grown else data

    @property
    def _has_grown(self):
        """Whether the chains continue over kept rows, of which the last block is only a part."""
        return self._kept is not None and self._chains[0].plan.streams

    def _refuse_other_kind(self, sampler, collapses):
        """Raise an error if the parameters have changed so that the existing chains cannot continue."""
        chain = self._chains[0]
        if chain.layout.kind != KIND_OF[self.likelihood]:
            raise ValueError(
                f"likelihood={self.likelihood!r}, but the chains that partial_fit continues were made for another "
                "one; restore it, or call fit to start over."
            )
        if not chain.can_stream(collapses):
            raise ValueError(
                f"The chains that partial_fit would continue were not made for a stream of sampler={sampler!r} with "
                f"assignments={self.assignments!r}; call partial_fit on a clone to start over."
            )


def checked_table(estimator, X, *, reset):
    """Check a table whose columns may be of any type, in the manner of scikit-learn."""
    if hasattr(X, "columns"):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        # `skip_check_array` also skips the check that there are rows and columns.
        check_array(np.broadcast_to(np.int8(0), X.shape), input_name="X", estimator=estimator)
        return X
    return validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")


def scaled_to_effective_size(weight):
    """Scale weights so that they sum to their effective sample size, (sum w)^2 / sum w^2 (Kish 1965)."""
    relative = weight / weight.max()  # the squares of extreme weights would overflow or underflow
    scaled = relative * (relative.sum() / np.square(relative).sum())
    # Equal weights must become exactly 1, in spite of rounding.
    return np.where(np.abs(scaled - 1.0) < 1e-9, 1.0, scaled)
