"""Federated quantiles in one process."""
