"""Federated quantiles: plan, search, stages, result."""
