"""Exact distributions of the coverage of a threshold from many sites, and the rules that choose what to ask them."""
