"""Self-normalised inference: statistics whose limit needs no variance estimate."""
