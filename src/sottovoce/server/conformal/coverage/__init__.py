"""Exact laws of the coverage of a threshold made from many sites, and the rules that choose what to ask of them."""
