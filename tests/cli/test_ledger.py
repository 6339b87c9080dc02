"""`sottovoce ledger`: looked at, held against its chains and exported, whether its site is running or not."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.client.ledgers import STUDY, asked, door, enrol, opened
from typer.testing import CliRunner

from sottovoce.cli import app
from sottovoce.client.ledger_audit import first_link, next_head, next_link
from sottovoce.client.site_ledger import SiteLedger


def run(*words: Any) -> Any:
    return CliRunner().invoke(app, ["ledger", *(str(word) for word in words)])


@pytest.fixture
def running(tmp_path: Path) -> Iterator[SiteLedger]:
    """Hold a ledger in which two studies have been opened, as a site does that runs."""
    with opened(tmp_path) as ledger:
        answering = door(enrol(ledger))
        enrol(ledger, b"by id", 0.5, source="wards\x1b[2J", people=[b"patient 1", b"patient 2"])
        for round in (1, 2):
            answering.answer(asked(round))
        ledger.close(b"by id")
        yield ledger


@pytest.fixture
def path(tmp_path: Path, running: SiteLedger) -> Path:
    return tmp_path / "site.ledger"


def test_a_ledger_is_shown_while_its_site_holds_it_and_after(path: Path, running: SiteLedger) -> None:
    held = run("show", path)
    running.shut()
    assert (held.exit_code, held.stderr) == (0, "")
    assert run("show", path).stdout == held.stdout
    assert "Transactions:  5\n" in held.stdout
    assert "Ids:           2; the dearest has cost epsilon 0.5\n" in held.stdout
    assert "Source:        flights; epsilon 1 as a whole, 0 by id\n" in held.stdout
    assert "wards\\x1b[2J" in held.stdout  # shown as what it is
    rows = [line.split() for line in held.stdout.splitlines() if "open " in line or "closed" in line]
    assert rows[0][:8] == ["delays", "quantile", "1", "20", "of", "100", "2", "open"]


def test_as_json(path: Path, running: SiteLedger) -> None:
    assert json.loads(run("show", path, "--json").stdout) == running.show()


def test_a_whole_ledger_ends_with_zero(path: Path, running: SiteLedger) -> None:
    for _ in range(2):
        done = run("verify", path)
        assert (done.exit_code, done.stderr) == (0, "")
        assert "The ledger is whole" in done.stdout
        running.shut()


def test_an_old_copy_a_changed_reply_and_a_missing_head_end_with_two(path: Path, running: SiteLedger) -> None:
    running._book._file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    old = shutil.copy(path, path.with_name("old"))
    door(running.study(STUDY)).answer(asked(3))
    running.shut()
    wrong = {"older than the head": old, "the chain breaks at transaction 3": path}
    with opened(path.parent) as ledger:
        ledger._book._file.execute("UPDATE reply SET first = first + 1 WHERE key = 1")
    shutil.copy(path.with_name("site.ledger.head"), path.with_name("old.head"))
    for sentence, each in wrong.items():
        done = run("verify", each)
        assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert sentence in done.stderr
    path.with_name("old.head").unlink()
    assert "the head written beside the ledger is missing" in run("verify", old).stderr


def test_an_export_proves_its_chain_without_a_question_or_a_reply(path: Path, running: SiteLedger) -> None:
    target = path.with_name("export.jsonl")
    done = run("export", path, target)
    assert (done.exit_code, done.stdout.partition(":")[0]) == (0, "8 lines")
    text = target.read_text()
    assert run("export", path).stdout == text
    first, *rest = map(json.loads, text.splitlines())
    studies = {line["study"]: line for line in rest if line["line"] == "study"}
    head, links = bytes.fromhex(first["begins"]), {}
    for name, line in studies.items():
        study, card, key, rows = (bytes.fromhex(line[each]) for each in ("study", "card", "key", "rows"))
        cost = line["units"], line["source"], int(line["by_id"])
        links[name] = first_link(study, card, key, line["records"], rows, *cost)
    for event in (line for line in rest if line["line"] == "event"):
        name = event["study"]
        if event["what"] == "reply":
            query, reply = (bytes.fromhex(event[each]) for each in ("query", "reply"))
            places = event["key"], event["first"], event["count"]
            links[name] = next_link(links[name], bytes.fromhex(name), *places, query, reply)
            assert links[name].hex() == event["chain"]
        head = next_head(head, event["counter"], bytes.fromhex(name), event["what"], links[name])
    assert head.hex() == first["head"] == running.head.hex()
    assert {name: link.hex() for name, link in links.items()} == {name: line["head"] for name, line in studies.items()}


@pytest.mark.parametrize("command", ["show", "verify", "export"])
def test_what_is_no_ledger_is_one_sentence(command: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("age,weight\n" * 200)
    (tmp_path / "empty").touch()
    for name in ("text", "empty", "missing", "."):
        done = run(command, tmp_path / name)
        assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1), name
        assert "ledger" in done.stderr


def test_an_export_overwrites_nothing_and_leaves_nothing_of_a_ledger_that_cannot_be_read(path: Path) -> None:
    before = path.read_bytes()
    assert "site.ledger exists already; name a new one" in run("export", path, path).stderr
    assert path.read_bytes() == before
    assert "cannot be written" in run("export", path, path.parent / "none" / "x").stderr
    assert run("export", path.with_name("missing"), path.with_name("x")).exit_code == 2
    assert not path.with_name("x").exists()
