"""`sottovoce quantile --censored`: what the function finds, in words and in strict JSON; other commands refuse."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import sottovoce as sv
from sottovoce.cli import app

N = 6_000
LEAD = np.round(sv.sim.dice(11).generator().lognormal(2.1, 1.0, N), 2)
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("limits")

    def write(name: str, header: str, cells: list[str], marks: list[str]) -> None:
        rows = (f"{cell},{mark},{'ab'[row % 2]}" for row, (cell, mark) in enumerate(zip(cells, marks, strict=True)))
        (made / name).write_text(header + "\n" + "\n".join(rows) + "\n")

    plain, none = [f"{value}" for value in LEAD], [""] * N
    write("below.csv", "lead,mark,clinic", ["<5" if value < 5 else f"{value}" for value in LEAD], none)
    write("above.csv", "lead,mark,clinic", ["> 20" if value > 20 else f"{value}" for value in LEAD], none)
    write("marked.csv", "lead,mark,clinic", plain, ["ND" if value < 5 else "" for value in LEAD])
    write("one.csv", "lead,mark,clinic", ["<5"] * N, none)
    write(
        "other.csv", "lead,mark,clinic", ["trace 7654" if row == 16 else cell for row, cell in enumerate(plain)], none
    )
    write("odd.csv", "lead,mark,clinic", plain, ["maybe 7654"] * N)
    return made


@pytest.fixture
def quantile(folder: Path) -> Ask:
    def asked(name: str, *words: str, tau: str = "0.5") -> Any:
        fixed = ("--value", "lead", "--site", "clinic", "--tau", tau, "--epsilon", "3", "--no-progress")
        return CliRunner().invoke(app, ["quantile", str(folder / name), *fixed, *words])

    return asked


def as_json(done: Any) -> Any:
    def invented(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    assert done.exit_code == 0, done.output
    return json.loads(done.stdout, parse_constant=invented)


def test_a_quantile_within_the_limits(quantile: Ask) -> None:
    done = quantile("below.csv", "--censored", "<5")
    assert done.exit_code == 0, done.output
    assert "values below 5 are known as <5 only" in done.stdout
    found = as_json(quantile("below.csv", "--censored", "<5", "--json"))
    assert found["interval"]["low"] < np.median(LEAD) < found["interval"]["high"]
    assert found["censored"] == "<5"


@pytest.mark.parametrize(
    ("name", "tau", "limits", "symbol", "known"),
    [("below.csv", "0.15", "<5", "<5", [None, 5.0]), ("above.csv", "0.95", ">20", ">20", [20.0, None])],
)
def test_a_quantile_beyond_a_limit_is_the_symbol(
    quantile: Ask, name: str, tau: str, limits: str, symbol: str, known: list[float | None]
) -> None:
    done = quantile(name, "--censored", limits, tau=tau)
    assert f"Estimate:      {symbol}\n0.95 interval: [{symbol}, {symbol}]" in done.stdout
    assert f"the quantile is {symbol}: it lies" in done.stdout
    found = as_json(quantile(name, "--censored", limits, "--json", tau=tau))
    assert found["estimate"] is None
    assert [found["interval"]["low"], found["interval"]["high"]] == known
    assert set(found["text"].values()) == {symbol}


def test_several_limits_and_several_levels(quantile: Ask) -> None:
    found = as_json(quantile("below.csv", "--censored", "<5", "--censored", "<10,>60", "--json"))
    assert found["censored"] == "<10,>60"
    assert found["text"]["estimate"] == "<10"
    told = as_json(quantile("below.csv", "--censored", "<5", "--json", tau="0.15,0.6"))
    assert [each["estimate"] is None for each in told["joint"]] == [True, False]


def test_a_column_of_marks(quantile: Ask) -> None:
    found = as_json(quantile("marked.csv", "--censored", "<90", "--flag", "mark", "--json", tau="0.15"))
    assert found["text"]["estimate"] == "<90"  # all but a few are below what is declared, marked or not
    assert "none are said: add them, as in --censored" in quantile("marked.csv", "--flag", "mark").output


def test_a_test_a_picture_and_a_page(quantile: Ask, tmp_path: Path) -> None:
    plot, page = tmp_path / "run.png", tmp_path / "page.html"
    outputs = ("--plot", str(plot), "--report", str(page))
    done = quantile("below.csv", "--censored", "<5", "--test", "7", *outputs)
    assert done.exit_code == 0, done.output
    assert "Test:" in done.stdout
    assert plot.stat().st_size > 5_000
    assert "&lt;5" in page.read_text()


@pytest.mark.parametrize(
    ("name", "words", "why"),
    [
        ("below.csv", (), "a censored value such as a detection limit in row"),
        ("below.csv", ("--censored", "<4"), "a value below a limit that --censored does not name in row"),
        ("below.csv", ("--censored", "5"), "--censored has a part '5' that is no limit"),
        ("below.csv", ("--censored", "<5", "--flag", "lead"), "named twice"),
        ("odd.csv", ("--censored", "<5", "--flag", "mark"), "a mark that is not known in row 1"),
        ("below.csv", ("--censored", "<5", "--method", "regression"), "needs a number for every record"),
        ("below.csv", ("--censored", "<5", "--test", "3"), "test a value within the limits"),
        ("one.csv", ("--censored", "<5"), "all 6,000 records are <5"),
        ("other.csv", ("--censored", "<5"), "holds text in row 17"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(quantile: Ask, name: str, words: tuple[str, ...], why: str) -> None:
    done = quantile(name, *words)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
    assert "7654" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("shortfall", "--value", "lead", "--tau", "0.9", "--epsilon", "3", "--bounds", "0,99"),
        ("integrate", "--value", "lead", "--target", "a", "--tau", "0.5", "--epsilon", "3"),
        ("conformal", "--score", "lead", "--alpha", "0.1"),
        ("conformal", "--score", "lead", "--alpha", "0.1", "--by", "site"),
    ],
)
def test_other_commands_say_which_takes_such_values(folder: Path, words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [words[0], str(folder / "below.csv"), "--site", "clinic", *words[1:]])
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert "sottovoce quantile takes such values with --censored" in done.stderr
