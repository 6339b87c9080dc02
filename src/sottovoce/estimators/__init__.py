"""Sees reports only."""
