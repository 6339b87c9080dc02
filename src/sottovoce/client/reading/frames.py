"""From a data frame (pandas, polars, Arrow) with columns for value, site and perhaps person to the records of sites."""

import difflib
from collections.abc import Sequence
from typing import Any

import narwhals as nw
from narwhals.exceptions import NarwhalsError

from sottovoce.client.reading.complaint import check_missing, kind_of, sentence
from sottovoce.client.reading.groups import arrow_labels, encode, group, refuse_missing
from sottovoce.client.reading.persons import Roll, check_dice
from sottovoce.client.reading.table import SiteTable
from sottovoce.client.reading.values import check_column
from sottovoce.core.errors import BadInput

WHO = "every row must name its person"


def read_frame(
    frame: Any, *, value: str, site: str, person: str | None = None, missing: str = "refuse", dice: Roll | None = None
) -> SiteTable:
    """Read the records of many sites from one data frame, or refuse it before anything is spent.

    Parameters
    ----------
    frame
        A data frame of pandas or polars (lazy too), or an Arrow table.
    value
        The column of the records.
    site
        The column that says to which site a row belongs.
    person
        The column that says whose row it is. Then the person, not the row, is what privacy protects: of all her rows,
        over all sites, one is drawn and the others are left out.
    missing
        "refuse" missing values and sites, or "drop" and count them. A missing person is always refused.
    dice
        A source of n random 64-bit words, for the draw; required with `person`.

    Returns
    -------
    The names of the sites in order, their records, their unit, and counts of what was left out.

    Examples
    --------
    >>> import pyarrow as pa
    >>> flights = pa.table({"delay": [3.0, 8.0, 1.0, 2.0], "airport": ["LGA", "JFK", "JFK", "LGA"]})
    >>> read_frame(flights, value="delay", site="airport").names
    ('JFK', 'LGA')
    """
    check_missing(missing)
    if person is not None:
        check_dice(dice)
    columns = pick_columns(value, site, person)
    narrow = _select(frame, columns)
    if not len(narrow):
        raise BadInput("the data frame has no rows: give a data frame with records")
    checked = check_column(narrow[value].to_native(), where=_where(value), missing=missing)
    labels = arrow_labels(narrow[site])
    if missing == "refuse":
        refuse_missing(labels, _where(site))
    sites = encode(labels, _where(site), name_them=True)
    people = None
    if person is not None:
        named = refuse_missing(arrow_labels(narrow[person]), _where(person), WHO)
        people = encode(named, _where(person), name_them=False).codes
    return group(checked, sites, people, dice)


def pick_columns(value: str, site: str | None, person: str | None) -> list[str]:
    """List the columns to read, refusing one column in two roles."""
    columns = [name for name in (value, site, person) if name is not None]
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise BadInput(f"column {twice!r} is named twice: value, site and person are different columns")
    return columns


def check_columns(where: str, wanted: Sequence[str], present: Sequence[Any]) -> None:
    """Refuse a column that is not there, naming those that are close to it."""
    texts = {str(name): name for name in present}
    for name in wanted:
        if (count := list(present).count(name)) > 1:
            raise sentence(where, f"has {count} columns called {name!r}: rename all but one")
        if not count:
            close = [repr(texts[text]) for text in difflib.get_close_matches(str(name), texts, n=3, cutoff=0.6)]
            listed = ", ".join(map(repr, present[:8])) + (f" and {len(present) - 8} more" if len(present) > 8 else "")
            hint = f"did you mean {' or '.join(close)}?" if close else f"its columns are {listed or 'none'}"
            raise sentence(where, f"has no column {name!r}: {hint}")


def _where(column: str) -> str:
    """Name a column of the data frame in a sentence."""
    return f"column {column!r} of the data frame"


def _select(frame: Any, columns: list[str]) -> "nw.DataFrame[Any]":
    """Keep only the needed columns of a data frame; a lazy one is computed after that."""
    try:
        native = nw.from_native(frame)
        present = native.collect_schema().names()
    except TypeError:
        raise BadInput(f"frame is {kind_of(frame)}: give a data frame of pandas, polars or Arrow") from None
    except NarwhalsError:
        raise BadInput("the data frame has two columns of one name: rename one of them") from None
    check_columns("the data frame", columns, present)
    narrow = native.select(columns)
    return narrow.collect() if isinstance(narrow, nw.LazyFrame) else narrow
