"""From a data frame (pandas, polars, Arrow) with columns for value, site and perhaps person to the records of sites.

One record a person: the report of a record costs epsilon, and a person behind k records would pay k times. Drawing one
of her rows over the whole study, not one at each site, keeps the privacy statement true of the person.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
from narwhals.exceptions import NarwhalsError

from sottovoce.client.reading.arrow import need_arrow, pa, pc
from sottovoce.client.reading.formats import check_columns
from sottovoce.client.reading.reader import is_missing
from sottovoce.client.reading.table import (
    DROP,
    QUANTILE,
    Checked,
    Needs,
    SiteTable,
    check_column,
    check_missing,
    checked_table,
)
from sottovoce.client.record import Records
from sottovoce.core.arrays import Ints, Words
from sottovoce.core.checks import bad_row, check_names, kind_of, label_text, sentence
from sottovoce.core.errors import BadInput

WHO = "every row must name its person"
Roll = Callable[[int], Words]  # a source of n independent, uniform 64-bit words


class Labels(NamedTuple):
    """For each row the number of its label, -1 where it is missing, and the labels in their order."""

    codes: Ints
    labels: list[Any]


def read_frame(
    frame: Any, *, value: str, site: str, person: str | None = None, missing: str = "refuse", dice: Roll | None = None
) -> SiteTable:
    """Read the records of many sites from one data frame, or refuse it before anything is spent.

    With a column ``person`` the person, not the row, is what privacy protects: of all her rows, over all sites, one is
    drawn, by ``dice``. Under missing="drop" missing values and sites are left out and counted; a missing person is
    always refused.

    >>> import pyarrow as pa
    >>> flights = pa.table({"delay": [3.0, 8.0, 1.0, 2.0], "airport": ["LGA", "JFK", "JFK", "LGA"]})
    >>> read_frame(flights, value="delay", site="airport").names
    ('JFK', 'LGA')
    """
    check_missing(missing)
    need_arrow("reading a data frame with a site column")
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


def arrow_labels(series: "nw.Series[Any]") -> Any:
    """Turn a column of labels into Arrow; labels of mixed types become text."""
    if series.dtype not in (nw.Object, nw.Unknown):
        try:
            return _plain(series.to_arrow())
        except (pa.ArrowException, TypeError, ValueError):
            pass
    texts = (None if is_missing(label) else label_text(label) for label in series.to_list())
    return pa.chunked_array([pa.array(texts, type=pa.string())])


def join_labels(columns: Iterable[Any]) -> Any:
    """Put label columns of several files below each other; labels of different types become text."""
    plain = [_plain(column) for column in columns]
    if any(column.type != plain[0].type for column in plain):
        try:
            plain = [column.cast(pa.large_string()) for column in plain]
        except pa.ArrowException:
            raise BadInput("the files name sites or persons in types that cannot be compared: use text") from None
    return pa.chunked_array([chunk for column in plain for chunk in column.chunks], type=plain[0].type)


def encode(column: Any, where: str, *, name_them: bool) -> Labels:
    """Give every label of an Arrow column its number; list the labels themselves, in order, when `name_them`."""
    try:
        encoded = _plain(column).dictionary_encode().unify_dictionaries()
    except pa.ArrowException:
        raise sentence(where, "holds values that cannot be names: give text or whole numbers") from None
    if not encoded.num_chunks:
        return Labels(np.empty(0, dtype=np.int64), [])
    codes = np.concatenate(
        [chunk.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) for chunk in encoded.chunks]
    )
    if not name_them:
        return Labels(codes, [])
    labels = encoded.chunk(0).dictionary.to_pylist()
    order = sorted(range(len(labels)), key=labels.__getitem__)
    rank = np.full(len(labels) + 1, -1, dtype=np.int64)
    rank[order] = np.arange(len(labels))
    return Labels(rank[codes], [labels[place] for place in order])


def refuse_missing(column: Any, where: str, advice: str = DROP) -> Any:
    """Return an Arrow column of labels, refusing one in which a label is missing."""
    plain = _plain(column)
    if plain.null_count:
        row = int(np.argmax(plain.is_null().to_numpy()))
        raise bad_row(where, row, "a missing value", advice)
    return plain


def group(
    values: Checked, sites: Labels, persons: Ints | None, dice: Roll | None, needs: Needs = QUANTILE
) -> SiteTable:
    """Part the values by site, leaving out what is missing and all but one row a person."""
    names = check_names(sites.labels)
    if not names:
        raise BadInput("no row names its site: fill in the site column")
    gone = np.isnan(values.floats) if values.missing else np.zeros(values.floats.size, dtype=np.bool_)
    placed = sites.codes >= 0
    rows = np.flatnonzero(placed & ~gone)
    dropped = np.bincount(sites.codes[placed & gone], minlength=len(names))
    complete = rows.size
    if persons is not None:
        rows = rows[one_row_a_person(persons[rows], dice)]
    codes = sites.codes[rows]
    # Numpy sorts 16-bit integers by radix, in one pass over the rows.
    order = rows[np.argsort(codes.astype(np.int16) if len(names) < 2**15 else codes, kind="stable")]
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))[:-1]
    parts = np.split(values.floats[order], ends)
    return checked_table(
        names,
        [Records(part, values.unit) for part in parts],
        dict(zip(names, map(int, dropped), strict=True)),
        unplaced=int(np.count_nonzero(~placed)),
        left_out=complete - rows.size,
        per_person=persons is not None,
        needs=needs,
    )


def _plain(column: Any) -> Any:
    """Undo dictionaries and floats that stand for whole numbers; NaN is missing."""
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:
            return column
    return column


def one_row_a_person(persons: npt.NDArray[np.int64], dice: Roll | None) -> npt.NDArray[np.intp]:
    """Draw one row for every person, each of her rows equally likely.

    Every row gets an independent random word and the row with the smallest is kept: by symmetry each of k rows wins
    with probability 1/k.

    >>> import numpy as np
    >>> words = np.array([5, 9, 1, 7, 3], dtype=np.uint64)
    >>> one_row_a_person(np.array([0, 1, 0, 1, 2]), lambda n: words[:n])
    array([2, 3, 4])
    """
    words = check_dice(dice)(persons.size)
    if words.shape != persons.shape or words.dtype != np.uint64:
        raise TypeError("dice must return as many uint64 words as it is asked for")
    order = np.lexsort((words, persons))
    in_order = persons[order]
    first = np.ones(order.size, dtype=np.bool_)
    first[1:] = in_order[1:] != in_order[:-1]
    return np.sort(order[first])


def check_dice(dice: Roll | None) -> Roll:
    """Refuse to draw among the rows of a person without dice."""
    if dice is None:
        raise BadInput("person is given without dice, which draw one row a person: give dice as well")
    return dice
