"""Every kind of column becomes the same records, and what cannot is refused in one sentence that names the row."""

import array
import datetime as dt
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.client.reading import table as values
from sottovoce.client.reading.table import read_values
from sottovoce.client.record import Records
from sottovoce.core.errors import BadInput
from sottovoce.core.unit import Unit

WHERE = "site 'north'"
Maker = Callable[[list[Any]], Any]

MAKERS: dict[str, Maker] = {
    "list": list,
    "tuple": tuple,
    "objects": lambda items: np.array(items, dtype=object),
    "arrow": pa.array,
    "chunks": lambda items: pa.chunked_array([pa.array(items[:1], pa.array(items).type), pa.array(items)[1:]]),
    "pandas": pd.Series,
    "pandas objects": lambda items: pd.Series(items, dtype=object),
    "polars": pl.Series,
    "polars chunks": lambda items: pl.concat([pl.Series(items[:1]), pl.Series(items)[1:]], rechunk=False),
}

COLUMNS: dict[str, tuple[list[Any], list[float], str]] = {
    "floats": ([1.5, -2.0, 7.25], [1.5, -2.0, 7.25], "number"),
    "ints": ([3, -4, 5], [3.0, -4.0, 5.0], "number"),
    "decimals": ([Decimal("1.50"), Decimal("2.25"), Decimal("3.00")], [1.5, 2.25, 3.0], "number"),
    "dates": ([dt.date(2013, 5, 1), dt.date(1969, 12, 31), dt.date(1970, 1, 1)], [15826.0, -1.0, 0.0], "date"),
    "moments": (
        [dt.datetime(2013, 5, 1, 14, 3, 20), dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 500000)],
        [1367417000.0, 0.0, -0.5],
        "datetime",
    ),
    "durations": (
        [dt.timedelta(minutes=3), dt.timedelta(days=-1), dt.timedelta(milliseconds=1)],
        [180.0, -86400.0, 1e-3],
        "duration",
    ),
    "times of day": ([dt.time(1, 2, 3), dt.time(0), dt.time(23, 59, 59)], [3723.0, 0.0, 86399.0], "duration"),
}


def refusal(column: Any, missing: str = "refuse") -> str:
    """Return the sentence with which a column is refused, after checking that it is one."""
    with pytest.raises(BadInput) as refused:
        read_values(column, where=WHERE, missing=missing)
    text = str(refused.value)
    assert text.startswith("Site 'north' ")
    assert "\n" not in text
    assert ". " not in text
    assert not text.endswith(".")
    return text


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("column", COLUMNS)
def test_every_source_gives_the_same_records(column: str, maker: str) -> None:
    items, expected, kind = COLUMNS[column]
    records, dropped = read_values(MAKERS[maker](items), where=WHERE)
    assert records.values().tolist() == expected
    assert (records.unit.kind, dropped) == (kind, 0)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("column", COLUMNS)
def test_missing_values_are_dropped_and_counted_or_refused(column: str, maker: str) -> None:
    items, expected, kind = COLUMNS[column]
    gappy = MAKERS[maker]([items[0], None, *items[1:], None])
    records, dropped = read_values(gappy, where=WHERE, missing="drop")
    assert records.values().tolist() == expected
    assert (records.unit.kind, dropped) == (kind, 2)
    assert "holds a missing value (NaN or null) in row 2: " in refusal(gappy)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "f2", "f4", "f8", "g", ">f8", ">i4"])
def test_every_number_type_of_numpy(dtype: str) -> None:
    records, _ = read_values(np.array([3, 1, 2], dtype=dtype), where=WHERE)
    assert records.values().tolist() == [3.0, 1.0, 2.0]
    assert records.values().dtype == np.float64


@pytest.mark.parametrize(
    ("column", "expected", "unit"),
    [
        (np.array(["2013-05-01", "NaT"], "M8[D]"), [15826.0], Unit("date", "D")),
        (np.array(["2013-05", "NaT"], "M8[M]"), [15826.0], Unit("date", "D")),
        (np.array(["2013-05-01T14:03:20", "NaT"], "M8[ns]"), [1367417000.0], Unit("datetime", "ns")),
        (np.array([2, "NaT"], "m8[W]"), [1209600.0], Unit("duration", "D")),
        (np.array([2, "NaT"], "m8[h]"), [7200.0], Unit("duration", "h")),
        (np.array([1500, "NaT"], "m8[ms]"), [1.5], Unit("duration", "ms")),
        (np.array([3, "NaT"], "M8[25s]"), [75.0], Unit("datetime", "s")),
        ([np.datetime64("2013-05-01"), np.datetime64("NaT")], [15826.0], Unit("date", "D")),
        ([np.timedelta64(2, "s"), None], [2.0], Unit("duration", "us")),
        ([np.datetime64("2013-05-01"), None], [15826.0], Unit("date", "D")),
        ([np.datetime64("12013-05-01"), None], [3668251.0], Unit("date", "D")),
        ([np.datetime64("12013-05-01T00:00:01"), None], [3668251.0 * 86400 + 1], Unit("datetime", "us")),
        (np.ma.masked_array([1, 2], [False, True]), [1.0], Unit("number", "1")),
        (np.ma.masked_array([1.5, 2], [False, True]), [1.5], Unit("number")),
        ([np.ma.masked, 2.5], [2.5], Unit("number")),
        ([np.float32(0.5), Fraction(1, 4), Decimal("NaN")], [0.5, 0.25], Unit("number")),
        (pd.Series([1, None], dtype="Int64"), [1.0], Unit("number")),
        (pd.Series([1, None], dtype="Float64"), [1.0], Unit("number")),
        (pd.Series([1, None], dtype="int64[pyarrow]"), [1.0], Unit("number")),
        (pd.Series([1.0, None], dtype="double[pyarrow]"), [1.0], Unit("number")),
        (pd.Series([7, None], dtype="category"), [7.0], Unit("number")),
        (pd.Series([pd.NaT, pd.Timedelta("3s")]), [3.0], Unit("duration", "s")),
        (pd.Series([pd.NA, 3], dtype=object), [3.0], Unit("number")),
        (pa.array([86400000, None], pa.date64()), [1.0], Unit("date", "D")),
        (pa.array([1.5, None], pa.float16()), [1.5], Unit("number")),
        (pa.nulls(1), [], Unit("number")),
    ],
)
def test_special_sources_with_one_value_missing(column: Any, expected: list[float], unit: Unit) -> None:
    records, dropped = read_values(column, where=WHERE, missing="drop")
    assert records.values().tolist() == expected
    assert dropped == 1
    assert records.unit.kind == unit.kind
    assert records.unit.resolution == unit.resolution or isinstance(column, pd.Series)


