"""The README: short, its Python and its commands run, every public name stands there or in the reference."""

import os
import re
import runpy
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import sottovoce as sv
from sottovoce.cli import app
from sottovoce.server.quantile.result import QuantileResult

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
FALSE_ALARM = 1e-6
UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") != "0"
TAG = "Private quantiles with confidence intervals"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.mark.skipif(UNCOMPILED, reason="half a million answers take minutes when they are not compiled")
@pytest.mark.usefixtures("loaded_dice", "elsewhere")
def test_its_python_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = blocks("python")
    names: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), names)
    assert "Private quantile" in capsys.readouterr().out
    result, sites = names["r"], names["sites"]
    assert isinstance(result, QuantileResult)
    assert isinstance(sites, dict)
    assert sv.load("result.json").summary() == result.summary()
    low, high = result.interval_at(1 - FALSE_ALARM)
    assert low < np.quantile(np.concatenate(list(sites.values())), 0.9) < high


@pytest.mark.skipif(UNCOMPILED, reason="half a million answers take a minute when they are not compiled")
@pytest.mark.usefixtures("loaded_dice")
@pytest.mark.filterwarnings("ignore::UserWarning")  # each command is a study of its own, of the same flights
def test_its_commands_run_on_the_file_that_make_writes(elsewhere: Path) -> None:
    runpy.run_path(str(ROOT / "scripts" / "write_flights.py"))["write"](elsewhere / "flights.csv")
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("sottovoce ")]
    assert [shlex.split(command)[1] for command in commands] == [
        "quantile",
        "quantile",
        "quantile",
        "regress",
        "integrate",
    ]
    for command in commands[1:]:
        done = CliRunner().invoke(app, shlex.split(command)[1:])
        assert done.exit_code == 0, done.output
    (shorter,) = re.findall(r"\(([\d.]+) % shorter than its own\)", done.stdout)
    assert float(shorter) > 20


def test_the_first_commands_are_targets_that_help_lists() -> None:
    listed = re.findall(r"^([a-z.-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {"install", "demo", "flights.csv", "test", "test-lowest", "test-install"} <= set(listed)
    assert [line.split()[1] for line in "".join(blocks("sh")).splitlines() if line.startswith("make ")] == [
        "install",
        "flights.csv",
    ]


def test_there_is_python_of_about_twelve_lines() -> None:
    (block,) = blocks("python")
    assert 10 <= len([line for line in block.splitlines() if line.strip()]) <= 14


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 140
    (statement,) = re.findall(r"^## The privacy statement\n(.*?)^## ", README, re.DOTALL | re.MULTILINE)
    assert len([line for line in statement.splitlines() if line.strip()]) <= 18


def test_the_tag_line_is_one() -> None:
    assert TAG in README
    assert TAG in (sv.__doc__ or "")
    assert TAG in str(app.info.help)
    assert TAG in (ROOT / "pyproject.toml").read_text()
    assert TAG in (ROOT / "CITATION.cff").read_text()


def test_every_public_name_stands_there_or_in_the_reference() -> None:
    named = README + (ROOT / "docs" / "reference.md").read_text()
    assert [name for name in sv.__all__ if name != "__version__" and f"sv.{name}" not in named] == []


def test_the_picture_is_small() -> None:
    assert "docs/demo.png" in README
    assert (ROOT / "docs" / "demo.png").stat().st_size < 150_000
