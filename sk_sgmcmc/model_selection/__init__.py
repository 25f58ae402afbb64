"""Model selection: the number of topics."""

from ._n_components import search_n_components

__all__ = ["search_n_components"]
