"""How `serve` and `site` tell what happens: as text, as JSON, or not at all; wrong words are refused first."""

import json

import pytest
from typer.testing import CliRunner

from sottovoce.cli import app
from sottovoce.cli.telling import teller
from sottovoce.federation.status import Notice

ROUND = Notice({"event": "round", "round": 1}, "round 1: 20 records asked", True)
TOLD = Notice({"event": "told", "round": 1, "site": "north"}, "round 1: north has answered", True)


def test_text_is_a_line_a_round(capsys: pytest.CaptureFixture[str]) -> None:
    with teller("text", False) as watch:
        assert watch is not None
        watch(TOLD)
        watch(ROUND)
    assert capsys.readouterr().err == "sottovoce: round 1: 20 records asked\n"


def test_json_is_an_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with teller("json", False) as watch:
        assert watch is not None
        watch(TOLD)
        watch(ROUND)
    assert [json.loads(line) for line in capsys.readouterr().err.splitlines()] == [TOLD.fields, ROUND.fields]


def test_on_a_terminal_rounds_share_a_line_and_others_stay(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with teller("text", False) as watch:
        assert watch is not None
        watch(Notice({"event": "hello"}, "north is there\x1b[2J"))
        watch(ROUND)
    shown = capsys.readouterr().err
    assert "sottovoce: north is there\\x1b[2J" in shown
    assert "\x1b[2J" not in shown


def test_quiet_says_nothing() -> None:
    with teller("json", True) as watch:
        assert watch is None


def test_other_words_are_refused() -> None:
    done = CliRunner().invoke(app, ["serve", "study.toml", "--insecure", "--events", "xml"])
    assert done.exit_code == 2
    assert done.stderr == "sottovoce: --events must be text or json; choose one.\n"
