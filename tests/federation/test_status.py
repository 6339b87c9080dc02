"""What is seen of a federation: boards count, pages escape, and nothing that is shown holds a value."""

import json
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.federation.network import WAITS, DirectPost, Network, terms

from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import parts_of
from sottovoce.federation.coordinator.exchange import Happened
from sottovoce.federation.coordinator.log import StudyLog
from sottovoce.federation.coordinator.rounds import Rounds
from sottovoce.federation.site.resident import Resident, Seen
from sottovoce.federation.status import Notice, SiteBoard, StudyBoard
from sottovoce.federation.status_page import StatusServer, status_page
from sottovoce.sim import dice


def fetched(url: str, host: str | None = None) -> tuple[int, str]:
    request = urllib.request.Request(url, headers={} if host is None else {"Host": host})
    try:
        with urllib.request.urlopen(request, timeout=5) as got:
            return got.status, got.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


@pytest.fixture
def log(tmp_path: Path) -> Any:
    kept = StudyLog(tmp_path / "study.log", "waits")
    yield kept
    kept.close()


def conducted(tmp_path: Path, log: StudyLog, method: str) -> tuple[list[Notice], StudyBoard, Network]:
    study = terms("quantile", {"tau": 0.5, "epsilon": 1.0, "method": method})
    network = Network(tmp_path, dict(zip(WAITS, parts_of(dice(3), len(WAITS)), strict=True)))
    board, told = StudyBoard(study, log, log.where), list[Notice]()
    Rounds(study, log, DirectPost(network), lambda each: told.append(board.happened(each)), lambda: b"c" * 16).conduct()
    return told, board, network


def site_board(resident: Resident, folder: Path) -> SiteBoard:
    file = folder / "north.ledger"
    return SiteBoard(resident.policy, resident.holding, resident.ledger.show, file, "https://localhost:8443")


@pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")
def test_a_sequence_tells_rounds_heads_and_its_interval_so_far(tmp_path: Path, log: StudyLog) -> None:
    told, board, network = conducted(tmp_path, log, "sequence")
    rounds = [each.fields for each in told if each.fields["event"] == "round"]
    assert [each["round"] for each in rounds] == list(range(1, len(rounds) + 1))
    assert rounds[-1]["epsilon"] == 1.0
    assert set().union(*(each["answered"] for each in rounds)) == set(WAITS)
    low, high = rounds[-1]["interval"]
    assert low < high
    assert "interval so far" in next(each.line for each in reversed(told) if each.fields["event"] == "round")
    shown = board.status()
    assert shown["state"] == "done"
    for each in shown["sites"]:
        ledger = network.sites[each["site"]].ledger
        assert each["ledger"] == {"counter": ledger.counter, "head": ledger.head.hex()}
        assert each["answered"] == log.counts("told")[each["site"]] > 0
    site = site_board(network.sites["north"], tmp_path).status()
    own = network.sites["north"].policy
    assert site["caps"] == {"a_study": own.epsilon, "all_studies": own.total, "spent": 1.0, "left": own.total - 1}
    assert site["studies"][0]["name"] == "waits"
    assert site["studies"][0]["asked"] <= site["records"] == len(WAITS["north"])
    said = json.dumps([shown, site, [each.fields for each in told]]) + status_page(shown) + status_page(site)
    assert not any(repr(float(value)) in said for values in WAITS.values() for value in values[:200])
    network.shut()


def test_words_of_the_other_side_are_escaped(log: StudyLog) -> None:
    log.refuse("north", 3, "refuses: <script>alert(1)</script>")
    board = StudyBoard(
        terms("quantile", {"tau": 0.5, "epsilon": {"north": 0.5, "south": 2.0, "west": 1.0}}), log, "x<y"
    )
    board.happened(Happened("refused", "north", 3, "<b>"))
    page = status_page(board.status())
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "x&lt;y" in page
    assert "epsilon 0.5 to 2 a record" in page
    assert board.status()["sites"][0]["refused"] == 2  # one from the log, one since


def test_a_site_says_that_its_line_is_down_once(tmp_path: Path) -> None:
    network = Network(tmp_path, {"north": dice(1)})
    board = site_board(network.sites["north"], tmp_path)
    assert board.lost("no line") is not None
    assert board.lost("no line") is None
    board.reached(500)
    assert board.status()["line"]["state"] == "no line"
    board.reached(204)
    assert board.status()["line"]["state"] == "connected"
    assert board.seen(Seen("question", "0a1b2c3d", 3, "done")).passing
    fields = board.seen(Seen("invite", "", 0, "refused: it costs too much.")).fields
    assert (fields["outcome"], fields["why"]) == ("refused", "it costs too much.")
    assert board.status()["refusals"][0]["why"] == "it costs too much."
    network.shut()


def test_the_page_is_for_loopback_alone_and_outlives_a_failure() -> None:
    fails = threading.Event()

    def status() -> dict[str, Any]:
        if fails.is_set():
            raise ValueError("a secret")
        return {"side": "nothing"}

    with StatusServer(0, status) as server:
        assert fetched(f"{server.url}status.json") == (200, '{"side": "nothing"}')
        assert fetched(f"{server.url}status.json", host="evil.example")[0] == 403
        assert fetched(f"{server.url}else")[0] == 404
        fails.set()
        code, text = fetched(f"{server.url}status.json")
        assert code == 503
        assert "secret" not in text
        port = int(server.url.rstrip("/").rpartition(":")[2])
        with pytest.raises(BadInput, match=f"cannot use port {port}; give another with --status"):
            StatusServer(port, status)
