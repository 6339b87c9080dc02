"""A target helped by other sites."""
