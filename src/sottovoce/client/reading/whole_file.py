"""Every column of one file, read once: numbers and times as such, all others as labels; who asks may then choose.

Names, kinds and counts of missing values may be shown to anybody; the table itself is for whoever makes records of it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, SupportsIndex

from sottovoce.client.reading.arrow import need_arrow, pa, pc
from sottovoce.client.reading.cells import LIMIT, kind_of_cell, pattern
from sottovoce.client.reading.column import RECORDS
from sottovoce.client.reading.dialect import may_name
from sottovoce.client.reading.files import expand
from sottovoce.client.reading.formats import (
    Marks,
    check_columns,
    kind_of_file,
    no_rows,
    read_table,
    told,
    where,
)
from sottovoce.client.reading.frames import check_column_names
from sottovoce.client.reading.light import Wanted
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import quoted, shown

CATEGORIES, WHOLE, EMPTY, OTHER = "categories", "whole numbers", "nothing", "something else"
VALUES = ("numbers", WHOLE, "dates", "dates with a time", "durations", "ordered categories", "true or false")
LABELS = (CATEGORIES, WHOLE, "ordered categories", "true or false")


class FileColumn(NamedTuple):
    """What is public of a column: its name, the kind of its values, and how many of them are missing."""

    name: str
    kind: str
    missing: int

    @property
    def holds_values(self) -> bool:
        """Tell whether a quantile of the column can be asked for."""
        return self.kind in VALUES

    @property
    def holds_labels(self) -> bool:
        """Tell whether the column can say where a record is held."""
        return self.kind in LABELS


class OpenedFile:
    """The columns of a file, and what whoever holds it should know of them; it is never shown, copied or sent."""

    __slots__ = ("_table", "columns", "hints", "rows")

    def __init__(self, table: Any) -> None:
        self._table, self.rows = table, int(table.num_rows)
        named = list(zip(table.column_names, table.columns, strict=True))
        self.columns = tuple(FileColumn(name, _kind(column.type), _missing(column)) for name, column in named)
        self.hints = tuple(
            f"most labels of column {quoted(name)} are numbers and some are not, so nothing but labels is made of it; "
            f"{_advice(column)}"
            for name, column in named
            if _mostly_numbers(column)
        )

    def table(self) -> Any:
        """Return the Arrow table itself; for what makes records of it alone."""
        return self._table

    def __repr__(self) -> str:
        return f"OpenedFile({self.rows:,} rows, {len(self.columns)} columns, values hidden)"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("OpenedFile cannot be pickled or copied: its records do not leave the site")


def open_file(path: str | Path, marks: Marks) -> OpenedFile:
    r"""Read all columns of a file, or refuse it in one sentence.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "waits.csv"
    ...     _ = file.write_text("wait,clinic,day\n3.5,a,2013-05-01\n,b,2013-05-02\n")
    ...     open_file(file, Marks()).columns[:2]
    (FileColumn(name='wait', kind='numbers', missing=1), FileColumn(name='clinic', kind='categories', missing=0))
    """
    need_arrow("a file of which all columns are read")
    file, *more = expand(path)
    if more:
        raise BadInput(f"{shown(path, 200)} names {1 + len(more)} files: give one")
    with told(file):
        table = (_csv if kind_of_file(file) == "CSV" else _binary)(file, marks.checked())
    if not table.num_rows:
        raise no_rows(shown(file, 200))
    return OpenedFile(table)


def _csv(file: Path, marks: Marks) -> Any:
    """Read a CSV file, of which the first line surely holds names."""
    from sottovoce.client.reading.csv_file import read_csv_whole

    name = shown(file, 200)

    def check(header: Sequence[str], proved: bool) -> None:
        named = [column for column in header if column]
        check_column_names(named)
        if not (proved and all(map(may_name, named))):
            raise BadInput(
                f"the first line of {name} may be one of records: give it a line of names, each of which begins with a "
                "letter and is no value of a column, above at least one column of numbers or dates"
            )
        check_columns(name, named, named)

    return read_csv_whole(file, Wanted((), (), RECORDS.rule, *marks), lambda column: where(file, column), check)


def _binary(file: Path, _: Marks) -> Any:
    """Read a Parquet or Arrow file."""
    names = _names(file)
    check_column_names(names)
    return read_table(file, names)


def _names(file: Path) -> list[str]:
    """Return the names of the columns of a Parquet or Arrow file."""
    if kind_of_file(file) == "Parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(str(file)) as source:
            return list(source.schema_arrow.names)
    with pa.OSFile(str(file)) as source:
        try:
            return list(pa.ipc.open_file(source).schema.names)
        except pa.ArrowInvalid:
            source.seek(0)
            return list(pa.ipc.open_stream(source).schema.names)


def _kind(of: Any) -> str:
    """Name what the values of an Arrow type are."""
    types = pa.types
    if isinstance(of, pa.BaseExtensionType):
        return _kind(of.storage_type)
    if types.is_run_end_encoded(of):
        return _kind(of.value_type)
    if types.is_dictionary(of):
        text = _kind(of.value_type)
        return "ordered categories" if of.ordered and text == CATEGORIES else text
    known = (
        (types.is_null, EMPTY),
        (types.is_boolean, "true or false"),
        (types.is_integer, WHOLE),
        (types.is_floating, "numbers"),
        (types.is_decimal, "numbers" if not types.is_decimal(of) or of.scale > 0 else WHOLE),
        (types.is_timestamp, "dates with a time"),
        (types.is_date, "dates"),
        (types.is_time, "durations"),
        (types.is_duration, "durations"),
    )
    if str(of) in ("string", "large_string", "string_view"):
        return CATEGORIES
    return next((name for belongs, name in known if belongs(of)), OTHER)


def _missing(column: Any) -> int:
    """Count the missing values of a column; NaN is one."""
    gone = int(column.null_count)
    if pa.types.is_floating(column.type):
        gone += int(pc.sum(pc.is_nan(column)).as_py() or 0)
    return gone


def _mostly_numbers(column: Any) -> bool:
    """Tell whether most labels of a column of text could be numbers."""
    if not pa.types.is_dictionary(column.type) or _kind(column.type) != CATEGORIES or column.type.ordered:
        return False
    labels = _labels(column)
    return (pc.mean(pc.match_substring_regex(labels, pattern(".")).cast(pa.uint8())).as_py() or 0.0) > 0.5


def _labels(column: Any) -> Any:
    """Return the different labels of a column, some of them more than once."""
    return pa.concat_arrays([chunk.dictionary for chunk in column.chunks])


def _advice(column: Any) -> str:
    """Say what to do about the labels that are no numbers: values beyond limits have a place of their own."""
    if any(kind_of_cell(label) == LIMIT for label in _labels(column).to_pylist() if label):
        return "values such as <5 are for `sottovoce quantile --censored`; correct other text, or leave it empty"
    return "correct the others, or leave such cells empty"
