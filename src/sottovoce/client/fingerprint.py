"""Fingerprints of columns: digests under a key of this process, by which the same records are found again.

A word of 64 bits stands for each row; it is mixed with a secret key, and only mixed words are kept. Their sum is the
same for the same rows in any order, a weighted sum for the same rows in the same order, and those below a public
threshold are a sample that is the same wherever a row turns up, so that parts of a column are found in others.

Equal values need not be the same records: two sites of zeros and ones are soon equal by chance. So a match counts only
if it is none by chance: for a whole column by the number of its arrangements, for parts of columns by how rare values
are in them.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.client.mapped import evenly, let_go
from sottovoce.core.arrays import Floats, Words
from sottovoce.core.kernels import COMPILED, njit, uint64
from sottovoce.core.random_source import SystemEntropy

KEPT = 1 << 13  # rows of a study that are kept at least, if it has so many
PART = 64  # of larger studies every so many, and no more than the most
MOST_KEPT = 1 << 16
CHANCE = 1e-9  # of equal columns that hold different records
CHANGES = 64  # of value along a column, from which on equal order is no chance
DIGITS = 6  # of a value that many records may share
FEW = 8  # rows of two columns that must be equal at least
_CHUNK = 1 << 14
_WEIGHTS = np.arange(_CHUNK, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_ODD = np.uint64(0x9E3779B97F4A7C15)
_POWERS = 10.0 ** (DIGITS - 1 - np.floor((np.arange(-60, 61) - 1) * math.log10(2)))
_KEY: Words = SystemEntropy().words(3) | np.uint64(1)  # of this process: never stored or sent


Column = Floats | Words  # numbers, or words that stand for rows


class Fingerprints(NamedTuple):
    """The fingerprints of the columns of one study, and a sample of its rows: mixed words, ascending, and whose."""

    sizes: npt.NDArray[np.int64]
    together: Words
    ordered: Words
    sample: Words
    owner: npt.NDArray[np.int64]
    part: float  # of the rows that are in the sample
    like: Floats  # part of each column's sample that has its like there: the chance of a match with any other


def words_of(column: Column) -> Words:
    """Return the words of numbers, or words as they are; both zeros are one."""
    return column.view(np.uint64) if column.dtype == np.uint64 else np.add(column, 0.0).view(np.uint64)


def row_words(features: Floats, response: Floats) -> Words:
    """Return one word a row for many columns."""
    mixed = words_of(np.ascontiguousarray(response))
    for column in np.ascontiguousarray(features.T, dtype=np.float32).astype(np.float64):
        mixed = _mix(mixed) ^ words_of(column)
    return mixed


def mark(columns: Sequence[Column]) -> Fingerprints:
    """Take the fingerprints of the columns of one study."""
    sizes = np.array([len(column) for column in columns], dtype=np.int64)
    total = int(sizes.sum())
    part = min(1.0, min(max(KEPT, total // PART), MOST_KEPT) / max(total, 1))
    limit = np.uint64(min(int(part * 2.0**64), 2**64 - 1))
    whole, order = np.zeros(len(columns), np.uint64), np.zeros(len(columns), np.uint64)
    kept: list[_Kept] = []
    with np.errstate(over="ignore"):
        for first, last in _batches(columns, sizes):
            words: Any = columns[first] if last == first + 1 else np.concatenate(columns[first:last])
            starts = np.concatenate([[0], np.cumsum(sizes[first:last])])
            kept += _take(words, starts, first, whole, order, limit)
    sample, owner = _long_ones(kept)
    ascending = np.argsort(sample, kind="stable")  # and by column, in the order they came
    sample, owner = sample[ascending], owner[ascending]
    like = _repeated(sample, owner, len(columns))
    once = np.ones(len(sample), bool)
    once[1:] = (np.diff(sample) != 0) | (np.diff(owner) != 0)
    return Fingerprints(sizes, whole, order, sample[once], owner[once], part, like)


class _Kept(NamedTuple):
    """Mixed words below the limit, whose they are, and what they stand for."""

    words: Words
    owners: npt.NDArray[np.int64]
    values: Column


def _long_ones(kept: Sequence[_Kept]) -> tuple[Words, npt.NDArray[np.int64]]:
    """Return the words of those values that no two people have by chance, and whose they are."""
    if not kept:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    words, owners = np.concatenate([each.words for each in kept]), np.concatenate([each.owners for each in kept])
    kinds = {each.values.dtype for each in kept}
    together = [np.concatenate([each.values for each in kept])] if len(kinds) == 1 else [each.values for each in kept]
    long = np.concatenate([_long(values) for values in together])
    return words[long], owners[long]


def _batches(columns: Sequence[Column], sizes: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Join columns that are small, so that many of them cost no more than one."""
    found, first, rows = [], 0, 0
    for at, size in enumerate(sizes.tolist()):
        if at > first and (rows + size > _CHUNK or columns[at].dtype != columns[first].dtype):
            found.append((first, at))
            first, rows = at, 0
        rows += size
    return [*found, (first, len(sizes))] if len(sizes) else []


