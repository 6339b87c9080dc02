"""The default regression: dithered questions, moments, and a root."""
