"""Topic models."""

from ._lda import BayesianLDA

__all__ = ["BayesianLDA"]
