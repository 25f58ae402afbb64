"""Regression of draws of the documents' proportions on their metadata, draw by draw."""

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, pinvh

_MOST_COLUMNS = 2000  # More columns would take hours, since each draw has a regression of its own.
_LEAST_EIGENVALUE = 1e-12  # Relative; directions below it are not determined by the documents.
_NOT_DETERMINED = 1e-6  # Relative length of the part of a row of metadata that lies in such directions.


class DesignBasis:
    """An orthonormal basis of the space that rows of metadata span, so that regressions are well conditioned.

    Parameters
    ----------
    encoder : MetadataEncoder
    encoded : ndarray or csr_array of shape (n_rows, n_columns)
        Distinct rows of metadata.
    shares : ndarray of shape (n_rows,)
        Shares of the documents.
    """

    def __init__(self, encoder, encoded, shares):
        if encoded.shape[1] > _MOST_COLUMNS:
            raise ValueError(
                f"The metadata have {encoded.shape[1]} columns, and a regression on more than {_MOST_COLUMNS} is not "
                'offered. Pass of="prior", or fit with a formula of fewer terms.'
            )
        self.shift, self.scale = encoder.shift, encoder.scale
        rows = self._standardised(encoded)
        gram = rows.T @ (rows.multiply(shares[:, None]) if sparse.issparse(rows) else rows * shares[:, None])
        values, vectors = np.linalg.eigh(gram.toarray() if sparse.issparse(gram) else gram)
        kept = values > _LEAST_EIGENVALUE * values[-1]
        self.into, self.undetermined = vectors[:, kept] / np.sqrt(values[kept]), vectors[:, ~kept]

    def _standardised(self, encoded):
        """Standardised columns after a 1 for the intercept; sparse columns are only scaled."""
        if sparse.issparse(encoded):
            ones = sparse.csr_array(np.ones((encoded.shape[0], 1)))
            return sparse.csr_array(sparse.hstack([ones, encoded @ sparse.diags_array(1.0 / self.scale)]))
        return np.hstack([np.ones((encoded.shape[0], 1)), (encoded - self.shift) / self.scale])

    def coordinates(self, encoded):
        """Coordinates of rows in the basis, and whether each row lies in the space."""
        rows = self._standardised(encoded)
        length = np.sqrt(np.asarray((rows * rows).sum(axis=1)).ravel())
        outside = np.linalg.norm(rows @ self.undetermined, axis=1)
        return rows @ self.into, outside <= _NOT_DETERMINED * length


class RegressionMean:
    """Mean proportions at settings of covariates, from a weighted least-squares regression in each draw.

    Parameters
    ----------
    encoder : MetadataEncoder
    draws : RecordedProportions or SampledProportions
    weights : Weights

    Attributes
    ----------
    observed : ObservedMetadata
        Of the documents of the regression.
    coef : ndarray of shape (n_chains, n_draws, n_directions, n_topics)
        Coefficients of each draw in the basis of the design.
    """

    def __init__(self, encoder, draws, weights):
        self.draws, self.weights, self.agreement = draws, weights, draws.agreement
        self.observed = observed = draws.observed
        encoded = encoder.encoded_table(observed.table)
        self.basis = DesignBasis(encoder, encoded, observed.weights)
        rows, _ = self.basis.coordinates(encoded)
        n_chains, n_draws, n_topics = draws.shape
        self.coef = np.zeros((n_chains, n_draws, rows.shape[1], n_topics))
        for c, s, docs, theta in draws.parts():
            own = weights.of_draw(c, s, draws.n_docs(c, s))[docs]
            self.coef[c, s] += rows[observed.place[docs]].T @ (own[:, None] * theta)
        for c, s in np.ndindex(n_chains, n_draws):
            own = self._row_weights(c, s)
            self.coef[c, s] = _solved(rows.T @ (own[:, None] * rows), self.coef[c, s])

    def _row_weights(self, c, s):
        """Sum of the weights of the documents with each row of metadata in a draw."""
        n_docs, observed = self.draws.n_docs(c, s), self.observed
        return np.bincount(observed.place[:n_docs], self.weights.of_draw(c, s, n_docs), observed.weights.size)

    def averages(self, settings, counterfactuals):
        """Draws of the mean proportions over documents under each setting, (n_chains, n_draws, n_topics, n_settings).

        They are NaN where the documents do not determine them.
        """
        # The documents of the regression have their weights here too; others count equally.
        is_own = counterfactuals.observed is self.observed
        parts = []
        for rows, base in counterfactuals.designs(settings, self.basis.into.shape[0]):
            rows, determined = self.basis.coordinates(rows)
            rows = rows.reshape(-1, base.weights.size, rows.shape[1])
            determined = determined.reshape(rows.shape[:2]).all(axis=1)
            part = np.empty((*self.coef.shape[:2], self.coef.shape[3], len(rows)))
            for c, s in np.ndindex(*self.coef.shape[:2]):
                shares = base.weights
                if is_own:
                    shares = np.bincount(base.place, self._row_weights(c, s), base.weights.size)
                    shares /= shares.sum()
                part[c, s] = (np.einsum("r,nrp->np", shares, rows) @ self.coef[c, s]).T
            part[..., ~determined] = np.nan
            parts.append(part)
        return np.concatenate(parts, axis=-1)


def _solved(gram, moments):
    """Solve normal equations; directions without documents, if there are any, get the coefficient 0."""
    try:
        return cho_solve(cho_factor(gram), moments)
    except LinAlgError:
        return pinvh(gram, rtol=_LEAST_EIGENVALUE) @ moments
