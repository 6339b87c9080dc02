"""Cells of the paper on online quantile regression."""
