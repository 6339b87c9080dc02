"""The site's kernels without a compiler, on whole arrays: bit for bit those of `client.order` and `client.quantile`.

A site that only answers needs numpy alone; interpreted record by record, the random order of 50,000 records would take
half a minute.
"""

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats, Ints, Words

Key = npt.NDArray[np.uint32]
Bits = npt.NDArray[np.bool_]
WORD = 2.0**-53


def places(n: int, bits: int, key: Key, start: int, where: Words) -> None:
    """Fill ``where`` with the records that stand at the positions from ``start`` on (`client.order.places`)."""
    _walk(n, bits, key, list(range(len(key))), start, where)


def positions(n: int, bits: int, key: Key, start: int, where: Words) -> None:
    """Fill ``where`` with the positions of the records from ``start`` on (`client.order.positions`)."""
    _walk(n, bits, key, list(range(len(key)))[::-1], start, where)


def answer(
    values: Floats,
    bits: int,
    key: Key,
    start: int,
    words: Words,
    flips: int,
    resolution: float,
    point: float,
    period: float,
    step: float,
    moves: Floats,
    letters: npt.NDArray[np.uint8],
    where: Words,
) -> float:
    """Fill ``letters`` with the next records' reports; return where the point ended (`client.quantile.encode`)."""
    places(len(values), bits, key, start, where[: len(letters)])
    return speak(values, where, words, flips, resolution, point, period, step, moves, letters)


def speak(
    values: Floats,
    where: Words,
    words: Words,
    flips: int,
    resolution: float,
    point: float,
    period: float,
    step: float,
    moves: Floats,
    letters: npt.NDArray[np.uint8],
) -> float:
    """Fill ``letters`` with the reports of the records at some places (`client.quantile.encode`)."""
    dithered, heard, forced = _thrown(values[where[: len(letters)]], words, flips, resolution)
    if step == 0:
        letters[:] = (_scores(dithered, point, period) & heard) | forced
        return point
    down, up = step * float(moves[0]), step * float(moves[1])
    for i, (value, speaks, said) in enumerate(zip(dithered.tolist(), heard.tolist(), forced.tolist(), strict=True)):
        letter = said or (speaks and value > point)
        letters[i] = letter
        point += up if letter else down
    return point


def pick(
    values: Floats, bits: int, key: Key, start: int, first: int, last: int, where: Words, picked: Floats, at: Words
) -> int:
    """Take the records from ``start`` on whose positions lie from ``first`` up to ``last``; return how many."""
    positions(len(values), bits, key, start, where)
    inside = (where >= np.uint64(first)) & (where < np.uint64(last))
    taken = int(np.count_nonzero(inside))
    picked[:taken], at[:taken] = values[start : start + len(where)][inside], where[inside]
    return taken


def count_ones(
    picked: Floats, at: Words, words: Words, flips: int, resolution: float, points: Floats, ends: Words, ones: Ints
) -> None:
    """Add the letters of picked records to the sums; each answers at the first point whose positions end after it."""
    n = len(words) // (2 if resolution > 0 else 1)
    dithered, heard, forced = _thrown(picked[:n], words, flips, resolution)
    place = np.searchsorted(ends[:-1], at[:n], side="right")
    said = ((dithered > points[place]) & heard) | forced
    ones += np.bincount(place[said], minlength=len(ones))


def _thrown(values: Floats, words: Words, flips: int, resolution: float) -> tuple[Floats, Bits, Bits]:
    """Return the dithered values, which records speak by their die, and which say one whatever they hold."""
    if resolution > 0:
        values = values + resolution * ((words[1::2] >> np.uint64(11)).astype(np.float64) * WORD - 0.5)
        words = words[::2]
    lowest = np.uint64(flips << 2)
    return values, words >= lowest, words > ~lowest


def _scores(values: Floats, point: float, period: float) -> Bits:
    """Tell which values lie above the point or, with a period, in the upper half of it; no where it overflows."""
    if period == 0:
        return values > point
    with np.errstate(over="ignore", invalid="ignore"):
        turns = (values - point) / period
        return turns - np.floor(turns) >= 0.5


def _walk(n: int, bits: int, key: Key, rounds: list[int], start: int, where: Words) -> None:
    """Send the indices from ``start`` on through the network, until all are below ``n``."""
    where[:] = _network(np.arange(start, start + len(where), dtype=np.uint64), bits, key, rounds)
    outside = np.flatnonzero(where >= np.uint64(n))
    while outside.size:
        where[outside] = _network(where[outside], bits, key, rounds)
        outside = outside[where[outside] >= np.uint64(n)]


def _network(indices: Words, bits: int, key: Key, rounds: list[int]) -> Words:
    """Send indices of ``bits`` bits to others, each to each: even rounds change the high half, odd ones the low."""
    low_bits = np.uint64(bits // 2)
    masks = np.uint32(2 ** (bits - bits // 2) - 1), np.uint32(2 ** (bits // 2) - 1)
    halves = [(indices >> low_bits).astype(np.uint32), indices.astype(np.uint32) & masks[1]]
    for j in rounds:
        halves[j % 2] ^= _mix(halves[1 - j % 2] ^ key[j]) & masks[j % 2]
    sent: Words = (halves[0].astype(np.uint64) << low_bits) | halves[1].astype(np.uint64)
    return sent


def _mix(words: Key) -> Key:
    """Scramble words by a 32-bit integer hash; products of arrays wrap round without a word."""
    words = (words ^ (words >> np.uint32(16))) * np.uint32(0x7FEB352D)
    words = (words ^ (words >> np.uint32(15))) * np.uint32(0x846CA68B)
    return words ^ (words >> np.uint32(16))
