"""Normal-Wishart distributions, the prior and posterior of `BayesianGaussian`."""

import numpy as np
from scipy import linalg
from sklearn.utils import Bunch

from ..dense.rows import LARGEST, SMALLEST, moments
from ..utils._numbers import real_array


def updated(prior, X):
    """Posterior given rows X, as a Bunch of mean, kappa, nu and inverse_scale like ``prior``."""
    n, centre = len(X), column_means(X)
    kappa, away = prior.kappa + n, centre - prior.mean
    rows = X - centre
    rows -= rows.mean(axis=0)  # removes the rounding error of the mean of a column far from 0
    inverse_scale = prior.inverse_scale + rows.T @ rows
    return Bunch(
        mean=centre - prior.kappa / kappa * away,
        kappa=kappa,
        # With a flat prior of the mean, the factor |Lambda|^(1/2) of its normal density is missing.
        nu=prior.nu + n - (1.0 if prior.kappa == 0 else 0.0),
        inverse_scale=inverse_scale + prior.kappa * n / kappa * np.outer(away, away),
    )


def inverse_scale_root(law):
    """Lower Cholesky root of the inverse scale; raises an error if that is not positive definite after rounding."""
    try:
        return linalg.cholesky(law.inverse_scale, lower=True)
    except linalg.LinAlgError:
        sizes = np.sqrt(np.diag(law.inverse_scale))
        raise ValueError(
            "The posterior scatter matrix is not positive definite in float64: the spread of columns ranges from "
            f"{sizes.min():.3g} to {sizes.max():.3g}. Scale X, for example with sklearn.preprocessing.RobustScaler, or "
            "pass a larger covariance_prior."
        ) from None


def column_means(X):
    """Means of columns, exact for constant columns of any size."""
    return X[0] + (X - X[0]).mean(axis=0)


def is_positive_definite(matrix):
    """Whether a symmetric matrix is positive definite, independent of the units of its rows."""
    diagonal = np.diag(matrix)
    if diagonal.min() <= 0:
        return False
    unit = 1.0 / np.sqrt(diagonal)
    return bool(linalg.eigvalsh(matrix * unit[:, None] * unit).min() > 0)


def checked_prior(X, mean_prior, mean_precision_prior, degrees_of_freedom_prior, covariance_prior):
    """Check the prior parameters of `BayesianGaussian`; those that are None are computed from the rows."""
    d = X.shape[1]
    nu = float(d if degrees_of_freedom_prior is None else degrees_of_freedom_prior)
    if nu <= d - 1:
        raise ValueError(f"degrees_of_freedom_prior={nu:g} must be larger than n_features - 1 = {d - 1}.")
    mean = column_means(X) if mean_prior is None else real_array("mean_prior", mean_prior)
    if covariance_prior is None:
        # A constant column carries no information about its scale, so its prior variance is 1.
        varies = moments(X, np.ones(len(X)))[2]
        covariance = np.diag(np.where(varies, X.var(axis=0), 1.0))
        largest = np.abs(X).max(axis=0)
        tiny = np.flatnonzero((largest > 0) & (largest < SMALLEST))
        if tiny.size:
            raise ValueError(
                f"Column {tiny[0]} of X has no entry larger than {largest[tiny[0]]:.6g}, too small for its precision "
                "to fit into float64; give the column in smaller units, for example by "
                "sklearn.preprocessing.MaxAbsScaler."
            )
    else:
        covariance = real_array("covariance_prior", covariance_prior)
    if mean.shape != (d,) or covariance.shape != (d, d):
        raise ValueError(
            f"mean_prior has shape {mean.shape} and covariance_prior {covariance.shape}; X has {d} features, so "
            f"they must be ({d},) and ({d}, {d})."
        )
    for name, value, most in (("mean_prior", mean, LARGEST), ("covariance_prior", covariance, LARGEST**2)):
        if not np.all(np.abs(value) <= most):
            raise ValueError(f"{name} must be finite and at most {most:g} in size, got {value.tolist()}.")
    if not np.allclose(covariance, covariance.T, rtol=1e-8, atol=0.0) or not is_positive_definite(covariance):
        raise ValueError(f"covariance_prior must be symmetric and positive definite, got {covariance.tolist()}.")
    return Bunch(mean=mean, kappa=float(mean_precision_prior), nu=nu, inverse_scale=nu * covariance)
