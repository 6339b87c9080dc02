"""A log in PostgreSQL: one writer a part, nothing lost when the server goes away, several hosts on one log."""

import json
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.collector.sending import Sending
from tests.collector.test_service import STUDY, Running
from tests.postgres import Cluster

from sottovoce.collector import log_connection
from sottovoce.collector.keys import make_key
from sottovoce.collector.log_connection import LogAway
from sottovoce.collector.peers import Part
from sottovoce.collector.running import collect_studies
from sottovoce.collector.store import ALONE, CollectorStore
from sottovoce.collector.studies import enrol
from sottovoce.collector.study import collected_of
from sottovoce.core.errors import BadInput

GIVEN: dict[str, Any] = {"name": "age", "people": 3000, "quantile": {"tau": 0.5, "epsilon": 1.0, "bounds": [0, 120]}}
WAITS = STUDY.replace("grace = 0.0", "grace = 1000.0").replace("tau", 'method = "staged"\ntau')


def ends_sessions(cluster: Cluster) -> None:
    """Have the server end all sessions of collectors, as it does before it stops."""
    cluster.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sottovoce'")


def test_two_hosts_begin_one_log_and_one_study_at_a_time(cluster: Cluster) -> None:
    for _ in range(4):
        url, gate, found, wrong = cluster.fresh(), threading.Barrier(4), set[str](), list[Exception]()

        def begin(url: str, gate: threading.Barrier, found: set[str], wrong: list[Exception]) -> None:
            try:
                gate.wait()
                store = CollectorStore(url)
                gate.wait()
                found.add(enrol(store, collected_of(GIVEN), GIVEN).card)
                store.close()
            except Exception as error:
                wrong.append(error)
                gate.abort()

        threads = [threading.Thread(target=begin, args=(url, gate, found, wrong)) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert (wrong, len(found)) == ([], 1)


def test_who_lost_the_lock_never_writes_again_without_it(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_connection, "PATIENCE", 0.2)
    url = cluster.fresh()
    first, second = CollectorStore(url), CollectorStore(url)
    first.claim(ALONE)
    with pytest.raises(LogAway, match="another collector writes"):
        second.claim(ALONE)
    second.close()
    ends_sessions(cluster)
    third = CollectorStore(url)
    third.claim(ALONE)
    for use in (first.all_keys, lambda: first.append("age", b"x" * 25), first.commit, lambda: list(first.ids("age"))):
        with pytest.raises(LogAway):
            use()
    with pytest.raises(LogAway, match="another collector writes"):
        first.reopen()
    assert first.lost
    third.close()
    first.reopen()
    first.append("age", b"x" * 25)
    first.commit()
    assert len(list(first.ids("age"))) == 1
    first.close()


def test_what_is_acknowledged_is_on_the_disk_and_nothing_is_held_open(cluster: Cluster) -> None:
    url = cluster.fresh()
    store = CollectorStore(url)
    assert store._base.execute(sa.text("SHOW synchronous_commit")).scalar_one() == "on"  # the server's own is off
    assert store._base.execute(sa.text("SHOW transaction_isolation")).scalar_one() == "read committed"
    store.commit()
    make_key(store, "one", "admin")
    enrol(store, collected_of(GIVEN), GIVEN)
    store.append("age", b"x" * 25)
    store.commit()
    for read in (store.all_keys, lambda: list(store.rows("age")), lambda: store.rounds("age"), lambda: store.parts):
        read()
        open_ = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sottovoce' AND state LIKE 'idle in%'"
        with cluster.connected() as base:
            row = base.execute(open_).fetchone()
        assert row == (0,)
    store.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://someone:sesame@127.0.0.1:1/absent",
        "postgresql://someone:sesame@127.0.0.1:port/absent",
        "postgres://someone:sesame@127.0.0.1:1/absent",
        "postgresql+psycopg://someone:sesame@127.0.0.1:1/absent?keepalives=sesame",
        "postgresql+other://someone:sesame@127.0.0.1:1/absent",
        "mysql://someone:sesame@127.0.0.1:1/absent",
        "postgresql:",
    ],
)
def test_a_url_that_leads_nowhere_is_refused_without_its_password(url: str, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    from sottovoce.collector.listening import Listening

    with pytest.raises(BadInput) as refused:
        collect_studies([str(tmp_path / "study.toml")], url, Listening(port=0))
    said = str(refused.value)
    assert said.endswith(".")
    assert "sesame" not in said
    assert "sesame" not in repr(refused.value.__cause__)


@pytest.fixture
def running(tmp_path: Path, cluster: Cluster) -> Iterator[Running]:
    collector = Running(tmp_path, cluster.fresh())
    collector.study.write_text(WAITS)
    collector.start()
    yield collector
    if collector.process is not None and collector.process.poll() is None:
        collector.stop()


def counted(running: Running, groups: str = "ab") -> int:
    return sum(int(running.get(f"{running.named}/estimate?group={group}")["reports"]) for group in groups)


def status(running: Running, path: str) -> int:
    try:
        with urllib.request.urlopen(running.url + path, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_server_that_goes_away_and_comes_back(running: Running, cluster: Cluster, how: str) -> None:
    first = running.upload("a", 20, 40.0)
    assert running.post(first)[0] == 200
    sending = Sending(running, first)
    time.sleep(0.2)
    cluster.stop(how)
    try:
        time.sleep(0.3)
        assert status(running, "/health") == 503
        assert status(running, f"{running.named}/query?group=a") == 503
        assert status(running, f"{running.named}/estimate?group=a") == 200
    finally:
        cluster.start()
    for _ in range(200):
        if status(running, "/health") == 200:
            break
        time.sleep(0.05)
    time.sleep(0.2)
    sending.stop()
    told, kept = sending.told, 20 * (1 + len(sending.sent))
    assert {code for code, _ in told} == {200, 503}
    assert all(said["error"].endswith("send the same again later.") for code, said in told if code == 503)
    assert all(said == {"accepted": 20, "refused": []} for code, said in told if code == 200)
    assert counted(running) == running.replayed() == kept
    assert running.post(sending.sent[-1])[1]["accepted"] == 20
    assert counted(running) == kept
    said = running.stop(signal.SIGTERM).splitlines()
    assert [line for line in said if line.startswith("the log")] == [
        "the log cannot be used now; nothing is taken until it can be.",
        "the log can be used again; nothing that was acknowledged is lost.",
    ]
    assert "Traceback" not in "".join(said)


def post(running: Running, path: str, key: str, given: Any = None) -> tuple[int, Any]:
    body = b"" if given is None else json.dumps(given).encode()
    request = urllib.request.Request(running.url + path, body, {"authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_two_hosts_share_one_log(tmp_path: Path, cluster: Cluster) -> None:
    url = cluster.fresh()
    store = CollectorStore(url)
    key = make_key(store, "me", "admin")  # before any host has begun the log
    store.close()
    hosts = [Running(tmp_path / str(k), url) for k in (1, 2)]
    for k, host in enumerate(hosts, 1):
        host.more += ["--part", f"{k}/2"]
        host.start()
    one, two = hosts
    assert one.named == two.named
    for host, mine, other in ((one, "a", "b"), (two, "b", "a")):
        assert [host.post(host.upload(mine, 250, 40.0))[1]["accepted"] for _ in range(10)] == [250] * 10
        assert status(host, f"{host.named}/query?group={other}") == 421
    strange = two.upload("b", 2, 40.0)
    assert {why for _, why in one.post(strange)[1]["refused"]} == {"another process owns the group"}
    for _ in range(100):  # rounds that one has closed are followed by the other
        both = [[host.get(f"{host.named}/estimate?group={group}") for group in "ab"] for host in hosts]
        if both[0] == both[1] and both[0][0]["rounds"] > 0 < both[0][1]["rounds"]:
            break
        time.sleep(0.1)
    assert both[0] == both[1]
    two.stop(signal.SIGKILL)
    state, told = post(one, f"{one.named}/scrub", key)  # the letters in the part of a host that is away, too
    assert state == 200
    store = CollectorStore(url, existing=True)
    parts = set(store.scrubbed_to("age"))
    store.close()
    assert parts == {0, 1}
    assert told["scrubbed"] > 0
    two.start()
    assert two.replayed() == 5000
    assert post(one, f"{one.named}/state", key, {"state": "closed"})[0] == 200
    assert post(two, f"{two.named}/state", key, {"state": "open"})[0] == 400  # though it may not have looked yet
    assert two.post(strange)[1]["accepted"] == 0
    for host in hosts:
        host.stop(signal.SIGTERM)


def test_as_many_hosts_as_begun_the_log(cluster: Cluster) -> None:
    url = cluster.fresh()
    first = CollectorStore(url)
    first.claim(Part(0, 2))
    other = CollectorStore(url, Part(2, 3))
    with pytest.raises(BadInput, match="begun by 2 processes"):
        other.claim(Part(2, 3))
    other.close()
    first.close()
