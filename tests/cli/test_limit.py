"""A limit on what a record may cost in all, as a command has it: refused before anything is asked."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sottovoce.cli import app

USUAL = ("--value", "delay", "--tau", "0.5", "--epsilon", "3")


def run(*words: Any) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_study_beyond_the_limit_is_refused(files: Path) -> None:
    done = run("quantile", files / "north.parquet", *USUAL, "--limit", "2")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "would have cost epsilon 3 in all, and the limit is 2" in done.stderr
    within = run("quantile", files / "north.parquet", *USUAL, "--limit", "3", "--json")
    assert within.exit_code == 0
    assert '"epsilon_in_all"' in within.stdout


@pytest.mark.parametrize("word", ["0", "-1", "nan", "x", ""])
def test_a_limit_is_a_positive_number(files: Path, word: str) -> None:
    done = run("quantile", files / "north.parquet", *USUAL, "--limit", word)
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_both_rounds_of_a_threshold_count(score_files: Path) -> None:
    words = ("conformal", score_files / "made" / "*.parquet", "--score", "residual", "--epsilon", "2", "--maximum", "5")
    judged = (*words, "--coverage", "--coverage-epsilon", "1")
    done = run(*judged, "--limit", "2.5")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "both rounds together would cost a record epsilon 3, and --limit is 2.5" in done.stderr
    assert run(*judged, "--limit", "3").exit_code == 0
