"""Read columns of a CSV file into an Arrow table, block by block: numbers and times by what is in them, labels as text.

Arrow parses blocks of memory of its own, without threads and without calling back into Python, so that nothing is left
running when a refusal ends the process.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from sottovoce.client.reading.cells import MISSING, pattern, separators, text_refused
from sottovoce.client.reading.censored import to_numbers
from sottovoce.client.reading.dialect import Dialect, doubtful, either, find_dialect, may_be_either
from sottovoce.client.reading.light import CheckHeader, Wanted, in_all_rows, ragged
from sottovoce.client.reading.text_file import blocks, texts
from sottovoce.core.checks import bad_row, sentence
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import shown

_MARKED = r"^[<>≤≥= \t]*[+\-−]?[\d'’ \x{a0}\x{2009}\x{202f}]*[.,](?:\d|$)"
_HEXADECIMAL = r"^\s*[+-]?0[xX]"

# Types that blocks of one column may have together, and what they are read as.
_TOGETHER = (
    (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float64()),
    (pa.date32(), pa.timestamp("s"), pa.timestamp("ns")),
    (pa.time32("s"), pa.time64("ns")),
    (pa.timestamp("s", "UTC"), pa.timestamp("ns", "UTC")),
)


def read_csv(path: Path, wanted: Wanted, place: Callable[[str], str], check_header: CheckHeader) -> Any:
    """Read columns of a CSV file into an Arrow table; `place` names a column in a sentence."""
    found = list(csv_blocks(path, wanted, place, check_header))
    return pa.table({name: _joined([block[name] for block in found]) for name in wanted.columns} if found else {})


def csv_blocks(
    path: Path, wanted: Wanted, place: Callable[[str], str], check_header: CheckHeader
) -> Iterator[dict[str, Any]]:
    """Give columns of a CSV file block by block; blocks of one column differ in type no more than `_TOGETHER` says."""
    name = shown(path, 200)
    seen: dict[str, set[Any]] = {column: set() for column in wanted.columns}
    with closing(texts(path)) as source:
        first = next(source, "")
        found = find_dialect(first, name, wanted.columns, wanted.numeric, wanted.delimiter, wanted.decimal)
        check_header(found.header, found.proved)
        rows, open_ = 0, doubtful(found)
        for block in blocks(path, first[found.start :], source):
            if len(found.header) > 1 and not block.strip(b"\r\n"):
                continue
            table = _parsed(block, found, wanted, name, rows)
            if open_ and any(_has_marks(table.column(column)) for column in wanted.numeric):
                found, open_ = in_all_rows(path, found, wanted.numeric, name), False
                table = _parsed(block, found, wanted, name, rows)
            parts = {}
            for column in wanted.columns:
                values = table.column(column)
                if column in wanted.numeric:
                    values = _narrow(_numbers(values, found, column, place(column), wanted, rows))
                    seen[column].add(values.type)
                    _refuse_change(seen[column], place(column), rows)
                else:
                    values = values.dictionary_encode()
                parts[column] = values
            rows += table.num_rows
            if table.num_rows:
                yield parts


def read_csv_whole(path: Path, wanted: Wanted, place: Callable[[str], str], check_header: CheckHeader) -> Any:
    """Read every column that has a name, whatever is wanted: numbers and times as such, all others as text."""
    name = shown(path, 200)
    with closing(texts(path)) as source:
        first = next(source, "")
        found = find_dialect(first, name, (), None, wanted.delimiter, wanted.decimal)
        check_header(found.header, found.proved)
        columns = [column for column in found.header if column]
        read: dict[str, list[Any]] = {column: [] for column in columns}
        numeric, turned, rows, open_ = set(columns), list[str](), 0, doubtful(found)
        for block in blocks(path, first[found.start :], source):
            if len(found.header) > 1 and not block.strip(b"\r\n"):
                continue
            own = wanted._replace(columns=columns, numeric=numeric)
            table = _parsed(block, found, own, name, rows)
            if open_ and any(_has_marks(table.column(column)) for column in numeric):
                found, open_ = in_all_rows(path, found, None, name), False
                table = _parsed(block, found, own, name, rows)
            for column, parts in read.items():
                values = table.column(column)
                numbers = _as_numbers(values, found, place(column)) if column in numeric else None
                if numbers is not None and _common({numbers.type, *(part.type for part in parts)}) is None:
                    numbers = None
                if numbers is None and column in numeric:
                    numeric.remove(column)
                    turned += [column] if rows else []
                parts.append(values.dictionary_encode() if numbers is None else _narrow(numbers))
            rows += table.num_rows
    if turned:  # what was read as a number is written otherwise as text, 007 for one
        again = read_csv(path, wanted._replace(columns=turned, numeric=()), place, lambda *_: None)
        read |= {column: [again.column(column)] for column in turned}
    return pa.table({column: _joined(parts) for column, parts in read.items() if parts})


def _has_marks(column: Any) -> bool:
    """Tell whether some number of a column may have a mark that parts decimals or thousands."""
    if str(column.type) not in ("string", "binary"):
        return bool(pa.types.is_floating(column.type))
    try:
        return bool(pc.any(pc.match_substring_regex(column.cast(pa.string()), _MARKED)).as_py())
    except pa.ArrowException:
        return False


def _parsed(block: bytes, found: Dialect, wanted: Wanted, name: str, rows: int) -> Any:
    """Let Arrow parse a block of whole rows, but for cells such as 0x10, which it would take for 16."""
    table = _read(block, found, wanted, name, rows)
    if any(x in block and b"0" + x in block for x in (b"x", b"X")):  # one letter is found ten times as fast as two
        numeric = list(wanted.numeric)
        own = wanted._replace(columns=numeric)
        if strange := _hexadecimal(table, _read(block, found, own, name, rows, as_text=numeric)):
            return _read(block, found, wanted, name, rows, as_text=strange)
    return table


def _read(block: bytes, found: Dialect, wanted: Wanted, name: str, rows: int, as_text: Sequence[str] = ()) -> Any:
    sink = pa.BufferOutputStream()
    sink.write(block)
    try:
        return arrow_csv.read_csv(
            pa.BufferReader(sink.getvalue()),
            read_options=arrow_csv.ReadOptions(
                use_threads=False, block_size=len(block) + 1, column_names=_unique(found.header, wanted.columns)
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=found.delimiter,
                newlines_in_values=True,
                # In a file of one column, an empty line is a missing value, not a blank line.
                ignore_empty_lines=len(found.header) > 1,
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=list(wanted.columns),
                column_types={column: pa.string() for column in [*_texts(wanted), *as_text]},
                null_values=MISSING,
                strings_can_be_null=True,
                decimal_point=found.decimal,
            ),
        )
    except pa.ArrowException:
        raise _unparsed(block, found, name, rows) from None


def _hexadecimal(table: Any, text: Any) -> list[str]:
    """Return the columns of whole numbers some of which are text such as 0x10."""
    return [
        column
        for column in text.column_names
        if pa.types.is_integer(table.column(column).type)
        and pc.any(pc.match_substring_regex(text.column(column), _HEXADECIMAL)).as_py()
    ]


def _texts(wanted: Wanted) -> Sequence[str]:
    """Return the columns that are read as text: labels, and numbers among which symbols may stand."""
    return [column for column in wanted.columns if column not in wanted.numeric or wanted.limits(column) is not None]


def _unique(header: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Give columns that nobody wants names of their own."""
    return [name if name in wanted else f"\0{place}" for place, name in enumerate(header)]


