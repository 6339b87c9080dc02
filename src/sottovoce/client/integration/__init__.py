"""A site that opens its order statistics."""