def test_other_sources() -> None:
    for column in (range(3), array.array("d", [0.0, 1.0, 2.0]), np.arange(6)[::2] // 2, np.arange(3.0)[::-1][::-1]):
        assert read_values(column, where=WHERE).records.values().tolist() == [0.0, 1.0, 2.0]
    records = Records(np.zeros(3))
    assert read_values(records, where=WHERE).records is records


def test_time_zones_are_kept_and_several_become_utc() -> None:
    aware = pd.Series(pd.to_datetime(["2013-05-01 16:03:20"]).tz_localize("Europe/Berlin"))
    for column in (aware, aware.astype(object), pl.Series(aware), pa.array(aware)):
        records, _ = read_values(column, where=WHERE)
        assert records.values().tolist() == [1367417000.0]
        assert records.unit.zone == "Europe/Berlin"
    mixed = [dt.datetime(2013, 5, 1, tzinfo=dt.timezone(dt.timedelta(hours=hours))) for hours in (1, 2)]
    assert read_values(mixed, where=WHERE).records.unit.zone == "UTC"


@pytest.mark.parametrize("maker", [*MAKERS, "numpy"])
@pytest.mark.parametrize("missing", ["refuse", "drop"])
def test_infinite_numbers_are_always_refused(maker: str, missing: str) -> None:
    column = MAKERS.get(maker, np.array)([1.0, -float("inf"), 2.0])
    assert "holds an infinite number in row 2: remove it, or cap it" in refusal(column, missing)


def test_numbers_beyond_float64_are_refused_as_infinite() -> None:
    huge = np.longdouble(2) ** 2000
    if not np.isfinite(huge):
        pytest.skip("long double is double here")
    assert "an infinite number in row 1" in refusal(np.array([huge]))
    assert "an infinite number in row 2" in refusal([1.0, Decimal("1e400")])


@pytest.mark.parametrize("column", [[2**60], np.array([2**60]), pa.array([2**60]), np.array([2**63], np.uint64)])
def test_long_whole_numbers_that_float64_holds_exactly_are_read(column: Any) -> None:
    assert read_values(column, where=WHERE).records.values()[0] == int(
        column[0].as_py() if isinstance(column, pa.Array) else column[0]
    )


def test_steps_on_the_way_do_not_print_the_values() -> None:
    column = np.array([123456.0, 2.0])
    assert "123456" not in repr(values.check_column(column, where=WHERE, missing="refuse"))
    assert "123456" not in repr(read_values(column, where=WHERE))


def test_an_unknown_treatment_of_missing_values_is_refused() -> None:
    with pytest.raises(BadInput, match='missing is \'ignore\': give missing="refuse" or missing="drop"'):
        read_values([1.0], where=WHERE, missing="ignore")


@pytest.mark.parametrize("make", [np.asarray, pd.Series, pl.Series, pa.array, lambda a: pa.chunked_array([a])])
def test_float64_is_not_copied(make: Callable[[Any], Any]) -> None:
    column = make(np.arange(1000.0))
    held = read_values(column, where=WHERE).records.values()
    assert np.shares_memory(held, column.to_numpy() if hasattr(column, "to_numpy") else column)


def test_memory_beside_the_data_is_constant() -> None:
    data = np.arange(2.0e6)
    tracemalloc.start()
    read_values(data, where=WHERE)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10**6 < data.nbytes


@given(
    st.lists(st.one_of(st.none(), st.floats(allow_infinity=False), st.integers(-(2**53), 2**53)), max_size=40),
    st.integers(1, 9),
)
def test_chunks_do_not_show(items: list[float | None], chunk: int) -> None:
    present = [float(item) for item in items if item is not None and item == item]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "_CHUNK", chunk)
        for column in (items, np.array([np.nan if item is None else item for item in items], dtype=float)):
            records, dropped = read_values(column, where=WHERE, missing="drop")
            assert records.values().tolist() == present
            assert dropped == len(items) - len(present)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30), st.data())
def test_the_first_bad_row_is_named(items: list[float], data: st.DataObject) -> None:
    row = data.draw(st.integers(0, len(items) - 1))
    bad = data.draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    column = np.array([*items[:row], bad, *items[row:], np.nan])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "_CHUNK", 4)
        assert f" in row {row + 1}: " in refusal(column)
