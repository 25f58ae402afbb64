"""`StructuralTopicModel`: topics whose words differ between groups of documents."""
