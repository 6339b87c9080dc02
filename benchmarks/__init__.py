"""Figures that are measured, not claimed: statistical ones, and ratios of times taken in one run."""
