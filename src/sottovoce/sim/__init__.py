"""Everything seeded; may see raw data; nothing made here is private."""

from sottovoce.sim.randomness import SeededSource, dice

__all__ = ["SeededSource", "dice"]
