"""Who may do what: keys and roles, limits a sender, results for readers alone, and tokens that count once."""

import base64
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.collector.calling import call

from sottovoce.client.device import make_report
from sottovoce.collector import routes
from sottovoce.collector.access import Access
from sottovoce.collector.fold import REPLAYED
from sottovoce.collector.gathering import NOT_ISSUED, Gathering
from sottovoce.collector.keys import make_key, role_of
from sottovoce.collector.limits import RateLimit
from sottovoce.collector.service import CollectorService
from sottovoce.collector.store import CollectorStore
from sottovoce.collector.studies import CollectedStudies
from sottovoce.collector.study import collected_of
from sottovoce.collector.tokens import issue, was_issued
from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import IDENTITY, pack, read_card

GIVEN: dict[str, Any] = {
    "name": "age",
    "groups": ["a", "b"],
    "people": 600,
    "quantile": {"tau": 0.5, "epsilon": 1.0, "bounds": [0, 120]},
    "rounds": {"grace": 0},
}
WITH_TOKENS = GIVEN | {"devices": {"tokens": True}}


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def test_a_key_is_shown_once_and_its_hash_alone_is_kept(log: CollectorStore, tmp_path: Path) -> None:
    key = make_key(log, "me", "admin")
    assert len(key) == 3 + 43
    assert role_of(key, log.all_keys()) == "admin"
    assert role_of(key[:-1], log.all_keys()) is None
    log.close()
    assert all(key[3:].encode() not in path.read_bytes() for path in tmp_path.iterdir())


def test_a_log_is_for_its_owner_alone(log: CollectorStore, tmp_path: Path) -> None:
    studies = CollectedStudies(log)
    studies.begin(collected_of(WITH_TOKENS), WITH_TOKENS)  # the key of its tokens stands in the log
    assert {path.name for path in tmp_path.iterdir()} >= {"log", "log-wal"}
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in tmp_path.iterdir())
    with pytest.raises(BadInput, match="cannot be used"):
        CollectorStore(str(tmp_path / "nowhere" / "log"))


def test_those_who_look_on_leave_room(log: CollectorStore, monkeypatch: pytest.MonkeyPatch) -> None:
    studies = CollectedStudies(log)
    gathering = studies.begin(collected_of(GIVEN), GIVEN)
    where = f"/v1/studies/{gathering.identity.hex()}/events"
    app = CollectorService(studies, Access(log))
    monkeypatch.setattr(routes, "WATCHING", 0)
    told = call(app, "GET", where)
    assert (told.status_code, told.json()["error"], told.headers["retry-after"]) == (503, routes.MANY, "5")
    monkeypatch.setattr(routes, "WATCHING", 1)
    studies.set_state(gathering, "closed")  # so that the stream ends
    assert [call(app, "GET", where).status_code for _ in range(3)] == [200] * 3


@pytest.mark.parametrize(("name", "role"), [("me", "admin"), ("", "admin"), ("x" * 101, "reader"), ("you", "king")])
def test_keys_that_cannot_be_are_refused(log: CollectorStore, name: str, role: str) -> None:
    make_key(log, "me", "reader")
    with pytest.raises(BadInput):
        make_key(log, name, role)
    assert len(log.all_keys()) == 1


def test_a_study_is_begun_paused_and_closed_over_http_by_an_admin(log: CollectorStore) -> None:
    key, reader = make_key(log, "me", "admin"), make_key(log, "you", "reader")
    app = CollectorService(CollectedStudies(log), Access(log))
    assert call(app, "POST", "/v1/studies", json=GIVEN, headers=bearer(reader)).status_code == 401
    begun = call(app, "POST", "/v1/studies", json=GIVEN, headers=bearer(key))
    assert begun.status_code == 201
    again = call(app, "POST", "/v1/studies", json=GIVEN, headers=bearer(key))
    assert (again.status_code, again.json()["error"].count(".")) == (400, 1)
    where = f"/v1/studies/{begun.json()['study']}"
    for state in ("paused", "open", "closed"):
        assert call(app, "POST", f"{where}/state", json={"state": state}, headers=bearer(key)).json()["state"] == state
    assert call(app, "POST", f"{where}/state", json={"state": "open"}, headers=bearer(key)).status_code == 400
    assert [each.state for each in CollectedStudies(log)] == ["closed"]  # from the log alone
    log.remove_key("me")
    assert call(app, "POST", "/v1/studies", json=GIVEN, headers=bearer(key)).status_code == 401


def test_results_may_be_for_readers_alone(log: CollectorStore) -> None:
    keys = {role: make_key(log, role, role) for role in ("admin", "reader", "sender")}
    studies = CollectedStudies(log)
    study = studies.begin(collected_of(GIVEN), GIVEN).identity.hex()
    app = CollectorService(studies, Access(log, readers_only=True))
    for path in ("/estimate", "/trajectory", ""):
        where = f"/v1/studies/{study}{path}"
        told = call(app, "GET", where)
        assert (told.status_code, told.headers["www-authenticate"][:5]) == (401, "Basic")
        for role, key in keys.items():
            expected = 401 if role == "sender" else 200
            password = base64.b64encode(f"anyone:{key}".encode()).decode()
            assert call(app, "GET", where, headers=bearer(key)).status_code == expected
            assert call(app, "GET", where, headers={"authorization": f"Basic {password}"}).status_code == expected
    assert call(app, "GET", f"/studies/{study}").status_code == 401
    for path in ("/card", "/query"):  # devices need no key
        assert call(app, "GET", f"/v1/studies/{study}{path}").status_code == 200
    assert call(app, "GET", f"/studies/{study}/survey").status_code == 200


