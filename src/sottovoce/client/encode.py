"""From records to letters: a pure function of (values, order, query, channel, dice).

The score of a record at a point is whether it lies above the point (Algorithm 1 of the federated-quantile paper). After
each report the point may move by ``step`` times the decoded report's deviation from its target, so a frozen query is a
walk of step zero.
"""

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from sottovoce.client.order import Key, Places, places
from sottovoce.client.randomness import Words

WORD = 2.0**-53


@njit(cache=True, nogil=True)
def answer(
    values: npt.NDArray[np.float64],
    bits: int,
    key: Key,
    start: int,
    words: Words,
    flips: int,
    resolution: float,
    point: float,
    step: float,
    moves: npt.NDArray[np.float64],
    letters: npt.NDArray[np.uint8],
    where: Places,
) -> float:
    """Fill ``letters`` with the reports of the next records in the random order; return where the point ended.

    ``where`` is room to work in, one place a letter.
    """
    places(len(values), bits, key, start, where[: len(letters)])
    threshold = uint64(flips) << uint64(2)  # a word below it is a throw below `flips` on the die of 2^62 faces
    if resolution == 0 and step == 0:
        for i in range(len(letters)):
            letters[i] = (values[where[i]] > point) ^ (words[i] < threshold)
        return point
    throws = 2 if resolution > 0 else 1
    for i in range(len(letters)):
        value = values[where[i]]
        if throws == 2:
            value += resolution * (float(words[2 * i + 1] >> uint64(11)) * WORD - 0.5)
        letter = (value > point) ^ (words[throws * i] < threshold)
        letters[i] = letter
        point += step * moves[1 if letter else 0]
    return point
