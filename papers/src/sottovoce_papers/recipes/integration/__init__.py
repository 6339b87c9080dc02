"""Cells of the paper on data integration (Cai, Hu and Wu)."""
