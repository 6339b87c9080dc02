"""Operating-system entropy, drawn in bulk; the only place that asks the system for it."""

import os
from typing import Protocol, Self

import numpy as np

from sottovoce.core.arrays import Words


class RandomSource(Protocol):
    """A source of independent uniform 64-bit words; ``private`` is True only for the operating system's."""

    @property
    def private(self) -> bool:
        """Tell whether nobody can reproduce the words."""

    def words(self, n: int) -> Words:
        """Return the next ``n`` words."""

    def split(self, n: int) -> "list[Self]":
        """Return ``n`` independent sources."""


class SystemEntropy:
    """Words from the operating system's generator."""

    private = True

    def words(self, n: int) -> Words:
        """Return ``n`` fresh words."""
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)

    def split(self, n: int) -> "list[SystemEntropy]":
        """Return ``n`` sources; the system's words are independent anyway."""
        return [self] * n
