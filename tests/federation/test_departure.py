"""A study goes on without a site that is gone for good, and its log says so: a replay is the same to the last bit."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.federation.network import WAITS, DirectPost, Network, terms

from sottovoce.core import codec
from sottovoce.core.errors import BadInput, Infeasible
from sottovoce.core.random_source import parts_of
from sottovoce.core.roster import Roster
from sottovoce.federation import words
from sottovoce.federation.coordinator.exchange import Happened
from sottovoce.federation.coordinator.log import StudyLog
from sottovoce.federation.coordinator.opening import StudyPaused
from sottovoce.federation.coordinator.replay import questions_of
from sottovoce.federation.coordinator.rounds import Rounds, _without_privacy
from sottovoce.federation.coordinator.studies import planned
from sottovoce.federation.status import StudyBoard
from sottovoce.federation.study import StudyTerms
from sottovoce.protocol import card as cards
from sottovoce.protocol import wire
from sottovoce.sim import dice

pytestmark = pytest.mark.filterwarnings("ignore:the .* quantile is barely supported:UserWarning")
COIN = b"c" * 16
ASKED = {"tau": 0.5, "epsilon": 3.0, "bounds": [0.0, 60.0]}
SHORT = {"wait": 0.05, "deadline": 0.05}
STUDIES = {
    "staged": terms("quantile", ASKED, **SHORT, least=3),
    "sequence": terms("quantile", {**ASKED, "method": "sequence", "until": 20.0}, **SHORT),
    "levels": terms("quantiles", {"taus": [0.4, 0.6], "epsilon": 3.0, "bounds": [0.0, 60.0]}, **SHORT),
}
STUDY = STUDIES["staged"]
LEAVES = 4  # the round that its site does not hear


class Killed(BaseException):
    """What kills a coordinator."""


class Leaving(DirectPost):
    """A site hears no question from a round on; the coordinator may be killed when somebody is asked in another."""

    def __init__(self, network: Network, site: str = "", dies: int = 0, first: int = LEAVES) -> None:
        super().__init__(network)
        self.site, self.dies, self.first, self.orders = site, dies, first, list[tuple[str, words.Order]]()

    def send(self, site: str, order: bytes) -> None:
        said = words.order_of(order)
        self.orders.append((site, said))
        if isinstance(said, words.Question):
            round = round_of(said.envelope)
            if self.dies and round >= self.dies and site == "west":  # others were asked before
                raise Killed
            if site == self.site and round >= self.first:
                return
        super().send(site, order)

    def asked(self, site: str) -> list[str]:
        return [type(order).__name__ for name, order in self.orders if name == site]


def round_of(envelope: bytes) -> int:
    import msgspec

    return int(msgspec.msgpack.decode(envelope)["round"])


def conduct(
    study: StudyTerms,
    post: Any,
    folder: Path,
    gone: Sequence[str] = (),
    watch: Callable[[Happened], None] | None = None,
) -> Any:
    log = StudyLog(folder / "log", study.name)
    try:
        return Rounds(study, log, post, watch, random=lambda: COIN).conduct(gone)
    finally:
        log.close()


def made(folder: Path) -> Network:
    folder.mkdir(exist_ok=True)
    network = Network(folder, dict(zip(WAITS, parts_of(dice(7), len(WAITS)), strict=True)))
    for resident in network.sites.values():
        resident.ledger._book._file.execute("PRAGMA synchronous = OFF")  # no power fails here
    return network


@pytest.fixture
def network(tmp_path: Path) -> Any:
    found = made(tmp_path)
    yield found
    found.shut()


def paused(network: Network, folder: Path, study: StudyTerms = STUDY, site: str = "south") -> None:
    """Conduct a study until a site is gone."""
    with pytest.raises(StudyPaused, match=f"site '{site}' did not answer round {LEAVES}"):
        conduct(study, Leaving(network, site), folder)


def in_one_process(network: Network, study: StudyTerms, leave: Sequence[tuple[int, str]]) -> Any:
    """Ask the same sites by hand, and let the method itself go on without whoever leaves before a round."""
    sizes = tuple(len(WAITS[name]) for name in study.sites)
    unit = network.sites["north"].holding.records.unit
    roster = Roster(study.sites, sizes, unit, per_person=False, seeded=True, column="wait")
    plan = planned(study, roster, COIN, COIN)
    method: Any = plan.method
    identity, names, leaving = cards.identity(plan.card), plan.names, dict(leave)

    def said(name: str, order: words.Order) -> Any:
        return words.reply_of(network.sites[name].handle(words.encode(order)))

    for name in names:
        said(name, words.Invite(cards.to_bytes(plan.card)))
    state = method.init()
    while (queries := method.query(state)) is not None:
        gone = leaving.pop(queries.round, None)
        questions = questions_of(identity, names, queries)
        replies = [
            None
            if name == gone or name not in questions
            else wire.unseal(
                said(name, words.Question(identity, questions[name])).envelope, identity, method.replies, queries.round
            ).message
            for name in names
        ]
        state = method.step(state, replies)
        if gone is not None:
            method = method.without(state, [gone], quorum=min(study.rounds.least or 1, len(names) - 1))
            names, state = tuple(name for name in names if name != gone), method.init()
    return _without_privacy(method.outcome(state))  # for the noise is seeded


@pytest.mark.parametrize("name", STUDIES)
def test_it_goes_on_over_the_others_and_a_replay_is_the_same(name: str, tmp_path: Path) -> None:
    study = STUDIES[name]
    network, other = made(tmp_path / "one"), made(tmp_path / "two")
    try:
        paused(network, tmp_path, study)
        with pytest.raises(Killed):
            conduct(study, Leaving(network, "south", dies=LEAVES + 3), tmp_path, ["south"])
        post = Leaving(network, "south")
        found = conduct(study, post, tmp_path)  # what is in the log needs no saying
        assert post.asked("south") == ["Over"]
        assert found.to_dict() == in_one_process(other, study, [(LEAVES, "south")]).to_dict()
        results = getattr(found, "results", (found,))
        assert all([each.site for each in result.plan.departed] == ["south"] for result in results)
        assert all(result.plan.names == ("north", "west") for result in results)
        assert any("south" in text for text in results[0].warnings)
        for site, resident in network.sites.items():
            assert resident.ledger.verify() == []
            [shown] = resident.ledger.show()["studies"]
            assert (shown["state"], shown["asked"] <= len(WAITS[site])) == ("closed", True)
    finally:
        network.shut()
        other.shut()


def test_one_after_the_other_may_leave(tmp_path: Path) -> None:
    study = STUDIES["sequence"]
    network, other = made(tmp_path / "one"), made(tmp_path / "two")
    try:
        paused(network, tmp_path, study, "west")
        with pytest.raises(StudyPaused, match="site 'north' did not answer round 7"):
            conduct(study, Leaving(network, "north", first=7), tmp_path, ["west"])
        found = conduct(study, DirectPost(network), tmp_path, ["north", "north"])
        log = StudyLog(tmp_path / "log", study.name)
        assert log.departures() == {LEAVES: ["west"], 7: ["north"]}
        log._run("UPDATE study SET state = 'invited', result = NULL")
        log.close()
        assert conduct(study, DirectPost(network), tmp_path).to_dict() == found.to_dict()
        assert found.to_dict() == in_one_process(other, study, [(LEAVES, "west"), (7, "north")]).to_dict()
    finally:
        network.shut()
        other.shut()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_coordinator_killed_as_it_keeps_a_departure(
    after: bool, network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused(network, tmp_path)
    real = StudyLog.depart

    def dying(self: StudyLog, *given: Any) -> None:
        if after:
            real(self, *given)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(StudyLog, "depart", dying)
        post = Leaving(network)
        with pytest.raises(Killed):
            conduct(STUDY, post, tmp_path, ["south"])
    assert post.orders == []  # nobody hears of it before it is kept
    if after:
        post = Leaving(network, dies=LEAVES + 1)
        with pytest.raises(Killed):
            conduct(STUDY, post, tmp_path)
        assert post.asked("south") == ["Over"]
    else:
        paused(network, tmp_path)


def test_whoever_has_left_is_not_heard_any_more(network: Network, tmp_path: Path) -> None:
    class Late(Leaving):
        """South has an answer at last, to what it was asked before it was given up."""

        def send(self, site: str, order: bytes) -> None:
            super().send(site, order)
            if site == "north" and self.asked("north").count("Question") == 1:
                self.came.put(("south", late))

    missed: list[words.Order] = []

    class Unheard(Leaving):
        def send(self, site: str, order: bytes) -> None:
            said = words.order_of(order)
            if site == "south" and isinstance(said, words.Question) and round_of(said.envelope) == LEAVES:
                missed.append(said)
            super().send(site, order)

    with pytest.raises(StudyPaused):
        conduct(STUDY, Unheard(network, "south"), tmp_path)
    late = network.sites["south"].handle(words.encode(missed[0]))
    assert isinstance(words.reply_of(late), words.Answered)
    log = StudyLog(tmp_path / "log", STUDY.name)
    seen: list[Any] = []
    board = StudyBoard(STUDY, log, "log")
    with pytest.raises(Killed):
        Rounds(STUDY, log, Late(network, dies=LEAVES + 3), lambda each: seen.append(board.happened(each))).conduct(
            ["south"]
        )
    assert [(each.site, each.why) for each in log.refusals()] == [
        ("south", "has left the study, and is not heard any more")
    ]
    told = [notice for notice in seen if notice.fields["event"] == "departed"]
    assert [(each.fields["site"], each.fields["round"]) for each in told] == [("south", LEAVES)]
    assert [each.line for each in told] == ["round 4: south has left the study, which goes on over the others"]
    assert {each["site"]: each["state"] for each in board.status()["sites"]}["south"] == "gone"
    assert any("south" in notice.fields.get("words", "") for notice in seen if notice.fields["event"] == "warning")
    log.close()
    assert network.sites["south"].ledger.show()["studies"][0]["state"] == "closed"


def test_what_was_never_asked_is_given_back_to_whoever_leaves(network: Network, tmp_path: Path) -> None:
    with pytest.raises(StudyPaused, match="site 'south' did not answer round 1"):
        conduct(STUDY, Leaving(network, "south", first=1), tmp_path)
    with pytest.raises(Killed):
        conduct(STUDY, Leaving(network, dies=3), tmp_path, ["south"])
    assert network.sites["south"].ledger.show()["studies"][0]["state"] == "released"


def test_a_rest_that_cannot_answer_is_refused_and_nothing_changes(network: Network, tmp_path: Path) -> None:
    study = terms("quantile", {"tau": 0.1, "epsilon": 0.5, "bounds": [0.0, 60.0]}, **SHORT)
    paused(network, tmp_path, study)
    post = Leaving(network)
    with pytest.raises(Infeasible):
        conduct(study, post, tmp_path, ["south", "north"])
    assert post.orders == []
    log = StudyLog(tmp_path / "log", study.name)
    assert log.departures() == {}
    log.close()
    paused(network, tmp_path, study)  # as before


def test_what_cannot_leave_is_refused_in_one_sentence(network: Network, tmp_path: Path) -> None:
    def refused(study: StudyTerms, gone: Sequence[str], why: str) -> None:
        post = Leaving(network)
        with pytest.raises(BadInput, match=why):
            conduct(study, post, tmp_path, gone)
        assert post.orders == []

    refused(STUDY, ["south"], "the study has not begun, so that no site can leave it")
    network.stop("west")
    with pytest.raises(StudyPaused, match="did not say hello"):
        conduct(STUDY, DirectPost(network), tmp_path)
    network.start("west")
    refused(STUDY, ["south"], "the study has not begun")
    paused(network, tmp_path)
    refused(STUDY, ["east"], "east")
    refused(STUDY, list(WAITS), "goes on without some of its sites and over the others")
    log = StudyLog(tmp_path / "log", STUDY.name)
    log.finish("failed", None)
    log.close()
    refused(STUDY, ["south"], "the study is over, so that no site can leave it")


@pytest.mark.parametrize(
    ("method", "asked"),
    [
        ("conformal", {"alpha": 0.1}),
        ("coverage", {"threshold": 9.0}),
        ("quantile", {**ASKED, "method": "regression"}),
        ("integration", {"target": "north", "tau": 0.5, "epsilon": 3.0}),
    ],
)
def test_a_method_that_needs_all_sites_says_what_to_do(
    method: str, asked: dict[str, Any], network: Network, tmp_path: Path
) -> None:
    study = terms(method, asked, **SHORT)
    with pytest.raises(StudyPaused, match="site 'south' did not answer round 1"):
        conduct(study, Leaving(network, "south", first=1), tmp_path)
    post = Leaving(network)
    with pytest.raises(BadInput, match="needs all of its sites; give it up with --give-up, and begin a new one"):
        conduct(study, post, tmp_path, ["south"])
    assert post.orders == []


def test_a_departure_that_the_rounds_never_come_to_is_refused(network: Network, tmp_path: Path) -> None:
    paused(network, tmp_path)
    log = StudyLog(tmp_path / "log", STUDY.name)
    log.depart(LEAVES + 1, ["south"])
    log.close()
    with pytest.raises(BadInput, match="has left before a round that this study has not come to"):
        conduct(STUDY, DirectPost(network), tmp_path)


def test_the_log_is_read_back(tmp_path: Path) -> None:
    log = StudyLog(tmp_path / "log", "waits")
    log.begin(codec.to_bytes(STUDY), COIN, COIN)
    log.depart(12, ["west", "north"])
    log.depart(3, ["south"])
    log.close()
    other = StudyLog(tmp_path / "log", "another")
    assert other.departures() == {}
    other.close()
    log = StudyLog(tmp_path / "log", "waits")
    assert log.departures() == {3: ["south"], 12: ["north", "west"]}
    log.close()
