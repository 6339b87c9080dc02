"""Fingerprints of columns: digests under a key of this process, by which the same records are found again.

A word of 64 bits stands for each row; it is mixed with a secret key, and only mixed words are kept. Their sum is the
same for the same rows in any order, a weighted sum for the same rows in the same order, and those below a public
threshold are a sample that is the same wherever a row turns up, so that parts of a column are found in others.

Equal values need not be the same records: two sites of zeros and ones are soon equal by chance. So a match counts only
if it is none by chance: for a whole column by the number of its arrangements, for parts of columns by how rare values
are in them.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats, Words
from sottovoce.core.random_source import SystemEntropy

KEPT = 1 << 13  # rows of a study that are kept at least, if it has so many
PART = 64  # of larger studies every so many
CHANCE = 1e-9  # of equal columns that hold different records
CHANGES = 64  # of value along a column, from which on equal order is no chance
DIGITS = 6  # of a value that many records may share
FEW = 8  # rows of two columns that must be equal at least
_CHUNK = 1 << 14
_WEIGHTS = np.arange(_CHUNK, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
_POWERS = 10.0 ** (DIGITS - 1 - np.floor((np.arange(-60, 61) - 1) * math.log10(2)))
_KEYS: list[Words] = []


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


def words_of(column: Column, out: Floats | None = None) -> Words:
    """Return the words of numbers, or words as they are; both zeros are one."""
    if column.dtype == np.uint64:
        return column.view(np.uint64)
    return np.add(column, 0.0, out=out).view(np.uint64)


def row_words(features: Floats, response: Floats) -> Words:
    """Return one word a row for many columns."""
    mixed = words_of(np.ascontiguousarray(response))
    for column in np.ascontiguousarray(features.T, dtype=np.float32).astype(np.float64):
        mixed = _mix(mixed, np.empty_like(mixed)) ^ words_of(column)
    return mixed


def mark(columns: Sequence[Column]) -> Fingerprints:
    """Take the fingerprints of the columns of one study."""
    sizes = np.array([len(column) for column in columns], dtype=np.int64)
    total = int(sizes.sum())
    part = min(1.0, max(KEPT, total // PART) / max(total, 1))
    limit = np.uint64(min(int(part * 2.0**64), 2**64 - 1))
    whole, order = np.zeros(len(columns), np.uint64), np.zeros(len(columns), np.uint64)
    kept: list[Words] = []
    owners: list[npt.NDArray[np.int64]] = []
    with np.errstate(over="ignore"):
        for first, last in _batches(columns, sizes):
            words: Any = columns[first] if last == first + 1 else np.concatenate(columns[first:last])
            starts = np.concatenate([[0], np.cumsum(sizes[first:last])])
            _take(words, starts, first, whole, order, limit, kept, owners)
    sample = np.concatenate([np.empty(0, np.uint64), *kept])
    owner = np.concatenate([np.empty(0, np.int64), *owners])
    ascending = np.argsort(sample, kind="stable")  # and by column, in the order they came
    sample, owner = sample[ascending], owner[ascending]
    like = _repeated(sample, owner, len(columns))
    once = np.ones(len(sample), bool)
    once[1:] = (np.diff(sample) != 0) | (np.diff(owner) != 0)
    return Fingerprints(sizes, whole, order, sample[once], owner[once], part, like)


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
    kept: list[Words],
    owners: list[npt.NDArray[np.int64]],
) -> None:
    """Add the digests of one batch: of several small columns, or of one column piece by piece."""
    single = len(starts) == 2
    mixed = np.empty(min(len(words), _CHUNK if single else len(words)), np.uint64)
    room = np.empty_like(mixed)
    for at in range(0, len(words), len(mixed)) if len(words) else ():
        piece = words[at : at + len(mixed)]
        inside = mixed[: len(piece)]
        found = _mix(words_of(piece, inside.view(np.float64)), inside, room[: len(piece)])
        low = np.flatnonzero(found < limit)
        low = low[_long(piece[low])] if len(low) else low
        kept.append(found[low])
        if single:
            owners.append(np.full(len(low), first, np.int64))
            whole[first] += np.add.reduce(found)
            order[first] = order[first] * _key()[2] + np.dot(found, _WEIGHTS[: len(piece)])
        else:
            owners.append(first + np.searchsorted(starts, low, side="right") - 1)
            places = np.arange(len(piece), dtype=np.uint64)
            places -= np.repeat(starts[:-1], np.diff(starts)).astype(np.uint64)
            weights = places * np.uint64(2) + np.uint64(1)
            used = np.flatnonzero(np.diff(starts))  # `reduceat` would take the next row for a column without rows
            whole[first + used] = np.add.reduceat(found, starts[used])
            order[first + used] = np.add.reduceat(found * weights, starts[used])


def _long(values: Column) -> npt.NDArray[np.bool_]:
    """Tell which values have more digits than people give to numbers by chance; words stand for whole rows."""
    if values.dtype == np.uint64:
        return np.ones(len(values), bool)
    with np.errstate(all="ignore"):
        step = _POWERS[np.clip(np.frexp(values)[1], -60, 60) + 60]  # 10 to the digits that are left, about
        short: npt.NDArray[np.bool_] = np.abs(np.rint(values * step) / step - values) <= 1e-13 * np.abs(values)
    return ~short


def _mix(words: Words, out: Words, room: Words | None = None) -> Words:
    """Mix words with the key of this process, one to one."""
    one, two, _ = _key()
    room = np.empty_like(out) if room is None else room
    np.bitwise_xor(words, one, out=out)
    for odd, turn in ((np.uint64(0x9E3779B97F4A7C15), np.uint64(32)), (two, np.uint64(29))):
        np.multiply(out, odd, out=out)
        np.right_shift(out, turn, out=room)
        np.bitwise_xor(out, room, out=out)
    return out


def _key() -> Words:
    """Return the key of this process: drawn at first use, never stored or sent."""
    if not _KEYS:
        _KEYS.append(SystemEntropy().words(3) | np.uint64(1))
    return _KEYS[0]


def chance_of(column: Column) -> float:
    """Return a bound on how likely another column of like values has the very same ones, in any order."""
    for rows in (_CHUNK >> 4, _CHUNK << 2):  # the fewer rows are counted, the larger the bound
        counts = np.sort(np.unique(column[:: max(1, len(column) // rows)], return_counts=True)[1])[:-1]
        chance = math.exp(-0.5 * float(np.log(4 * math.pi * counts).sum())) if len(counts) else 1.0
        if chance <= CHANCE:
            break
    return chance


def changes(column: Column) -> int:
    """Count how often the value changes along a column."""
    return int(np.count_nonzero(column[1:] != column[:-1]))


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