def test_a_sender_who_comes_too_often_is_told_when_to_come_again(log: CollectorStore) -> None:
    key = make_key(log, "gateway", "sender")
    app = CollectorService(CollectedStudies(log), Access(log, rate=1))
    told = [call(app, "GET", "/health").status_code for _ in range(12)]
    assert told[:10] == [200] * 10
    last = call(app, "POST", "/v1/reports", content=b"x")
    assert (last.status_code, last.headers["retry-after"]) == (429, "1")
    assert call(app, "GET", "/health", address="192.0.2.2").status_code == 200
    assert call(app, "GET", "/health", headers=bearer(key)).status_code == 200


def test_buckets_fill_cost_and_are_bounded() -> None:
    now = 0.0
    limit = RateLimit(2.0, lambda: now, most=3)
    assert [limit.wait("a") for _ in range(20)] == [0.0] * 20
    assert limit.wait("a") == 0.5
    now = 0.5
    assert limit.wait("a") == 0.0
    assert limit.wait("b", 250_016) == 0.0  # an upload of 10,000 reports is let in, and costs 101 requests
    assert limit.wait("b") > 0
    for sender in "cdef":
        limit.wait(sender)
    assert len(limit._buckets) == 3
    assert RateLimit(0).wait("a", 1 << 30) == 0.0


def tokened(log: CollectorStore) -> tuple[CollectedStudies, Gathering, list[bytes]]:
    studies = CollectedStudies(log)
    gathering = studies.begin(collected_of(WITH_TOKENS), WITH_TOKENS)
    kept = log.known("age")
    assert kept is not None
    assert kept.secret is not None
    assert "secret" not in repr(kept)
    return studies, gathering, issue(kept.secret, gathering.identity, 0, 400)


def test_a_token_counts_once_in_the_whole_study(log: CollectorStore) -> None:
    studies, gathering, tokens = tokened(log)
    card = read_card(gathering.card)
    spent: list[bytes] = []
    while gathering.folds[0].asked is not None and gathering.folds[0].asked["round"] < 3:
        query = {"study": gathering.identity.hex(), "group": 0, **(gathering.asked(0) or {})}
        body = make_report(card, gathering.identity, query, 40.0, tokens.pop())
        assert studies.upload(body).new == 1
        assert studies.upload(body).refused == ()  # the same bytes again are known
        spent.append(body)
        studies.commit()
    asked = gathering.asked(0)
    assert asked is not None
    first = spent[0][IDENTITY : IDENTITY + 16]
    again = gathering.identity + pack(first, asked["round"], 0, 0, 1)
    assert studies.upload(again).refused == ((0, REPLAYED),)
    afresh = CollectedStudies(log)  # from the log alone
    assert afresh.upload(again).refused == ((0, REPLAYED),)
    made_up = gathering.identity + pack(bytes(16), asked["round"], 0, 0, 1)
    elsewhere = gathering.identity + pack(tokens.pop(), 1, 1, 0, 1)
    for body in (made_up, elsewhere):
        assert studies.upload(body).refused == ((0, NOT_ISSUED),)


def test_a_device_uses_a_token_where_there_are_some_and_nowhere_else(log: CollectorStore) -> None:
    _, gathering, tokens = tokened(log)
    query = {"study": gathering.identity.hex(), "group": 0, **(gathering.asked(0) or {})}
    card = read_card(gathering.card)
    for token in (None, b"short"):
        with pytest.raises(BadInput, match="nothing was answered"):
            make_report(card, gathering.identity, query, 40.0, token)
    assert make_report(card, gathering.identity, query, 40.0, tokens[0])[IDENTITY : IDENTITY + 16] == tokens[0]
    assert was_issued(b"k" * 32, b"s" * 16, 3, issue(b"k" * 32, b"s" * 16, 3, 1)[0])
    assert not was_issued(b"k" * 32, b"s" * 16, 2, issue(b"k" * 32, b"s" * 16, 3, 1)[0])


def test_keys_and_tokens_by_the_commands(tmp_path: Path) -> None:
    def said(*words: str, code: int = 0) -> str:
        whole = [sys.executable, "-m", "sottovoce", *words]
        done = subprocess.run(whole, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == code, done
        return done.stdout if code == 0 else done.stderr

    key = said("key", "add", "log", "me").strip()
    assert key.startswith("sv_")
    assert said("key", "list", "log") == "admin    me\n"
    assert "name" in said("key", "add", "log", "me", code=2)
    said("key", "revoke", "log", "me")
    assert "no key of this name" in said("key", "revoke", "log", "me", code=2)
    assert said("key", "list", "absent", code=2).count(".") <= 2
    assert not (tmp_path / "absent").exists()
    (tmp_path / "s.toml").write_text('name = "age"\npeople = 600\n[quantile]\ntau = 0.5\nepsilon = 1.0\n')
    assert "no such study with tokens" in said("token", "s.toml", "--log", "log", code=2)
