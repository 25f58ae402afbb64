"""Linear models with posterior uncertainty."""

from ._linear import BayesianLinearRegression
from ._logistic import BayesianLogisticRegression
from ._poisson import BayesianPoissonRegressor

__all__ = ["BayesianLinearRegression", "BayesianLogisticRegression", "BayesianPoissonRegressor"]
