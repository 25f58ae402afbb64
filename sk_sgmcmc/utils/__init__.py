"""Helpers of all models: checks of input, corpora, seeds, tables, files, and scikit-learn's private names."""

from ._seeds import rng_from_key, row_keys
from ._tables import as_precise_as, as_table
from .corpus import Corpus, check_counts

__all__ = ["Corpus", "as_precise_as", "as_table", "check_counts", "rng_from_key", "row_keys"]
