"""A page on this machine to ask about a file: choose, see what it will come to, ask, and see what it has cost."""
