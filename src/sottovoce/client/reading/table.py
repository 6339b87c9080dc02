"""The records of all sites of a study, read from any columns and checked: what everything downstream starts from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from types import MappingProxyType
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from sottovoce.client.answered import shared_columns
from sottovoce.client.fingerprint import Fingerprints, mark
from sottovoce.client.mapped import blocks
from sottovoce.client.reading.censored import as_numbers, placed
from sottovoce.client.reading.column import RECORDS, Accepts
from sottovoce.client.reading.reader import open_column
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats
from sottovoce.core.censoring import Censoring
from sottovoce.core.checks import bad_row, check_names, is_one_of, kind_of, sentence
from sottovoce.core.errors import BadInput
from sottovoce.core.roster import Roster, Strata
from sottovoce.core.unit import Unit, common_unit

DROP = 'remove it, or leave all missing values out with missing="drop"'
FINITE = "remove it, or cap it at a finite value"

_CHUNK = 1 << 16  # rows
_BATCH, _SMALL = 64, 1 << 10  # columns that are looked at together, and rows that each of them has at most
_FLOAT64 = np.dtype(np.float64)


class Needs(NamedTuple):
    """What a question needs of the records: how many a site at least, and whether they must differ at all."""

    records: int = 2
    varied: bool = True


QUANTILE = Needs()
SCORES = Needs(1, varied=False)  # one score is an order statistic too, and a model may be right everywhere


@dataclass(frozen=True)
class SiteTable:
    """Hold the records of every site, in one unit, and what was left out on the way.

    Parameters
    ----------
    names
        The names of the sites, all different.
    records
        The records of each site, in the order of `names`.
    unit
        What all records measure.
    dropped
        For each site, the missing values left out.
    unplaced
        The rows left out because their site was missing.
    left_out
        The rows left out because another row of the same person was drawn.
    per_person
        Whether each record stands for one person of the whole study, rather than for one row.
    seeded
        Whether the persons' records were drawn with seeded dice, which make every result a simulation.
    kind
        What the records are declared to be: "counts", "scores", "amounts", or None.
    column
        What the records are called: the name of their column, or nothing.
    strata
        Where groups or weights divide the sites: what each that answers is a part of.
    """

    names: tuple[str, ...]
    records: tuple[Records, ...]
    unit: Unit
    dropped: Mapping[str, int] = field(default_factory=dict)
    unplaced: int = 0
    left_out: int = 0
    per_person: bool = False
    seeded: bool = False
    kind: str | None = None
    column: str = ""
    strata: Strata | None = None

    @property
    def roster(self) -> Roster:
        """Return what is public of the sites."""
        sizes = tuple(records.size for records in self.records)
        public = (self.unit, dict(self.dropped), self.unplaced, self.left_out, self.per_person, self.seeded, self.kind)
        return Roster(self.names, sizes, *public, self.column, self.strata)

    @cached_property
    def places(self) -> tuple[str, ...]:
        """Return the sites that hold the records, each once."""
        return self.names if self.strata is None else tuple(dict.fromkeys(self.strata.sites))

    @cached_property
    def columns(self) -> list[Floats]:
        """Return the records of every place, for kernels of a site alone."""
        if self.strata is None:
            return [records.values() for records in self.records]
        parts: dict[str, list[Floats]] = {place: [] for place in self.places}
        for place, records in zip(self.strata.sites, self.records, strict=True):
            parts[place].append(records.values())
        return [np.concatenate(each) for each in parts.values()]

    @cached_property
    def marks(self) -> Fingerprints:
        """Return the fingerprints of the records; two sites that hold the same ones are refused."""
        marks = mark(self.columns)
        if (shared := shared_columns(self.columns, marks)) is not None:
            raise twice(*(self.places[at] for at in shared))
        return marks

    def only(self, names: Sequence[str]) -> "SiteTable":
        """Return the table of some of the sites, in their order here."""
        wanted = set(names)
        stay = [name in wanted for name in self.names]
        kept, records = tuple(compress(self.names, stay)), tuple(compress(self.records, stay))
        dropped = {name: self.dropped.get(name, 0) for name in kept}
        strata = None if self.strata is None else self.strata.only(stay)
        return replace(self, names=kept, records=records, dropped=dropped, strata=strata)

    def undivided(self, question: str) -> "SiteTable":
        """Return the table, or refuse one with groups or weights, of which a question knows nothing."""
        if self.strata is not None:
            given = "weights" if self.strata.weights else "groups"
            raise BadInput(f"these records are divided by {given}, and {question} knows none; read them without.")
        return self


def twice(one: str, two: str) -> BadInput:
    """Refuse two sites that hold the same records."""
    return BadInput(f"sites {one!r} and {two!r} share records, which would answer twice: give every record to one site")


def read_sites(
    sites: Any, *, missing: str = "refuse", needs: Needs = QUANTILE, censored: Censoring | None = None
) -> SiteTable:
    """Read the records of many sites, or refuse them in one sentence before anything is spent.

    A sequence of columns, in place of a mapping from name to column, is of sites called "site 1", "site 2", …

    >>> table = read_sites({"north": [3.0, 4.5, 6.0], "south": [1.0, 2.0]})
    >>> table.names, table.records
    (('north', 'south'), (Records(3 records, values hidden), Records(2 records, values hidden)))
    """
    check_missing(missing)
    columns = list(named(sites))
    names = check_names(name for name, _ in columns)
    if not names:
        raise BadInput("there are no sites: give at least one site with its records")
    readings: list[Reading] = []
    for start in range(0, len(names), _BATCH):
        batch = [column for _, column in columns[start : start + _BATCH]]
        readings += (_as_they_are(batch) if censored is None else None) or [
            read_values(column, where=f"site {name!r}", missing=missing, censored=censored)
            for name, column in zip(names[start:], batch, strict=False)
        ]
    dropped = {name: reading.dropped for name, reading in zip(names, readings, strict=True)}
    return checked_table(names, [reading.records for reading in readings], dropped, needs=needs)


def _as_they_are(columns: Sequence[Any]) -> "list[Reading] | None":
    """Return the records of small columns that need no reading, looked at together; None if one of them does."""
    for column in columns:
        if not (type(column) is np.ndarray and column.dtype is _FLOAT64 and column.ndim == 1 and column.size <= _SMALL):
            return None
    whole = all(column.flags.c_contiguous for column in columns) and np.isfinite(np.concatenate(columns)).all()
    return [Reading(Records(column), 0) for column in columns] if whole else None


def checked_table(
    names: Sequence[str],
    records: Sequence[Records],
    dropped: Mapping[str, int],
    *,
    unplaced: int = 0,
    left_out: int = 0,
    per_person: bool = False,
    needs: Needs = QUANTILE,
) -> SiteTable:
    """Join the records of all sites, refusing sites too small to answer and data without any spread."""
    for name, record in zip(names, records, strict=True):
        if record.size < needs.records:
            after = f" once its {dropped[name]:,} missing values are left out" if dropped.get(name) else ""
            after = after or (" once one row a person is drawn" if per_person else "")
            has = "no records" if not record.size else "only one record"
            least = "two" if needs.records > 1 else "one"
            raise BadInput(f"site {name!r} has {has}{after}: give it at least {least}, or leave it out")
    refuse_shared(names, records)
    unit = records[0].unit
    if any(record.unit is not unit for record in records):
        unit = common_unit({name: record.unit for name, record in zip(names, records, strict=True)})
    if needs.varied and _all_equal(records):
        raise _without_spread(records, unit)
    shared = tuple(
        record if record.unit is unit or record.unit == unit else Records(record.values(), unit) for record in records
    )
    counts = MappingProxyType({name: int(dropped.get(name, 0)) for name in names})
    return SiteTable(tuple(names), shared, unit, counts, unplaced, left_out, per_person)


def _without_spread(records: Sequence[Records], unit: Unit) -> BadInput:
    """Refuse data that are one value, or one symbol."""
    total, symbol = sum(map(len, records)), unit.censored and unit.censored.shown(float(records[0].values()[0]))
    if symbol:
        return BadInput(f"all {total:,} records are {symbol}: within the limits there is no quantile to estimate")
    return BadInput(
        f"all {total:,} records have one and the same value: there is no quantile to estimate, so check the column"
    )


def refuse_shared(names: Sequence[str], records: Sequence[Records]) -> None:
    """Refuse two sites that look at the same memory: their records would answer twice in one study."""
    begins = np.array([holder.address for holder in records])
    order = np.argsort(begins, kind="stable")
    ends = begins + 8 * np.array([holder.size for holder in records])
    shared = np.flatnonzero(begins[order[1:]] < ends[order[:-1]])
    if len(shared):
        first, second = sorted(order[shared[0] : shared[0] + 2].tolist())
        raise twice(names[first], names[second])


def named(sites: Any) -> Iterable[tuple[object, Any]]:
    """Pair each site with its name."""
    if isinstance(sites, Mapping):
        return sites.items()
    native = nw.from_native(sites, allow_series=True, pass_through=True)
    if isinstance(native, nw.DataFrame | nw.LazyFrame):
        raise BadInput("sites is a data frame: read it first with sv.read_frame(frame, value=..., site=...)")
    if isinstance(sites, Sequence) and not isinstance(sites, str | bytes | bytearray | memoryview):
        return ((f"site {place}", column) for place, column in enumerate(sites, start=1))
    kind = "one column" if isinstance(native, nw.Series) or hasattr(sites, "__array__") else kind_of(sites)
    raise BadInput(f"sites is {kind}: give a mapping from site to records, or a list with one array a site")


def _all_equal(records: Sequence[Records]) -> bool:
    """Tell whether every record has the value of the first, looking no further than needed."""
    first = records[0].values()[0]
    return not any(np.any(block != first) for record in records for block in blocks(record.values(), _CHUNK))


class Reading(NamedTuple):
    """The records of one column, and how many missing values were left out."""

    records: Records
    dropped: int


@dataclass(frozen=True, repr=False, eq=False)
class Checked:
    """A column as float64, row by row: finite, but for NaN in `missing` rows; `owned` when nobody else holds it."""

    floats: Floats
    unit: Unit
    missing: int
    owned: bool


class Flags(NamedTuple):
    """A column of marks that say which numbers beside them are limits, and its name in a sentence."""

    column: Any
    where: str


def read_values(
    column: Any, *, where: str, missing: str = "refuse", censored: Censoring | None = None, flags: Flags | None = None
) -> Reading:
    """Read a column into records, or refuse it in one sentence before anything is spent.

    The column is numpy (masked too), a list, Arrow, pandas or polars, of numbers, decimals, durations, dates or
    datetimes; a contiguous array of float64 with nothing missing is used as it is, not copied. ``where`` names it in a
    refusal: "site 'north'". Infinite values are always refused.

    >>> read_values([3.0, None, 4.5], where="site 'north'", missing="drop")
    Reading(records=Records(2 records, values hidden), dropped=1)
    >>> read_values([3.0, "four"], where="site 'a'")
    Traceback (most recent call last):
    sottovoce.core.errors.BadInput: Site 'a' holds text in row 2: every record must be a number, a duration, a \
