"""CSV as programs of all countries write it is read where it leaves no doubt, and otherwise refused with the remedy."""

import datetime as dt
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sottovoce.client.reading import text_file
from sottovoce.client.reading.column import RECORDS
from sottovoce.client.reading.files import read_files
from sottovoce.client.reading.formats import FOUND, csv_reading, read_table
from sottovoce.client.reading.light import read_light
from sottovoce.client.reading.regression_files import read_regression_files
from sottovoce.client.reading.whole_file import open_file
from sottovoce.core.errors import BadInput
from sottovoce.sim.randomness import dice


def values(folder: Path, text: str | bytes, name: str = "d.csv", **options: Any) -> list[float]:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found: list[float] = read_files(path, **{"value": "delay", **options}).records[0].values().tolist()
    return found


def refusal(folder: Path, text: str | bytes, **options: Any) -> str:
    with pytest.raises(BadInput) as refused:
        values(folder, text, **options)
    assert "\n" not in str(refused.value)
    return str(refused.value)


READ = {
    "semicolons": ("delay;site\n1,5;a\n2;a\n", [1.5, 2.0]),
    "semicolons and points": ("delay;site\n1.5;a\n2;a\n", [1.5, 2.0]),
    "tabs": ("site\tdelay\na\t1.5\na\t2\n", [1.5, 2.0]),
    "tabs and commas": ("site\tdelay\na\t1,5\na\t2\n", [1.5, 2.0]),
    "pipes": ("site|delay\na|1.5\na|2\n", [1.5, 2.0]),
    "commas in a name": ('site;delay\n"a,b";1,5\n"c,d";2\n', [1.5, 2.0]),
    "a comma in the header": ("delay;site, town\n1,5;a\n2;b\n", [1.5, 2.0]),
    "Excel's line": ("sep=;\r\ndelay;site\r\n1,5;a\r\n2;a\r\n", [1.5, 2.0]),
    "Excel's line in quotes": ('"sep=|"\ndelay|site\n1.5|a\n2|a\n', [1.5, 2.0]),
    "one column": ("delay\n1,5\n2,25\n3\n", [1.5, 2.25, 3.0]),
    "old line ends": ("delay,site\r1.5,a\r2,a\r", [1.5, 2.0]),
    "blank lines first": ("\n\ndelay,site\n1.5,a\n2,a\n", [1.5, 2.0]),
    "blanks in the header": ("site, delay\na, 1.5\na, 2\n", [1.5, 2.0]),
    "thousands, English": ('delay,site\n"1,234.5",a\n12,a\n', [1234.5, 12.0]),
    "thousands, German": ("delay;site\n1.234,5;a\n12;a\n", [1234.5, 12.0]),
    "thousands, Swiss": ("delay;site\n1'234.5;a\n12’000;a\n", [1234.5, 12000.0]),
    "thin blanks": ("delay;site\n1\u2009234,5;a\n12\u202f000;a\n1 000\u00a0000;a\n", [1234.5, 12000.0, 1e6]),
    "millions": ('delay,site\n"1,234,567",a\n"2,500",a\n', [1234567.0, 2500.0]),
    "the mark is shown by another column": ("delay;x\n1.234;0,5\n2.345;7,25\n", [1234.0, 2345.0]),
    "a minus sign": ("delay,site\n\u22121.5,a\n2,a\n", [-1.5, 2.0]),
}


@pytest.mark.parametrize(("text", "expected"), READ.values(), ids=READ)
def test_what_leaves_no_doubt_is_read(text: str, expected: list[float], tmp_path: Path) -> None:
    assert values(tmp_path, text) == expected


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252"]
)
def test_encodings(encoding: str, tmp_path: Path) -> None:
    text = "delay;Ort\n1,5;Zürich\n2,5;Zürich\n"
    (tmp_path / "d.csv").write_bytes(text.encode(encoding))
    table = read_files(tmp_path / "d.csv", value="delay", site="Ort")
    assert (table.names, table.records[0].values().tolist()) == (("Zürich",), [1.5, 2.5])


def test_a_letter_far_into_a_file_is_read_as_western_but_two_encodings_are_not_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_file, "PIECE", 1 << 10)
    rows = b"delay,site\n" + b"1,Z\n" * 1000
    (tmp_path / "d.csv").write_bytes(rows + b"2,Z\xfcrich\n3,Z\xfcrich\n")
    assert read_files(tmp_path / "d.csv", value="delay", site="site").names == ("Z", "Zürich")
    text = refusal(tmp_path, rows + "2,Zürich\n".encode() + b"3,Z\xfcrich\n", site="site")
    assert text.endswith("d.csv is not text in UTF-8: save it again as CSV in UTF-8")


DOUBTFUL = {
    "a comma before three digits": (
        'delay,site\n"1,234",a\n12,a\n',
        "a comma",
        {".": [1234.0, 12.0], ",": [1.234, 12.0]},
    ),
    "a point before three digits": (
        "delay;site\n1.234;a\n12;a\n",
        "a point",
        {".": [1.234, 12.0], ",": [1234.0, 12.0]},
    ),
}


