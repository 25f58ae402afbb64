"""Dirichlet-process mixtures of categorical rows."""