date or one of ordered categories
    """
    check_missing(missing)
    if isinstance(column, Records):
        return Reading(column, 0)
    checked = check_column(column, where=where, missing=missing, censored=censored, flags=flags)
    if not checked.missing:
        return Reading(Records(checked.floats, checked.unit), 0)
    return Reading(Records(_without_missing(checked), checked.unit), checked.missing)


def check_missing(missing: str) -> None:
    """Refuse an unknown way to treat missing values."""
    if not is_one_of(missing, ("refuse", "drop")):
        raise BadInput(f'missing is {missing!r}: give missing="refuse" or missing="drop"')


def check_column(
    column: Any,
    *,
    where: str,
    missing: str,
    censored: Censoring | None = None,
    flags: Flags | None = None,
    accepts: Accepts = RECORDS,
) -> Checked:
    """Read a column into float64 of the same length, chunk by chunk; NaN stays only under missing="drop".

    What lies beyond limits, or is said to by marks, becomes what stands for it.
    """
    if censored is not None:
        return _check_censored(column, where, missing, censored, flags)
    source = open_column(column, where, accepts)
    floats = np.empty(source.size) if source.whole is None else source.whole
    count = 0
    for start, chunk in source.chunks(_CHUNK):
        count += count_missing(chunk, where, start, missing)
        if source.whole is None:
            floats[start : start + chunk.size] = chunk
    return Checked(floats, source.unit, count, source.whole is None)


def _check_censored(column: Any, where: str, missing: str, limits: Censoring, flags: Flags | None) -> Checked:
    """Read a column with symbols for what lies beyond limits."""
    source = open_column(as_numbers(column, limits, where), where, RECORDS)
    if source.unit.kind != "number":
        raise sentence(where, f"holds {source.unit.plural}, and censored= is said of numbers: leave it out")
    floats = np.concatenate([np.empty(0), *(chunk for _, chunk in source.chunks(_CHUNK))])
    floats = placed(floats, limits, where, *(flags or (None, "")))
    return Checked(floats, replace(source.unit, censored=limits), count_missing(floats, where, 0, missing), True)


def count_missing(chunk: Floats, where: str, start: int, missing: str) -> int:
    """Count the missing values of a chunk; refuse what may not stay."""
    if np.isfinite(chunk).all():
        return 0
    gone = np.isnan(chunk)
    bad = ~np.isfinite(chunk) if missing == "refuse" else np.isinf(chunk)
    if bad.any():
        row = int(bad.argmax())
        if gone[row]:
            raise bad_row(where, start + row, "a missing value (NaN or null)", DROP)
        raise bad_row(where, start + row, "an infinite number", FINITE)
    return int(np.count_nonzero(gone))


def _without_missing(checked: Checked) -> Floats:
    """Move the present values together: within the array if it is ours, else into one of just their size."""
    source, kept = checked.floats, checked.floats.size - checked.missing
    target = source if checked.owned else np.empty(kept)
    end = 0
    for start in range(0, source.size, _CHUNK):
        chunk = source[start : start + _CHUNK]
        present = chunk[~np.isnan(chunk)]
        target[end : end + present.size] = present
        end += present.size
    if checked.owned:
        target.resize(kept, refcheck=False)
    return target
