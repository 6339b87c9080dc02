"""What every command prints, apart from its own words."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from sottovoce.cli import app, output
from sottovoce.core.errors import BadInput


def test_json_has_neither_nan_nor_infinity(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"a": float("nan"), "b": (np.float64("inf"), np.int64(3)), "c": {"d": -float("inf"), "e": True}})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 3], "c": {"d": None, "e": True}}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_how_many_records_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Terminal()
    monkeypatch.setattr(sys, "stderr", seen)
    with output.progress_bar(10) as progress:
        assert progress is not None
        progress(10)
    assert "10/10" in seen.getvalue()
    with output.progress_bar(10, wanted=False) as progress:
        assert progress is None


def test_a_file_sees_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with output.progress_bar(10) as progress:
        assert progress is None


def test_a_reader_that_leaves_hears_no_complaint() -> None:
    command = f'"{sys.executable}" -m sottovoce quantile --help | true'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""


WORDS = {
    "ties spoil the interval: give resolution=, the step": "ties spoil the interval: give --resolution, the step",
    'compare with method="certified"': "compare with --method certified",
    "give bounds=(low, high), or more records": "give --bounds LOW,HIGH, or more records",
    "level=0.9 is too much": "--level 0.9 is too much",
    'leave them out with missing="drop"': "leave them out with --drop-missing",
    "give math.inf": "give inf",
    "there is no file level=3/site=north.csv": "there is no file level=3/site=north.csv",
    "--epsilon has a part 'site=1'": "--epsilon has a part 'site=1'",
    "n=3 is no option": "n=3 is no option",
}


@pytest.mark.parametrize("text", WORDS)
def test_a_sentence_for_python_is_said_in_options(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert WORDS[text] in _refused(BadInput(text), monkeypatch)


def test_the_last_mention_of_a_parameter_becomes_its_option(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = BadInput("the scale is out of scale: change the scale, or the site", parameter=("scale", "no_option"))
    assert _refused(refusal, monkeypatch) == "sottovoce: the scale is out of scale: change --scale, or the site\n"
    assert _refused(BadInput("choose a norm", parameter="norm"), monkeypatch) == "sottovoce: choose a --norm\n"


def test_without_a_command_a_text_stays_as_it_is() -> None:
    assert output.in_options("give resolution=", ("resolution",)) == "give resolution="


def _refused(error: BadInput, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what the command says when its first step refuses."""

    def refuse(text: str) -> None:
        raise error

    monkeypatch.setattr("sottovoce.cli.options.levels", refuse)
    done = CliRunner().invoke(app, ["quantile", "a.csv", "--value", "b", "--tau", "0.5", "--epsilon", "1"])
    assert done.exit_code == 2
    return str(done.stderr)
