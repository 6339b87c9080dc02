"""A site's durable ledger: costs add up over studies, the same query gets the same bytes, whatever happens between."""

import math
import pickle  # noqa: TID251 - to see that it is refused
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.client.ledgers import SIZE, STUDY, asked, door, enrol, opened

from sottovoce.client.conformal.shares import SharingSite, questioned_site
from sottovoce.client.conformal.site import CalibrationSite, CoverageSite
from sottovoce.client.door import AnsweringSite
from sottovoce.client.integration.site import OpenSite
from sottovoce.client.ledger import Ledger, MemoryStorage, PeopleMemory, PersonLedger
from sottovoce.client.quantile.site import Site
from sottovoce.client.record import Records
from sottovoce.client.regression.persons import Persons
from sottovoce.client.regression.rows import Rows
from sottovoce.client.site_ledger import KINDS, SiteLedger, StudyLedger
from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import (
    CellQuery,
    CoverageQuery,
    Message,
    OrderQuery,
    PilotQuery,
    Query,
    Study,
    SumQuery,
    Tally,
    WalkQuery,
)
from sottovoce.protocol.regression.blocks import open_channel
from sottovoce.protocol.summaries import SummaryQuery
from sottovoce.protocol.wire import kind_of, seal
from sottovoce.sim.randomness import dice


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SiteLedger]:
    with opened(tmp_path) as found:
        yield found


def ids(*numbers: int) -> list[bytes]:
    return [b"patient %d" % number for number in numbers]


def test_ten_tenths_fill_a_cap_and_eleven_do_not(ledger: SiteLedger) -> None:
    for part in (10, 7, 3):
        for study in range(part):
            enrol(ledger, b"%d of %d" % (study, part), 1 / part, source=f"by {part}", cap=1.0)
        with pytest.raises(BadInput, match="the records of this source would have cost more than this site allows"):
            enrol(ledger, b"one more of %d" % part, 1 / part, source=f"by {part}", cap=1.0)
    assert ledger.show()["sources"][0] == {"source": "by 10", "epsilon": 1.0, "epsilon_by_id": 0.0}
    assert ledger.verify() == []


def test_overlapping_files_add_up_at_the_ids_they_share(ledger: SiteLedger) -> None:
    enrol(ledger, b"a", 0.5, source="2023", people=ids(1, 2, 3), cap=1.0)
    enrol(ledger, b"b", 0.5, source="2024", people=ids(3, 4), cap=1.0)
    before = ledger.head
    with pytest.raises(BadInput, match="an id would have cost more than this site allows over all") as caught:
        enrol(ledger, b"c", 0.25, source="2025", people=ids(1, 4, 9, 3, 10), cap=1.0)
    assert "patient" not in str(caught.value)
    assert (ledger.head, ledger.show()["ids"], ledger.show()["dearest"]) == (before, 4, 1.0)
    enrol(ledger, b"c", 0.5, source="2025", people=ids(1, 4, 9), cap=1.0)  # nothing of what was refused was charged
    assert (ledger.show()["ids"], ledger.verify()) == (5, [])


def test_an_id_is_charged_as_often_as_it_stands_there(ledger: SiteLedger) -> None:
    with pytest.raises(BadInput, match="an id would have cost more"):
        enrol(ledger, b"a", 0.5, people=ids(1, 2, 1, 1), cap=1.0)
    enrol(ledger, b"a", 0.5, people=ids(1, 2, 1), cap=1.0)
    assert ledger.show()["dearest"] == 1.0
    with pytest.raises(BadInput, match="an id would have cost more"):
        enrol(ledger, b"b", 1.5, people=ids(7), cap=1.0)


def test_a_source_charged_as_a_whole_counts_for_its_ids_and_they_for_it(ledger: SiteLedger) -> None:
    enrol(ledger, b"a", 0.75, source="one", cap=1.0)
    with pytest.raises(BadInput, match="an id would"):
        enrol(ledger, b"b", 0.5, source="one", people=ids(1), cap=1.0)
    enrol(ledger, b"c", 0.75, source="two", people=ids(1), cap=1.0)
    with pytest.raises(BadInput, match="the records of this source"):
        enrol(ledger, b"d", 0.5, source="two", cap=1.0)
    assert ledger.verify() == []


def test_a_study_without_privacy_needs_a_cap_without_end(ledger: SiteLedger) -> None:
    for people in (None, ids(1)):
        named = b"by id " if people else b""
        for cap in (4.0, 1e9):
            with pytest.raises(BadInput, match="more than this site allows"):
                enrol(ledger, named + b"first", math.inf, source="x", people=people, cap=cap)
        for study in (b"first", b"second"):
            assert enrol(ledger, named + study, math.inf, source="x", people=people, cap=math.inf).epsilon == math.inf
    assert (ledger.show()["dearest"], ledger.verify()) == (math.inf, [])


