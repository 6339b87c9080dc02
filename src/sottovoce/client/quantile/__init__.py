"""A site of a federated quantile: its records, their random order, one letter each."""
