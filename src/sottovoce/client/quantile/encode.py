"""From records to letters: a pure function of (values, order, query, channel, dice).

The score of a record at a point is whether it lies above the point (Algorithm 1 of the federated-quantile paper). After
each report the point may move by ``step`` times the decoded report's deviation from its target, so a frozen query is a
walk of step zero.

The lowest faces of the die say zero and as many of the highest say one, whatever the record; on the faces between them
the record speaks. So non-interference can be seen: at epsilon 0 the same dice give any two populations equal letters.
"""

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from sottovoce.client.order import Key, Places, places
from sottovoce.core.arrays import Words

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
    # a word without its two low bits is a throw of the die of 2^62 faces; the complement counts its faces from above
    lowest = uint64(flips) << uint64(2)
    highest = ~lowest
    if resolution == 0 and step == 0:
        for i in range(len(letters)):
            letters[i] = ((values[where[i]] > point) & (words[i] >= lowest)) | (words[i] > highest)
        return point
    throws = 2 if resolution > 0 else 1
    for i in range(len(letters)):
        value = values[where[i]]
        if throws == 2:
            value += resolution * (float(words[2 * i + 1] >> uint64(11)) * WORD - 0.5)
        die = words[throws * i]
        letter = ((value > point) & (die >= lowest)) | (die > highest)
        letters[i] = letter
        point += step * moves[1 if letter else 0]
    return point
