"""Topic models of documents with an outcome, such as a rating or a class."""
