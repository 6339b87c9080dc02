"""Private quantiles, with honest intervals."""
