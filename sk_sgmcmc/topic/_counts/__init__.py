"""Topic models of counts."""
