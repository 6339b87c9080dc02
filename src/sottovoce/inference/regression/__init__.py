"""Intervals and regions for the coefficients of a quantile regression."""
