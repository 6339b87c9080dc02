"""What browsers are given by more than one page of this package: a style sheet, a script, and the headers of a page."""