@pytest.mark.parametrize(("text", "mark", "read"), DOUBTFUL.values(), ids=DOUBTFUL)
def test_what_is_in_doubt_is_refused_with_the_option_that_decides(
    text: str, mark: str, read: dict[str, list[float]], tmp_path: Path
) -> None:
    assert f"holds numbers with {mark} before three digits, which may part thousands or decimals" in refusal(
        tmp_path, text
    )
    for decimal, expected in read.items():
        assert values(tmp_path, text, decimal=decimal) == expected


def test_doubt_that_comes_late_is_refused_too(tmp_path: Path) -> None:
    text = "delay,site\n" + "1,a\n" * 100_000 + '"1,234",a\n'
    assert "a comma before three digits" in refusal(tmp_path, text)
    assert values(tmp_path, text, decimal="point")[-1] == 1234.0
    assert values(tmp_path, "delay;site\n" + "1;a\n" * 100_000 + "1,25;a\n")[-1] == 1.25


def test_delimiter_and_decimal_by_word_or_sign(tmp_path: Path) -> None:
    for mark in ("semicolon", ";"):
        assert values(tmp_path, "delay;x\n1,5;2\n2,5;3\n", delimiter=mark, decimal="comma") == [1.5, 2.5]
    assert values(tmp_path, "delay:x\n1.5:2\n2.5:3\n", delimiter=":") == [1.5, 2.5]
    assert "say what parts columns with delimiter=" in refusal(tmp_path, "delay:x\n1.5:2\n2.5:3\n")
    for bad in ("", "ab", "7", '"', "\n", "."):
        assert refusal(tmp_path, "delay\n1\n2\n", delimiter=bad).startswith("delimiter is ")
    assert refusal(tmp_path, "delay\n1\n2\n", decimal=";") == 'decimal is \';\': give decimal="." or decimal=","'
    assert "a comma is said to part columns and decimals" in refusal(tmp_path, "delay\n1\n", delimiter=",", decimal=",")


def test_a_regression_reads_the_same_marks(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("minutes;miles\n9,5;2,5\n20;7,5\n1.031,5;12\n")
    rows = read_regression_files(tmp_path / "r.csv", "minutes", ["miles"], bounds=(0, 20)).found.rows
    assert rows.response().tolist() == [9.5, 20.0, 1031.5]
    assert rows.features().ravel().tolist() == [-0.75, -0.25, 0.2]


def test_a_file_is_opened_once_and_kinds_join_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    unspied = Path.open

    def spied(path: Path, *rest: Any, **options: Any) -> Any:
        opened.append(path)
        return unspied(path, *rest, **options)

    monkeypatch.setattr(Path, "open", spied)
    monkeypatch.setattr(text_file, "PIECE", 64)
    text = 'note,delay\n"a\nb",\n' + '"a ""quoted"" b\n",1\n' * 20 + "x,2.5\n" * 20
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(text.encode()))
    opened.clear()
    table = read_files(tmp_path / "d.csv.gz", value="delay", missing="drop")
    assert table.records[0].values().tolist() == [1.0] * 20 + [2.5] * 20
    assert len(opened) == 1
    steps = [1, -200, 2**15, -(2**31), 2**53]
    whole = "delay,note\n" + "".join(f"{step},x\n" * 50 for step in steps)
    assert values(tmp_path, whole) == [float(step) for step in steps for _ in range(50)]
    mixed = "delay,note\n" + "1,x\n" * 50 + "2013-05-01,x\n" * 50
    assert "holds another kind of value after row" in refusal(tmp_path, mixed) or "holds a date in row 51" in refusal(
        tmp_path, mixed
    )
    days = "delay,note\n" + "2013-05-01,x\n" * 50 + "2013-05-01 12:00:00,x\n" * 50
    assert values(tmp_path, days)[-1] - values(tmp_path, days)[0] == 43200.0


def test_a_cell_longer_than_python_s_reader_takes(tmp_path: Path) -> None:
    note = "a\n" * 100_000
    assert values(tmp_path, f'delay,note\n1,"{note}"\n2,"b"\n') == [1.0, 2.0]


