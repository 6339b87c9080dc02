"""What the tests of the documents share: a seed behind the operating system's words, and an empty folder to run in."""

import socket
from pathlib import Path

import pytest

import sottovoce as sv
from sottovoce.core.arrays import Words
from sottovoce.core.random_source import SystemEntropy


@pytest.fixture
def loaded_dice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the system's words from a seed: what passes once passes always."""
    seeded = sv.sim.dice(7)

    def words(_: SystemEntropy, n: int) -> Words:
        return seeded.words(n)

    monkeypatch.setattr(SystemEntropy, "words", words)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in an empty folder, where a page may write its files."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def free_port() -> str:
    """Return a port of this machine that nobody listens on, for the one that a page names."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])
