"""One file per mechanism: a function that returns a Channel, and EXAMPLES."""
