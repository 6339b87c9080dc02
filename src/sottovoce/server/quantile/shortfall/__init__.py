"""Value at risk and expected shortfall: a quantile, and the mean beyond it, from one bit a record."""
