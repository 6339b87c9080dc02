"""Sees averages only; one file per method."""
