"""A collector for people's devices: one report each, kept before it is acknowledged; states are the fold of the log."""
