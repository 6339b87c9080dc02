"""Which ids have answered in a round, and what they said: the newest in memory, the rest sorted on disk.

Ids are 16 random bytes of the senders' choice. Once many are in memory they are written to a nameless file as one
sorted run. A filter of some bits an id says of nearly every new id, without a look at the disk, that it is new; its
bits are drawn by keys of this process, so that no sender can choose ids that meet there. What is here can always be
made again from the log, so the file is never synced and is gone with the process.
"""

import os
import struct
import tempfile
from collections.abc import Iterator

import numpy as np

from sottovoce.core.arrays import Words
from sottovoce.core.random_source import SystemEntropy
from sottovoce.protocol.device import ID

RECENT = 1 << 16  # ids in memory: 8 MB
BITS, PROBES = 24, 4  # of the filter: bits an id, and how many of them are set; one new id in 2,000 looks known
FEWEST = BITS // 2  # bits an id, below which the filter grows: more have come than were expected
LARGEST = 1 << 33  # bits: 1 GB, for 350 million ids in one round; with more of them the disk is looked at more often
FENCE = 512  # ids between two fences, which are kept in memory
_WHOLE, _WORDS = (1 << 64) - 1, struct.Struct(">QQ").unpack
_ENTRY = np.dtype([("high", ">u8"), ("low", ">u8"), ("said", ">u4")])


class IdIndex:
    """The ids of a round, of which about so many are expected."""

    def __init__(self, expected: int, recent: int = RECENT) -> None:
        self._recent: dict[bytes, int] = {}
        self._most = recent
        self._runs: list[tuple[int, int, Words]] = []  # where in the file, how many ids, every so manieth of them
        self._bits = min(max((BITS * max(expected, recent) - 1).bit_length(), 10), LARGEST.bit_length() - 1)
        self._bytes = bytearray()  # the filter
        self._file: int | None = None
        self._end = 0

    def __len__(self) -> int:
        return len(self._recent) + sum(count for _, count, _ in self._runs)

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)

    def said(self, id: bytes, said: int) -> int | None:
        """Return what an id has said before; if it is new, keep what it says now and return None."""
        known = self.known(id)
        if known is not None:
            return known
        self._recent[id] = said
        if len(self._recent) >= self._most:
            self._write()
        return None

    def fill(self, ids: bytes, said: Words) -> None:
        """Keep ids, one after the other, that are known to be new and different; what each says is beside them."""
        place, count = 0, len(ids) // ID
        while count - place >= self._most:
            self._add_run(ids[place * ID : (place + self._most) * ID], said[place : place + self._most])
            place += self._most
        rest = (ids[k * ID : (k + 1) * ID] for k in range(place, count))
        self._recent.update(zip(rest, said[place:].tolist(), strict=True))
        if len(self._recent) >= self._most:
            self._write()

    def known(self, id: bytes) -> int | None:
        """Return what an id has said; None where it has not."""
        known = self._recent.get(id)
        if known is None and self._runs and self._may_have(id):
            return self._on_disk(id)
        return known

    def _places(self, id: bytes) -> Iterator[int]:
        """Return which bits of the filter an id sets, one after the other."""
        one, two = _WORDS(id)
        keys, down = self._keys, 64 - self._bits
        first = (one ^ keys[0]) * keys[1] + (two ^ keys[2]) * keys[3] & _WHOLE
        yield first >> down
        step = (first >> 7) * keys[1] & _WHOLE | 1
        for _ in range(PROBES - 1):
            first = first + step & _WHOLE
            yield first >> down

    def _may_have(self, id: bytes) -> bool:
        """Tell whether an id may be on disk; where it says no, it is not."""
        bits = self._bytes
        return all(bits[place >> 3] >> (place & 7) & 1 for place in self._places(id))  # the first tells of most

    def _on_disk(self, id: bytes) -> int | None:
        """Return what an id said that is on disk, the newest run first."""
        assert self._file is not None  # there are runs
        high, low = _WORDS(id)
        wanted = np.uint64(high)
        for where, count, fences in reversed(self._runs):
            first = max(int(np.searchsorted(fences, wanted, "left")) - 1, 0) * FENCE
            last = min(int(np.searchsorted(fences, wanted, "right")) * FENCE, count)
            data = os.pread(self._file, (last - first) * _ENTRY.itemsize, where + first * _ENTRY.itemsize)
            entries = np.frombuffer(data, _ENTRY)
            same = (entries["high"] == wanted) & (entries["low"] == np.uint64(low))
            if same.any():
                return int(entries["said"][same][0])
        return None

    def _write(self) -> None:
        """Move what is in memory to the disk."""
        said = np.fromiter(self._recent.values(), dtype=np.uint64, count=len(self._recent))
        self._add_run(b"".join(self._recent), said)
        self._recent.clear()

    def _add_run(self, ids: bytes, said: Words) -> None:
        """Write ids to the disk as one sorted run."""
        if self._file is None:
            self._keys = [int(word) | 1 for word in SystemEntropy().words(4)]
            self._bytes = bytearray(1 << (self._bits - 3))
            self._file, path = tempfile.mkstemp(prefix="sottovoce-ids-")
            os.unlink(path)  # noqa: PTH108  # nameless from here on
        words = np.frombuffer(ids, dtype=">u8").reshape(-1, 2).astype(np.uint64)
        order = np.argsort(words[:, 0], kind="stable")
        words = words[order]
        entries = np.empty(len(words), _ENTRY)
        entries["high"], entries["low"], entries["said"] = words[:, 0], words[:, 1], said[order]
        data = entries.tobytes()
        written = 0
        while written < len(data):
            written += os.pwrite(self._file, data[written:], self._end + written)
        self._runs.append((self._end, len(entries), words[::FENCE, 0].copy()))
        self._end += len(data)
        if self._bits < LARGEST.bit_length() - 1 and FEWEST * (self._end // _ENTRY.itemsize) > 1 << self._bits:
            self._grow()
        else:
            self._mark(words[:, 0], words[:, 1])

    def _grow(self) -> None:
        """Make the filter four times as large, from what is on the disk."""
        assert self._file is not None  # there are runs
        self._bits = min(self._bits + 2, LARGEST.bit_length() - 1)
        self._bytes = bytearray(1 << (self._bits - 3))
        for where, count, _ in self._runs:
            entries = np.frombuffer(os.pread(self._file, count * _ENTRY.itemsize, where), _ENTRY)
            self._mark(entries["high"].astype(np.uint64), entries["low"].astype(np.uint64))

    def _mark(self, one: Words, two: Words) -> None:
        """Set the bits of many ids in the filter; the same places as `_places` finds."""
        bits = np.frombuffer(self._bytes, dtype=np.uint8)
        keys = [np.uint64(key) for key in self._keys]
        with np.errstate(over="ignore"):
            first = (one ^ keys[0]) * keys[1] + (two ^ keys[2]) * keys[3]
            step = (first >> np.uint64(7)) * keys[1] | np.uint64(1)
            for k in range(PROBES):
                place = (first + np.uint64(k) * step) >> np.uint64(64 - self._bits)
                bit = (np.uint64(1) << (place & np.uint64(7))).astype(np.uint8)
                np.bitwise_or.at(bits, (place >> np.uint64(3)).astype(np.int64), bit)
