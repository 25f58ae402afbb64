"""A report about the topics of a fitted topic model, as one HTML file."""
