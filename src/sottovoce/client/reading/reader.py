"""The one reader of columns: numpy, lists, Arrow, pandas and polars, each as float64 chunk by chunk."""

import datetime as dt
import numbers
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np

from sottovoce.client.reading.cells import DATE, MOMENT, kind_of_cell
from sottovoce.client.reading.cells import NUMBER as NUMERAL
from sottovoce.client.reading.column import NUMBERS, RECORDS, Accepts, Column, exact_floats, from_numpy
from sottovoce.core import time_text
from sottovoce.core.arrays import Floats
from sottovoce.core.checks import bad_row, kind_of, sentence
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import hides
from sottovoce.core.unit import NUMBER, TRUTH, WHOLE, Kind, Unit

_LONG = 2.0**53
_NONE = ("NoneType", "NAType", "NaTType")


def open_column(column: Any, where: str, accepts: Accepts = NUMBERS, *, first: int = 0) -> Column:
    """Find the reader for a column; of a block of Arrow, ``first`` is the number of its first row in a refusal.

    It is one-dimensional: numpy (masked too), a list, Arrow, pandas or polars. A contiguous column of float64 with
    nothing missing is not copied; NaN stands where a value is missing.

    >>> open_column([3, True, None], "column 'hour' of X").chunk(0, 3)
    array([ 3.,  1., nan])
    >>> open_column([3, "four"], "column 'hour' of X")
    Traceback (most recent call last):
    sottovoce.client.reading.column.NotNumbers: Column 'hour' of X holds text in row 2: every argument must be \
neither a string nor a date but a number, so code it as numbers first
    """
    if isinstance(column, np.ndarray):
        if column.dtype.kind == "O" and column.ndim == 1:
            return from_objects(column.tolist(), where, accepts)
        return from_numpy(column, where, accepts)
    if type(column).__module__.partition(".")[0] == "pyarrow":
        return _from_arrow(column, where, accepts, first)
    series = nw.from_native(column, allow_series=True, pass_through=True)
    if isinstance(series, nw.DataFrame | nw.LazyFrame):
        raise sentence(where, "is a data frame: give one of its columns")
    if isinstance(series, nw.Series):
        return _from_series(series, where, accepts)
    if isinstance(column, Sequence) and not isinstance(column, str | bytes | bytearray | memoryview):
        return from_objects(column, where, accepts)
    if hasattr(column, "__array__") or isinstance(column, bytearray | memoryview):
        return open_column(np.asarray(column), where, accepts)
    raise sentence(where, f"is {kind_of(column)}: give {accepts.array}")


def collected(lazy: "nw.LazyFrame[Any]", where: str) -> "nw.DataFrame[Any]":
    """Compute a lazy frame; the errors of its library, which may show values, become a sentence."""
    try:
        return lazy.collect()
    except Exception:
        raise not_computed(where) from None


def not_computed(where: str) -> BadInput:
    """Refuse a lazy frame that cannot be computed."""
    return sentence(where, "is lazy and cannot be computed: collect it first, and see why")


def _from_series(series: "nw.Series[Any]", where: str, accepts: Accepts) -> Column:
    """Read a pandas or polars column with as little copying as its type allows."""
    dtype = series.dtype
    if dtype in (nw.Object, nw.Unknown):
        return from_objects(series.to_list(), where, accepts)
    if series.implementation.is_pandas_like() and dtype.is_numeric() and dtype != nw.Decimal:
        array = series.to_numpy() if dtype in (nw.Float64, nw.Float32) or not series.null_count() else None
        if array is not None and array.dtype.kind in "iuf":
            return from_numpy(array, where, accepts)
    try:
        arrow = series.to_arrow()
    except (TypeError, ValueError, NotImplementedError):  # Arrow's errors among them; their texts show values
        return from_objects(series.to_list(), where, accepts)
    return _from_arrow(_in_order(arrow) if dtype == nw.Enum else arrow, where, accepts)


