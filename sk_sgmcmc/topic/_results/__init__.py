"""Results of fitted topic models: tables of topics and of documents."""
