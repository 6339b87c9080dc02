"""Everything seeded; may see raw data."""
