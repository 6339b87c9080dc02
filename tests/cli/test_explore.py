"""`sottovoce explore` as a command: what cannot be explored is refused in a sentence before a port is opened."""

import importlib
import socket
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sottovoce.api.asking import limit
from sottovoce.cli import app
from sottovoce.explore import running
from sottovoce.explore.server import ExploreServer

N = 3000


@pytest.fixture
def waits(tmp_path: Path) -> Path:
    path = tmp_path / "waits.parquet"
    pq.write_table(pa.table({"wait": [k / 7 for k in range(N)], "who": [k // 3 for k in range(N)]}), path)
    return path


@pytest.fixture
def never_served(monkeypatch: pytest.MonkeyPatch) -> None:
    def serve(_: ExploreServer) -> None:
        raise AssertionError("it was served")

    monkeypatch.setattr(ExploreServer, "serve", serve)


def run(*words: Any) -> Any:
    return CliRunner().invoke(app, ["explore", *(str(word) for word in words)])


def sentence(done: Any) -> str:
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert done.stderr.startswith("sottovoce: ")
    assert done.stderr.count("\n") == 1
    return str(done.stderr)


@pytest.mark.usefixtures("never_served")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("4711,2\n4712,3\n", "may be one of records"),
        ("a,a\n1,2\n", "has 2 columns called 'a'"),
        ("a,b\n1,2\n3\n", "1 field in row 2"),
        ('a,b\n"1,234",x\n', "--decimal point or --decimal comma"),
        ("", "is an empty file"),
    ],
)
def test_a_file_that_cannot_be_explored(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    told = sentence(run(tmp_path / "a.csv"))
    assert said in told
    assert "4711" not in told


@pytest.mark.usefixtures("never_served")
def test_words_that_cannot_be_taken(waits: Path, tmp_path: Path) -> None:
    assert "there is no file" in sentence(run(tmp_path / "none.csv"))
    assert "is a folder" in sentence(run(tmp_path))
    assert "has an ending that is not known" in sentence(run(__file__))
    assert "no column 'whom'" in sentence(run(waits, "--person", "whom"))
    assert "--limit" in sentence(run(waits, "--limit", "x"))
    assert "positive" in sentence(run(waits, "--limit", "-1"))
    assert "delimiter is 'ab'" in sentence(run(waits, "--delimiter", "ab"))
    assert "--port is given twice" in sentence(run(waits, "--port", "1", "--port", "2"))


def test_a_port_that_is_taken_or_none(waits: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"cannot use port {port}; give another with --port" in sentence(
            run(waits, "--no-browser", "--port", port)
        )
    assert "cannot use port 70000" in sentence(run(waits, "--no-browser", "--port", 70000))


def test_what_is_passed_on(waits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def explored(file: Any, port: int, browser: bool, say: Any, hint: Any) -> list[str]:
        seen.append((file.name, file.rows, file.left_out, port, browser, limit.now()))
        hint("a hint.")
        return ["an answer"]

    monkeypatch.setattr(running, "explore_file", explored)
    done = run(waits, "--port", "8123", "--no-browser", "--person", "who", "--limit", "2")
    assert (done.exit_code, done.stdout) == (0, "an answer\n")
    assert seen == [("waits.parquet", N // 3, N - N // 3, 8123, False, 2.0)]
    assert done.stderr == (
        "sottovoce: hint, for you alone: a hint.\n"
        "sottovoce: 1 question was answered; a row has paid up to epsilon 0 in all\n"
    )


def test_a_browser_is_opened_where_there_is_a_screen(waits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(importlib.import_module("webbrowser"), "open", opened.append)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("threading.Thread", AtOnce)
    monkeypatch.setattr(ExploreServer, "serve", lambda server: server._server.server_close())
    for display, words, count in (("", [], 0), (":0", ["--no-browser"], 0), (":0", [], 1)):
        monkeypatch.setenv("DISPLAY", display)
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
        assert run(waits, *words).exit_code == 0
        assert len(opened) == count
    assert opened[0].startswith("http://127.0.0.1:")


class AtOnce:
    """A thread that has done its work when it is started."""

    def __init__(self, target: Any, args: tuple[Any, ...] = (), daemon: bool = False) -> None:
        self._target, self._args = target, args

    def start(self) -> None:
        self._target(*self._args)
