"""What a fitted topic model answers: tables of its words, and of the documents that it is given."""
