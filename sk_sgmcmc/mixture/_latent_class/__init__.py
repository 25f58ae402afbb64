"""Latent class models: finite mixtures of rows with columns of several kinds."""
