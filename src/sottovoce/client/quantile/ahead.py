"""Records of a mapped column in random order: fetched many at a time, in the order of the file, before they are asked.

One by one, each record would cost a page of the file; so many together, a pass through the file at most.
"""

import numpy as np

from sottovoce.client.mapped import fetch
from sottovoce.client.order import Key, places
from sottovoce.core.arrays import Floats

BATCH = 1 << 24  # records that are fetched together, in about half a gigabyte


class Ahead:
    """The records at positions of a random order up to ``last``, which are asked in ascending order."""

    __slots__ = ("_bits", "_first", "_held", "_key", "_last", "_values")

    def __init__(self, values: Floats, bits: int, key: Key, last: int) -> None:
        self._values, self._bits, self._key, self._last = values, bits, key, last
        self._first, self._held = 0, np.empty(0)

    def take(self, position: int, count: int) -> Floats:
        """Return the records at so many positions."""
        if position + count > self._first + len(self._held):
            where = np.empty(max(min(BATCH, self._last - position), count), dtype=np.uint64)
            places(len(self._values), self._bits, self._key, position, where)
            self._held = np.empty(0)  # before the next ones come
            self._first, self._held = position, fetch(self._values, where)
        return self._held[position - self._first :][:count]
