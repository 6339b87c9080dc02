"""`sottovoce shortfall`: what it prints, as a table and as JSON, and what it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sottovoce.cli import app


@pytest.fixture
def call(files: Path) -> Any:
    def made(*words: str, bounds: str = "0,150") -> Any:
        usual = ["--value", "delay", "--tau", "0.8", "--epsilon", "4", "--bounds", bounds]
        given = [str(files / "north.parquet"), str(files / "south.parquet"), *usual]
        return CliRunner().invoke(app, ["shortfall", *given, *words])

    return made


def test_the_table_has_both_numbers(call: Any, tmp_path: Path) -> None:
    done = call("--plot", str(tmp_path / "risk.svg"), "--report", str(tmp_path / "risk.html"))
    assert done.exit_code == 0, done.output
    for word in ("Value at risk:", "Shortfall:", "Private:       yes", "Promise:"):
        assert word in done.stdout
    assert (tmp_path / "risk.svg").stat().st_size > 1000
    assert "expected shortfall" in (tmp_path / "risk.html").read_text().lower()


def test_json_is_one_object(call: Any) -> None:
    found = json.loads(call("--json").stdout)
    low, high = found["expected_shortfall"]["interval"]["low"], found["expected_shortfall"]["interval"]["high"]
    assert low < found["expected_shortfall"]["estimate"] < high
    assert found["value_at_risk"]["estimate"] < high
    assert found["private"] is True
    assert found["bounds"] == [0.0, 150.0]


def test_a_plan_asks_nobody(call: Any) -> None:
    found = json.loads(call("--explain", "--json").stdout)
    assert found["plan"] is True
    assert [each["of"] for each in found["expected"]] == ["value at risk", "expected shortfall, at most"]


@pytest.mark.parametrize(
    ("words", "bounds", "said"),
    [
        (("--tail", "left"), "0,150", "tail 'left' is unknown"),
        (("--method", "sequence"), "0,150", "for a shortfall"),
        (("--split", "2"), "0,150", "split must lie strictly"),
        ((), "150,0", "low < high"),
    ],
)
def test_bad_input_is_one_sentence(call: Any, words: tuple[str, ...], bounds: str, said: str) -> None:
    done = call(*words, bounds=bounds)
    assert done.exit_code == 2
    assert done.stderr.startswith("sottovoce: ")
    assert said in done.stderr