def in_words(number: float, decimals: int, mark: str, part: str) -> str:
    """Write a number as a country does."""
    text = f"{number:,.{decimals}f}"
    return text.replace(",", "\0").replace(".", mark).replace("\0", part)


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_read_is_what_was_written(seed: int, tmp_path: Path) -> None:
    """A file is read as it was written or refused as ambiguous, and never read as something else."""
    g = dice(seed).generator()
    decimals, size = int(g.integers(0, 5)), 10.0 ** g.integers(0, 7)
    mark = ".,"[int(g.integers(2))]
    part = [part for part in ("", "", ",", ".", " ", "\u202f", "'") if part != mark][int(g.integers(6))]
    delimiter = ",;\t|"[int(g.integers(4))]
    numbers = g.normal(size=30) * size
    cells = [in_words(number, decimals, mark, part) for number in numbers]
    quote = '"' if delimiter in (mark, part) or g.random() < 0.3 else ""
    rows = [f"{quote}{cell}{quote}{delimiter}a{delimiter}{at}" for at, cell in enumerate(cells)]
    text = "\n".join([delimiter.join(("delay", "site", "row")), *rows, ""])
    encoding = ("utf-8", "utf-16", "utf-8-sig")[int(g.integers(3))]
    exact = [round(float(number), decimals) for number in numbers]
    if delimiter != ";" and part == "." and not decimals and min(abs(number) for number in exact) >= 1000:
        exact = [number / 1000 for number in exact]  # by convention three decimals, where every cell has a point
    try:
        found = values(tmp_path, text.encode(encoding))
    except BadInput as refused:
        found = values(tmp_path, text.encode(encoding), decimal=mark)
        problem = str(refused)
    else:
        problem = "may part thousands or decimals"
    assert "may part thousands or decimals" in problem
    assert found == exact


def both(folder: Path, text: str) -> Any:
    """Read a column with Arrow and by Python, and return the values or the refusal that both give."""
    path = folder / "d.csv"
    path.write_text(text)
    how: Any = csv_reading(path, ["delay"], ["delay"], RECORDS, FOUND)
    found: list[Any] = []
    readers: list[Callable[[], Any]] = [
        lambda: read_table(path, ["delay"]).column("delay").to_pylist(),
        lambda: read_light(*how).columns["delay"],
    ]
    for read in readers:
        try:
            found.append(list(read()))
        except BadInput as refused:
            found.append(str(refused))
    assert found[0] == found[1]
    return found[0]


WHOLE = "site;delay\n" + "a;234\n" * 1000
LATE = {
    "a point": (WHOLE + "a;1.234\na;1.5\n", [1.234, 1.5]),
    "a comma": (WHOLE + "a;1.234\na;1,5\n", [1234.0, 1.5]),
    "a comma alone": (WHOLE + "a;2\na;1,5\n", [2.0, 1.5]),
    "millions": (WHOLE + "a;1.234\na;1.234.567\n", [1234.0, 1234567.0]),
    "another column": (WHOLE.replace("site", "x").replace("a;", "0;") + "0,5;1.234\n0;2\n", [1234.0, 2.0]),
    "powers": (WHOLE + "a;1e3\na;2\n", [1000.0, 2.0]),
    "three decimals in every cell": ("site\tdelay\n" + "a\t\n" * 1000 + "a\t1.234\na\t2.345\n", [1.234, 2.345]),
    "commas part columns": (WHOLE.replace(";", ",") + "a,1.234\na,2\n", [1.234, 2.0]),
}


@pytest.mark.parametrize(("text", "last"), LATE.values(), ids=LATE)
def test_one_certain_cell_far_into_a_file_decides(text: str, last: list[float], tmp_path: Path) -> None:
    assert both(tmp_path, text)[-2:] == last


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_thousands_far_into_a_file_are_not_read_as_decimals(
    mark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_file, "PIECE", 1 << 10)
    text = (WHOLE + "a;1.234\na;567\n").replace(";", mark)
    assert "a point before three digits, which may part thousands or decimals" in str(both(tmp_path, text))
    with pytest.raises(BadInput, match="a point before three digits"):
        open_file(tmp_path / "d.csv", FOUND)
    assert values(tmp_path, text, decimal=",")[-2:] == [1234.0, 567.0]


ALIKE = {
    "hexadecimal": ["0x10", "5"],
    "a week": ["2020-W01-1", "2020-W02-1"],
    "fractions of a second": ["12:30:10.5", "13:45:11.5"],
    "Arabic digits": ["\u0661\u0662", "\u0663"],
    "wide digits": ["\uff11\uff12", "3"],
}


@pytest.mark.parametrize("cells", ALIKE.values(), ids=ALIKE)
def test_arrow_and_python_refuse_the_same(cells: list[str], tmp_path: Path) -> None:
    assert isinstance(both(tmp_path, "\n".join(["site,delay", *(f"a,{cell}" for cell in cells), ""])), str)


def test_arrow_and_python_read_times_alike_and_labels_may_be_hexadecimal(tmp_path: Path) -> None:
    assert both(tmp_path, "site,delay\na,12:30\na,13:45:10\n") == [dt.time(12, 30), dt.time(13, 45, 10)]
    assert both(tmp_path, "site,delay\n0xab,2013-05-01\n0xab,2013-05-02\n") == [
        dt.date(2013, 5, 1),
        dt.date(2013, 5, 2),
    ]
    assert both(tmp_path, "site,delay\n0xab,7\n0xab,8\n") == [7, 8]
