"""What a site holds, read from its files as its policy says: a column, one record a person where persons are known."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sottovoce.client.reading.files import expand, read_files
from sottovoce.client.reading.formats import Marks, read_table, where
from sottovoce.client.reading.frames import pick_columns
from sottovoce.client.reading.large import open_large
from sottovoce.client.reading.spool import rows_digest
from sottovoce.client.reading.table import Flags, check_column
from sottovoce.client.record import Records
from sottovoce.core.arrays import Words
from sottovoce.core.censoring import read_censoring
from sottovoce.core.errors import BadInput
from sottovoce.federation.site.features import read_columns
from sottovoce.federation.site.policy import RecordColumns, SitePolicy
from sottovoce.federation.site.resident import Holding


def read_holding(paths: Sequence[str], policy: SitePolicy) -> Holding:
    """Read the records of a site; several files are one site."""
    asked = policy.records
    if asked.spool is not None:
        return _spooled(paths, policy, asked.spool)
    if asked.features or asked.categories:
        return _with_features(paths, policy)
    table = read_files(
        list(paths),
        value=asked.value,
        person=asked.person,
        missing=asked.missing,
        dice=RowChoice(policy).words,
        delimiter=asked.delimiter,
        decimal=asked.decimal,
        censored=read_censoring(asked.censored),
        flag=asked.flag,
    )
    kinds = {records.unit for records in table.records}
    if len(kinds) > 1:
        raise BadInput("the files of this site hold different units; give files of one.")
    parts = [records.values() for records in table.records]
    records = table.records[0] if len(parts) == 1 else Records(np.concatenate(parts), table.records[0].unit)
    people = None if asked.person is None else _people(paths, asked)
    if people is not None and len(people) != records.size:
        raise BadInput("a person of this site has no record that can be used, or several; look at column person.")
    return Holding(records, rows_digest(records, policy.source.encode()), people, asked.value)


def _spooled(paths: Sequence[str], policy: SitePolicy, folder: str) -> Holding:
    """Open a column that is larger than memory: it is kept in a folder of the site, and mapped."""
    asked = policy.records
    if asked.person is not None:
        raise BadInput("records in a spool are not chosen by person; leave out spool, or person, in [records].")
    records = open_large(
        list(paths), asked.value, folder, missing=asked.missing, delimiter=asked.delimiter, decimal=asked.decimal
    ).records
    return Holding(records, rows_digest(records, policy.source.encode()), None, asked.value)


def _with_features(paths: Sequence[str], policy: SitePolicy) -> Holding:
    """Read the records with the columns beside them that the policy opens for regressions."""
    values, features, people = read_columns(paths, policy.records, RowChoice(policy).words)
    records = Records(values)
    hashed = hashlib.blake2b(rows_digest(records, policy.source.encode()), digest_size=16, person=b"rows")
    for each in features.words():
        hashed.update(hashlib.sha256(each).digest())
    return Holding(records, hashed.digest(), people, policy.records.value, features)


class RowChoice:
    """Says which row of a person answers: always the same one, whatever is asked and however often it is read."""

    def __init__(self, policy: SitePolicy) -> None:
        named = f"{policy.name}\0{policy.source}\0{policy.records.person}".encode()
        self._stream = hashlib.shake_256(named)

    def words(self, n: int) -> Words:
        """Return ``n`` words; there is one call a reading."""
        return np.frombuffer(self._stream.digest(8 * n), dtype=np.uint64)


def _people(paths: Sequence[str], asked: RecordColumns) -> list[bytes]:
    """Return everybody who has a record, by id, once each, as text."""
    import pyarrow as pa

    found: set[str] = set()
    marks = Marks(asked.delimiter, asked.decimal).checked()
    assert asked.person is not None
    limits = read_censoring(asked.censored)
    for path in expand([Path(each) for each in paths]):
        columns = pick_columns(asked.value, person=asked.person, flag=asked.flag, censored=limits)
        table = read_table(path, columns, marks=marks, censored=limits)
        flags = None if asked.flag is None else Flags(table.column(asked.flag), where(path, asked.flag))
        column, named = table.column(asked.value), where(path, asked.value)
        values = check_column(column, where=named, missing="drop", censored=limits, flags=flags).floats
        there = pa.array(~np.isnan(values))
        people = table.column(asked.person).filter(there)
        found.update(str(each) for each in people.unique().to_pylist() if each is not None)
    return sorted(each.encode() for each in found)
