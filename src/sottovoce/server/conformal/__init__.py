"""One-shot conformal prediction: plan, threshold, coverage report."""
