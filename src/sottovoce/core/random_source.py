"""Operating-system entropy, drawn in bulk; the only place that asks the system for it, and says what is private."""

import os
from collections.abc import Sequence
from typing import Protocol, Self

import numpy as np

from sottovoce.core.arrays import Words
from sottovoce.core.errors import BadInput


class RandomSource(Protocol):
    """A source of independent uniform 64-bit words."""

    def words(self, n: int) -> Words:
        """Return the next ``n`` words."""

    def split(self, n: int) -> "list[Self]":
        """Return ``n`` independent sources."""


class SystemEntropy:
    """Words from the operating system's generator."""

    __slots__ = ()

    def words(self, n: int) -> Words:
        """Return ``n`` fresh words."""
        return np.frombuffer(os.urandom(8 * n), dtype=np.uint64)

    def split(self, n: int) -> "list[SystemEntropy]":
        """Return ``n`` sources; the system's words are independent anyway."""
        return [self] * n


def is_private(source: RandomSource) -> bool:
    """Tell whether nobody can reproduce a source's words: this one alone, whatever others say of themselves.

    >>> class Cheap(SystemEntropy):
    ...     private = True
    >>> is_private(SystemEntropy()), is_private(Cheap())
    (True, False)
    """
    return type(source) is SystemEntropy


def parts_of(source: RandomSource, n: int, *, look: bool = True) -> Sequence[RandomSource]:
    """Split a source, and refuse one from elsewhere whose parts give no words, before any record answers.

    A word of each of those parts is drawn to ``look`` at it.
    """
    parts: Sequence[RandomSource] = source.split(n)
    if is_private(source):
        return parts
    try:
        good = len(parts) == n and all(_gives_words(part, look) for part in parts)
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError):
        good = False
    if not good:
        raise BadInput(
            f"randomness must split into {n} sources of 64-bit words (numpy.uint64), and a {type(source).__name__} "
            "does not; give sim.dice(seed), or leave it out in production.",
            parameter="randomness",
        )
    return parts


def _gives_words(part: RandomSource, look: bool) -> bool:
    if not look or type(part).__module__.partition(".")[0] == __name__.partition(".")[0]:
        return callable(part.words)  # of the package's own nothing is drawn
    words: object = part.words(1)
    return isinstance(words, np.ndarray) and words.dtype == np.uint64 and words.shape == (1,)
