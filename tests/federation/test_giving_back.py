"""No epsilon is reserved in vain: sites look before they are invited, and are told however a study ends."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.federation.network import WAITS, DirectPost, Network, conduct, policy, terms

from sottovoce.client.site_ledger import SiteLedger
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.core.random_source import parts_of
from sottovoce.federation import words
from sottovoce.federation.coordinator import exchange
from sottovoce.federation.coordinator.log import StudyLog
from sottovoce.federation.coordinator.opening import StudyPaused
from sottovoce.federation.coordinator.rounds import Rounds
from sottovoce.federation.study import StudyTerms
from sottovoce.protocol import wire
from sottovoce.protocol.messages import Query
from sottovoce.server.conformal.report import CoverageMethod
from sottovoce.sim import dice

pytestmark = pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")
STUDY = terms("coverage", {"threshold": 30.0, "epsilon": 3.0}, wait=0.1, deadline=0.1)  # one round


@pytest.fixture
def network(tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    made = Network(tmp_path, dict(zip(WAITS, parts_of(dice(7), len(WAITS)), strict=True)))
    if getattr(request, "param", "by id") == "by id":
        for resident in made.sites.values():
            people = [b"%d" % number for number in range(resident.holding.records.size)]
            resident.holding = resident.holding._replace(people=people)
    yield made
    made.shut()


def spent(network: Network) -> dict[str, Any]:
    shown = {name: resident.ledger.show() for name, resident in network.sites.items()}
    return {name: (each["ids"], each["dearest"], each["sources"]) for name, each in shown.items()}


def states(network: Network) -> dict[str, list[str]]:
    assert all(resident.ledger.verify() == [] for resident in network.sites.values())
    return {
        name: [each["state"] for each in resident.ledger.show()["studies"]] for name, resident in network.sites.items()
    }


def state_of(folder: Path) -> str:
    log = StudyLog(folder / "log", STUDY.name)
    found = log.study()
    log.close()
    assert found is not None
    return found.state


def give_up(network: Network, folder: Path, study: StudyTerms = STUDY, done: bool = False) -> list[str]:
    log = StudyLog(folder / "log", study.name)
    try:
        ended = Rounds(study, log, DirectPost(network)).give_up()
        assert ended.given_up is not done
        return ended.not_heard
    finally:
        log.close()


class Noting(DirectPost):
    """Remembers the orders that were sent, and may do something before one."""

    def __init__(self, network: Network, before: Callable[[str, words.Order], bool] | None = None) -> None:
        super().__init__(network)
        self.orders: list[tuple[str, words.Order]] = []
        self.before = before

    def send(self, site: str, order: bytes) -> None:
        said = words.order_of(order)
        self.orders.append((site, said))
        if self.before is None or self.before(site, said):
            super().send(site, order)

    def kinds(self, site: str) -> list[str]:
        return [type(order).__name__ for name, order in self.orders if name == site]


def lost_at(site: str, kind: type) -> Callable[[str, words.Order], bool]:
    return lambda name, order: not (name == site and isinstance(order, kind))


by_both = pytest.mark.parametrize("network", ["by id", "by source"], indirect=True)


@by_both
def test_one_refusal_leaves_nothing_reserved_at_the_others(network: Network, tmp_path: Path) -> None:
    before = spent(network)
    network.sites["west"].policy = policy("west", epsilon=1.0)
    post = Noting(network)
    with pytest.raises(BadInput, match="site 'west' does not take part: the study costs a record more"):
        conduct(STUDY, post, tmp_path / "log")
    assert (spent(network), states(network)) == (before, {name: [] for name in WAITS})
    assert post.kinds("north") == ["Who", "Look", "Over"]
    network.sites["west"].policy = policy("west")  # its operator has thought better of it
    conduct(STUDY, DirectPost(network), tmp_path / "log")


def test_a_site_that_never_looks_leaves_nothing_reserved(network: Network, tmp_path: Path) -> None:
    before = spent(network)
    with pytest.raises(StudyPaused, match="site 'west' did not look at the study"):
        conduct(STUDY, Noting(network, lost_at("west", words.Look)), tmp_path / "log")
    assert spent(network) == before


def test_a_refusal_after_all_were_willing_ends_the_study_and_gives_back(network: Network, tmp_path: Path) -> None:
    before = spent(network)

    def full(site: str, order: words.Order) -> bool:
        if site == "west" and isinstance(order, words.Invite):
            network.sites["west"].policy = policy("west", total=2.0)
        return True

    for _ in range(2):  # started again it is no other
        with pytest.raises(BadInput, match=r"site '(west|north)' does not take part"):
            conduct(STUDY, Noting(network, full), tmp_path / "log")
        assert spent(network) == before
        assert states(network) == {"north": ["released"], "south": ["released"], "west": []}
    assert state_of(tmp_path) == "failed"


def test_a_refusal_by_the_last_to_be_invited_ends_what_others_have_joined(network: Network, tmp_path: Path) -> None:
    before = spent(network)
    with pytest.raises(StudyPaused, match="site 'west' did not open the study"):
        conduct(STUDY, Noting(network, lost_at("west", words.Invite)), tmp_path / "log")
    network.sites["west"].policy = policy("west", epsilon=1.0)
    with pytest.raises(BadInput, match="site 'west' does not take part"):
        conduct(STUDY, DirectPost(network), tmp_path / "log")
    assert (spent(network), state_of(tmp_path)) == (before, "failed")


class Killed(BaseException):
    """What kills a coordinator."""


@pytest.mark.parametrize("call", ["finish", "over"])
def test_a_coordinator_killed_on_the_way_gives_back_when_it_is_started_again(
    call: str, network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = spent(network)

    def killed(*given: Any) -> Any:
        raise Killed

    def refused(site: str, order: words.Order) -> bool:
        network.sites["west"].policy = policy("west", total=2.0 if isinstance(order, words.Invite) else 50.0)
        return True

    with monkeypatch.context() as patch:
        patch.setattr(StudyLog if call == "finish" else exchange.Exchange, call, killed)
        with pytest.raises(Killed):
            conduct(STUDY, Noting(network, refused), tmp_path / "log")
    assert states(network) == {"north": ["open"], "south": ["open"], "west": []}
    with pytest.raises(BadInput, match="does not take part"):
        conduct(STUDY, Noting(network, refused), tmp_path / "log")
    assert spent(network) == before


@by_both
def test_a_study_that_is_given_up_gives_back_and_is_over_for_good(network: Network, tmp_path: Path) -> None:
    before = spent(network)
    with pytest.raises(BadInput, match="holds no such study"):
        give_up(network, tmp_path)
    with pytest.raises(StudyPaused, match="site 'west' did not open the study"):
        conduct(STUDY, Noting(network, lost_at("west", words.Invite)), tmp_path / "log")
    assert states(network) == {"north": ["open"], "south": ["open"], "west": []}
    held = network.sites.pop("south")
    assert give_up(network, tmp_path) == ["south"]
    network.sites["south"] = held
    assert states(network) == {"north": ["released"], "south": ["open"], "west": []}
    assert give_up(network, tmp_path) == []  # whoever has not heard it is told again
    assert spent(network) == before
    with pytest.raises(BadInput, match="this study was given up"):
        conduct(STUDY, DirectPost(network), tmp_path / "log")
    with pytest.raises(BadInput, match="with other terms"):
        give_up(network, tmp_path, STUDY._replace(sites=("north",)))


def test_what_has_answered_has_paid(network: Network, tmp_path: Path) -> None:
    """South never gets a question, so that it alone gets back what it has reserved."""
    with pytest.raises(StudyPaused, match="site 'south' did not answer round 1"):
        conduct(STUDY, Noting(network, lost_at("south", words.Question)), tmp_path / "log")
    paid = spent(network)
    assert give_up(network, tmp_path) == []
    assert states(network) == {"north": ["closed"], "south": ["released"], "west": ["closed"]}
    after = spent(network)
    assert after["south"] == (0, 0.0, [])
    assert (after["north"], after["west"]) == (paid["north"], paid["west"])


def test_a_study_that_is_done_keeps_its_result_and_whoever_was_away_is_told(network: Network, tmp_path: Path) -> None:
    """South has joined, was asked nothing, and was away at the end: as a site that has left, or that was absent."""
    held = network.sites["south"]
    study = terms("quantile", {"tau": 0.5, "epsilon": 3.0, "method": "sequence", "until": 30.0, "bounds": [0.0, 60.0]})

    class Leaves(Noting):
        def receive(self, timeout: float) -> tuple[str, bytes] | None:
            if "Invite" in self.kinds("south"):
                self.network.sites.pop("south", None)
            return super().receive(timeout)

    with pytest.raises(StudyPaused):
        conduct(study._replace(rounds=STUDY.rounds), Leaves(network), tmp_path / "log")
    log = StudyLog(tmp_path / "log", study.name)
    Rounds(study._replace(rounds=STUDY.rounds), log, DirectPost(network)).conduct(["south"])
    log.close()
    network.sites["south"] = held
    assert states(network) == {"north": ["closed"], "south": ["open"], "west": ["closed"]}
    assert give_up(network, tmp_path, study._replace(rounds=STUDY.rounds), done=True) == []
    assert states(network) == {"north": ["closed"], "south": ["released"], "west": ["closed"]}
    assert state_of(tmp_path) == "done"


def test_a_coordinator_that_says_over_and_asks_on_hears_nothing(network: Network, tmp_path: Path) -> None:
    post = Noting(network, lost_at("west", words.Invite))
    with pytest.raises(StudyPaused):
        conduct(STUDY, post, tmp_path / "log")
    [invitation] = [order for name, order in post.orders if name == "north" and isinstance(order, words.Invite)]
    [shown] = network.sites["north"].ledger.show()["studies"]
    study = bytes.fromhex(shown["study"])
    question = words.Question(study, wire.seal(study, 1, Query(1, (9.0,), (100,))))
    for restart in (False, True):
        assert isinstance(said(network, words.Over(study)), words.Bye)
        before = (network.sites["north"].ledger.head, spent(network))
        if restart:
            held = network.sites["north"].holding
            network.stop("north")
            network.start("north")
            network.sites["north"].holding = held
        for order in (invitation, question, words.Look(invitation.card), question):
            reply = said(network, order)
            assert isinstance(reply, words.Refused)
            assert "the study is over at this site" in reply.why
        assert (network.sites["north"].ledger.head, spent(network)) == before
    assert states(network)["north"] == ["released"]


def said(network: Network, order: words.Order) -> words.Reply:
    return words.reply_of(network.sites["north"].handle(words.encode(order)))


def test_a_ledger_that_has_gone_back_gives_nothing_back(network: Network, tmp_path: Path) -> None:
    """The north forgets what it has said: the coordinator knows how far its ledger had come, and it stays closed."""
    with pytest.raises(StudyPaused):
        conduct(STUDY, Noting(network, lost_at("south", words.Question)), tmp_path / "log")
    held = network.sites["north"].holding
    [shown] = network.sites["north"].ledger.show()["studies"]
    network.stop("north")
    for path in tmp_path.glob("north.ledger*"):
        path.unlink()
    network.start("north")
    resident = network.sites["north"]
    resident.holding = held
    resident.ledger.enrol(
        bytes.fromhex(shown["study"]), b"", 3.0, source="waits", size=4_000, rows=held.rows, people=held.people,
        cap_record=9.0, cap_source=9.0, draw_key=lambda: np.zeros(4, np.uint32),
    )  # fmt: skip
    assert give_up(network, tmp_path) == ["north"]
    assert states(network)["north"] == ["open"]


def test_a_full_disk_at_the_end_is_no_farewell(
    network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StudyPaused):
        conduct(STUDY, Noting(network, lost_at("west", words.Invite)), tmp_path / "log")

    def full(*given: Any, **named: Any) -> bool:
        raise BadInput("the ledger cannot be written, for the disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(SiteLedger, "end", full)
        assert give_up(network, tmp_path) == ["north", "south"]
    assert give_up(network, tmp_path) == []
    assert states(network) == {"north": ["released"], "south": ["released"], "west": []}


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("query", SearchFailed("nothing was found.")),
        ("outcome", SearchFailed("nothing was found.")),
        ("outcome", BadInput("this cannot be said.")),
    ],
    ids=repr,
)
def test_a_study_without_an_outcome_is_told_to_all(
    call: str, error: Exception, network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told again when it is started again, and nobody is asked anything for that."""
    real: Callable[..., Any] = getattr(CoverageMethod, call)

    def failing(self: CoverageMethod, state: Any) -> Any:
        found = real(self, state)
        if call == "outcome" or found is None:
            raise error
        return found

    monkeypatch.setattr(CoverageMethod, call, failing)
    for kinds in (["Who", "Look", "Invite", "Question", "Over"], ["Over"]):
        post = Noting(network)
        with pytest.raises(type(error)):
            conduct(STUDY, post, tmp_path / "log")
        assert post.kinds("south") == kinds
    assert state_of(tmp_path) == "failed"
    assert states(network) == {name: ["closed"] for name in WAITS}


def test_a_study_that_cannot_be_planned_is_told_to_all(network: Network, tmp_path: Path) -> None:
    post = Noting(network)
    with pytest.raises(BadInput, match=r"records"):
        conduct(terms("quantile", {"tau": 0.999999, "epsilon": 0.001}), post, tmp_path / "log")
    assert [post.kinds(name) for name in WAITS] == [["Who", "Over"]] * len(WAITS)


def test_an_old_log_may_lie_about_who_was_invited(network: Network, tmp_path: Path) -> None:
    """A coordinator whose log was put back looks again at sites that have joined: they are as willing as before."""
    with pytest.raises(StudyPaused):
        conduct(STUDY, Noting(network, lost_at("west", words.Look)), tmp_path / "log")
    shutil.copy(tmp_path / "log", tmp_path / "old")
    found = conduct(STUDY, DirectPost(network), tmp_path / "log")
    again = conduct(STUDY, DirectPost(network), tmp_path / "old")
    assert again.to_dict() == found.to_dict()
