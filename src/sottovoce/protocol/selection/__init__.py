"""Private selections: public laws by which a site names one cell of a public grid instead of a score."""
