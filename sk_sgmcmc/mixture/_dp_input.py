"""What a user gives a Dirichlet-process mixture, checked and turned into sparse cells."""

from numbers import Real

import numpy as np
from sklearn.utils import check_array

from ..utils._sklearn import check_sample_weight, validate_data
from ._dp_rows import CATEGORICAL, KIND_OF, Cells, encode_binary, encode_categories, encode_counts, find_levels

MAX_ROWS = 10**9


class CheckedInput:
    """Checks of rows, weights and priors of `DPCategoricalMixture`."""

    def _checked_concentration(self):
        given = self.concentration_prior
        if isinstance(given, Real):
            return float(given)
        if len(given) != 2 or not all(isinstance(v, Real) and 0 < v < np.inf for v in given):
            raise ValueError(
                f"concentration_prior={given!r} must be the shape and the rate of a Gamma law, two positive numbers "
                "such as (1.0, 1.0), or one positive number that is the concentration itself."
            )
        return float(given[0]), float(given[1])

    def _checked_rows(self, X, sample_weight, *, reset):
        X = self._encoded(X, reset=reset)
        if sample_weight is None:
            return X, None
        weight = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if weight.sum() > MAX_ROWS:
            raise ValueError(
                f"sample_weight sums to {weight.sum():g}; a weight w stands for w equal rows, of which at most "
                f"{MAX_ROWS:g} can be held. Scale the weights down."
            )
        if not weight.sum() > 0:
            raise ValueError("sample_weight must have at least one non-zero number.")
        return X, weight

    def _encoded(self, X, reset=False):
        """Rows as cells, see `_dp_rows`; ``reset`` learns what the columns are."""
        whom = type(self).__name__
        kind = KIND_OF[self.likelihood]
        if kind == CATEGORICAL:
            if hasattr(X, "iloc"):
                validate_data(self, X, reset=reset, skip_check_array=True)
                # What is left out of checks by that: that there are rows and columns at all.
                check_array(np.broadcast_to(np.int8(0), X.shape), input_name="X", estimator=self)
            else:
                X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
            if reset:
                self.categories_ = find_levels(X)
            encoded = encode_categories(X, self.categories_)
            sizes = [len(of) for of in self.categories_]
        else:
            checked = validate_data(
                self, X, reset=reset, accept_sparse=True, dtype=[np.float64, np.float32, np.int64, np.int32],
                ensure_all_finite=False,
            )  # fmt: skip
            encoded = (encode_counts if kind == 0 else encode_binary)(checked, whom)
            sizes = [encoded.shape[1]] if kind == 0 else [2] * checked.shape[1]
        if reset:
            prior = np.asarray(self.category_prior, dtype=np.float64)
            if (
                prior.shape not in ((), (self.n_features_in_,))
                or not np.all(prior > 0)
                or not np.all(np.isfinite(prior))
            ):
                raise ValueError(
                    f"category_prior={self.category_prior!r} must be a positive number, or one for each of the "
                    f"{self.n_features_in_} columns."
                )
            self._layout = Cells.make(kind, sizes, prior)
        return encoded
