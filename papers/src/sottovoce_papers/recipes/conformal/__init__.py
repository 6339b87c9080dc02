"""Cells of the paper on one-shot conformal prediction (Humbert, Le Bars, Bellet and Arlot)."""