@pytest.mark.parametrize("epsilon", [math.nan, -1.0, -math.inf])
def test_an_impossible_budget_is_refused(ledger: SiteLedger, epsilon: float) -> None:
    with pytest.raises(BadInput, match="zero or more"):
        enrol(ledger, epsilon=epsilon)
    with pytest.raises(BadInput, match="zero or more"):
        enrol(ledger, cap=epsilon)
    assert ledger.counter == 0


def test_every_record_needs_an_id_where_there_are_any(ledger: SiteLedger) -> None:
    with pytest.raises(BadInput, match="as many ids as records"):
        ledger.enrol(
            b"a", b"", 1.0, source="x", size=3, rows=b"", people=ids(1, 2), cap_record=9, cap_source=9,
            draw_key=lambda: pytest.fail("drawn"),
        )  # fmt: skip


def test_the_same_study_again_is_the_same_and_costs_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        first = enrol(ledger, people=ids(*range(SIZE)))
        said = door(first).answer(asked(1))
        cost, head = ledger.show()["dearest"], ledger.head
    with opened(tmp_path) as ledger:
        again = enrol(ledger, people=ids(*range(SIZE)))
        assert again.key.tolist() == first.key.tolist()
        assert (ledger.show()["dearest"], ledger.head, again.taken) == (cost, head, 10)
        assert door(again).answer(asked(1)) == said
        changes: list[dict[str, Any]] = [{"card": b"other"}, {"rows": b"other"}, {"epsilon": 0.5}, {"source": "other"}]
        for change in (*changes, {"people": ids(1)}, {"people": None}, {"people": None, "size": 7}):
            with pytest.raises(BadInput, match="opened with another card or other records"):
                enrol(ledger, **{"people": ids(*range(SIZE)), **change})
        assert (ledger.head, ledger.verify()) == (head, [])


def test_a_closed_study_repeats_what_it_said_and_says_nothing_new(ledger: SiteLedger) -> None:
    kept = enrol(ledger)
    said = door(kept).answer(asked(1))
    ledger.close(STUDY)
    ledger.close(STUDY, refused=True)  # too late: it is closed
    assert (kept.state, enrol(ledger).state) == ("closed", "closed")
    assert door(kept).answer(asked(1)) == said
    with pytest.raises(BadInput, match="the study is closed at this site"):
        door(kept).answer(asked(2))
    other = enrol(ledger, b"other")
    ledger.close(b"other", refused=True)
    with pytest.raises(BadInput, match="this site has refused the study"):
        enrol(ledger, b"other")
    assert (other.state, kept.taken, ledger.verify()) == ("refused", 10, [])
    for ask in (ledger.close, ledger.study):
        with pytest.raises(BadInput, match="knows no such study"):
            ask(b"unknown")


def test_every_kind_of_message_comes_back_as_it_was() -> None:
    every = {kind_of(kind): kind for kind in subclasses(Message) if kind.__module__.startswith("sottovoce.protocol.")}
    assert {name: KINDS[name] for name in every} == every


def subclasses(kind: type[Message]) -> list[type[Message]]:
    return [each for child in kind.__subclasses__() for each in (child, *subclasses(child))]


def test_bit_for_bit_as_in_memory(ledger: SiteLedger) -> None:
    values, study = np.arange(1000.0), Study(0.5, 1.0, 0.5)
    plain = Site(Records(values), study, dice(3))
    kept = ledger.enrol(
        STUDY, b"", 1.0, source="x", size=1000, rows=b"", people=None, cap_record=1, cap_source=1,
        draw_key=lambda: plain._key,
    )  # fmt: skip
    seeded = dice(3)
    seeded.words(4)  # those of the key, which the ledger has already
    lasting = Site(Records(values), study, seeded, storage=kept, key=kept.key)
    queries = [Query(1, (300.0, 700.0), (100, 50)), Query(4, (5.0,), (80,)), WalkQuery(5, (500.0,), (60,), 2.0)]
    for query in queries:
        assert lasting.reply(query.round, query) == plain.reply(query.round, query)
    assert lasting.reply(5, queries[2]) == plain.reply(5, queries[2])
    assert (lasting.spent, kept.taken) == (plain.spent, 290)


