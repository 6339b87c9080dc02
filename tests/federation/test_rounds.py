"""Rounds survive what carriers, sites and coordinators do: loss, doubles, lies, restarts, and ledgers put back."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.federation.network import WAITS, DirectPost, Network, conduct, terms

from sottovoce.core import codec
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import parts_of
from sottovoce.federation import words
from sottovoce.federation.coordinator import exchange
from sottovoce.federation.coordinator.log import Refusal, StudyLog
from sottovoce.federation.coordinator.opening import StudyPaused
from sottovoce.protocol import wire
from sottovoce.protocol.messages import Tally
from sottovoce.server.load import from_dict
from sottovoce.sim import dice

pytestmark = pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")
ASKED = {"tau": 0.5, "epsilon": 3.0, "bounds": [0.0, 60.0]}
STUDY = terms("quantile", ASKED)


@pytest.fixture
def network(tmp_path: Path) -> Any:
    made = Network(tmp_path, dict(zip(WAITS, parts_of(dice(7), len(WAITS)), strict=True)))
    yield made
    made.shut()


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[float, Any]:
    """Return what the study comes to when nothing happens."""
    folder = tmp_path_factory.mktemp("undisturbed")
    made = Network(folder, dict(zip(WAITS, parts_of(dice(7), len(WAITS)), strict=True)))
    try:
        return told(conduct(STUDY, DirectPost(made), folder / "log"))
    finally:
        made.shut()


def told(result: Any) -> tuple[float, Any]:
    return result.estimate, result.interval


def refusals(folder: Path) -> list[Refusal]:
    log = StudyLog(folder / "log", STUDY.name)
    try:
        return log.refusals()
    finally:
        log.close()


class BadPost(DirectPost):
    """A carrier that loses, doubles and reorders, by the words of a seed."""

    def __init__(self, network: Network, seed: int) -> None:
        super().__init__(network)
        self.draw = dice(seed).generator()
        self.held: list[tuple[str, bytes]] = []

    def send(self, site: str, order: bytes) -> None:
        if self.draw.random() < 0.2:
            return
        for _ in range(1 + int(self.draw.random() < 0.3)):
            self.held.append((site, self.network.sites[site].handle(order)))

    def receive(self, timeout: float) -> tuple[str, bytes] | None:
        if not self.held or self.draw.random() < 0.1:
            return None
        return self.held.pop(int(self.draw.integers(len(self.held))))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_lost_doubled_or_reordered_changes_nothing(
    seed: int, network: Network, expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exchange, "AGAIN", 0.0)
    assert told(conduct(STUDY, BadPost(network, seed), tmp_path / "log")) == expected
    assert all(resident.ledger.verify() == [] for resident in network.sites.values())


def test_sites_that_stop_and_start_between_all_rounds_say_the_same(
    network: Network, expected: Any, tmp_path: Path
) -> None:
    class Restless(DirectPost):
        def send(self, site: str, order: bytes) -> None:
            self.network.sites[site].handle(order)  # the reply is lost, and the site dies
            self.network.stop(site)
            self.network.start(site)
            super().send(site, order)

    assert told(conduct(STUDY, Restless(network), tmp_path / "log")) == expected


class Killed(BaseException):
    """What kills a coordinator."""


@pytest.mark.parametrize("call", ["ask", "tell", "keep_head", "settle", "begin", "finish"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_coordinator_killed_at_any_write_goes_on_from_its_log(
    call: str, after: bool, network: Network, expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., Any] = getattr(StudyLog, call)
    seen = {"calls": 0, "deaths": 0}

    def dying(self: StudyLog, *given: Any) -> Any:
        seen["calls"] += 1
        if seen["calls"] in (1, 4, 9):
            seen["deaths"] += 1
            if after:
                real(self, *given)
            raise Killed
        return real(self, *given)

    monkeypatch.setattr(StudyLog, call, dying)
    for _ in range(5):
        try:
            assert told(conduct(STUDY, DirectPost(network), tmp_path / "log")) == expected
            break
        except Killed:
            continue
    else:
        pytest.fail("the study never ended")
    assert seen["deaths"] >= 1
    asked = [resident.ledger.show() for resident in network.sites.values()]
    assert all(len(each["studies"]) == 1 for each in asked)


def test_a_replay_that_asks_something_else_is_refused(network: Network, tmp_path: Path) -> None:
    class Dies(DirectPost):
        def receive(self, timeout: float) -> tuple[str, bytes] | None:
            found = super().receive(timeout)
            if found is not None and isinstance(words.reply_of(found[1]), words.Answered):
                raise Killed
            return found

    with pytest.raises(Killed):
        conduct(STUDY, Dies(network), tmp_path / "log")
    log = StudyLog(tmp_path / "log", STUDY.name)
    [(site, body), *_] = log.asked(1).items()
    log._run("UPDATE ask SET body = ? WHERE round = 1 AND site = ?", body[:-1] + bytes([body[-1] ^ 1]), site)
    log.close()
    with pytest.raises(BadInput, match="round 1 asks something else than the log says was asked"):
        conduct(STUDY, DirectPost(network), tmp_path / "log")


def test_other_terms_under_the_same_name_are_refused(network: Network, tmp_path: Path) -> None:
    conduct(STUDY, DirectPost(network), tmp_path / "log")
    with pytest.raises(BadInput, match="a study of the same name with other terms"):
        conduct(terms("quantile", {**ASKED, "tau": 0.6}), DirectPost(network), tmp_path / "log")


def sealed(study: bytes, round: int, ones: list[int]) -> bytes:
    return wire.seal(study, round, Tally(round, tuple(ones)))


LIES: dict[str, Callable[[Tally, bytes, int], bytes]] = {
    "impossible": lambda said, study, round: sealed(study, round, [one + 10**6 for one in said.ones]),
    "negative": lambda said, study, round: wire.seal(study, round, Tally(round, tuple(-1 for _ in said.ones))),
    "too many points": lambda said, study, round: wire.seal(study, round, Tally(round, (*said.ones, 0))),
    "another round": lambda said, study, round: wire.seal(study, round + 1, Tally(round + 1, said.ones)),
    "another study": lambda said, study, round: wire.seal(bytes(16), round, said),
    "rubbish": lambda said, study, round: b"\xff" * 30,
}


@pytest.mark.parametrize("lie", LIES)
def test_replies_that_no_site_can_have_given_are_refused_and_named(
    lie: str, network: Network, expected: Any, tmp_path: Path
) -> None:
    class Forged(DirectPost):
        """Someone slips a false reply in before each true one."""

        def receive(self, timeout: float) -> tuple[str, bytes] | None:
            found = super().receive(timeout)
            if found is None or found[0] != "south":
                return found
            reply = words.reply_of(found[1])
            if isinstance(reply, words.Answered) and not getattr(self, "again", False):
                self.again = True
                self.came.put(found)
                opened = wire.unseal(reply.envelope, reply.study, [Tally])
                assert isinstance(opened.message, Tally)
                false = LIES[lie](opened.message, reply.study, opened.round)
                return "south", words.encode(msgspec.structs.replace(reply, envelope=false))
            self.again = False
            return found

    assert told(conduct(STUDY, Forged(network), tmp_path / "log")) == expected
    found = refusals(tmp_path)
    assert found
    assert {each.site for each in found} == {"south"}


def test_an_oversized_reply_is_refused(network: Network, expected: Any, tmp_path: Path) -> None:
    class Flood(DirectPost):
        def send(self, site: str, order: bytes) -> None:
            self.came.put((site, bytes(words.MOST + 1)))
            super().send(site, order)

    study = STUDY
    assert told(conduct(study, Flood(network), tmp_path / "log")) == expected
    assert all("larger than" in each.why for each in refusals(tmp_path))


def test_a_ledger_that_was_put_back_is_out_of_the_study(network: Network, tmp_path: Path) -> None:
    class Goes(DirectPost):
        """After some rounds the south restores an old backup of both of its files."""

        rounds = 0

        def send(self, site: str, order: bytes) -> None:
            if site == "south" and isinstance(words.order_of(order), words.Question):
                Goes.rounds += 1
                if Goes.rounds == 3:
                    self.network.stop("south")
                    for path in tmp_path.glob("south.ledger*"):
                        shutil.copy(path, tmp_path / f"old.{path.name}")
                    self.network.start("south")
                if Goes.rounds == 6:
                    self.network.stop("south")
                    for path in tmp_path.glob("south.ledger*"):
                        path.unlink()
                    for path in tmp_path.glob("old.*"):
                        shutil.copy(path, tmp_path / path.name.removeprefix("old."))
                    self.network.start("south")
            super().send(site, order)

    with pytest.raises(StudyPaused, match="site 'south' did not answer round 6"):
        conduct(replace_wait(2.0), Goes(network), tmp_path / "log")
    assert "gone back to an earlier time" in refusals(tmp_path)[-1].why


def replace_wait(seconds: float) -> Any:
    return STUDY._replace(rounds=STUDY.rounds._replace(wait=seconds))


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"epsilon": 1.0}, "costs a record more than epsilon 1"),
        ({"total": 2.0}, "more than this site allows over all studies"),
        ({"studies": ["other*"]}, "does not allow a study of this name"),
        ({"methods": ["conformal"]}, "does not allow quantile studies"),
        ({"sites": 4}, "studies of at least 4 sites"),
    ],
)
def test_what_a_policy_does_not_allow_is_refused_with_the_reason_and_nothing_is_spent(
    limits: dict[str, Any], why: str, tmp_path: Path
) -> None:
    made = Network(tmp_path, dict(zip(WAITS, parts_of(dice(7), len(WAITS)), strict=True)), **limits)
    try:
        with pytest.raises(BadInput, match=f"does not take part: .*{why}"):
            conduct(STUDY, DirectPost(made), tmp_path / "log")
        assert all(resident.ledger.show()["studies"] == [] for resident in made.sites.values())
    finally:
        made.shut()


def test_a_site_that_never_comes_pauses_the_study_and_nothing_is_lost(
    network: Network, expected: Any, tmp_path: Path
) -> None:
    network.stop("west")
    with pytest.raises(StudyPaused, match="site 'west' did not say hello; start the study again"):
        conduct(replace_wait(0.3), DirectPost(network), tmp_path / "log")
    network.start("west")
    assert told(conduct(replace_wait(0.3), DirectPost(network), tmp_path / "log")) == expected


def test_another_unit_at_one_site_is_refused(network: Network, tmp_path: Path) -> None:
    from sottovoce.client.record import Records
    from sottovoce.core.unit import Unit

    held = network.sites["west"].holding
    other = Records(held.records.values(), Unit("duration", "s"))
    network.sites["west"].holding = held._replace(records=other)
    with pytest.raises(BadInput, match="site 'west' holds durations, others numbers"):
        conduct(STUDY, DirectPost(network), tmp_path / "log")


def test_a_finished_study_is_kept_with_its_result(network: Network, expected: Any, tmp_path: Path) -> None:
    conduct(STUDY, DirectPost(network), tmp_path / "log")
    log = StudyLog(tmp_path / "log", STUDY.name)
    study = log.study()
    log.close()
    assert study is not None
    assert study.state == "done"
    assert study.result is not None
    assert told(from_dict(json.loads(study.result))) == expected


class Away(DirectPost):
    """South does not hear what it is asked in some rounds."""

    def __init__(self, network: Network, rounds: range) -> None:
        super().__init__(network)
        self.rounds, self.missed = rounds, 0

    def send(self, site: str, order: bytes) -> None:
        said = words.order_of(order)
        if (
            site == "south"
            and isinstance(said, words.Question)
            and msgspec.msgpack.decode(said.envelope)["round"] in self.rounds
        ):
            self.missed += 1
            return
        super().send(site, order)

    def handed(self, site: str) -> bool:
        return site != "south"


@pytest.mark.parametrize("method", ["staged", "certified", "sequence"])
def test_a_round_closes_without_a_site_once_enough_have_answered(method: str, network: Network, tmp_path: Path) -> None:
    study = terms("quantile", {**ASKED, "method": method}, deadline=0.1, least=2)
    post = Away(network, range(4, 9))
    seen: list[Any] = []
    found = conduct(study, post, tmp_path / "log", watch=seen.append)
    gone = [event.round for event in seen if event.what == "absent"]
    assert gone
    assert set(gone) <= set(range(4, 9))
    other = tmp_path / "other"
    other.mkdir()
    made = Network(other, dict(zip(WAITS, parts_of(dice(7), len(WAITS)), strict=True)))
    try:
        whole = conduct(study, DirectPost(made), other / "log")
    finally:
        made.shut()
    assert told(found) == told(whole)  # what south missed it was asked later, and nothing was spent in vain
    assert found.reports == whole.reports
    assert found.rounds > whole.rounds


def test_with_too_few_answers_the_round_stays_open(network: Network, expected: Any, tmp_path: Path) -> None:
    study = terms("quantile", ASKED, deadline=0.05, least=3, wait=0.2)
    with pytest.raises(StudyPaused, match="site 'south' did not answer round 4"):
        conduct(study, Away(network, range(4, 9)), tmp_path / "log")
    assert told(conduct(study, DirectPost(network), tmp_path / "log")) == expected


def test_a_method_that_needs_every_site_waits(network: Network, tmp_path: Path) -> None:
    study = terms("conformal", {"alpha": 0.1}, deadline=0.05, least=2, wait=0.2)
    with pytest.raises(StudyPaused, match="site 'south' did not answer round 1"):
        conduct(study, Away(network, range(1, 2)), tmp_path / "log")


def test_what_an_earlier_coordinator_may_have_asked_counts_as_spent(network: Network, tmp_path: Path) -> None:
    study = terms("quantile", ASKED, deadline=0.1, least=3, wait=0.2)
    with pytest.raises(StudyPaused):
        conduct(study, Away(network, range(4, 5)), tmp_path / "log")
    log = StudyLog(tmp_path / "log", study.name)
    log._run("UPDATE study SET terms = ?", codec.to_bytes(study._replace(rounds=study.rounds._replace(least=2))))
    log.close()
    again = study._replace(rounds=study.rounds._replace(least=2))
    conduct(again, Away(network, range(4, 5)), tmp_path / "log")
    log = StudyLog(tmp_path / "log", study.name)
    assert log.absent(4) == {"south": True}
    log.close()