def _in_order(column: Any) -> Any:
    """Say of the categories of a polars Enum that they are in order: not every version of polars tells Arrow so."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type) or column.type.ordered:
        return column
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    ordered = pa.dictionary(column.type.index_type, column.type.value_type, ordered=True)
    made = [pa.DictionaryArray.from_arrays(each.indices, each.dictionary, ordered=True) for each in chunks]
    return pa.chunked_array(made, type=ordered)


def _from_arrow(column: Any, where: str, accepts: Accepts, first: int = 0) -> Column:
    """Read a pyarrow Array or ChunkedArray; Arrow's own errors, which may show values, become a sentence."""
    import pyarrow as pa

    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    if not isinstance(column, pa.ChunkedArray):
        raise sentence(where, f"is {kind_of(column)}: give {accepts.column}")
    of = _type_name(column.type)

    def refused() -> BadInput:
        return sentence(where, f"holds values of type {of} that cannot be read as numbers: convert them first")

    try:
        opened = _from_chunks(column, where, accepts, first)
    except pa.ArrowException:
        raise refused() from None

    def read(start: int, stop: int) -> Floats:
        try:
            return opened.read(start, stop)
        except pa.ArrowException:
            raise refused() from None

    return replace(opened, read=read)


def _from_chunks(column: Any, where: str, accepts: Accepts, first: int) -> Column:
    """Read Arrow numbers, decimals, dates, times, durations, categories, truth values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    types = pa.types
    codes: Unit | None = None
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    if str(column.type).startswith("run_end_encoded"):
        column = pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks])
    if types.is_dictionary(column.type):
        text = _arrow_kind(column.type.value_type) == "text"
        if accepts.ordered and column.type.ordered and text:
            codes, column = _codes(column, where)
        elif text:
            raise accepts.text_refusal((each.as_py() for each in column), where)
        else:
            column = column.cast(column.type.value_type)
    if types.is_boolean(column.type) and (accepts.truth or accepts.ordered):
        codes, column = TRUTH if accepts.ordered else None, column.cast(pa.uint8())
    of = column.type
    number = types.is_integer(of) or types.is_floating(of) or types.is_decimal(of) or types.is_null(of)
    whole_type = types.is_integer(of) or (types.is_decimal(of) and of.scale <= 0)
    unit = codes or (WHOLE if whole_type else NUMBER if number else _time_unit(of) if accepts.ordered else None)
    if unit is None and _arrow_kind(of) == "text":
        raise accepts.text_refusal((each.as_py() for each in column), where)
    if unit is None:
        row = first + next((row for row in range(len(column)) if column[row].is_valid), 0)
        raise accepts.refusal(where, row, _arrow_kind(of))
    if types.is_date(of):
        try:
            column = column.cast(pa.date32())
        except pa.ArrowInvalid:
            raise sentence(where, "holds dates with a time of day, but its type is a date: convert it first") from None
    whole = None
    if types.is_float64(of) and column.num_chunks == 1 and column.null_count == 0:
        whole = column.chunk(0).to_numpy(zero_copy_only=True)
    bits = pa.int32() if types.is_date(of) or types.is_time32(of) else pa.int64()

    def read(start: int, stop: int) -> Floats:
        piece = column.slice(start, stop - start).combine_chunks()
        if isinstance(piece, pa.ChunkedArray):
            piece = pa.concat_arrays(piece.chunks) if piece.num_chunks else pa.array([], type=of)
        if number and not types.is_integer(of):
            floats: Floats = piece.cast(pa.float64()).to_numpy(zero_copy_only=False)
            return floats
        gone = piece.is_null().to_numpy(zero_copy_only=False) if piece.null_count else None
        whole_numbers = piece if number else piece.cast(bits)
        counts = (whole_numbers if gone is None else whole_numbers.fill_null(0)).to_numpy(zero_copy_only=False)
        floats = exact_floats(counts, where, first + start) if number else unit.to_float(counts.astype(np.int64))
        if gone is not None:
            floats[gone] = np.nan
        return floats

    return Column(unit, len(column), read, whole)


def _codes(column: Any, where: str) -> tuple[Unit, Any]:
    """Take ordered categories of text apart: their declared names, and the place of each value among them."""
    import pyarrow as pa

    names = [chunk.dictionary.to_pylist() for chunk in column.chunks]
    if any(other != names[0] for other in names):
        raise sentence(where, "has parts with different categories: declare the same ones, in one order, for all rows")
    if any(not isinstance(name, str) or hides(name) for part in names[:1] for name in part):
        raise sentence(where, "has a category that is missing or has a control character in its name: rename it")
    unit = Unit("category", "1", categories=tuple(names[0]) if names else ())
    return unit, pa.chunked_array([chunk.indices for chunk in column.chunks], type=column.type.index_type)


def _time_unit(of: Any) -> Unit | None:
    """Find the unit of an Arrow type that counts time; None for any other."""
    from pyarrow import types

    if types.is_timestamp(of):
        return Unit("datetime", of.unit, of.tz or "")
    if types.is_date(of):
        return Unit("date", "D")
    return Unit("duration", of.unit) if types.is_duration(of) or types.is_time(of) else None


def _arrow_kind(of: Any) -> str:
    """Name what the values of an Arrow type are."""
    from pyarrow import types

    if types.is_boolean(of):
        return "a truth value"
    if str(of) in ("string", "large_string", "string_view"):
        return "text"
    if types.is_temporal(of):
        return "a duration" if types.is_duration(of) else "a date or time"
    return f"a value of type {_type_name(of)}"


def _type_name(of: Any) -> str:
    """Name an Arrow type without its parameters, which may be names of fields."""
    return str(of).split("<")[0].split("[")[0].split("(")[0]


def from_objects(objects: Sequence[Any], where: str, accepts: Accepts) -> Column:
    """Read a sequence of Python objects; None, NaN, NaT and NA are missing."""
    if not accepts.ordered:
        _refuse_other_than_numbers(objects, where, accepts)
    if accepts.truth and not {bool, np.bool_}.isdisjoint(map(type, objects)):
        objects = [int(value) if isinstance(value, bool | np.bool_) else value for value in objects]
    types = set(map(type, objects))
    if types <= {int, float, type(None)}:
        unit = NUMBER if float in types or int not in types else WHOLE
        return Column(unit, len(objects), lambda start, stop: _plain(objects, where, start, stop, int in types))
    (only, *more) = types
    if not more and issubclass(only, np.generic) and only is not np.object_:
        return from_numpy(np.array(objects), where, accepts)
    unit = NUMBER
    for row, value in enumerate(objects):
        if not is_missing(value):
            unit = _unit_of(value, where, row)
            break
    if unit == NUMBER and all(issubclass(each, numbers.Integral) or each.__name__ in _NONE for each in types):
        unit = WHOLE
    if unit.zone and unit.zone != "UTC" and len({_zone(v) for v in objects if not is_missing(v)}) > 1:
        unit = Unit(unit.kind, unit.resolution, "UTC")

    def read(start: int, stop: int) -> Floats:
        return np.array([_float(objects[row], unit, where, row) for row in range(start, stop)], dtype=np.float64)

    return Column(unit, len(objects), read)


def is_missing(value: object) -> bool:
    """Tell whether a Python object stands for a missing value."""
    if value is None or type(value).__name__ in _NONE:
        return True
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return bool(np.isnat(value))
    if isinstance(value, np.ma.core.MaskedConstant):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def _refuse_other_than_numbers(objects: Sequence[Any], where: str, accepts: Accepts) -> None:
    """Refuse the first object that is neither a number, nor a truth value, nor missing."""
    truth = () if accepts.truth else (bool, np.bool_)
    others = {kind for kind in set(map(type, objects)) if not _numeric(kind) or issubclass(kind, truth)}
    if others:
        for row, value in enumerate(objects):
            if type(value) in others and not is_missing(value):
                raise accepts.refusal(where, row, kind_of(value))


def _numeric(kind: type) -> bool:
    """Tell whether values of a type are numbers or truth values."""
    # numpy's durations call themselves signed integers
    return issubclass(kind, numbers.Real | Decimal | np.bool_) and not issubclass(kind, np.timedelta64)


def _plain(objects: Sequence[Any], where: str, start: int, stop: int, whole: bool) -> Floats:
    """Read floats, ints and None at the speed of numpy, refusing an int that float64 would change."""
    piece = objects[start:stop]
    try:
        floats = np.array(piece, dtype=np.float64)
    except OverflowError:
        rows = range(start, stop)
        return np.array([_float(objects[row], NUMBER, where, row) for row in rows], dtype=np.float64)
    if whole:
        for row in map(int, np.flatnonzero(np.abs(floats) >= _LONG)):
            _number(piece[row], where, start + row)
    return floats


def _number(value: Any, where: str, row: int) -> float:
    """Turn one number into a float, refusing an int that float64 would change."""
    advice = "subtract a constant, or count in a coarser unit"
    try:
        number = float(value)
    except (OverflowError, ValueError):
        raise bad_row(where, row, "a number too long for float64", advice) from None
    if isinstance(value, numbers.Integral) and abs(number) >= _LONG and int(number) != int(value):
        raise bad_row(where, row, "a whole number too long for float64", advice)
    return number


def _kind(value: Any) -> Kind | None:
    """Tell which kind of unit a value belongs to; None when it belongs to none."""
    if isinstance(value, np.datetime64):
        return "date" if np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D") else "datetime"
    if isinstance(value, np.timedelta64) and np.datetime_data(value.dtype)[0] in ("generic", "Y", "M"):
        return None
    if isinstance(value, dt.timedelta | dt.time | np.timedelta64):
        return "duration"
    if isinstance(value, dt.datetime):
        return "datetime"
    if isinstance(value, dt.date):
        return "date"
    if isinstance(value, bool | np.bool_):
        return "category"
    return "number" if isinstance(value, numbers.Real | Decimal) else None


def _refused(value: Any, where: str, row: int) -> BadInput:
    """Refuse an object that is no record; of text, say what it looks like."""
    if not isinstance(value, str):
        return RECORDS.refusal(where, row, kind_of(value))
    found = kind_of_cell(value)
    written = " written as text" if found in (NUMERAL, DATE, MOMENT) else ""
    return bad_row(where, row, found.name + written, found.advice or RECORDS.rule)


def _zone(value: Any) -> str:
    """Name the time zone of a moment; empty when it has none."""
    zone = value.tzinfo if isinstance(value, dt.datetime) else None
    return "" if zone is None else time_text.text_of_zone(zone, value)


def _unit_of(value: Any, where: str, row: int) -> Unit:
    """Find the unit that one value announces for its column."""
    kind = _kind(value)
    if kind is None:
        raise _refused(value, where, row)
    if kind == "category":
        return TRUTH
    return Unit(kind, {"number": "", "date": "D"}.get(kind, "us"), _zone(value))


def _float(value: Any, unit: Unit, where: str, row: int) -> float:
    """Turn one object into a float of the unit of its column."""
    if is_missing(value):
        return float("nan")
    kind = _kind(value)
    if kind is None:
        raise _refused(value, where, row)
    if kind != unit.kind:
        other = {"datetime": "a date with a time", "category": "a truth value"}.get(kind, f"a {kind}")
        raise bad_row(where, row, other, f"the rows before it hold {unit.plural}")
    if kind == "datetime" and bool(_zone(value)) != bool(unit.zone):
        advice = "give every row a time zone, or none"
        raise bad_row(where, row, f"a time with{'' if _zone(value) else 'out'} a time zone, unlike others", advice)
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = value.astype(f"{value.dtype.kind}8[us]").item()
        if isinstance(value, int):  # a year that Python's dates do not have, in microseconds
            return value / (86_400e6 if kind == "date" else 1e6)
    if kind == "date":
        return time_text.days_of(value)
    if kind == "datetime":
        return time_text.seconds_of(value)
    return time_text.duration_of(value) if kind == "duration" else _number(value, where, row)
