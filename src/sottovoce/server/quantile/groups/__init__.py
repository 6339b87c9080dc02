"""A quantile for every group."""
