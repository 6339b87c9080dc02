"""What a site's kernel eats: its records in random order, and which face of its die each of them meets.

The dice are thrown exactly as `client.quantile.site` throws them: the order's key first, then a word a record, two if
dithered.
"""

from typing import NoReturn, Protocol, SupportsIndex

import numpy as np
import numpy.typing as npt

from sottovoce.client.order import Key, bits_for, order_key, places
from sottovoce.client.quantile.encode import WORD
from sottovoce.core.arrays import Floats, Words
from sottovoce.core.kernels import njit, uint64
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.randomised_response import flips_of

Faces = npt.NDArray[np.uint8]  # 0: says zero, 1: the record speaks, 2: says one (`client.quantile.encode`)


class Feed(Protocol):
    """Anything that hands out records piece by piece, each once."""

    @property
    def left(self) -> int:
        """Return how many records have not been handed out."""

    def fetch(self, values: Floats, faces: Faces) -> int:
        """Fill both with what comes next; return how many records that was."""


class Source:
    """One site's records with the dice and the place in the random order from which the kernel goes on."""

    __slots__ = ("_bits", "_dice", "_key", "_lowest", "_resolution", "_taken", "_values")

    def __init__(
        self,
        values: Floats,
        channel: Channel,
        dice: RandomSource | None = None,
        resolution: float = 0.0,
        key: Key | None = None,
        taken: int = 0,
    ) -> None:
        self._values = values
        self._dice: RandomSource = SystemEntropy() if dice is None else dice
        self._key = order_key(self._dice) if key is None else key
        self._bits = bits_for(len(values))
        self._lowest = np.uint64(flips_of(channel) << 2)
        self._resolution = resolution
        self._taken = taken

    def __repr__(self) -> str:
        return f"Source({len(self._values):,} records, values hidden)"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a Source cannot be pickled or copied: records do not leave the site")

    @property
    def left(self) -> int:
        """Return how many records have not been fetched."""
        return len(self._values) - self._taken

    def fetch(self, values: Floats, faces: Faces) -> int:
        """Fill both with what comes next; return how many records that was."""
        n = min(len(values), self.left)
        words = self._dice.words((2 if self._resolution > 0 else 1) * n)
        with np.errstate(over="ignore"):  # not compiled, the mixing of the order wraps round aloud
            fetch(
                self._values,
                self._bits,
                self._key,
                self._taken,
                words,
                self._lowest,
                self._resolution,
                values[:n],
                faces[:n],
            )
        self._taken += n
        return n


@njit(cache=True, nogil=True)
def fetch(
    values: Floats,
    bits: int,
    key: Key,
    start: int,
    words: Words,
    lowest: np.uint64,
    resolution: float,
    fetched: Floats,
    faces: Faces,
) -> None:
    """Take the next records in the random order, dithered, with the faces of their dice (`client.quantile.encode`)."""
    throws = 2 if resolution > 0 else 1
    where = np.empty(len(fetched), dtype=np.uint64)
    places(len(values), bits, key, start, where)
    for i in range(len(fetched)):
        fetched[i] = values[where[i]]
        die = words[throws * i]
        faces[i] = np.uint8(die >= lowest) + np.uint8(die > ~lowest)
    if resolution > 0:
        for i in range(len(fetched)):
            fetched[i] += resolution * (float(words[2 * i + 1] >> uint64(11)) * WORD - 0.5)
