"""Everything seeded; may see raw data; nothing made here is private."""

from sottovoce.sim.randomness import SeededDice, dice

__all__ = ["SeededDice", "dice"]
