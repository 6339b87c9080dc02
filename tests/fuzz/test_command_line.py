"""Hostile commands are refused in one sentence, with exit code 2 and no value of the data.

A sample: `python -m benchmarks hostile` runs a thousand, each in a process of its own, with its time and memory.
"""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sottovoce.cli import app
from sottovoce.client.answered import MEMORY

from .hostile import MARK, Case, cases, write_files
from .hostile_federation import federation_cases

HEAVY = ("bomb.csv.gz", "line.csv")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


def check_refused(case: Case) -> None:
    """Run one command here; it is to say one sentence."""
    MEMORY.clear()
    done = CliRunner().invoke(app, list(case.words))
    said = done.stderr.strip()
    assert done.exit_code == 2, (case, done.stdout[:300], said, done.exception)
    assert done.stdout == "", case
    assert len(said.splitlines()) == 1, (case, said)
    assert MARK not in said, (case, said)
    assert "unexpected" not in said, (case, said)
    assert said.isprintable(), (case, said)


@pytest.mark.parametrize("seed", range(4))
def test_hostile_commands_get_one_sentence(folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    bad = [name for name in write_files(folder, bomb=9) if name not in HEAVY]
    for case in cases(40, 100 + seed, bad):
        check_refused(case)


@pytest.mark.parametrize("seed", range(2))
def test_so_do_those_of_a_federation(folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    bad = [name for name in write_files(folder, bomb=9) if name not in HEAVY]
    for case in federation_cases(40, 200 + seed, folder, bad):
        check_refused(case)
