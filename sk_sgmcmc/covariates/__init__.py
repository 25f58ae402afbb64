"""Covariates of models: their encoding, the prior of their coefficients, and tables of their effects."""
