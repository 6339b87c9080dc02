"""The coordinator's program: it asks, keeps the log of questions and replies, and never sees a record."""
