"""From one long column, with a site and perhaps a person beside each value, to the records of every site."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sottovoce.client.reading.complaint import DROP, bad_row, sentence
from sottovoce.client.reading.objects import is_missing
from sottovoce.client.reading.persons import Roll, one_row_a_person
from sottovoce.client.reading.table import QUANTILE, Needs, SiteTable, checked_table
from sottovoce.client.reading.values import Checked
from sottovoce.client.record import Records
from sottovoce.core.arrays import Ints
from sottovoce.core.checks import check_names, label_text
from sottovoce.core.errors import BadInput


class Labels(NamedTuple):
    """For each row the number of its label, -1 where it is missing, and the labels in their order."""

    codes: Ints
    labels: list[Any]


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
