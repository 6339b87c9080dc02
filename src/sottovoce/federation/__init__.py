"""A federation: a coordinator that asks, and resident sites that hold records, each in a program of its own."""
