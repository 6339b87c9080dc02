"""Simulations of one-shot conformal prediction: laws of scores, baselines, and many calibrations at once."""
