"""Federated quantiles."""
