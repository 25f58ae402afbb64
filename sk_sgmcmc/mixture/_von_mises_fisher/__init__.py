"""Mixtures of von Mises-Fisher distributions."""
