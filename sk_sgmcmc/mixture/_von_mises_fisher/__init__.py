"""Mixtures of von Mises-Fisher laws."""
