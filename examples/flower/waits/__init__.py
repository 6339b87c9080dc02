"""A private median of waiting times, as a Flower app."""
