"""From arrays, data frames and files to the checked records of each site."""
