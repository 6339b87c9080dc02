"""Everything simulated: populations, replications, other people's methods."""
