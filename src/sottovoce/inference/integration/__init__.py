"""Intervals for a target site that other sites help."""
