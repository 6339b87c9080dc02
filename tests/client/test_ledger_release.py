"""What a study has reserved and never used is given back when it ends: all of it, once, to whom it was charged."""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.client.ledgers import SIZE, STUDY, TERMS, asked, door, enrol, opened

from sottovoce.client import site_ledger
from sottovoce.client.ledger import Entry
from sottovoce.client.ledger_costs import charged_to, give_back
from sottovoce.client.ledger_file import HeadFile
from sottovoce.client.site_ledger import SiteLedger
from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import Query, Tally

ROWS = b"digest of the rows"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SiteLedger]:
    with opened(tmp_path) as found:
        yield found


def ids(*numbers: int) -> list[bytes]:
    return [b"patient %d" % number for number in numbers]


def costs(ledger: SiteLedger) -> tuple[Any, ...]:
    shown = ledger.show()
    records = ledger._book._file.execute("SELECT id, spent FROM record ORDER BY id").fetchall()
    return shown["ids"], shown["dearest"], shown["sources"], records


def end(ledger: SiteLedger, study: bytes = STUDY, people: Any = None, rows: bytes = ROWS) -> bool:
    return ledger.end(study, rows=rows, people=people)


@pytest.mark.parametrize("epsilon", [0.5, math.inf], ids=["private", "open"])
@pytest.mark.parametrize("people", [None, ids(1, 2, 2, 9)], ids=["by source", "by id"])
@pytest.mark.parametrize("before", [False, True], ids=["first", "after another"])
def test_what_was_reserved_in_vain_is_given_back(ledger: SiteLedger, epsilon: float, people: Any, before: bool) -> None:
    if before:
        enrol(ledger, b"kept", 0.25, people=ids(2, 3), cap=math.inf)
        enrol(ledger, b"open", math.inf, source="other", people=ids(2, 4), cap=math.inf)
        enrol(ledger, b"whole", 0.5, cap=math.inf)
    spent = costs(ledger)
    enrol(ledger, epsilon=epsilon, people=people, cap=math.inf)
    assert costs(ledger) != spent
    assert end(ledger, people=people)
    assert (costs(ledger), ledger.verify()) == (spent, [])
    assert ledger.show()["studies"][-1]["state"] == "released"
    told = [(line["what"], line["study"]) for line in ledger.export() if line["line"] == "event"]
    assert told[-2:] == [("open", STUDY.hex()), ("released", STUDY.hex())]
    head = ledger.head
    assert end(ledger, people=people)  # again: nothing is given back twice
    assert (costs(ledger), ledger.head) == (spent, head)


def test_a_released_study_is_answered_nothing_any_more(tmp_path: Path) -> None:
    with opened(tmp_path) as ledger:
        answering = door(enrol(ledger))
        end(ledger)
        before = ledger.head
        for again in (lambda: answering.answer(asked(1)), lambda: enrol(ledger), lambda: look(ledger, 1.0)):
            with pytest.raises(BadInput, match=r"the study is (released|over) at this site"):
                again()
        assert (ledger.head, ledger.show()["sources"]) == (before, [])
    with opened(tmp_path) as ledger:
        with pytest.raises(BadInput, match="the study is released at this site"):
            door(ledger.study(STUDY)).answer(asked(1))
        assert (ledger.head, ledger.verify()) == (before, [])


@pytest.mark.parametrize("count", [10, 0], ids=["records", "a reply of no record"])
def test_once_something_was_said_nothing_is_given_back(ledger: SiteLedger, count: int) -> None:
    kept = enrol(ledger, people=ids(*range(SIZE)))
    with kept.transaction():
        kept.keep(Entry(1, Query(1, (3.0,), (count,)), 0, count, Tally(1, (0,))))
    spent = costs(ledger)
    assert not end(ledger, people=ids(*range(SIZE)))
    assert (costs(ledger), kept.state, ledger.verify()) == (spent, "closed", [])


def test_no_release_inside_the_transaction_of_a_reply(ledger: SiteLedger) -> None:
    kept = enrol(ledger)
    with kept.transaction():
        kept.keep(Entry(1, Query(1, (3.0,), (5,)), 0, 5, Tally(1, (0,))))
        with pytest.raises(BadInput):
            end(ledger)
    assert (kept.state, kept.taken, ledger.verify()) == ("open", 5, [])


@pytest.mark.parametrize(
    ("rows", "people"),
    [(b"other", ids(1, 2, 3)), (ROWS, ids(1, 2, 4)), (ROWS, ids(1, 2)), (ROWS, None)],
    ids=["other rows", "other ids", "fewer ids", "no ids"],
)
def test_ids_get_back_what_they_were_charged_and_no_others(ledger: SiteLedger, rows: bytes, people: Any) -> None:
    enrol(ledger, b"other", people=ids(4))
    kept = enrol(ledger, people=ids(3, 2, 1))
    spent = costs(ledger)
    with pytest.raises(BadInput, match="opened over other records than this site holds now"):
        end(ledger, people=people, rows=rows)
    assert (costs(ledger), kept.state) == (spent, "open")
    with pytest.raises(BadInput, match="opened with another card or other records"):
        enrol(ledger, people=ids(1, 2, 4))
    assert end(ledger, people=ids(1, 2, 3))  # in whatever order


