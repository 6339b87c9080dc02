"""A log of an earlier version is brought forward, in a transaction a version, and goes on with what it holds."""

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from sottovoce.collector import tables
from sottovoce.collector.store import CollectorStore
from sottovoce.collector.studies import CollectedStudies
from sottovoce.collector.study import collected_of
from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import card_text, pack

GIVEN: dict[str, Any] = {
    "name": "age",
    "people": 3000,
    "quantile": {"tau": 0.5, "epsilon": 1.0, "bounds": [0, 120]},
}
FIRST = """
CREATE TABLE about (version INTEGER NOT NULL PRIMARY KEY);
CREATE TABLE study (name TEXT NOT NULL PRIMARY KEY, card TEXT NOT NULL, terms TEXT NOT NULL, coin BLOB NOT NULL,
    state TEXT NOT NULL, begun FLOAT NOT NULL);
CREATE TABLE reports (seq INTEGER NOT NULL PRIMARY KEY, study TEXT NOT NULL, scrubbed BOOLEAN NOT NULL,
    body BLOB NOT NULL);
CREATE TABLE round (study TEXT NOT NULL, grp INTEGER NOT NULL, round INTEGER NOT NULL, sums TEXT NOT NULL,
    seq BIGINT NOT NULL, at FLOAT NOT NULL, PRIMARY KEY (study, grp, round));
INSERT INTO about VALUES (1);
"""


def first_version(path: Path) -> None:
    """Write a log as version 1 did, with one study and three reports."""
    card = card_text(collected_of(GIVEN).card("00" * 8))
    with sa.create_engine(f"sqlite:///{path}").begin() as base:
        for line in filter(str.strip, FIRST.split(";")):
            base.execute(sa.text(line))
        base.execute(
            sa.text("INSERT INTO study VALUES ('age', :card, '{}', :coin, 'open', 1.0)"), {"card": card, "coin": b"c"}
        )
        body = b"".join(pack(bytes([k]) * 16, 1, 0, 0, 1) for k in range(3))
        base.execute(sa.text("INSERT INTO reports VALUES (1, 'age', FALSE, :body)"), {"body": body})


def test_a_log_of_the_first_version_goes_on(tmp_path: Path) -> None:
    first_version(tmp_path / "log")
    for _ in range(2):  # the second time nothing is left to do
        store = CollectorStore(str(tmp_path / "log"))
        gathering = CollectedStudies(store).begin(collected_of(GIVEN), GIVEN)
        assert gathering.reports == 3
        known = store.known("age")
        assert known is not None
        assert known.given == json.dumps(GIVEN, sort_keys=True)
        assert store.all_keys() == []
        store.close()


def test_the_tables_are_those_of_a_new_log(tmp_path: Path) -> None:
    first_version(tmp_path / "old")
    for name in ("old", "new"):
        CollectorStore(str(tmp_path / name)).close()
    found = []
    for name in ("old", "new"):
        look = sa.inspect(sa.create_engine(f"sqlite:///{tmp_path / name}"))
        found.append(
            {
                table: (
                    sorted((each["name"], str(each["type"]), each["nullable"]) for each in look.get_columns(table)),
                    sorted(str(each["name"]) for each in look.get_indexes(table)),
                )
                for table in sorted(look.get_table_names())
            }
        )
    assert found[0] == found[1]


def test_other_terms_do_not_take_over_a_log_of_the_first_version(tmp_path: Path) -> None:
    first_version(tmp_path / "log")
    other = GIVEN | {"quantile": GIVEN["quantile"] | {"epsilon": 2.0}}
    store = CollectorStore(str(tmp_path / "log"))
    with pytest.raises(BadInput, match="other terms"):
        CollectedStudies(store).begin(collected_of(other), other)
    store.close()


def test_a_migration_that_fails_leaves_the_log_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first_version(tmp_path / "log")

    def fails(base: sa.Connection) -> None:
        base.execute(sa.text("ALTER TABLE reports DROP COLUMN scrubbed"))
        base.execute(sa.text("DELETE FROM reports"))
        raise sa.exc.OperationalError("x", None, Exception())

    monkeypatch.setattr(tables, "MIGRATIONS", (fails,))
    with pytest.raises(BadInput, match="cannot be used"):
        CollectorStore(str(tmp_path / "log"))
    monkeypatch.undo()
    store = CollectorStore(str(tmp_path / "log"))
    assert sum(len(each) for _, each in store.reports("age")) == 3
    store.close()
