"""`sottovoce regress`: whatever is wrong costs one sentence and nobody a report."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sottovoce.cli import app
from sottovoce.core.random_source import SystemEntropy


def sentence(done: Any) -> str:
    """Return the one sentence on stderr, having checked that it is one and that nothing else was said."""
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("sottovoce: ")
    assert done.stderr.count("\n") == 1
    return str(done.stderr)


@pytest.fixture
def no_dice(monkeypatch: pytest.MonkeyPatch) -> None:
    def throw(*_: object) -> None:
        raise AssertionError("a die was thrown before all input was checked")

    monkeypatch.setattr(SystemEntropy, "words", throw)


REGRESSION = {"--response": "delay", "--features": "whose", "--tau": "0.5", "--epsilon": "3", "--bounds": "0:12000"}


def regress(path: Path, *options: str) -> Any:
    usual = [word for name, value in REGRESSION.items() if name not in options for word in (name, value)]
    return CliRunner().invoke(app, ["regress", str(path), *usual, *options])


def test_the_guard_would_notice_a_die(files: Path, no_dice: None) -> None:
    assert isinstance(regress(files / "north.parquet").exception, AssertionError)


BAD_REGRESSIONS = {
    ("--response", "lateness"): "has no column 'lateness': its columns are 'delay', 'word', 'whose'",
    ("--response", "word"): "'word'",
    ("--response", "whose"): "named twice",
    ("--features", "who"): "'who'",
    ("--features", "whose,,delay"): "--features",
    ("--features", ""): "--features",
    ("--features", "whose\nword"): "--features",
    ("--features", "word", "--bounds", "0:1"): "'word'",
    ("--bounds", "0,12000"): "--bounds has a part '0' that is not NAME=LOW:HIGH",
    ("--bounds", "whose=0:1:2"): "'whose=0:1:2'",
    ("--bounds", "whose=:5"): "'whose=:5'",
    ("--bounds", "whose=zero:1"): "the lower end of --bounds whose=zero:1 is 'zero', which is not a number",
    ("--bounds", "whose=0:1e999"): "beyond any number",
    ("--bounds", "whose=0:inf"): "finite",
    ("--bounds", "whose=5:5"): "low < high",
    ("--bounds", "whose=0:1", "--bounds", "whose=0:2"): "'whose' twice",
    ("--bounds", "0:1,0:2"): "'all features' twice",
    ("--bounds", "who=0:1"): "--bounds names 'who', which is not among --features whose",
    ("--features", "whose,delay", "--response", "word", "--bounds", "whose=0:1"): "--bounds says nothing of 'delay'",
    ("--bounds", "0:100"): "outside its bounds (0, 100) in 11,899 rows, the first of them row 102: widen --bounds, or "
    "give --clip",
    ("--tau", "0"): "between 0 and 1",
    ("--tau", "1.5"): "1.5",
    ("--tau", "0.5,0.5"): "each once",
    ("--tau", "half"): "--tau is 'half'",
    ("--tau", "0.5,"): "--tau",
    ("--epsilon", "0"): "epsilon must be above 0",
    ("--epsilon", "-1"): "-1",
    ("--epsilon", "25"): "25",
    ("--epsilon", "nan"): "nan",
    ("--epsilon", "some"): "--epsilon is 'some'",
    ("--epsilon", "0.001"): "needs about",
    ("--epsilon", "0.3"): "give --density and --size",
    ("--level", "1"): "level",
    ("--channel", "morse"): "'morse'",
    ("--channel", "open"): "not private",
    ("--inference", "guess"): "'guess'",
    ("--density", "0"): "density",
    ("--density", "0.1,0.2"): "one for each level",
    ("--density", "thin"): "--density is 'thin'",
    ("--size", "-1"): "size",
    ("--size", "large"): "--size is 'large'",
    ("--start", "1,2,3"): "start",
    ("--start", "soon"): "--start is 'soon'",
    ("--plot", "absent-folder/run.png"): "absent-folder",
    ("--plot", "run.jpeg"): "run.jpeg",
    ("--plot", "run.png", "--explain"): "--explain asks nobody",
}


@pytest.mark.parametrize("options", BAD_REGRESSIONS, ids=" ".join)
def test_a_bad_option_of_a_regression_costs_nobody_a_report(
    files: Path, no_dice: None, options: tuple[str, ...]
) -> None:
    assert BAD_REGRESSIONS[options] in sentence(regress(files / "north.parquet", *options))


def test_without_bounds_the_column_beyond_one_is_named(files: Path, no_dice: None) -> None:
    words = [word for name, value in REGRESSION.items() if name != "--bounds" for word in (name, value)]
    told = sentence(CliRunner().invoke(app, ["regress", str(files / "north.parquet"), *words]))
    assert "Column 'whose' of" in told
    assert "is outside [-1, 1] in 11,998 rows" in told
    assert "give --bounds NAME=LOW:HIGH" in told


BAD_FILES = {
    "absent.csv": (None, "there is no file"),
    "notes.txt": ("delay,whose\n1,2\n", "ending"),
    "broken.parquet": ("delay,whose\n1,2\n", "is not a whole Parquet file"),
    "empty.csv": ("", "is an empty file"),
    "header.csv": ("delay,whose\n", "no rows"),
    "ragged.csv": ("delay,whose\n1,2\n3\n", "1 field in row 2"),
    "text.csv": ("delay,whose\n1,2\n3,four\n", "holds text in row 2"),
    "missing.csv": ("delay,whose\n1,2\n,4\n", "contains NaN in row 2"),
    "constant.csv": ("delay,whose\n1,2\n2,2\n3,2\n", "is constant"),
    "single.csv": ("delay,whose\n1,2\n", "there is 1 sample"),
    "few.csv": ("delay,whose\n1,2\n2,3\n3,5\n", "and there are 3: add people"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_of_a_regression_costs_nobody_a_report(tmp_path: Path, no_dice: None, name: str) -> None:
    text, said = BAD_FILES[name]
    if text is not None:
        (tmp_path / name).write_text(text)
    assert said in sentence(regress(tmp_path / name))


def test_a_folder_is_refused(files: Path, no_dice: None) -> None:
    assert "is a folder" in sentence(regress(files))


def test_a_search_that_does_not_end_says_that_reports_are_spent(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sottovoce.api.regression.stream.RegressionRuns.waiting", True)
    told = sentence(regress(files / "north.parquet"))
    assert "give --density and --size" in told
    assert "spent" in told