SITES: dict[str, tuple[Callable[[StudyLedger], AnsweringSite], Message, Message]] = {
    "calibration": (
        lambda kept: CalibrationSite(scores(), math.inf, storage=kept), OrderQuery((2,)), OrderQuery((3,)),
    ),
    "cell": (
        lambda kept: CalibrationSite(scores(), 1.0, storage=kept),
        CellQuery("exponential", 5, 0.9, (3.0, 6.0)), CellQuery("exponential", 6, 0.9, (3.0, 6.0)),
    ),
    "coverage": (
        lambda kept: CoverageSite(scores(), math.inf, storage=kept), CoverageQuery(4.5, 0), CoverageQuery(5.5, 0),
    ),
    "share": (
        lambda kept: SharingSite(scores(), 2, math.inf, storage=kept), SumQuery((3.0,), 0, 2), SumQuery((4.0,), 0, 2),
    ),
    "question": (
        lambda kept: questioned_site(scores(), 1.0, storage=kept, key=kept.key), Query(1, (3.0,), (5,)),
        Query(1, (4.0,), (5,)),
    ),
    "open": (
        lambda kept: OpenSite(scores(), Study(0.5, math.inf), storage=kept), SummaryQuery(1, 0.5, 0.9),
        SummaryQuery(1, 0.5, 0.8),
    ),
    "persons": (
        lambda kept: Persons(
            Rows(np.ones((SIZE, 1)), np.arange(float(SIZE))), open_channel(0.5, 1), epsilon=math.inf, storage=kept,
            order=kept.key,
        ),
        PilotQuery(1, 5, (3.0,), (8,)), PilotQuery(1, 12, (3.0,), (8,)),
    ),
}  # fmt: skip


def scores() -> Records:
    return Records(np.arange(float(SIZE)))


@pytest.mark.parametrize(("make", "query", "other"), SITES.values(), ids=SITES)
def test_every_site_keeps_what_it_said(
    tmp_path: Path, make: Callable[[StudyLedger], AnsweringSite], query: Message, other: Message
) -> None:
    with opened(tmp_path) as ledger:
        said = make(enrol(ledger)).reply(1, query)
    with opened(tmp_path) as ledger:
        kept = ledger.study(STUDY)
        assert make(kept).reply(1, query) == said
        taken = kept.taken
        assert taken > 0
        with pytest.raises(BadInput):
            make(kept).reply(1, other)
        assert (kept.taken, ledger.verify()) == (taken, [])


Asked = tuple[int, int, int, bool]


def outcome(ask: Callable[[], Message]) -> object:
    try:
        return ask()
    except BadInput as error:
        return str(error)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 6), st.integers(0, 5), st.integers(0, 1), st.booleans()), max_size=12))
def test_random_rounds_as_in_memory(tmp_path_factory: pytest.TempPathFactory, steps: list[Asked]) -> None:
    with opened(tmp_path_factory.mktemp("rounds")) as site:
        compared(site, Ledger(10, MemoryStorage(every=True)), lambda kept: Ledger(10, kept), steps, rounds)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5), st.integers(0, 1), st.booleans()), max_size=12))
def test_random_people_as_in_memory(tmp_path_factory: pytest.TempPathFactory, steps: list[Asked]) -> None:
    with opened(tmp_path_factory.mktemp("people")) as site:
        compared(site, PersonLedger(PeopleMemory()), PersonLedger, steps, people)


def rounds(ledger: Ledger, round: int, count: int, point: int, draw: Callable[[int], Tally]) -> Message:
    return ledger.transaction(round, Query(round, (float(point),), (count,)), count, Tally, draw)


def people(ledger: PersonLedger, first: int, count: int, point: int, draw: Callable[[int], Tally]) -> Message:
    return ledger.group(first, count, PilotQuery(1, first, (float(point),), (count,)), Tally, draw)


def compared(site: SiteLedger, memory: Any, made: Callable[[StudyLedger], Any], steps: list[Asked], ask: Any) -> None:
    """Ask both ledgers the same, one of them now and then opened anew: the same replies and the same refusals."""
    site._book._file.execute("PRAGMA synchronous = OFF")
    kept = enrol(site, size=20)
    lasting = made(kept)
    for step, (key, count, point, fails) in enumerate(steps):

        def draw(first: int, step: int = step, fails: bool = fails) -> Tally:
            if fails:
                raise BadInput("the draw failed.")
            return Tally(1, (step, first))

        assert outcome(lambda: ask(lasting, key, count, point, draw)) == outcome(  # noqa: B023 - called here
            lambda: ask(memory, key, count, point, draw)  # noqa: B023 - called here
        )
        assert lasting.spent == memory.spent
        lasting = made(site.study(STUDY))
    assert (kept.taken, site.verify()) == (memory.spent, [])


