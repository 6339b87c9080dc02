"""Sites given from Python become one table, or are refused in one sentence."""

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sottovoce.client.reading.table import read_sites
from sottovoce.core.errors import BadInput

NORTH, SOUTH = [3.0, 4.5, 6.0], [1.0, 2.0]


def refusal(sites: Any, missing: str = "refuse") -> str:
    with pytest.raises(BadInput) as refused:
        read_sites(sites, missing=missing)
    text = str(refused.value)
    assert "\n" not in text
    assert ". " not in text
    return text


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series, pa.array])
def test_a_mapping(make: Any) -> None:
    table = read_sites({"north": make(NORTH), "south": make(SOUTH)})
    assert table.names == ("north", "south")
    assert [records.values().tolist() for records in table.records] == [NORTH, SOUTH]
    assert table.unit.kind == "number"
    assert table.dropped == {"north": 0, "south": 0}
    assert (table.unplaced, table.left_out, table.per_person) == (0, 0, False)


@pytest.mark.parametrize("sites", [[NORTH, SOUTH], (np.array(NORTH), pl.Series(SOUTH))])
def test_a_sequence_is_numbered(sites: Any) -> None:
    assert read_sites(sites).names == ("site 1", "site 2")


def test_names_become_text() -> None:
    sites: dict[Any, Any] = {7: NORTH, dt.date(2013, 5, 1): SOUTH, 2.0: SOUTH}
    assert read_sites(sites).names == ("7", "2013-05-01", "2")


def test_dropped_values_are_counted_by_site() -> None:
    table = read_sites({"north": [*NORTH, None, np.nan], "south": SOUTH}, missing="drop")
    assert table.dropped == {"north": 2, "south": 0}
    assert list(map(len, table.records)) == [3, 2]


def test_all_sites_share_one_unit() -> None:
    table = read_sites({"a": np.array([1, 2], "m8[s]"), "b": np.array([1500, 2], "m8[ms]")})
    assert {records.unit for records in table.records} == {table.unit}
    assert table.unit.resolution == "ms"
    assert [records.values().tolist() for records in table.records] == [[1.0, 2.0], [1.5, 0.002]]


def test_equal_values_within_a_site_are_fine_when_another_site_differs() -> None:
    assert read_sites({"a": [1.0, 1.0], "b": [1.0, 2.0]}).names == ("a", "b")


def test_text_of_a_table_hides_the_values() -> None:
    assert "123456" not in repr(read_sites({"north": [123456.0, 1.0]}))


@pytest.mark.parametrize(
    ("sites", "sentence"),
    [
        ({}, "there are no sites: give at least one site with its records"),
        ([], "there are no sites: give at least one site with its records"),
        ({"north": [], "south": SOUTH}, "site 'north' has no records: give it at least two, or leave it out"),
        ({"north": [1.0], "south": SOUTH}, "site 'north' has only one record: give it at least two, or leave it out"),
        ({1: NORTH, "1": SOUTH}, "two sites are called '1': give every site a name of its own"),
        ({" ": NORTH}, "site 1 has a blank name: give every site a name"),
        ({"a": [5.0, 5.0], "b": [5.0] * 3}, "all 5 records have one and the same value: there is no quantile to"),
        ({"a": NORTH, "b": [dt.timedelta(1)] * 2}, "site 'a' holds numbers and site 'b' holds durations"),
        ({"a": NORTH, "b": [1.0, "x"]}, "Site 'b' holds text in row 2"),
        ([NORTH, [1.0, None]], "Site 'site 2' holds a missing value (NaN or null) in row 2"),
        ([1.0, 2.0], "Site 'site 1' is a float: give a one-dimensional array of records"),
        (np.array(NORTH), "sites is one column: give a mapping from site to records, or a list with one array a site"),
        (pd.Series(NORTH), "sites is one column: give a mapping"),
        (
            pd.DataFrame({"a": NORTH}),
            "sites is a data frame: read it first with sv.read_frame(frame",
        ),
        (pl.DataFrame({"a": NORTH}), "sites is a data frame: "),
        (pl.LazyFrame({"a": NORTH}), "sites is a data frame: "),
        (pa.table({"a": NORTH}), "sites is a data frame: "),
        ("north", "sites is text: give a mapping"),
        (3.0, "sites is a float: give a mapping"),
    ],
)
def test_refusals(sites: Any, sentence: str) -> None:
    assert refusal(sites).startswith(sentence)


def test_a_site_emptied_by_dropping_is_refused_with_the_count() -> None:
    text = refusal({"north": [1.0, None, None, None], "south": SOUTH}, missing="drop")
    assert text.startswith("site 'north' has only one record once its 3 missing values are left out: ")


def test_the_common_value_is_not_told() -> None:
    assert "98765" not in refusal({"a": [98765.0, 98765.0]})


def test_an_unknown_treatment_of_missing_values_is_refused() -> None:
    assert refusal({"a": NORTH}, missing="skip").startswith("missing is 'skip': give ")


def test_one_array_under_two_names_is_refused_and_its_halves_are_not() -> None:
    values = np.linspace(0.0, 1.0, 100)
    for sites in (
        {"a": values, "b": values},
        {"a": values[:60], "b": values[40:]},
        {"a": values, "c": values + 1, "b": values},
    ):
        with pytest.raises(BadInput, match="sites 'a' and 'b' share records, which would answer twice"):
            read_sites(sites)
    assert read_sites({"a": values[:50], "b": values[50:]}).names == ("a", "b")


def many(count: int = 200) -> list[Any]:
    return [np.arange(5.0) + k for k in range(count)]


def test_many_small_columns_are_read_as_they_are() -> None:
    columns = many()
    table = read_sites(columns)
    assert [records.values().tolist() for records in table.records] == [column.tolist() for column in columns]
    assert all(np.shares_memory(own.values(), column) for own, column in zip(table.records, columns, strict=True))
    assert set(table.dropped.values()) == {0}


@pytest.mark.parametrize(("bad", "kind"), [(np.nan, "a missing value"), (np.inf, "an infinite number")])
def test_one_bad_value_among_many_small_columns_is_named(bad: float, kind: str) -> None:
    columns = many()
    columns[130][3] = bad
    with pytest.raises(BadInput, match=rf"Site 'site 131' holds {kind}.* in row 4"):
        read_sites(columns)
    if np.isnan(bad):
        table = read_sites(columns, missing="drop")
        assert (table.dropped["site 131"], table.records[130].size, sum(table.dropped.values())) == (1, 4, 1)


@pytest.mark.parametrize("other", [np.arange(5), np.arange(10.0)[::2], [1.0, 2.0], np.arange(5.0).astype(">f8")])
def test_many_small_columns_may_be_of_any_kind(other: Any) -> None:
    columns = many()
    columns[70] = other
    table = read_sites(columns)
    assert table.records[70].values().tolist() == list(map(float, other))
    assert len(table.records) == 200


@pytest.mark.parametrize(("one", "two"), [(3, 199), (64, 65)])
def test_two_of_many_small_columns_may_not_share_records(one: int, two: int) -> None:
    columns = many()
    columns[two] = columns[one][1:4]
    with pytest.raises(BadInput, match=f"sites 'site {one + 1}' and 'site {two + 1}' share records"):
        read_sites(columns)
    rows = np.arange(1000.0).reshape(200, 5)
    assert len(read_sites(list(rows)).records) == 200  # neighbours in memory share nothing
