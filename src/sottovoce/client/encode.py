"""From records to letters: a pure function of (values, order, query, channel, dice).

The score of a record at a point is whether it lies above the point (Algorithm 1 of the federated-quantile paper). After
each report the point may move by ``step`` times the decoded report's deviation from its target, so a frozen query is a
walk of step zero.
"""

import numpy as np
import numpy.typing as npt
from numba import njit, uint64

from sottovoce.client.order import place
from sottovoce.client.randomness import Words

WORD = 2.0**-53


@njit(cache=True)
def answer(
    values: npt.NDArray[np.float64],
    bits: int,
    key: Words,
    start: int,
    words: Words,
    flips: int,
    resolution: float,
    point: float,
    step: float,
    moves: npt.NDArray[np.float64],
    letters: npt.NDArray[np.uint8],
) -> float:
    """Fill ``letters`` with the reports of the next records in the random order; return where the point ended."""
    n = len(values)
    threshold = uint64(flips) << uint64(2)  # a word below it is a throw below `flips` on the die of 2^62 faces
    dithered = resolution > 0
    for i in range(len(letters)):
        value = values[place(start + i, n, bits, key)]
        if dithered:
            value += resolution * (float(words[2 * i + 1] >> uint64(11)) * WORD - 0.5)
            die = words[2 * i]
        else:
            die = words[i]
        letter = (value > point) ^ (die < threshold)
        letters[i] = letter
        point += step * moves[1 if letter else 0]
    return point
