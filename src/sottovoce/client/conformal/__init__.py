"""Where calibration scores are: sites that send one message in their life, and their private draws."""
