"""Quantile regression in one process."""
