"""Dirichlet-multinomial regression."""
