"""Quantile regression from one report a person: channel design, estimation, result."""
