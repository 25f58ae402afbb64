"""Chains of every model: their steps, the draws they keep, and how several run side by side."""