def _take(
    words: Column,
    starts: npt.NDArray[np.int64],
    first: int,
    whole: Words,
    order: Words,
    limit: np.uint64,
) -> Iterator[_Kept]:
    """Add the digests of one batch: of several small columns, or of one column piece by piece; yield its sample."""
    single = len(starts) == 2
    length = min(len(words), _CHUNK) if single else len(words)
    for at in range(0, len(words), length) if length else ():
        piece = words[at : at + length]
        within = np.array([0, len(piece)]) if single else starts
        sums, ordered, low, found = (_digests if COMPILED else digests_of)(piece, within, limit)
        owners = first + (np.searchsorted(starts, low, side="right") - 1 if not single else np.zeros_like(low))
        yield _Kept(found, owners, piece[low])
        if single:
            whole[first] += sums[0]
            order[first] = order[first] * _KEY[2] + ordered[0]
        else:
            whole[first : first + len(sums)] = sums
            order[first : first + len(sums)] = ordered
        let_go(piece)


_Digests = tuple[Words, Words, npt.NDArray[np.int64], Words]


def digests_of(piece: Column, starts: npt.NDArray[np.int64], limit: np.uint64) -> _Digests:
    """Return the sum of mixed words of each column, the weighted sum, and which words are below the limit."""
    found = _mix(words_of(piece))
    low = np.flatnonzero(found < limit)
    sums, ordered = np.zeros((2, len(starts) - 1), np.uint64)
    places = np.arange(len(piece)) - np.repeat(starts[:-1], np.diff(starts))
    used = np.flatnonzero(np.diff(starts))  # `reduceat` would take the next row for a column without rows
    sums[used] = np.add.reduceat(found, starts[used])
    ordered[used] = np.add.reduceat(found * _WEIGHTS[places], starts[used])
    return sums, ordered, low, found[low]


def _digests(piece: Column, starts: npt.NDArray[np.int64], limit: np.uint64) -> _Digests:
    """Return what `digests_of` does, in one pass."""
    one, two, _ = _KEY
    sums, ordered = np.empty((2, len(starts) - 1), np.uint64)
    low, found = np.empty(len(piece), np.int64), np.empty(len(piece), np.uint64)
    count = _pass(np.ascontiguousarray(piece).view(np.uint64), starts, one, two, limit, sums, ordered, low, found)
    return sums, ordered, low[:count], found[:count]


@njit(cache=True, nogil=True)
def _pass(
    words: Words,
    starts: npt.NDArray[np.int64],
    one: np.uint64,
    two: np.uint64,
    limit: np.uint64,
    sums: Words,
    ordered: Words,
    low: npt.NDArray[np.int64],
    found: Words,
) -> int:
    """Mix and add up the words of each column; fill in those below the limit, and return how many they are."""
    count = 0
    for column in range(len(starts) - 1):
        total, weighted, weight = uint64(0), uint64(0), uint64(1)
        for at in range(starts[column], starts[column + 1]):
            word = words[at]
            if word == uint64(1 << 63):  # both zeros are one
                word = uint64(0)
            word = (word ^ one) * uint64(_ODD)
            word = (word ^ (word >> uint64(32))) * two
            word ^= word >> uint64(29)
            total += word
            weighted += word * weight
            weight += uint64(2)
            if word < limit:
                low[count], found[count] = at, word
                count += 1
        sums[column], ordered[column] = total, weighted
    return count


def _long(values: Column) -> npt.NDArray[np.bool_]:
    """Tell which values have more digits than people give to numbers by chance; words stand for whole rows."""
    if values.dtype == np.uint64:
        return np.ones(len(values), bool)
    with np.errstate(all="ignore"):
        step = _POWERS[np.clip(np.frexp(values)[1], -60, 60) + 60]  # 10 to the digits that are left, about
        short: npt.NDArray[np.bool_] = np.abs(np.rint(values * step) / step - values) <= 1e-13 * np.abs(values)
    return ~short


def _mix(words: Words) -> Words:
    """Mix words with the key of this process, one to one."""
    one, two, _ = _KEY
    mixed: Words = np.bitwise_xor(words, one) * _ODD
    mixed = (mixed ^ (mixed >> np.uint64(32))) * two
    mixed ^= mixed >> np.uint64(29)
    return mixed


def chance_of(column: Column) -> float:
    """Return a bound on how likely another column of like values has the very same ones, in any order."""
    for rows in (_CHUNK >> 4, _CHUNK << 2):  # the fewer rows are counted, the larger the bound
        counts = np.sort(np.unique(evenly(column, rows), return_counts=True)[1])[:-1]
        chance = math.exp(-0.5 * float(np.log(4 * math.pi * counts).sum())) if len(counts) else 1.0
        if chance <= CHANCE:
            break
    return chance


def changes(column: Column) -> int:
    """Count how often the value changes along a column."""
    found = 0
    for at in range(0, len(column) - 1, _CHUNK):
        piece = column[at : at + _CHUNK + 1]
        found += int(np.count_nonzero(piece[1:] != piece[:-1]))
        let_go(piece)
    return found


def same_column(column: Column, ordered: bool) -> bool:
    """Tell whether a column with equal digests is the same one, and not equal by chance."""
    return (ordered and changes(column) >= CHANGES) or chance_of(column) <= CHANCE


def _repeated(sample: Words, owner: npt.NDArray[np.int64], columns: int) -> Floats:
    """Return which part of each column's sample, in order, has its like in the same column."""
    again = (np.diff(sample) == 0) & (np.diff(owner) == 0)
    like = np.zeros(len(sample), bool)
    like[1:] |= again
    like[:-1] |= again
    return np.bincount(owner[like], minlength=columns) / np.maximum(np.bincount(owner, minlength=columns), 1)


def too_many(matched: float, of: float, chance: float) -> bool:
    """Tell whether two columns have more rows in common than chance gives them."""
    return matched >= FEW and matched > (3 * chance + 0.05) * of
