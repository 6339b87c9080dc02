"""The one loop that joins sites and an estimator in this process."""
