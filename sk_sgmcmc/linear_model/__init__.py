"""Linear models with posterior uncertainty."""

from ._logistic import BayesianLogisticRegression

__all__ = ["BayesianLogisticRegression"]
