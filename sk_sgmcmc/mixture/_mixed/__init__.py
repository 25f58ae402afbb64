"""Tables with columns of several kinds."""
