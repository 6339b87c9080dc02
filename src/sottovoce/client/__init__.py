"""The only room where a record exists."""
