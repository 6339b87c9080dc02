"""One file a method: how the universal checks run it."""
