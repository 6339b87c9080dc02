"""`--report PATH` in every command: a page beside the answer, checked before anything is asked, never at its cost."""

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from sottovoce.cli import app
from sottovoce.core.random_source import SystemEntropy
from sottovoce.sim.randomness import dice

PEOPLE = 6_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("records")
    source = dice(5).generator()
    waits, miles = source.gamma(2.0, 10.0, PEOPLE), source.uniform(0, 1, PEOPLE)
    rows = zip(waits, miles, ["north", "south"] * (PEOPLE // 2), strict=True)
    lines = "".join(f"{wait:.4f},{mile:.4f},{site}\n" for wait, mile, site in rows)
    (where / "waits.csv").write_text(f"wait & see,miles,site\n{lines}", encoding="utf-8")
    return where


WAYS = {
    "quantile": ("quantile", "--value", "wait & see", "--site", "site", "--tau", "0.5", "--epsilon", "4"),
    "quantiles": ("quantile", "--value", "wait & see", "--site", "site", "--tau", "0.4,0.6", "--epsilon", "8"),
    "integrate": (
        *("integrate", "--value", "wait & see", "--site", "site", "--tau", "0.5", "--epsilon", "8"),
        *("--target", "north"),
    ),
    "regress": (
        *("regress", "--response", "wait & see", "--features", "miles", "--tau", "0.5", "--epsilon", "6"),
        *("--bounds", "0:1", "--density", "0.03", "--size", "20", "--start", "17"),
    ),
    "conformal": ("conformal", "--score", "wait & see", "--site", "site", "--epsilon", "4", "--maximum", "200"),
}


def run(folder: Path, way: str, *words: str) -> Any:
    command, *options = WAYS[way]
    return CliRunner().invoke(app, [command, str(folder / "waits.csv"), *options, *words])


@pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")
@pytest.mark.parametrize("way", WAYS)
def test_a_page_is_written_beside_the_answer(
    folder: Path, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sottovoce.server.stored.as_png", lambda figure: b"drawn" if figure.axes else b"")
    path = tmp_path / "page.html"
    done = run(folder, way, "--report", str(path), "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["report"] == str(path)
    text = path.read_text(encoding="utf-8")
    assert "wait &amp; see" in text
    assert "wait & see" not in text
    assert "Not private" not in text
    assert b64encode(b"drawn").decode() in text


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["page.pdf", "absent/page.html", "there.html", ""])
def test_a_path_that_cannot_be_written_costs_nothing(
    folder: Path, way: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def throw(*_: object) -> None:
        raise AssertionError("a die was thrown")

    (tmp_path / "there.html").mkdir()
    monkeypatch.setattr(SystemEntropy, "words", throw)
    done = run(folder, way, f"--report={tmp_path / name if name else ''}")
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("sottovoce: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")
def test_a_page_that_fails_in_the_end_does_not_cost_the_answer(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    done = run(folder, "quantile", "--report", str(tmp_path / "page.html"))
    assert done.exit_code == 2
    assert "Estimate:" in done.stdout
    assert "No space left on device" in done.stderr
    assert "Report:" not in done.stdout
    assert np.count_nonzero(["page.html" in line for line in done.stderr.splitlines()]) == 1
