"""Simulations of one-shot conformal prediction: distributions of scores, baselines, and many calibrations at once."""
