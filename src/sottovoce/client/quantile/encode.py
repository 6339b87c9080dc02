"""From records to letters: a pure function of (values, order, query, channel, dice).

The score of a record at a point is whether it lies above the point (Algorithm 1 of the federated-quantile paper). After
each report the point may move by ``step`` times the decoded report's deviation from its target, so a frozen query is a
walk of step zero. At a point with a period the score is the record's phase instead: whether (value - point) modulo the
period is at least half of it. That is one bit like the other, so it costs the same.

Records are taken one by one, wherever the random order finds them, or, where a query takes many of a large site, in the
order of memory: the set of records is the same, and so is the point at which each answers.

The lowest faces of the die say zero and as many of the highest say one, whatever the record; on the faces between them
the record speaks. So non-interference can be seen: at epsilon 0 the same dice give any two populations equal letters.
"""

import numpy as np
import numpy.typing as npt

from sottovoce.client import vectors
from sottovoce.client.order import Key, Places, places, positions
from sottovoce.core.arrays import Floats, Ints, Words
from sottovoce.core.kernels import COMPILED, njit, uint64

WORD = 2.0**-53


@njit(cache=True, nogil=True)
def score(value: float, point: float, period: float) -> bool:
    """Tell whether a record lies above the point or, with a period, in the upper half of it; no where it overflows.

    >>> score(3.0, 2.5, 0.0), score(3.0, 2.5, 1.0), score(3.0, 2.75, 1.0), score(-7.0, 2.5, 1.0)
    (True, True, False, True)
    """
    if period == 0:
        return value > point
    turns = (float(value) - float(point)) / float(period)
    return turns - float(np.floor(turns)) >= 0.5


@njit(cache=True, nogil=True)
def speak(
    values: npt.NDArray[np.float64],
    where: Places,
    words: Words,
    flips: int,
    resolution: float,
    point: float,
    period: float,
    step: float,
    moves: npt.NDArray[np.float64],
    letters: npt.NDArray[np.uint8],
) -> float:
    """Fill ``letters`` with the reports of the records at some places, in turn; return where the point ended."""
    # a word without its two low bits is a throw of the die of 2^62 faces; the complement counts its faces from above
    lowest = uint64(flips) << uint64(2)
    highest = ~lowest
    if resolution == 0 and step == 0 and period == 0:
        for i in range(len(letters)):
            letters[i] = ((values[where[i]] > point) & (words[i] >= lowest)) | (words[i] > highest)
        return point
    throws = 2 if resolution > 0 else 1
    for i in range(len(letters)):
        value = values[where[i]]
        if throws == 2:
            value += resolution * (float(words[2 * i + 1] >> uint64(11)) * WORD - 0.5)
        die = words[throws * i]
        letter = (score(value, point, period) & (die >= lowest)) | (die > highest)
        letters[i] = letter
        point += step * float(moves[1 if letter else 0])
    return point


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
    period: float,
    step: float,
    moves: npt.NDArray[np.float64],
    letters: npt.NDArray[np.uint8],
    where: Places,
) -> float:
    """Fill ``letters`` with the reports of the next records in the random order; return where the point ended.

    A point with a ``period`` does not move. ``where`` is room to work in, one place a letter.
    """
    places(len(values), bits, key, start, where[: len(letters)])
    return speak(values, where, words, flips, resolution, point, period, step, moves, letters)


@njit(cache=True, nogil=True)
def pick(
    values: Floats, bits: int, key: Key, start: int, first: int, last: int, where: Places, picked: Floats, at: Places
) -> int:
    """Look through records in the order of memory; take those at positions from ``first`` up to ``last``.

    ``where`` has one place a record that is looked at, ``picked`` and ``at`` one more. Return how many were taken.
    """
    positions(len(values), bits, key, start, where)
    taken = 0
    for i in range(len(where)):
        picked[taken], at[taken] = values[start + i], where[i]
        taken += (where[i] >= uint64(first)) & (where[i] < uint64(last))
    return taken


@njit(cache=True, nogil=True)
def count_ones(
    picked: Floats, at: Places, words: Words, flips: int, resolution: float, points: Floats, ends: Places, ones: Ints
) -> None:
    """Add the letters of picked records to the sums; each answers at the first point whose positions end after it."""
    lowest = uint64(flips) << uint64(2)
    highest = ~lowest
    throws = 2 if resolution > 0 else 1
    for i in range(len(words) // throws):
        place = 0
        for end in ends[:-1]:
            place += at[i] >= end
        value = picked[i]
        if throws == 2:
            value += resolution * (float(words[2 * i + 1] >> uint64(11)) * WORD - 0.5)
        die = words[throws * i]
        ones[place] += ((value > points[place]) & (die >= lowest)) | (die > highest)


if not COMPILED:
    answer, speak = vectors.answer, vectors.speak  # type: ignore[assignment]
    pick, count_ones = vectors.pick, vectors.count_ones  # type: ignore[assignment]
