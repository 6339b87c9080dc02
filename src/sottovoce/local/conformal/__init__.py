"""Conformal prediction in one process."""