def _unparsed(block: bytes, found: Dialect, name: str, rows: int) -> BadInput:
    """Say which row has another number of fields than the header; that the quotes are wrong where none has."""
    expected = len(found.header)
    try:
        for row in csv.reader(io.StringIO(block.decode(), newline=""), delimiter=found.delimiter):
            if row and len(row) != expected:
                return ragged(name, rows, expected, len(row))
            rows += bool(row)
    except csv.Error:
        pass
    return BadInput(f"{name} cannot be read as CSV: check its quotes and line ends")


def _numbers(column: Any, found: Dialect, name: str, place: str, wanted: Wanted, rows: int) -> Any:
    """Return a column as numbers or times, or refuse it."""
    limits, rule = wanted.limits(name), wanted.rule_of(name)
    if limits is not None and str(column.type) in ("string", "binary"):
        how = {"decimal": found.decimal, "certain": found.certain, "first_row": rows, "in_file": True}
        return pa.chunked_array([pa.array(to_numbers(column.to_pylist(), limits, place, **how))])  # type: ignore[arg-type]
    read = _as_numbers(column, found, place)
    if read is None and str(column.type) == "binary":
        raise bad_row(place, rows, "text", rule)
    if read is None:
        cells = (cell.as_py() for cell in column)
        how = {"decimal": found.decimal, "first_row": rows, "in_file": True, "censored": name != wanted.weight}
        raise text_refused(cells, place, rule, **how)  # type: ignore[arg-type]
    return read


def _as_numbers(column: Any, found: Dialect, place: str) -> Any:
    """Return a column that Arrow found to be numbers or times, or read text as numbers with parted thousands.

    None where it is something else; numbers that can be read in two ways are refused.
    """
    if str(column.type) not in ("string", "binary"):
        return column
    try:
        text = pc.utf8_trim_whitespace(column.cast(pa.string()))
    except pa.ArrowException:
        return None
    if not pc.all(pc.match_substring_regex(text, pattern(found.decimal))).as_py():
        return None
    other = "," if found.decimal == "." else "."
    if not found.certain and pc.any(pc.match_substring_regex(text, may_be_either(other))).as_py():
        raise either(place, other)
    text = pc.replace_substring_regex(text, separators(found.decimal), "")
    for written, plain in (("−", "-"), ("+", ""), (found.decimal, ".")):
        text = pc.replace_substring(text, written, plain)
    for kind in (pa.int64(), pa.float64()):
        try:
            return text.cast(kind)
        except pa.ArrowException:
            continue
    return None


def _narrow(column: Any) -> Any:
    """Hold whole numbers in as few bytes as they need: a file of them may be long."""
    if column.type != pa.int64() or column.null_count == len(column):
        return column
    ends = pc.min_max(column).as_py()
    size = max(abs(ends["min"]), abs(ends["max"]) + 1)
    kind = next((kind for bits, kind in ((7, pa.int8()), (15, pa.int16()), (31, pa.int32())) if size < 1 << bits), None)
    return column if kind is None else column.cast(kind)


def _common(kinds: Iterable[Any]) -> Any:
    """Find the type that blocks of these types are read as; None where they cannot be one column."""
    present = {kind for kind in kinds if not pa.types.is_null(kind)}
    if len(present) < 2:
        return present.pop() if present else pa.null()
    family = next((row for row in _TOGETHER if present <= set(row)), ())
    return family[max(map(family.index, present))] if family else None


def _refuse_change(kinds: Iterable[Any], place: str, rows: int) -> None:
    """Refuse a block of another kind of values than those before it."""
    if _common(kinds) is None:
        raise sentence(place, f"holds another kind of value after row {rows:,} than before it: give all rows one kind")


def _joined(parts: Sequence[Any]) -> Any:
    """Put the blocks of a column below each other."""
    if pa.types.is_dictionary(parts[0].type):
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks])
    kind = _common([part.type for part in parts])
    return pa.chunked_array([chunk for part in parts for chunk in part.cast(kind).chunks], type=kind)
