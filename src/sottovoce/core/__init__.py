"""What everything stands on: errors, the random source, units, argument checks, array types."""
