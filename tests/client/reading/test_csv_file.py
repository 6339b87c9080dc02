"""CSV as people write it: words for missing, times, quotes; and what is wrong is named by row, never by value."""

from pathlib import Path
from typing import Any

import pytest

from sottovoce.client.reading.files import read_files
from sottovoce.client.reading.table import SiteTable
from sottovoce.core.errors import BadInput
from sottovoce.sim.randomness import dice


def content(table: SiteTable) -> dict[str, list[float]]:
    return {name: records.values().tolist() for name, records in zip(table.names, table.records, strict=True)}


def refusal(paths: Any, **options: Any) -> str:
    with pytest.raises(BadInput) as refused:
        read_files(paths, **{"value": "delay", **options})
    text = str(refused.value)
    assert "\n" not in text
    assert ". " not in text
    assert "Arrow" not in text or "Arrow file" in text
    assert refused.value.__cause__ is None
    return text


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("word", ["", "NA", "NaN", "null", '"NA"', '""'])
def test_words_for_missing_in_csv(word: str, tmp_path: Path) -> None:
    path = written(tmp_path / "n.csv", f"delay,airport\n1,x\n{word},x\n3,x\n4,{word}\n")
    table = read_files(path, value="delay", site="airport", missing="drop")
    assert content(table) == {"x": [1.0, 3.0]}
    assert (dict(table.dropped), table.unplaced) == ({"x": 1}, 1)
    place = f"Column 'delay' of {path} (rows counted after the header)"
    assert refusal(path, site="airport").startswith(f"{place} holds a missing value (NaN or null) in row 2: ")


def test_a_missing_site_or_person_in_csv_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "n.csv", "delay,airport,who\n1,x,1\n2,,2\n3,x,\n")
    assert " holds a missing value in row 2: remove it, or " in refusal(path, site="airport")
    text = refusal(path, site="airport", person="who", dice=dice(1).words, missing="drop")
    assert text.startswith(
        f"Column 'who' of {path} (rows counted after the header) holds a missing value in row 3: every"
    )


@pytest.mark.parametrize(
    ("cells", "kind", "first"),
    [
        (["2013-05-01", "2013-05-02"], "date", 15826.0),
        (["2013-05-01 14:03:20", "2013-05-02 00:00:00"], "datetime", 1367417000.0),
        (["2013-05-01T14:03:20Z", "2013-05-02T00:00:00Z"], "datetime", 1367417000.0),
        (["01:23:20", "02:00:00"], "duration", 5000.0),
        (["1e3", "-2"], "number", 1000.0),
        ([" 7", "8"], "number", 7.0),
        (["true", "false"], "category", 1.0),
    ],
)
def test_times_in_csv(cells: list[str], kind: str, first: float, tmp_path: Path) -> None:
    table = read_files(written(tmp_path / "t.csv", "\n".join(["delay", *cells, ""])), value="delay")
    assert (table.unit.kind, table.records[0].values()[0]) == (kind, first)


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        (
            ["1", "2", "oops"],
            "holds text in row 3: every record must be a number, a duration, a date or one of ordered categories",
        ),
        (["", "oops", "3"], "holds text in row 2: every record must be"),
        (["2013-05-01", "oops", "3"], "holds text in row 2: every record must be"),
        (["1", "2013-05-01", "3"], "holds a date in row 2: the rows before it hold another kind of value"),
        (["1", "2", "inf"], "holds an infinite number in row 3: "),
        (["1", "9007199254740993", "3"], "holds a whole number too long for float64 in row 2: "),
    ],
)
def test_bad_cells_in_csv_are_named_by_row_and_kind_not_by_value(
    cells: list[str], problem: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "b.csv", "\n".join(["delay,note", *(f"{cell},x" for cell in cells), ""]))
    text = refusal(path, missing="drop")
    assert text.startswith(f"Column 'delay' of {path} (rows counted after the header) {problem}")
    assert "oops" not in text


@pytest.mark.parametrize("tail", ["3\n", "3,4,5\n"])
def test_ragged_rows_are_counted_not_quoted(tail: str, tmp_path: Path) -> None:
    path = written(tmp_path / "r.csv", "delay,note\n1,secret\n2,secret\n" + tail + "4,secret\n")
    fields = "1 field" if tail == "3\n" else "3 fields"
    expected = (
        f"{path} has {fields} in row 3 after the header, which has 2: give every row as many fields as the header"
    )
    assert refusal(path) == expected


def test_a_byte_order_mark_and_quoted_line_breaks(tmp_path: Path) -> None:
    path = written(tmp_path / "q.csv", b'\xef\xbb\xbfdelay,note\n1,"a\nb"\n2,"c"\n')
    assert content(read_files(path, value="delay")) == {"q": [1.0, 2.0]}


def test_quoted_line_breaks_across_the_blocks_of_a_long_file(tmp_path: Path) -> None:
    note = "a\n" * 50_000
    path = written(tmp_path / "q.csv", "delay,note\n" + "".join(f'{row},"{note}"\n' for row in range(15)))
    assert path.stat().st_size > 2**20
    assert content(read_files(path, value="delay")) == {"q": [float(row) for row in range(15)]}
