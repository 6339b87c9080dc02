"""The logs that a collector's tests run on: SQLite and PostgreSQL, each new."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sottovoce.collector.store import CollectorStore


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return where a new log is: a file, or a schema of a cluster."""
    return str(tmp_path / "log") if request.param == "sqlite" else request.getfixturevalue("cluster").fresh()


@pytest.fixture
def log(place: str) -> Iterator[CollectorStore]:
    """Open a new log."""
    store = CollectorStore(place)
    yield store
    store.close()
