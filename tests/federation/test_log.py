"""A coordinator's log in PostgreSQL: the same studies, one coordinator each, and a plain sentence when it goes away."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.federation.network import WAITS, DirectPost, Network, conduct, terms
from tests.postgres import Cluster

from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import parts_of
from sottovoce.federation.coordinator import log
from sottovoce.federation.coordinator.log import StudyLog
from sottovoce.sim import dice

pytestmark = pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")
STUDY = terms("quantile", {"tau": 0.5, "epsilon": 3.0, "bounds": [0.0, 60.0]})


class Killed(BaseException):
    """What kills a coordinator."""


def conducted(folder: Path, where: Any) -> tuple[float, Any, int]:
    """Conduct the study over a network of its own to its end; return what it came to, and how often it was killed."""
    network = Network(folder, dict(zip(WAITS, parts_of(dice(7), len(WAITS)), strict=True)))
    try:
        for deaths in range(9):
            try:
                result = conduct(STUDY, DirectPost(network), where)
            except Killed:
                continue
            assert all(resident.ledger.verify() == [] for resident in network.sites.values())
            return result.estimate, result.interval, deaths
    finally:
        network.shut()
    raise AssertionError("the study never ended")


@pytest.mark.parametrize("call", ["ask", "tell"])
def test_a_coordinator_killed_goes_on_from_its_log(
    call: str, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").mkdir()
    expected = conducted(tmp_path / "file", tmp_path / "file" / "log")
    real: Callable[..., Any] = getattr(StudyLog, call)
    calls = 0

    def dying(self: StudyLog, *given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls % 2:
            real(self, *given)
        if calls in (2, 5, 8):
            raise Killed
        return None if calls % 2 else real(self, *given)

    monkeypatch.setattr(StudyLog, call, dying)
    (tmp_path / "base").mkdir()
    found = conducted(tmp_path / "base", cluster.fresh())
    assert found == (*expected[:2], 3)


def test_one_coordinator_a_study_and_many_begin_at_a_time(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "PATIENCE", 0.2)
    url, gate, found, wrong = cluster.fresh(), threading.Barrier(4), list[StudyLog](), list[Exception]()

    def begin(name: str) -> None:
        try:
            gate.wait()
            found.append(StudyLog(url, name))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=begin, args=(f"study {k}",)) for k in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert (wrong, len(found)) == ([], 4)
    with pytest.raises(BadInput, match="another coordinator runs this study"):
        StudyLog(url, "study 0")
    assert found[0]._run("SHOW synchronous_commit").fetchone() == ("on",)
    for kept in found:
        kept.close()
    StudyLog(url, "study 0").close()


def test_a_database_that_goes_away_is_said_in_one_sentence(cluster: Cluster) -> None:
    url = cluster.fresh()
    kept = StudyLog(url, "study")
    kept.begin(b"terms", b"coin", b"nonce")
    with cluster.connected() as base:
        base.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    for use in (kept.study, kept.invite):
        with pytest.raises(BadInput, match="start the coordinator again"):
            use()
    kept.close()
    again = StudyLog(url, "study")
    study = again.study()
    assert study is not None
    assert (study.terms, study.state) == (b"terms", "open")
    again.close()
    with pytest.raises(BadInput) as refused:
        StudyLog("postgresql://someone:sesame@127.0.0.1:port/absent", "study")
    assert "sesame" not in str(refused.value)
