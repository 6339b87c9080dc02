"""Whatever is wrong costs one sentence and no record."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sottovoce as sv
from sottovoce.cli import app
from sottovoce.client.quantile.site import Site

Ask = Callable[..., Any]


def sentence(done: Any) -> str:
    """Return the one sentence on stderr, having checked that it is one and that nothing else was said."""
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("sottovoce: ")
    assert done.stderr.count("\n") == 1
    return str(done.stderr)


@pytest.fixture
def no_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def spend(*_: object) -> None:
        raise AssertionError("a record answered before all input was checked")

    for door in ("answer", "tally", "hand_over"):
        monkeypatch.setattr(Site, door, spend)


def test_the_guard_would_notice_an_answer(ask: Ask, files: Path, no_answers: None) -> None:
    assert isinstance(ask(files).exception, AssertionError)


BAD_OPTIONS = {
    ("--tau", "0"): "tau",
    ("--tau", "1"): "tau",
    ("--tau", "-0.5"): "-0.5",
    ("--tau", "nan"): "nan",
    ("--tau", "half"): "'half'",
    ("--tau", "0.5,x"): "'x'",
    ("--tau", "0.5,1.5"): "1.5",
    ("--tau", "0.2,0.8", "--test", "3"): "--test",
    ("--tau", "0.2,0.8", "--method", "regression"): "--method",
    ("--tau", "0.001"): "records",
    ("--epsilon", "0"): "0",
    ("--epsilon", "-1"): "-1",
    ("--epsilon", "25"): "25",
    ("--epsilon", "nan"): "nan",
    ("--epsilon", "some"): "'some'",
    ("--epsilon", "north=1"): "'south'",
    ("--epsilon", "north=1,south=0"): "'south'",
    ("--epsilon", "north=1,south=1,east=1"): "'east'",
    ("--epsilon", "north=1,north=2,south=1"): "twice",
    ("--epsilon", "north=1,2"): "site=number",
    ("--epsilon", "@absent.csv"): "absent.csv",
    ("--epsilon", "@budgets.txt"): "budgets.txt",
    ("--shares", "north=0.3,south=0.6"): "0.9",
    ("--shares", "north=1.5,south=-0.5"): "'south'",
    ("--shares", "half"): "'half'",
    ("--level", "1"): "level",
    ("--method", "guess"): "'guess'",
    ("--schedule", "log"): "schedule",
    ("--schedule", "never", "--method", "regression"): "'never'",
    ("--participation", "0", "--method", "regression"): "participation",
    ("--bounds", "5"): "--bounds",
    ("--bounds", "5,1"): "bounds",
    ("--bounds", "a,b"): "'a'",
    ("--scale", "-1"): "scale",
    ("--resolution", "-1"): "resolution",
    ("--kind", "prices"): "'prices'",
    ("--value", "delays"): "'delays'",
    ("--value", "word"): "'word'",
    ("--site", "clinic"): "'clinic'",
    ("--test", "soon"): "'soon'",
    ("--test", "3", "--alternative", "up"): "'up'",
    ("--plot", "absent-folder/run.png"): "absent-folder",
    ("--plot", "run.jpeg"): "run.jpeg",
}


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=" ".join)
def test_a_bad_option_costs_one_sentence_and_no_record(
    ask: Ask, files: Path, no_answers: None, options: tuple[str, ...]
) -> None:
    assert BAD_OPTIONS[options] in sentence(ask(files, *options))


BAD_COLUMNS: dict[str, tuple[Any, str]] = {
    "NaN": ([1.0, math.nan, 3.0], "row 2"),
    "null": ([1.0, None, 3.0], "row 2"),
    "infinity": ([1.0, 2.0, math.inf], "row 3"),
    "minus infinity": ([-math.inf, 2.0, 3.0], "row 1"),
    "empty": ([], "rows"),
    "one record": ([1.0], "only one record"),
    "text": (["1", "two", "3"], "'delay'"),
}


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("kind", BAD_COLUMNS)
def test_a_bad_column_costs_one_sentence_and_no_record(
    ask: Ask, tmp_path: Path, no_answers: None, kind: str, ending: str
) -> None:
    column, said = BAD_COLUMNS[kind]
    path = tmp_path / f"east.{ending}"
    if ending == "csv":
        path.write_text("delay,other\n" + "".join(f"{'' if value is None else value},0\n" for value in column))
    else:
        kinds = pa.array(column) if column else pa.array([], pa.float64())
        pq.write_table(pa.table({"delay": kinds}), path)
    told = sentence(ask(tmp_path, files=(path.name,)))
    assert "east" in told
    assert said in told


def test_missing_values_are_dropped_and_counted_on_demand(ask: Ask, files: Path, tmp_path: Path) -> None:
    delays = [*pq.read_table(files / "north.parquet")["delay"].to_pylist(), None, math.nan]
    pq.write_table(pa.table({"delay": delays}), tmp_path / "north.parquet")
    assert "--drop-missing" in sentence(ask(tmp_path, files=("north.parquet",)))
    found = json.loads(ask(tmp_path, "--epsilon", "6", "--drop-missing", "--json", files=("north.parquet",)).stdout)
    assert found["dropped"] == {"north": 2}


def test_all_equal_records_are_refused(ask: Ask, tmp_path: Path, no_answers: None) -> None:
    pq.write_table(pa.table({"delay": [3.0] * 500}), tmp_path / "east.parquet")
    assert "same value" in sentence(ask(tmp_path, files=("east.parquet",)))


def test_a_file_that_is_not_parquet_is_refused(ask: Ask, tmp_path: Path, no_answers: None) -> None:
    (tmp_path / "east.parquet").write_text("delay\n1\n2\n")
    assert "east.parquet is not a whole Parquet file" in sentence(ask(tmp_path, files=("east.parquet",)))


def test_a_file_that_is_not_there_is_refused(ask: Ask, tmp_path: Path, no_answers: None) -> None:
    assert "absent.parquet" in sentence(ask(tmp_path, files=("absent.parquet",)))


def test_a_lost_search_says_that_records_are_spent(ask: Ask, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(*_: object, **__: object) -> None:
        raise sv.SearchFailed("the search did not find the quantile")

    monkeypatch.setattr("sottovoce.api.quantile.federated.run_study", lose)
    assert "spent" in sentence(ask(files))


@pytest.mark.parametrize("taus", ["0.5", "0.4,0.6"])
def test_what_few_records_tell_is_said_before_they_are_asked(
    ask: Ask, files: Path, no_answers: None, taus: str
) -> None:
    done = ask(files, "--tau", taus, "--epsilon", "0.2")
    assert isinstance(done.exception, AssertionError)  # of the guard: the plan was complete
    assert done.stderr.count("of these records expect an interval") == taus.count(",") + 1


def test_a_wrong_word_is_a_usage_error() -> None:
    assert CliRunner().invoke(app, ["quantile", "--frobnicate"]).exit_code == 2
