"""A spool: the checked records of one column as a raw file of float64 in a folder of the site, mapped when it is used.

It is written under another name, with its end last, synced, and renamed: one that is not whole is never used. Its name
says of which sources, of what size and time, it was made, so it is used again after a restart, and made anew when a
source has changed. Only the owner may read it.
"""

import errno
import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sottovoce.client.mapped import blocks, map_floats
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats
from sottovoce.core.codec import from_bytes, to_bytes
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import shown
from sottovoce.core.unit import Unit

ROOM = 1 << 28  # bytes that are left free: the ledger may lie on the same disk, and has to go on
_MARK = b"spool\0v1"
_LONGEST = 1 << 24  # bytes of an end: names of categories can be many
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class SpoolEnd(NamedTuple):
    """What stands behind the numbers: how many they are, what they measure, what was left out, and their digest."""

    size: int
    dropped: int
    unit: Unit
    digest: bytes


class SpooledRecords(Records):
    """Records that lie in a spool, with the digest that was taken when they were written."""

    __slots__ = ("_digest",)

    _digest: bytes

    def __init__(self, values: Floats, unit: Unit, digest: bytes) -> None:
        super().__init__(values, unit)
        object.__setattr__(self, "_digest", digest)


def rows_digest(records: Records, key: bytes = b"") -> bytes:
    """Return 16 bytes that are the same for the same records in the same order, under a secret key of the site.

    A ledger keeps them beside the place that a study has reached in its random order, so that after a restart a study
    goes on over the records that it was opened over, and over no others. They stay at the site: without a key, whoever
    can guess a whole column can tell that the guess is right.

    >>> import numpy as np
    >>> one, other = Records(np.array([1.0, 2.0])), Records(np.array([2.0, 1.0]))
    >>> len(rows_digest(one)), rows_digest(one) == rows_digest(other)
    (16, False)
    """
    if isinstance(records, SpooledRecords):
        inner = records._digest
    else:
        hashed = hashlib.sha256()
        for block in blocks(records.values()):
            hashed.update(block.data)
        inner = hashed.digest()
    return hashlib.blake2b(inner, digest_size=16, key=key, person=b"rows").digest()


def open_spool(path: Path) -> tuple[SpooledRecords, int] | None:
    """Map a spool; return its records and how many were left out, or None where it is absent, cut short or not ours."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            return None
        end = _read_end(descriptor, found.st_size)
        if end is None:
            return None
        return SpooledRecords(map_floats(descriptor, end.size), end.unit, end.digest), end.dropped
    except (OSError, BadInput):
        return None
    finally:
        os.close(descriptor)


def _read_end(descriptor: int, size: int) -> SpoolEnd | None:
    """Read what stands behind the numbers, if the file is as long as it says."""
    last = os.pread(descriptor, 16, max(size - 16, 0))
    length = int.from_bytes(last[:8], "little")
    if last[8:] != _MARK or length > min(size, _LONGEST):
        return None
    end = from_bytes(os.pread(descriptor, length, size - 16 - length), SpoolEnd)
    return end if end.size > 0 and size == 8 * end.size + length + 16 else None


class NewSpool:
    """A spool that is being written: numbers in blocks, then its end."""

    def __init__(self, descriptor: int, folder: Path) -> None:
        self._descriptor, self._folder = descriptor, folder
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, values: Floats) -> None:
        """Add numbers."""
        if shutil.disk_usage(self._folder).free < ROOM + values.nbytes:
            raise OSError(errno.ENOSPC, "")
        data = np.ascontiguousarray(values).data
        self._hash.update(data)
        self._put(data.cast("B") if values.size else b"")
        self.size += len(values)

    def finish(self, unit: Unit, dropped: int) -> None:
        """Say what the numbers are, and see that all is on the disk."""
        end = to_bytes(SpoolEnd(self.size, dropped, unit, self._hash.digest()))
        self._put(end + len(end).to_bytes(8, "little") + _MARK)
        os.fsync(self._descriptor)

    def _put(self, data: bytes | memoryview) -> None:
        """Write bytes, all of them."""
        left = memoryview(data)
        while len(left):
            left = left[os.write(self._descriptor, left) :]


@contextmanager
def new_spool(path: Path) -> Iterator[NewSpool]:
    """Write a spool and give it its name once it is whole; remove it if it does not become so."""
    folder, part = path.parent, path.with_suffix(".part")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            _lock(descriptor, part)
            try:
                os.ftruncate(descriptor, 0)
                os.fchmod(descriptor, 0o600)
                yield NewSpool(descriptor, folder)
                part.rename(path)
                _sync(folder)
            except BaseException:
                with suppress(FileNotFoundError):
                    part.unlink()
                raise
        finally:
            os.close(descriptor)
    except OSError as error:
        name = shown(folder, 200)
        if error.errno in _FULL:
            said = f"{name} has no room for the records of the site, 8 bytes each: free some, or give another folder"
            raise BadInput(said) from None
        raise BadInput(f"{name} cannot hold the records of the site: check that it is a folder you may write") from None


def _lock(descriptor: int, part: Path) -> None:
    """Refuse to write what another process is writing; a lock ends with its process, whatever becomes of it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        same = os.path.samestat(os.fstat(descriptor), part.stat())  # or it has been given its name meanwhile
    except (BlockingIOError, FileNotFoundError):
        same = False
    if not same:
        raise BadInput(f"another process is preparing the same records in {shown(part.parent, 200)}: wait for it")


def _sync(folder: Path) -> None:
    """See that a new name is on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