def test_what_cannot_stand_in_the_file_is_refused(ledger: SiteLedger) -> None:
    rounds_kept, size = Ledger(SIZE, enrol(ledger)), SIZE
    rounds_kept.transaction(1, Query(1, (0.0,), (1,)), 1, Tally, lambda _: Tally(1, (0,)))
    for round in (1 << 70, -(1 << 70)):
        with pytest.raises(BadInput):
            rounds_kept.transaction(round, Query(1, (0.0,), (1,)), 1, Tally, lambda _: Tally(1, (0,)))
    wrong = Ledger(10 * size, ledger.study(STUDY))  # a site that believes in more records than were enrolled
    with pytest.raises(BadInput, match="more than the records that were enrolled"):
        wrong.transaction(2, Query(2, (0.0,), (SIZE,)), SIZE, Tally, lambda _: Tally(2, (0,)))
    assert (rounds_kept.spent, ledger.verify()) == (1, [])
    with pytest.raises(RuntimeError, match="inside a transaction alone"):
        ledger.study(STUDY).keep(rounds_kept._storage.last() or pytest.fail("nothing kept"))


def test_no_id_and_no_record_is_in_the_files(tmp_path: Path) -> None:
    marked, people_here = 123456.789012345, [b"marked-patient-%03d" % number for number in range(SIZE)]
    with opened(tmp_path) as ledger:
        kept = enrol(ledger, people=people_here)
        values = Records(np.full(SIZE, marked))
        site = Site(values, Study(0.5, 1.0), storage=kept, key=kept.key)
        site.reply(1, Query(1, (5.0,), (50,)))
        shown = repr((ledger.show(), ledger.export(), kept, ledger)).encode()
        written = b"".join(sorted(file.read_bytes() for file in tmp_path.iterdir()))
        for secret in (b"marked-patient", np.float64(marked).tobytes(), np.array(marked, ">f8").tobytes(), b"123456"):
            assert secret not in written + shown
        assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


def test_what_is_shown_holds_no_question_and_no_reply(ledger: SiteLedger) -> None:
    kept = enrol(ledger)
    Ledger(SIZE, kept).transaction(1, Query(1, (987654.5,), (7,)), 7, Tally, lambda _: Tally(1, (555444333,)))
    shown = repr((ledger.show(), ledger.export()))
    assert "987654" not in shown
    assert "555444333" not in shown
    assert ledger.show()["studies"] == [
        {
            "study": STUDY.hex(), "name": "delays", "method": "quantile", "epsilon": 1.0, "source": "flights",
            "records": SIZE, "asked": 7, "rounds": 1, "state": "open", "opened": ledger.show()["studies"][0]["opened"],
            "ended": None, "by_id": False, "head": kept.head.hex(),
        }
    ]  # fmt: skip


def test_a_ledger_is_not_copied(ledger: SiteLedger) -> None:
    for each in (ledger, enrol(ledger)):
        with pytest.raises(TypeError):
            pickle.dumps(each)


def test_two_studies_take_turns(ledger: SiteLedger) -> None:
    doors = [door(enrol(ledger, name)) for name in (b"a", b"b")]
    for round in (1, 2):
        for name, each in zip((b"a", b"b"), doors, strict=True):
            each.answer(seal(name, round, Query(round, (3.0,), (4,))))
    assert [row["asked"] for row in ledger.show()["studies"]] == [8, 8]
    assert (ledger.counter, ledger.verify()) == (6, [])


def test_once_shut_it_answers_nothing(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    answering = door(enrol(ledger))
    ledger.shut()
    with pytest.raises(BadInput, match="nothing was answered: open it again"):
        answering.answer(asked(1))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("UPDATE reply SET body = x'82a5726f756e6401a46f6e657391ce00000000' WHERE key = 1", "chain breaks at trans"),
        ("UPDATE reply SET count = count + 1", "the chain breaks at transaction 3"),
        ("DELETE FROM reply WHERE key = 2", "transaction 4 is missing"),
        ("UPDATE study SET taken = 0", "other records have answered than its replies say"),
        ("UPDATE study SET epsilon = 0", "the chain breaks at transaction 3"),
        ("UPDATE study SET state = 'open'", "the head of the ledger is not the end of its chain"),
        ("UPDATE source SET spent = 0", "source 'flights': its cost is not the sum of its studies"),
        ("INSERT INTO source VALUES ('other', 1, 1)", "source 'other': it has a cost without a study"),
        ("UPDATE record SET spent = spent - 1", "ids: their costs are not the sum of their studies"),
        ("UPDATE meta SET counter = 4", "the head of the ledger is not the end of its chain"),
        ("UPDATE study SET head = x'00'", "its head is not the end of its chain"),
    ],
)
def test_whatever_was_changed_is_found(ledger: SiteLedger, change: str, found: str) -> None:
    kept = enrol(ledger, source="flights")
    enrol(ledger, b"other", people=ids(1, 2, 3))
    for round in (1, 2):
        door(kept).answer(asked(round))
    ledger.close(STUDY)
    assert ledger.verify() == []
    file: sqlite3.Connection = ledger._book._file
    file.execute("PRAGMA ignore_check_constraints = ON")
    file.execute(change)
    assert found in ledger.verify()[0]
