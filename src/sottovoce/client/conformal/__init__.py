"""Where calibration scores are: their order statistics, their cells on a public grid, and private draws of a cell."""
