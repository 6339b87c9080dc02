"""A target site helped by others: combining, sensitivity, result."""
