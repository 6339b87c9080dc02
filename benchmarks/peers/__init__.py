"""Sottovoce beside its peers, in one run: ``make bench-peers``, or ``python -m benchmarks.peers [PART ...]``.

A file a comparison; each gives sheets of figures, and says which peer is not installed instead of making up a row.
"""
