"""The papers' tables and figures again: cells to run, the print to compare with, a report."""
