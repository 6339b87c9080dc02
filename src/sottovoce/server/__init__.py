"""Sees reports, never a record: plans, steps, results, summaries and pictures of every method."""
