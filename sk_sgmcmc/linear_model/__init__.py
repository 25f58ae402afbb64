"""Linear models with posterior uncertainty."""

from ._linear import BayesianLinearRegression
from ._logistic import BayesianLogisticRegression
from ._negative_binomial import BayesianNegativeBinomialRegressor
from ._poisson import BayesianPoissonRegressor

__all__ = [
    "BayesianLinearRegression",
    "BayesianLogisticRegression",
    "BayesianNegativeBinomialRegressor",
    "BayesianPoissonRegressor",
]
