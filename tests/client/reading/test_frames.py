"""Data frames of every library give the same table of sites."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sottovoce.client.reading.frames import read_frame
from sottovoce.client.reading.table import SiteTable
from sottovoce.core.errors import BadInput
from sottovoce.sim.randomness import dice

DATA: dict[str, list[Any]] = {
    "delay": [3.0, 8.0, 1.0, 2.0, 9.0, 4.0],
    "airport": ["LGA", "JFK", "JFK", "LGA", "EWR", "EWR"],
    "passenger": [1, 2, 3, 4, 5, 6],
    "plane": ["a", "b", "c", "d", "e", "f"],
}
FRAMES: dict[str, Callable[[Any], Any]] = {
    "pandas": pd.DataFrame,
    "pandas shuffled index": lambda data: pd.DataFrame(data, index=range(len(data["delay"]), 0, -1)),
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "arrow": pa.table,
}


def content(table: SiteTable) -> dict[str, list[float]]:
    return {name: records.values().tolist() for name, records in zip(table.names, table.records, strict=True)}


def refusal(frame: Any, **options: Any) -> str:
    with pytest.raises(BadInput) as refused:
        read_frame(frame, **{"value": "delay", "site": "airport", **options})
    text = str(refused.value)
    assert "\n" not in text
    assert ". " not in text
    return text


@pytest.mark.parametrize("library", FRAMES)
def test_sites_are_parted_and_sorted(library: str) -> None:
    table = read_frame(FRAMES[library](DATA), value="delay", site="airport")
    assert content(table) == {"EWR": [9.0, 4.0], "JFK": [8.0, 1.0], "LGA": [3.0, 2.0]}
    assert table.names == ("EWR", "JFK", "LGA")
    assert not table.per_person


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize(
    ("sites", "names"),
    [
        ([10, 9, 9, 10, 2, 2], ("2", "9", "10")),
        ([10.0, 9.0, 9.0, 10.0, 2.0, 2.0], ("2", "9", "10")),
        ([1.5, 0.5, 0.5, 1.5, 1.5, 0.5], ("0.5", "1.5")),
        ([True, False, True, False, True, False], ("False", "True")),
    ],
)
def test_sites_need_not_be_text(library: str, sites: list[Any], names: tuple[str, ...]) -> None:
    assert read_frame(FRAMES[library]({**DATA, "airport": sites}), value="delay", site="airport").names == names


def test_categorical_sites_and_unused_categories() -> None:
    expected = content(read_frame(pa.table(DATA), value="delay", site="airport"))
    categories = pd.CategoricalDtype(["ZZZ", "LGA", "JFK", "EWR"], ordered=True)
    pandas = pd.DataFrame(DATA).astype({"airport": categories})
    polars = pl.DataFrame(DATA).with_columns(pl.col("airport").cast(pl.Categorical))
    arrow = pa.table({**DATA, "airport": pa.array(DATA["airport"]).dictionary_encode()})
    parts = pa.concat_tables(
        [
            arrow.slice(0, 2),
            pa.table(DATA)
            .slice(2)
            .set_column(1, "airport", pa.chunked_array([pa.array(DATA["airport"][2:]).dictionary_encode()])),
        ]
    )
    for frame in (pandas, polars, arrow, parts):
        assert content(read_frame(frame, value="delay", site="airport")) == expected


def test_sites_of_mixed_types_become_text() -> None:
    frame = pd.DataFrame({"delay": [1.0, 2.0, 3.0, 4.0], "airport": pd.Series([1, "1", "b", "b"], dtype=object)})
    assert content(read_frame(frame, value="delay", site="airport")) == {"1": [1.0, 2.0], "b": [3.0, 4.0]}


@pytest.mark.parametrize("library", FRAMES)
def test_missing_values_and_sites_are_dropped_and_counted_or_refused(library: str) -> None:
    gaps = {
        "delay": [3.0, None, 1.0, 2.0, 9.0, 4.0, None],
        "airport": ["LGA", "JFK", "JFK", "LGA", None, "JFK", None],
    }
    frame = FRAMES[library](gaps)
    table = read_frame(frame, value="delay", site="airport", missing="drop")
    assert content(table) == {"JFK": [1.0, 4.0], "LGA": [3.0, 2.0]}
    assert (dict(table.dropped), table.unplaced) == ({"JFK": 1, "LGA": 0}, 2)
    assert refusal(frame).startswith("Column 'delay' of the data frame holds a missing value (NaN or null) in row 2: ")
    whole = FRAMES[library]({**gaps, "delay": range(7)})
    assert refusal(whole).startswith("Column 'airport' of the data frame holds a missing value in row 5: remove it, or")


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("people", [["ann", "bob", "ann", "bob", "cy", "dan"], [7, 8, 7, 8, 9, 10]])
def test_one_row_a_person_over_all_sites(library: str, people: list[Any]) -> None:
    words = np.array([5, 1, 2, 9, 0, 0], dtype=np.uint64)
    data = {"delay": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "airport": ["x", "y", "y", "x", "x", "x"], "who": people}
    table = read_frame(FRAMES[library](data), value="delay", site="airport", person="who", dice=lambda n: words[:n])
    assert content(table) == {"x": [5.0, 6.0], "y": [2.0, 3.0]}
    assert (table.left_out, table.per_person) == (2, True)


def test_columns_named_by_numbers() -> None:
    frame = pd.DataFrame({0: [1.0, 2.0], "airport": ["x", "x"]})
    assert refusal(frame, value="0") == "The data frame has no column '0': did you mean 0?"


@given(st.integers(0, 2**32))
def test_missing_rows_do_not_take_part_in_the_draw(seed: int) -> None:
    data = {"delay": [None, 1.0, None, 2.0], "airport": ["x"] * 4, "who": [1, 1, 2, 2]}
    table = read_frame(
        pa.table(data), value="delay", site="airport", person="who", missing="drop", dice=dice(seed).words
    )
    assert content(table) == {"x": [1.0, 2.0]}
    assert table.left_out == 0


@pytest.mark.parametrize("missing", ["refuse", "drop"])
@pytest.mark.parametrize(
    "people", [[1, 2, None, 4, 5, 6], ["a", "b", None, "d", "e", "f"], [1.0, 2.0, np.nan, 4, 5, 6]]
)
@pytest.mark.parametrize("library", FRAMES)
def test_a_missing_person_is_always_refused(library: str, people: list[Any], missing: str) -> None:
    frame = FRAMES[library]({**DATA, "passenger": people})
    text = refusal(frame, person="passenger", missing=missing, dice=dice(1).words)
    assert text == "Column 'passenger' of the data frame holds a missing value in row 3: every row must name its person"


def test_a_person_needs_dice() -> None:
    assert refusal(pa.table(DATA), person="passenger").startswith("person is given without dice")


def test_a_site_left_with_one_person_is_refused() -> None:
    frame = pa.table({"delay": [1.0, 2.0, 3.0, 4.0], "airport": ["x", "x", "y", "y"], "who": [1, 2, 3, 3]})
    text = refusal(frame, person="who", dice=dice(1).words)
    assert text.startswith("site 'y' has only one record once one row a person is drawn: give it at least two")


@pytest.mark.parametrize("library", FRAMES)
def test_unknown_columns_are_named_with_those_near_by(library: str) -> None:
    frame = FRAMES[library](DATA)
    assert refusal(frame, value="dely") == "The data frame has no column 'dely': did you mean 'delay'?"
    listed = "The data frame has no column 'zzz': its columns are 'delay', 'airport', 'passenger', 'plane'"
    assert refusal(frame, site="zzz") == listed


def test_wide_frames_list_eight_columns() -> None:
    frame = pa.table({f"c{number}": [1.0] for number in range(11)})
    assert refusal(frame, value="zzz").endswith("'c6', 'c7' and 3 more")


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        ([1.0, 2.0], "frame is a list: give a data frame of pandas, polars or Arrow"),
        ({"delay": [1.0]}, "frame is a dict: give a data frame of pandas, polars or Arrow"),
        (pd.DataFrame([[1, 2]], columns=["delay", "delay"]), "the data frame has two columns of one name: rename one"),
        (pa.table(DATA).slice(0, 0), "the data frame has no rows: give a data frame with records"),
        (pd.DataFrame({**DATA, "delay": [1, 2, "x", 4, 5, 6]}), "Column 'delay' of the data frame holds text in row 3"),
        (pa.table({**DATA, "airport": [{"a": 1}] * 6}), "Column 'airport' of the data frame holds values that cannot"),
        (pa.table({**DATA, "airport": ["", "x"] * 3}), "site 1 has a blank name: give every site a name"),
        (pa.table({**DATA, "delay": [1.0] * 6}), "all 6 records have one and the same value"),
    ],
)
def test_refusals(frame: Any, sentence: str) -> None:
    assert refusal(frame).startswith(sentence)


def test_a_frame_without_any_site_is_refused() -> None:
    frame = pa.table({"delay": [1.0, 2.0], "airport": pa.nulls(2, pa.string())})
    assert refusal(frame, missing="drop") == "no row names its site: fill in the site column"
    assert refusal(pa.table({"delay": [1.0], "airport": pa.nulls(1)}), missing="drop").startswith(
        "no row names its site"
    )


def test_one_column_in_two_roles_is_refused() -> None:
    assert refusal(pa.table(DATA), site="delay").startswith("column 'delay' is named twice: value, site and person are")


@given(st.lists(st.tuples(st.floats(-1e9, 1e9), st.sampled_from("abcdefgh")), min_size=1, max_size=60))
def test_parting_equals_a_dictionary_of_lists(rows: list[tuple[float, str]]) -> None:
    expected: dict[str, list[float]] = {}
    for value, name in rows:
        expected.setdefault(name, []).append(value)
    frame = pa.table({"delay": [value for value, _ in rows], "airport": [name for _, name in rows]})
    if min(map(len, expected.values())) < 2 or len({value for value, _ in rows}) < 2:
        refusal(frame)
    else:
        assert content(read_frame(frame, value="delay", site="airport")) == dict(sorted(expected.items()))
