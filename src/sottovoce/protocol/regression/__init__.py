"""Channels for a regression: what a person may say, as exact integers, and the blocks they are asked in."""
