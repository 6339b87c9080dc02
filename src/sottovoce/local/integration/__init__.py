"""Data integration in one process."""
