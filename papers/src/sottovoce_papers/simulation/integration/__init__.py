"""Simulations of data integration: one site helped by the others."""
