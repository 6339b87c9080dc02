"""What stands in a cell is named in kind, with what to do about it, and never quoted."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sottovoce.client.reading.cells import kind_of_cell
from sottovoce.client.reading.files import read_files
from sottovoce.client.reading.frames import read_frame
from sottovoce.client.reading.matrix import open_matrix
from sottovoce.client.reading.table import read_sites
from sottovoce.core.errors import BadInput

KINDS = {
    "text such as a mark of a missing value": [
        "n/a",
        "-",
        "--",
        "?",
        ".",
        "k.A.",
        "missing",
        "#DIV/0!",
        "(null)",
        "n.d.",
    ],
    "a censored value such as a detection limit": ["<5", "< 0.01", ">= 100", "≤3,5", "<5 mg", "below 7"],
    "a number with a thousands separator": ["1,234.5", "1.234,5", "1 234", "12'345"],
    "a number with a decimal comma": ["1,5", "-0,25"],
    "a number with a unit or a sign beside it": ["5 kg", "$5", "12%", "90min", "3.5h"],
    "a date in another form than 2013-05-01": ["31.12.2020", "12/31/2020", "1.2.20"],
    "text": ["Anna", "seven", "A1", "12 High Street, Ely", "x" * 500],
    "a number": ["3.5", "-1e-3", "+7", ".5", "inf"],
    "a date": ["2013-05-01"],
}


@pytest.mark.parametrize(("kind", "cell"), [(kind, cell) for kind, cells in KINDS.items() for cell in cells])
def test_kinds_of_cells(kind: str, cell: str) -> None:
    assert kind_of_cell(cell).name == kind


COLUMNS = {
    "list": list,
    "objects": lambda cells: np.array(cells, dtype=object),
    "numpy": np.array,
    "pandas": pd.Series,
    "polars": pl.Series,
    "arrow": pa.array,
    "views": lambda cells: pa.array(cells, pa.string_view()),
    "dictionary": lambda cells: pa.array(cells).dictionary_encode(),
}


@pytest.mark.parametrize("library", COLUMNS)
@pytest.mark.parametrize(
    ("cell", "problem"),
    [
        ("<51234", "a censored value such as a detection limit in row 3: give every row a number"),
        ("n/a", "text such as a mark of a missing value in row 3: leave such cells empty"),
        ("51,234.5", "a number with a thousands separator in row 3: write numbers without it"),
        ("secret 51234", "text in row 3: every record must be"),
    ],
)
def test_columns_of_text_are_refused_by_the_first_cell_that_is_no_number(library: str, cell: str, problem: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_sites({"north": COLUMNS[library](["3.5", "4", cell, "7"])})
    said = str(refused.value)
    if library in ("list", "objects"):  # of mixed types, in which every text is a cell of its own
        assert said.startswith("Site 'north' holds a number written as text in row 1: ")
    else:
        assert said.startswith(f"Site 'north' holds {problem}")
    assert "51234" not in said
    assert "51,234" not in said


def test_numbers_as_text_are_said_to_be_such() -> None:
    with pytest.raises(BadInput, match="holds a number or a date written as text in row 1: convert the column"):
        read_sites({"north": pl.Series(["1", "2"])})
    with pytest.raises(
        BadInput, match="Site 'north' holds text such as a mark of a missing value in row 2: leave such"
    ):
        read_sites({"north": [3.5, "n/a"]})


@pytest.mark.parametrize("cell", ["n/a", "-", "<51234", "51234 kg", "31.12.2051"])
def test_cells_of_a_file_are_named_in_kind(cell: str, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(f'delay,note\n1,x\n2.5,x\n"{cell}",x\n')
    with pytest.raises(BadInput) as refused:
        read_files(tmp_path / "d.csv", value="delay", missing="drop")
    said = str(refused.value)
    assert f"(rows counted after the header) holds {kind_of_cell(cell).name} in row 3: " in said
    assert cell.strip("-") in ("", "n/a") or cell not in said


def broken(kind: Any, *counts: int) -> Any:
    """Make an Arrow array that its own type does not allow."""
    return pa.Array.from_buffers(kind, len(counts), [None, pa.py_buffer(np.array(counts))])


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        (broken(pa.date64(), 987654321, 86400000), "holds dates with a time of day, but its type is a date: convert"),
        (pa.array([(1, 2, 987654321)], pa.month_day_nano_interval()), "holds a date or time in row 1: every record"),
        (pa.array([{"987654321": 1}]), "holds a value of type struct in row 1"),
        (pa.array([[987654321]]), "holds a value of type list in row 1"),
        (pa.array([b"987654321"], pa.binary_view()), "holds a value of type binary_view in row 1"),
        (pa.array([2**63 + 987654321], pa.uint64()), "holds a whole number too long for float64 in row 1"),
    ],
)
def test_arrow_says_nothing_in_its_own_words(column: Any, problem: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_sites({"north": column})
    assert str(refused.value).startswith(f"Site 'north' {problem}")
    assert "987654321" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_what_arrow_cannot_convert_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from sottovoce.client.reading import reader

    def fails(*_: object) -> None:
        raise pa.ArrowInvalid("would lose data: 987654321")

    monkeypatch.setattr(reader, "_from_chunks", fails)
    with pytest.raises(BadInput, match="Site 'a' holds values of type double that cannot be read as numbers: convert"):
        read_sites({"a": pa.array([1.0, 2.0])})


def test_a_lazy_frame_that_cannot_be_computed_shows_nothing() -> None:
    lazy = pl.LazyFrame({"delay": ["1", "secret 987654321"], "site": ["a", "a"]}).with_columns(
        pl.col("delay").cast(pl.Float64)
    )
    with pytest.raises(BadInput) as refused:
        read_frame(lazy, value="delay", site="site")
    assert str(refused.value) == "The data frame is lazy and cannot be computed: collect it first, and see why"
    for table in (lazy, lazy.select("delay")):
        with pytest.raises(BadInput, match="is lazy and cannot be computed"):
            open_matrix(table)
