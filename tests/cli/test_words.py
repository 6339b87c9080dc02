"""Words that are given twice, nearly right or interrupted: one sentence, exit code 2 (130), nothing asked."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sottovoce.cli
from sottovoce.cli import app, options
from sottovoce.client.quantile.site import Site
from sottovoce.core.errors import BadInput

Ask = Callable[..., Any]
QUANTILE = ["quantile", "a.csv", "--value", "v", "--tau", ".5", "--epsilon", "1"]
INTEGRATE = ["integrate", "a.csv", "--value", "v", "--target", "a", "--tau", ".5", "--epsilon", "1"]
REGRESS = ["regress", "a.csv", "--response", "y", "--features", "x", "--tau", ".5", "--epsilon", "1"]
CONFORMAL = ["conformal", "a.csv", "--score", "s"]

TWICE = {
    ("--value", "w"): QUANTILE,
    ("--level", "0.9", "--level", "0.95"): QUANTILE,
    ("--epsilon", "2"): QUANTILE,
    ("--bounds", "0,1", "--bounds", "0,2"): QUANTILE,
    ("--shares", "equal", "--shares", "pooled"): QUANTILE,
    ("--target", "b"): INTEGRATE,
    ("--tau", ".9"): INTEGRATE,
    ("--method", "valid", "--method", "target"): INTEGRATE,
    ("--response", "z"): REGRESS,
    ("--density", "1", "--density", "2"): REGRESS,
    ("--alpha", ".1", "--alpha", ".2"): CONFORMAL,
    ("--epsilon", "1", "--epsilon", "@budgets.csv"): CONFORMAL,
    ("--plot", "a.png", "--plot", "b.png"): ["demo"],
    ("--seed", "1", "--seed", "2"): ["reproduce"],
}


def sentence(words: list[str]) -> str:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert done.stderr.startswith("sottovoce: ")
    assert done.stderr.count("\n") == 1
    return str(done.stderr)


@pytest.mark.parametrize("words", TWICE, ids=" ".join)
def test_an_option_of_one_word_given_twice_is_refused(words: tuple[str, ...]) -> None:
    assert f"{words[0]} is given twice" in sentence([*TWICE[words], *words])


def test_a_flag_given_twice_is_given(ask: Ask, files: Path) -> None:
    assert ask(files, "--explain", "--json", "--json", "--explain").exit_code == 0


def test_an_option_that_takes_a_list_may_be_given_in_parts(ask: Ask, files: Path, monkeypatch: Any) -> None:
    one = ask(files, "--tau", "0.4,0.6", "--epsilon", "north=2,south=3", "--explain", "--json")
    two = ask(
        files, "--tau", "0.4", "--tau", "0.6", "--epsilon", "north=2", "--epsilon", "south=3", "--explain", "--json"
    )
    assert one.stdout == two.stdout
    assert one.exit_code == 0
    seen: dict[str, Any] = {}

    def study(*args: Any, **given: Any) -> Any:
        seen.update(given, features=args[2])
        raise BadInput("enough")

    monkeypatch.setattr("sottovoce.api.regression.file.regression_study", study)
    bounds = ["--bounds", "0:1", "--bounds", "hour=0:24", "--levels", "carrier=AA,UA"]
    assert "enough" in sentence([*REGRESS, "--features", "hour", "--features", "carrier,d", "--tau", ".9", *bounds])
    assert seen["features"] == ["x", "hour", "carrier", "d"]
    assert seen["tau"] == [0.5, 0.9]
    assert seen["bounds"] == {"x": (0, 1), "hour": (0, 24), "d": (0, 1)}
    assert seen["levels"] == {"carrier": ["AA", "UA"]}


def test_levels_of_categories_are_written_as_name_and_list() -> None:
    for wrong, said in ((["AA,UA"], "NAME=LEVELS"), (["a=x,y", "a=z,w"], "twice"), (["a=x,,y"], "between all commas")):
        with pytest.raises(BadInput, match=said):
            options.category_levels(wrong)


NEAR = {
    ("quantile", "--method", "stagd"): "did you mean 'staged'?",
    ("quantile", "--shares", "Pool"): "did you mean 'pooled'?",
    ("quantile", "--kind", "count"): "did you mean 'counts'?",
    ("quantile", "--tst"): "--test",
    ("integrate", "--method", "knownbound", "--bound", "1"): "did you mean 'known-bound'?",
    ("integrate", "--target", "nrth"): "did you mean 'north'?",
    ("integrate", "--sources", "suoth"): "did you mean 'south'",
    ("conformal", "--mechanism", "exponentail", "--epsilon", "1", "--maximum", "1"): "did you mean 'exponential'?",
    ("conformal", "--guarantee", "margnal"): "did you mean 'marginal'?",
    ("regress", "--channel", "boxx"): "did you mean 'box'?",
    ("regress", "--inference", "dithred"): "did you mean 'dithered'?",
}


@pytest.mark.parametrize("words", NEAR, ids=" ".join)
def test_a_word_that_is_nearly_right_is_answered_by_the_right_one(files: Path, words: tuple[str, ...]) -> None:
    command, *given = words
    both = [str(files / "north.parquet"), str(files / "south.parquet")]
    usual = {
        "quantile": [*both, "--value", "delay", "--tau", ".5", "--epsilon", "1"],
        "integrate": [*both, "--value", "delay", "--tau", ".5", "--epsilon", "1"],
        "conformal": [*both, "--score", "delay"],
        "regress": [*both[:1], "--response", "delay", "--features", "whose", "--tau", ".5", "--epsilon", "1"],
    }[command]
    usual += ["--target", "north"] if command == "integrate" and "--target" not in given else []
    usual += ["--bounds", "0:12000"] if command == "regress" else []
    assert NEAR[words] in sentence([command, *usual, *given])


def test_a_command_that_is_nearly_right(files: Path) -> None:
    assert "did you mean 'quantile'" in sentence(["quantil"]).lower()


def test_control_characters_do_not_reach_the_terminal() -> None:
    said = sentence([*QUANTILE, "--method", "x\x1b[2Ky\rsottovoce: done"])
    assert "\x1b" not in said
    assert "\r" not in said


def test_an_unexpected_error_is_named_without_its_message(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def break_down(text: str) -> None:
        raise ZeroDivisionError(f"the value 987654 of {text}")

    monkeypatch.setattr("sottovoce.cli.options.levels", break_down)
    monkeypatch.setattr(sys, "argv", ["sottovoce", *QUANTILE])
    with pytest.raises(SystemExit) as left:
        sottovoce.cli.main()
    told = capsys.readouterr()
    assert left.value.code == 2
    assert told.out == ""
    assert "an unexpected ZeroDivisionError at sottovoce.cli.quantile:" in told.err
    assert "987654" not in told.err
    assert told.err.count("\n") == 1


def test_an_interrupted_command_says_what_is_spent(ask: Ask, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Site, "tally", interrupt)
    done = ask(files)
    assert done.exit_code == 130
    assert "sottovoce: stopped; records that have answered are spent." in done.stderr


def test_a_reader_that_leaves_early_sees_no_traceback(files: Path) -> None:
    words = f"quantile {files / 'north.parquet'} --value delay --tau .5 --epsilon 1 --explain"
    command = f'"{sys.executable}" -m sottovoce {words} | true'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_ties_are_said_before_anybody_is_asked(tmp_path: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def spend(*_: object) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(Site, "tally", spend)
    pq.write_table(pa.table({"delay": [float(i % 7) / 2 for i in range(12_000)]}), tmp_path / "north.parquet")
    for more in ((), ("--tau", "0.4,0.6")):
        done = ask(tmp_path, *more, files=("north.parquet",))
        assert isinstance(done.exception, AssertionError)
        assert "sottovoce: many records are tied" in done.stderr
        assert "--resolution" in done.stderr
