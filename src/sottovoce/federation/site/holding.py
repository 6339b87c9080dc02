"""What a site holds, read from its files as its policy says: a column, one record a person where persons are known."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sottovoce.client.reading.files import expand, read_files
from sottovoce.client.reading.formats import Marks, read_table
from sottovoce.client.record import Records
from sottovoce.core.arrays import Words
from sottovoce.core.errors import BadInput
from sottovoce.federation.site.policy import SitePolicy
from sottovoce.federation.site.resident import Holding

BLOCK = 1 << 17  # values that are digested at a time


def read_holding(paths: Sequence[str], policy: SitePolicy) -> Holding:
    """Read the records of a site; several files are one site."""
    asked = policy.records
    table = read_files(
        list(paths),
        value=asked.value,
        person=asked.person,
        missing=asked.missing,
        dice=Choice(policy).words,
        delimiter=asked.delimiter,
        decimal=asked.decimal,
    )
    kinds = {records.unit for records in table.records}
    if len(kinds) > 1:
        raise BadInput("the files of this site hold different units; give files of one.")
    parts = [records.values() for records in table.records]
    records = table.records[0] if len(parts) == 1 else Records(np.concatenate(parts), table.records[0].unit)
    people = None if asked.person is None else _people(paths, asked.person, Marks(asked.delimiter, asked.decimal))
    return Holding(records, rows_digest(records), people, asked.value)


def rows_digest(records: Records) -> bytes:
    """Return by what a site knows its records again: a study that was opened over others is not gone on with."""
    digest, values = hashlib.blake2b(digest_size=16, person=b"sottovoce rows"), records.values()
    for start in range(0, len(values), BLOCK):
        digest.update(values[start : start + BLOCK].tobytes())
    return digest.digest()


class Choice:
    """Says which row of a person answers: always the same one, whatever is asked and however often it is read."""

    def __init__(self, policy: SitePolicy) -> None:
        named = f"{policy.name}\0{policy.source}\0{policy.records.person}".encode()
        self._stream = hashlib.shake_256(named)

    def words(self, n: int) -> Words:
        """Return ``n`` words; there is one call a reading."""
        return np.frombuffer(self._stream.digest(8 * n), dtype=np.uint64)


def _people(paths: Sequence[str], column: str, marks: Marks) -> list[bytes]:
    """Return everybody by id, once each, as text."""
    found: set[str] = set()
    for path in expand([Path(each) for each in paths]):
        values = read_table(path, [column], [], marks=marks.checked()).column(column)
        found.update(str(each) for each in values.unique().to_pylist() if each is not None)
    return sorted(each.encode() for each in found)
