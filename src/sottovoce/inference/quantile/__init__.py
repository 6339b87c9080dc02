"""Intervals for one quantile, from values and variances."""
