"""Columns of records with columns of public groups or weights beside them, to the strata of a study."""

import datetime as dt
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from sottovoce.client.reading.arrow import need_arrow, pa
from sottovoce.client.reading.frames import by_site, read_weights
from sottovoce.client.reading.labels import GROUP, Coded, Labels, arrow_labels, code_labels, join_coded, name_sites
from sottovoce.client.reading.reader import is_missing
from sottovoce.client.reading.strata import Division
from sottovoce.client.reading.table import (
    DROP,
    Checked,
    SiteTable,
    check_column,
    check_missing,
    named,
    read_sites,
    refuse_shared,
)
from sottovoce.client.record import Records
from sottovoce.core.arrays import Floats
from sottovoce.core.censoring import read_censoring
from sottovoce.core.checks import bad_row, check_names, kind_of, label_text, sentence
from sottovoce.core.errors import BadInput
from sottovoce.core.unit import common_unit

LABELS = str | bool | numbers.Number | np.generic | dt.date | dt.time | dt.timedelta  # what names a group


def read_table_of(
    sites: Any,
    *,
    groups: Any = None,
    weights: Any = None,
    missing: str = "refuse",
    by: str = "group",
    censored: Any = None,
) -> SiteTable:
    """Read the records of many sites, divided by public groups and weights where these are given.

    Both are as the sites are, a mapping or a sequence, of one column a site, a row beside every record; or of one label
    or weight for all records of a site. Records of a table are read already, with the limits that were said then.

    >>> table = read_table_of({"a": [3.0, 4.0, 5.0], "b": [1.0, 2.0]}, groups={"a": ["x", "y", "x"], "b": "y"})
    >>> table.names, table.strata.groups
    (('a, x', 'a, y', 'b, y'), ('x', 'y', 'y'))
    """
    limits = read_censoring(censored)
    if isinstance(sites, SiteTable):
        if limits is not None and limits != sites.unit.censored:
            raise BadInput("the records are read already; give censored= where they are read.")
        if groups is not None or weights is not None:
            raise BadInput("groups and weights are columns of what was read; name them in read_frame or read_files.")
        return sites
    if groups is None and weights is None:
        return read_sites(sites, missing=missing, censored=limits)
    check_missing(missing)
    columns = list(named(sites))
    names = check_names(name for name, _ in columns)
    if not names:
        raise BadInput("there are no sites: give at least one site with its records")
    parts = [
        check_column(column, where=f"site {name!r}", missing=missing, censored=limits)
        for name, (_, column) in zip(names, columns, strict=True)
    ]
    refuse_shared(names, [Records(part.floats, part.unit) for part in parts])
    sizes = [part.floats.size for part in parts]
    unit = common_unit({name: part.unit for name, part in zip(names, parts, strict=True)})
    joined = Checked(np.concatenate([part.floats for part in parts]), unit, sum(part.missing for part in parts), True)
    held = Labels(np.repeat(np.arange(len(names), dtype=np.int64), sizes), list(names))
    division = Division(by=by)
    if groups is not None:
        need_arrow("a column of groups")
        found = _beside(groups, "groups", names)
        coded = join_coded([_codes(found[name], name, n, missing) for name, n in zip(names, sizes, strict=True)])
        division = division._replace(groups=name_sites(coded, "the column of groups", noun=GROUP))
    if weights is not None:
        found = _beside(weights, "weights", names)
        told = [_weights(found[name], name, n, missing) for name, n in zip(names, sizes, strict=True)]
        division = division._replace(weights=np.concatenate(told))
    return by_site(joined, held, None, None, division=division)


def _beside(given: Any, what: str, names: Sequence[str]) -> dict[str, Any]:
    """Return what stands beside the records of each site."""
    if isinstance(given, Mapping):
        found = {label_text(name): column for name, column in given.items()}
    elif isinstance(given, Sequence) and not isinstance(given, str | bytes) and len(given) == len(names):
        found = dict(zip(names, given, strict=True))
    else:
        raise BadInput(
            f"{what} is {kind_of(given)}; give a mapping from site to a column, one row beside every record."
        )
    strange, absent = [name for name in found if name not in names], [name for name in names if name not in found]
    if strange or absent:
        problem = f"names {strange[0]!r}, which is no site" if strange else f"says nothing of site {absent[0]!r}"
        raise BadInput(f"{what} {problem}; give a column for every site.")
    return found


def _is_one(value: Any) -> bool:
    """Tell whether this is one label or number, for a whole site."""
    return isinstance(value, str | bool | int | float | np.generic)


def _has_rows(value: Any) -> bool:
    """Tell whether this is a column, of Python objects or as an array."""
    if isinstance(value, Sequence):
        return not isinstance(value, bytes)
    return hasattr(value, "__array__") and np.ndim(value) > 0


def _check_rows(found: int, records: int, name: str, what: str) -> None:
    if found != records:
        raise BadInput(
            f"site {name!r} has {records:,} records and {found:,} rows of {what}; give one beside every record."
        )


def _codes(column: Any, name: str, records: int, missing: str) -> Coded:
    """Return the labels of a site's rows."""
    where = f"the group column of site {name!r}"
    if _is_one(column):
        if is_missing(column):
            raise sentence(where, "is a missing value: give one label, or a column of them")
        return Coded(np.zeros(records, dtype=np.int64), pa.array([label_text(column)], pa.large_string()))
    series = nw.from_native(column, allow_series=True, pass_through=True)
    if isinstance(series, nw.Series):
        labels = arrow_labels(series)
    elif _has_rows(column):
        try:
            labels = pa.array(column)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            labels = pa.array(_texts(column, where), pa.large_string())
    else:
        raise sentence(where, f"is {kind_of(column)}: give one label, or a column of them")
    _check_rows(len(labels), records, name, "groups")
    return code_labels(labels, where, DROP if missing == "refuse" else None)


def _texts(column: Any, where: str) -> list[str | None]:
    """Return labels of several types as text."""
    found: list[str | None] = []
    for row, label in enumerate(column):
        if not is_missing(label) and not isinstance(label, LABELS):
            raise bad_row(where, row, kind_of(label), "give text or whole numbers")
        found.append(None if is_missing(label) else label_text(label))
    return found


def _weights(column: Any, name: str, records: int, missing: str) -> Floats:
    """Return the weights of a site's rows."""
    where = f"the weight column of site {name!r}"
    if _is_one(column) and not isinstance(column, str | bool):
        return np.repeat(read_weights([column], where, missing), records)
    found = read_weights(column, where, missing)
    _check_rows(len(found), records, name, "weights")
    return found
