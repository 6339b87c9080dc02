"""Seeded randomness, for simulation and tests only: a result made with it says ``private=False``."""

import numpy as np

from sottovoce.core.arrays import Words


class SeededSource:
    """Reproducible words; never private."""

    def __init__(self, seed: int | np.random.SeedSequence) -> None:
        self._sequence = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        self._source = np.random.PCG64DXSM(self._sequence)

    def words(self, n: int) -> Words:
        """Return the next ``n`` words."""
        words: Words = self._source.random_raw(n)
        return words

    def skip(self, n: int) -> None:
        """Leave out the next ``n`` words, as if an earlier process had drawn them: for tests after a crash.

        >>> source = dice(7)
        >>> source.skip(3)
        >>> int(source.words(1)[0]) == int(dice(7).words(4)[3])
        True
        """
        self._source.advance(n)

    def __repr__(self) -> str:
        sequence = self._sequence
        return f"SeededSource({sequence.entropy}, {sequence.spawn_key}, {sequence.n_children_spawned})"

    def split(self, n: int) -> "list[SeededSource]":
        """Return ``n`` independent sources."""
        return [SeededSource(child) for child in self._sequence.spawn(n)]

    def generator(self) -> np.random.Generator:
        """Return a numpy generator on an independent stream, to draw populations."""
        return np.random.Generator(np.random.PCG64DXSM(self._sequence.spawn(1)[0]))


def dice(seed: int) -> SeededSource:
    """Return seeded dice, for simulation and tests only.

    Examples
    --------
    >>> int(dice(7).words(2)[1]) == int(dice(7).words(2)[1])
    True
    """
    return SeededSource(seed)
