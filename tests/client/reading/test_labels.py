"""One person is one person however she is written, and a column that names no sites is refused without a word of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sottovoce.client.reading.files import read_files
from sottovoce.client.reading.frames import read_frame
from sottovoce.client.reading.labels import code_labels, code_persons, join_files, number_persons
from sottovoce.client.reading.table import SCORES, SiteTable
from sottovoce.core.errors import BadInput
from sottovoce.sim.randomness import dice


def persons(labels: list[Any], kind: Any = None) -> list[int]:
    return list(map(int, number_persons(code_persons(pa.array(labels, kind), "who"), "who")))


@pytest.mark.parametrize(
    "forms",
    [
        ["7", "7.0", " 7", "00007", "7.", "+7", "7,0", "7e0", "\u00a07", "７"],
        ["100000", "1e+05", "1E5", "100000.00", "0100000"],
        ["Anna", "anna", " ANNA ", "Ａnna"],
        ["Zoe\u0308 B", "Zo\u00eb  b"],
        ["0", "000", "0.0", "-0"][:3],
        ["-7", "-007", "-7.0"],
    ],
)
def test_one_person_in_many_forms_is_one(forms: list[str]) -> None:
    assert persons([*forms, "somebody else"]) == [0] * len(forms) + [1]
    assert persons([*forms, "somebody else"], pa.string_view()) == [0] * len(forms) + [1]


def test_persons_who_differ_are_kept_apart() -> None:
    assert persons(["7", "70", "0.7a", "7a", "A7", "-7"]) == [0, 1, 2, 3, 4, 5]
    assert persons([7, 70, -7]) == [0, 1, 2]


def test_persons_of_several_types_in_several_files_are_one(tmp_path: Path) -> None:
    rows = {"delay": [1.0, 2.0, 3.0], "who": [7, 8, 9]}
    pd.DataFrame(rows).to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({**rows, "who": [7.0, 8.0, 10.0]}).to_parquet(tmp_path / "b.parquet")
    (tmp_path / "c.csv").write_text("delay,who\n4,007\n5, 8.0\n6,11\n")
    pd.DataFrame({**rows, "who": pd.Categorical(["7", "08", "12"])}).to_parquet(tmp_path / "d.parquet")
    table = read_files(f"{tmp_path}/*", value="delay", person="who", dice=dice(3).words, needs=SCORES)
    assert (sum(record.size for record in table.records), table.left_out) == (6, 6)


@pytest.mark.parametrize(
    "who",
    [[7.5, 8.0, 9.0], ["7.5", "8", "9"], [7.5, "8", 9], [1e300, 2.0, 3.0]],
    ids=["floats", "text", "mixed", "long"],
)
def test_numbers_with_fractions_name_nobody(who: list[Any]) -> None:
    frame = pd.DataFrame({"delay": [1.0, 2.0, 3.0], "site": ["a"] * 3, "who": who})
    with pytest.raises(BadInput, match="'who' of the data frame holds numbers with fractions, or too long for float64"):
        read_frame(frame, value="delay", site="site", person="who", dice=dice(1).words)


@pytest.mark.parametrize("blank", ["", " ", "\u00a0"])
def test_a_blank_person_is_refused(blank: str) -> None:
    with pytest.raises(BadInput, match="Who holds a blank in row 2: every row must name its person"):
        persons(["a", blank])


VALUES = [1.0, 2.0, 3.0, 4.0]
SITES = {
    "string_view": pa.array(["a", "b"] * 2, pa.string_view()),
    "large dictionary": pa.array(["a", "b"] * 2, pa.large_string()).dictionary_encode(),
    "view dictionary": pa.DictionaryArray.from_arrays(
        pa.array([0, 1] * 2, pa.uint32()), pa.array(["a", "b"], pa.string_view())
    ),
    "binary": pa.array([b"a", b"b"] * 2),
    "binary_view": pa.array([b"a", b"b"] * 2, pa.binary_view()),
    "nested dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1] * 2), pa.array(["a", "b"]).dictionary_encode()),
    "unused": pa.DictionaryArray.from_arrays(pa.array([0, 1] * 2), pa.array(["a", "b", "nobody"])),
    "doubled": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1]), pa.array(["a", "b", "a"])),
    "run ends": pc.run_end_encode(pa.array(["a", "b", "a", "b"])),
}


def content(table: SiteTable) -> dict[str, list[float]]:
    return {name: records.values().tolist() for name, records in zip(table.names, table.records, strict=True)}


@pytest.mark.parametrize("kind", SITES)
def test_sites_of_every_arrow_type(kind: str, tmp_path: Path) -> None:
    table = pa.table({"delay": VALUES, "site": SITES[kind]})
    assert content(read_frame(table, value="delay", site="site")) == {"a": [1.0, 3.0], "b": [2.0, 4.0]}
    if kind != "nested dictionary":  # which Arrow writes and cannot read
        with pa.ipc.new_file(str(tmp_path / "t.arrow"), table.schema) as writer:
            writer.write_table(table)
        assert content(read_files(tmp_path / "t.arrow", value="delay", site="site")) == {
            "a": [1.0, 3.0],
            "b": [2.0, 4.0],
        }


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["b", "a", "c"]), pl.String], ids=str)
def test_sites_that_polars_wrote(kind: Any, tmp_path: Path) -> None:
    frame = pl.DataFrame({"delay": VALUES, "site": ["a", "b"] * 2}).with_columns(pl.col("site").cast(kind))
    frame.write_ipc(tmp_path / "t.arrow")
    frame.write_parquet(tmp_path / "t.parquet")
    for name in ("t.arrow", "t.parquet"):
        assert content(read_files(tmp_path / name, value="delay", site="site")) == {"a": [1.0, 3.0], "b": [2.0, 4.0]}


@pytest.mark.parametrize("labels", [[[1], [2]], [{"a": 1}, {"a": 2}], [b"\xff", b"a"]], ids=["list", "struct", "bytes"])
def test_labels_that_are_no_names(labels: list[Any]) -> None:
    with pytest.raises(BadInput, match="Site holds values that cannot be names: give text or whole numbers"):
        code_labels(pa.array(labels), "site")


def test_labels_that_cannot_be_compared() -> None:
    parts = [code_labels(pa.array(["a"]), "x"), code_labels(pa.array([b"\x01" * 3], pa.binary(3)), "x")]
    assert join_files(parts).codes.tolist() == [0, 1]


MARKED = 7654.321
MEASURES = np.arange(60) + MARKED
SWAPPED = {
    "fractions": (np.repeat(MEASURES, 3), "holds many different numbers or dates, as records do"),
    "one row each": (MEASURES, "names sites that have one row only"),
    "few rows each": (np.repeat(MEASURES.astype(np.int64), 3), "holds many different numbers or dates, as records do"),
    "people": ([f"Anna {number}" for number in MEASURES], "names sites that have one row only"),
    "days": (np.datetime64("7654-01-01", "D") + np.repeat(np.arange(60), 2), "holds many different numbers or dates"),
}


@pytest.mark.parametrize(("labels", "problem"), SWAPPED.values(), ids=SWAPPED)
def test_a_column_of_records_taken_for_sites_is_not_quoted(labels: Any, problem: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"clinic": np.arange(len(labels)) % 3, "delay": labels})
    frame.to_csv(tmp_path / "d.csv", index=False)
    for read, source in ((read_frame, frame), (read_files, tmp_path / "d.csv")):
        with pytest.raises(BadInput) as refused:
            read(source, value="clinic", site="delay")
        assert problem in str(refused.value)
        assert "765" not in str(refused.value)


def test_a_few_numbers_may_name_sites() -> None:
    frame = pd.DataFrame({"delay": np.arange(60.0), "dose": np.repeat([0.5, 1.0, 2.5], 20)})
    assert read_frame(frame, value="delay", site="dose").names == ("0.5", "1", "2.5")
