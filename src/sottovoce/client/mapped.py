"""Columns that lie in a file of the site and are mapped instead of read: used block by block, and let go of at once.

Pages that have been looked at count as memory of the process until they are let go of; they stay in the file, and in
the system's cache for as long as it has room.
"""

import mmap
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sottovoce.core.arrays import Floats, Words

ROWS = 1 << 20  # of a block
SPARSE = 1 << 13  # values to each one that is wanted, from which on it is dearer to go through all of them


class FileMap(mmap.mmap):
    """A map that reads a file and never writes it, so that its pages can be dropped and read again."""

    descriptor: int | None = None  # of the file, to read single numbers: a map would hold the large pages they are in

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        if self.descriptor is not None:
            close(self.descriptor)


def map_floats(descriptor: int, count: int) -> Floats:
    """Map the first ``count`` numbers of an open file, read only."""
    held = FileMap(descriptor, 8 * count, access=mmap.ACCESS_READ)
    held.descriptor = os.open(f"/dev/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)  # another one: the advice is its own
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(held.descriptor, 0, 0, os.POSIX_FADV_RANDOM)
        held.madvise(mmap.MADV_SEQUENTIAL)
    return np.frombuffer(held, dtype=np.float64, count=count)


def is_mapped(values: Floats | Words) -> bool:
    """Tell whether a column, or the column of which it is a part, is a map of this package's own making.

    Maps that others have made are left alone: in one of theirs, a page that is dropped may be lost.
    """
    return _map_of(_root(values)) is not None


def let_go(values: Floats | Words) -> None:
    """Let go of the memory of a mapped column or of a part of one; leave any other as it is."""
    root = _root(values)
    found = _map_of(root)
    if found is None or not values.size:
        return
    start = _address(values) - _address(root)
    first = start - start % mmap.PAGESIZE
    drop(found, first, start + values.nbytes - first)


def drop(found: mmap.mmap, start: int = 0, length: int | None = None) -> None:
    """Drop pages of a map that is only read, where the system knows how to."""
    if hasattr(mmap, "MADV_DONTNEED"):
        found.madvise(mmap.MADV_DONTNEED, start, len(found) - start if length is None else length)


def blocks(values: Floats, rows: int = 0) -> Iterator[Floats]:
    """Give a column block by block, letting go of each."""
    rows = rows or ROWS
    for start in range(0, len(values), rows):
        block = values[start : start + rows]
        yield block
        let_go(block)


def fetch(values: Floats, places: Words) -> Floats:
    """Return the values at some places of a mapped column, which is gone through once, in the order of the file."""
    root = _root(values)
    held, fetched = _map_of(root), np.empty(len(places))
    turns = np.uint64(len(places).bit_length())  # packed below the places: numbers are sorted faster than their order
    packed = places << turns
    packed |= np.arange(len(places), dtype=np.uint64)
    packed.sort()
    if held is not None and held.descriptor is not None and len(places) * SPARSE < len(values):
        offsets = ((packed >> turns) * np.uint64(8) + np.uint64(_address(values) - _address(root))).tolist()
        data = b"".join([os.pread(held.descriptor, 8, offset) for offset in offsets])
        fetched[_low(packed, turns)] = np.frombuffer(data, np.float64)
        return fetched
    edges = np.searchsorted(packed, np.arange(0, len(values) + ROWS, ROWS, dtype=np.uint64) << turns)
    for block, first, last in zip(blocks(values), edges[:-1].tolist(), edges[1:].tolist(), strict=False):
        part = packed[first:last]
        fetched[_low(part, turns)] = block[((part >> turns) % np.uint64(ROWS)).view(np.int64)]
    return fetched


def _low(packed: Words, bits: np.uint64) -> Any:
    """Return the low bits of words, as places in an array."""
    return (packed & ((np.uint64(1) << bits) - np.uint64(1))).view(np.int64)


def evenly(values: Any, rows: int) -> Any:
    """Return about so many values, picked at equal distances."""
    step = max(1, len(values) // rows)
    return fetch(values, np.arange(0, len(values), step, dtype=np.uint64)) if is_mapped(values) else values[::step]


def _root(values: Any) -> Any:
    """Return the array that a column is a view of; numpy leads every view back to the first."""
    return values.base if isinstance(values.base, np.ndarray) else values


def _map_of(root: Any) -> FileMap | None:
    """Return the map on which an array lies, if it is ours."""
    held = root.base.obj if isinstance(root.base, memoryview) else root.base
    return held if isinstance(held, FileMap) else None


def _address(values: Any) -> int:
    """Return where in memory a column begins."""
    return int(values.__array_interface__["data"][0])
