"""Cells of the paper on federated quantiles (Cai, Hu and Wu)."""
