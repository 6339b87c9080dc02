"""The recursion of the dithered regression, which both sides follow from letters alone."""
