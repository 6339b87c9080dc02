"""People of a quantile regression, each answering one question."""
