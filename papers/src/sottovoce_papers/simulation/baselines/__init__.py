"""Other people's methods, as Methods: (sample, seed, level) -> Estimate."""
