"""What a data scientist calls."""
