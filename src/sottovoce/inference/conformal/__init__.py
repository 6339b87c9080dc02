"""Limits of a coverage, from counts."""
