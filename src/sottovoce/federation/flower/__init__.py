"""Flower as a carrier: thin adapters between its apps and the same coordinator and resident sites."""
