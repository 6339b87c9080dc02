"""What a data scientist calls: read, plan, run, result."""
