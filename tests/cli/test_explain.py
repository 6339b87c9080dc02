"""`--explain`: every command says what it would ask, protect and tell, and asks nobody."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sottovoce.cli import app
from sottovoce.core.random_source import SystemEntropy

Ask = Callable[..., Any]


@pytest.fixture(autouse=True)
def no_dice(monkeypatch: pytest.MonkeyPatch, loaded_dice: None) -> None:
    def throw(*_: object) -> None:
        raise AssertionError("a die was thrown")

    monkeypatch.setattr(SystemEntropy, "words", throw)


def commands(files: Path, score_files: Path) -> dict[str, list[str]]:
    both = [str(files / "north.parquet"), str(files / "south.parquet")]
    usual = [*both, "--value", "delay", "--epsilon", "2"]
    fit = ["--response", "delay", "--features", "whose", "--bounds", "0:12000", "--epsilon", "6"]
    return {
        "quantile": ["quantile", *usual, "--tau", ".5", "--scale", "14"],
        "several": ["quantile", *usual, "--tau", ".4,.6"],
        "certified": ["quantile", *usual, "--tau", ".5", "--method", "certified"],
        "walk": ["quantile", *usual, "--tau", ".5", "--method", "self-normalised", "--schedule", "log"],
        "integrate": ["integrate", *usual, "--tau", ".5", "--target", "north"],
        "regress": ["regress", both[0], *fit, "--tau", ".5", "--density", ".03", "--size", "20"],
        "conformal": ["conformal", str(score_files / "made" / "*.parquet"), "--score", "residual"],
        "demo": ["demo"],
    }


NAMES = ["quantile", "several", "certified", "walk", "integrate", "regress", "conformal", "demo"]


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_is_told_and_nobody_asked(name: str, files: Path, score_files: Path) -> None:
    words = [*commands(files, score_files)[name], "--explain"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    for label in (
        "Plan, nothing asked",
        "Question:",
        "Answers:",
        "Expected:",
        "Assuming:",
        "Privacy:",
        "nobody so far",
    ):
        assert label in done.stdout
    plan = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert plan["plan"] is True
    assert plan["privacy"]
    assert plan["assumption"]
    assert all(each["value"] > 0 for each in plan["expected"])


def test_a_report_is_explained_with_its_threshold(files: Path, score_files: Path) -> None:
    words = [*commands(files, score_files)["conformal"], "--explain", "--coverage"]
    assert CliRunner().invoke(app, words).stdout.count("Plan, nothing asked") == 2
    plan = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert [each["of"] for each in plan["coverage"]["expected"]] == ["east", "north", "south"]


def test_a_plan_is_not_drawn(files: Path, score_files: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, [*commands(files, score_files)["quantile"], "--explain", "--plot", str(tmp_path / "a.png")]
    )
    assert done.exit_code == 2
    assert "--explain asks nobody" in done.stderr
