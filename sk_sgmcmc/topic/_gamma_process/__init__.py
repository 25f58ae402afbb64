"""The gamma process topic model."""
