"""What several kinds of inference share."""