def test_sums_that_have_run_over_are_not_taken_back(ledger: SiteLedger) -> None:
    for study in range(40):
        enrol(ledger, b"%d" % study, math.inf, people=ids(1), cap=math.inf)
    assert not end(ledger, b"39", ids(1))
    assert (ledger.show()["dearest"], ledger.study(b"39").state, ledger.verify()) == (math.inf, "closed", [])


def test_a_death_at_any_point_leaves_all_of_it_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def killed(*given: Any, **named: Any) -> Any:
        raise Killed

    people = ids(1, 2, 3)
    with opened(tmp_path) as ledger:
        enrol(ledger, people=people)
        spent = costs(ledger)
    for place, name in ((site_ledger, "give_back"), (SiteLedger, "_end")):
        with opened(tmp_path) as ledger, monkeypatch.context() as patch:
            patch.setattr(place, name, killed)
            with pytest.raises(Killed):
                end(ledger, people=people)
        with opened(tmp_path) as ledger:
            assert (costs(ledger), ledger.study(STUDY).state, ledger.verify()) == (spent, "open", [])
    with opened(tmp_path) as ledger, monkeypatch.context() as patch:
        patch.setattr(HeadFile, "write", killed)  # kept, and not told beside the file
        with pytest.raises(Killed):
            end(ledger, people=people)
    with opened(tmp_path) as ledger:
        assert (ledger.show()["ids"], ledger.show()["sources"], ledger.verify()) == (0, [], [])
        assert end(ledger, people=people)


def forged_release(ledger: SiteLedger, *, sums: bool) -> None:
    """Release a study that has answered, with a chain that fits: as only a forger would."""
    with ledger._book.transaction() as file:
        file.execute("UPDATE study SET state = 'open', ended = NULL WHERE id = ?", (STUDY,))
        ledger._end(file, STUDY, "released")
        if sums:
            give_back(file, 10**12, charged_to(file, "flights", None))


def test_a_forged_release_is_found(tmp_path: Path) -> None:
    for name, forge, found in (
        ("answered", lambda ledger: forged_release(ledger, sums=True), "though it has answered"),
        ("unpaid", lambda ledger: forged_release(ledger, sums=False), "though it has answered"),
        (
            "state",
            lambda ledger: ledger._book._file.execute("UPDATE study SET state = 'released', ended = 3"),
            "though it has answered",
        ),
    ):
        (tmp_path / name).mkdir()
        with opened(tmp_path / name) as ledger:
            door(enrol(ledger)).answer(asked(1))
            forge(ledger)
            assert found in ledger.verify()[0], name


def test_a_release_that_was_forged_over_a_reservation_is_found(ledger: SiteLedger) -> None:
    enrol(ledger, people=ids(1, 2))
    file = ledger._book._file
    with ledger._book.transaction():
        ledger._end(file, STUDY, "released")
    assert "source 'flights': it has a cost without a study" in ledger.verify()
    assert "ids: their costs are not the sum of their studies" in ledger.verify()


def test_a_reply_after_the_end_is_found(ledger: SiteLedger) -> None:
    kept = enrol(ledger)
    end(ledger)
    file = ledger._book._file
    file.execute("UPDATE study SET state = 'open'")
    with kept.transaction():
        kept.keep(Entry(1, Query(1, (3.0,), (5,)), 0, 5, Tally(1, (0,))))
    file.execute("UPDATE study SET state = 'released'")
    assert "it has answered in transaction 3, after its end" in ledger.verify()[0]


def look(ledger: SiteLedger, epsilon: float, people: Any = None, cap: float = 4.0) -> None:
    size = SIZE if people is None else len(people)
    ledger.look(
        STUDY, TERMS, epsilon, source="flights", size=size, rows=ROWS, people=people, cap_record=cap, cap_source=cap
    )


def test_a_look_reserves_nothing_and_refuses_what_would_be_refused(ledger: SiteLedger) -> None:
    with pytest.raises(BadInput, match="more than this site allows"):
        look(ledger, 1.5, ids(5, 6, 5, 5))  # one that is there three times
    enrol(ledger, b"other", 3.0, people=ids(1, 2))
    enrol(ledger, b"whole", 0.5)
    before = (ledger.head, costs(ledger))
    look(ledger, 0.5, ids(1, 2, 3))  # even the dearest could pay
    look(ledger, 3.5, ids(3, 4))  # not the dearest, but these
    look(ledger, 1.0, ids(5, 5, 5))
    look(ledger, 0.5)
    for epsilon, people, cap in ((1.0, ids(1), 4.0), (1.5, ids(5, 5, 5), 4.0), (0.6, None, 4.0), (math.inf, ids(7), 9)):
        with pytest.raises(BadInput, match="more than this site allows"):
            look(ledger, epsilon, people, cap)
        with pytest.raises(BadInput, match="more than this site allows"):
            enrol(ledger, epsilon=epsilon, people=people, cap=cap)
    assert (ledger.head, costs(ledger), ledger.verify()) == (*before, [])
