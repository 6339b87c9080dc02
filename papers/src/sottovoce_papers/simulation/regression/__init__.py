"""Private quantile regression in simulation: designs with known truth, the paper's recursion, and its baselines."""
