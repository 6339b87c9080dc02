"""One record, one report: spending, drawing and remembering are one transaction."""

import os
import pickle  # noqa: TID251 - to see that it is refused
import threading
from collections.abc import Callable

import pytest

from sottovoce.client.ledger import Entry, Ledger, MemoryStorage, PersonLedger
from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import PersonQuery, PersonReport, Query, Reports, Tally

FIRST, SECOND = Query(1, (0.0, 1.0), (3, 4)), Query(2, (0.5,), (2,))


def said(*ones: int) -> Callable[[int], Tally]:
    return lambda first: Tally(1, (first, *ones))


def refuse(first: int) -> Tally:
    raise AssertionError("drawn again")


def test_positions_follow_one_another() -> None:
    ledger = Ledger(10)
    assert (ledger.transaction(1, FIRST, 7, Tally, said()).ones, ledger.spent, ledger.left) == ((0,), 7, 3)
    assert (ledger.transaction(2, SECOND, 2, Tally, said()).ones, ledger.spent, ledger.left) == ((7,), 9, 1)


def test_a_retry_gets_what_was_said() -> None:
    ledger = Ledger(10)
    sent = ledger.transaction(1, FIRST, 7, Tally, said(5))
    assert ledger.transaction(1, Query(1, (0.0, 1.0), (3, 4)), 7, Tally, refuse) == sent
    assert ledger.spent == 7


@pytest.mark.parametrize(
    "changed", [Query(1, (0.0, 1.5), (3, 4)), Query(1, (0.0, 1.0), (3, 3)), Query(1, (0.0, 1.0), (3, 4), 0.1)]
)
def test_anything_else_about_a_past_round_is_refused(changed: Query) -> None:
    ledger = Ledger(10)
    sent = ledger.transaction(1, FIRST, 7, Tally, said(5))
    for round in (1, 0, -5):
        with pytest.raises(BadInput, match=rf"round {round} was already answered, up to round 1; ask a later"):
            ledger.transaction(round, changed, 1, Tally, refuse)
    with pytest.raises(BadInput, match="already answered"):  # the same query, answered in another form
        ledger.transaction(1, FIRST, 7, Reports, lambda first: Reports(1, b""))
    assert ledger.spent == 7
    assert ledger.transaction(1, FIRST, 7, Tally, refuse) == sent


def test_an_older_round_is_refused_even_if_unchanged() -> None:
    ledger = Ledger(10)
    ledger.transaction(1, FIRST, 7, Tally, said())
    ledger.transaction(2, SECOND, 2, Tally, said())
    with pytest.raises(BadInput, match="already answered, up to round 2"):
        ledger.transaction(1, FIRST, 7, Tally, refuse)


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError, OSError])
def test_what_was_not_kept_was_not_spent(failure: type[BaseException]) -> None:
    ledger = Ledger(10)

    def broken(first: int) -> Tally:
        raise failure

    with pytest.raises(failure):
        ledger.transaction(1, FIRST, 7, Tally, broken)
    assert ledger.spent == 0
    assert ledger.transaction(1, FIRST, 7, Tally, said(2)).ones == (0, 2)


def test_nothing_leaves_that_cannot_be_kept() -> None:
    class Full(MemoryStorage):
        def keep(self, entry: Entry) -> None:
            raise OSError("no space left")

    ledger, drawn = Ledger(10, Full()), []

    def draw(first: int) -> Tally:
        drawn.append(first)
        return Tally(1, (first,))

    for _ in range(2):
        with pytest.raises(OSError, match="no space"):
            ledger.transaction(1, FIRST, 7, Tally, draw)
    assert (drawn, ledger.spent) == ([0, 0], 0)


def test_a_storage_may_remember_all_rounds() -> None:
    ledger = Ledger(10, MemoryStorage(every=True))
    sent = ledger.transaction(1, FIRST, 7, Tally, said(1))
    ledger.transaction(2, SECOND, 2, Tally, said())
    assert ledger.transaction(1, FIRST, 7, Tally, refuse) == sent


def test_more_than_is_left_is_refused_and_nothing_changes() -> None:
    ledger = Ledger(8)
    sent = ledger.transaction(1, FIRST, 7, Tally, said(5))
    with pytest.raises(BadInput, match="round 2 asks 2 records, but only 1 have not answered yet; ask fewer"):
        ledger.transaction(2, SECOND, 2, Tally, refuse)
    assert ledger.spent == 7
    assert ledger.transaction(1, FIRST, 7, Tally, refuse) == sent
    assert ledger.transaction(2, Query(2, (0.5,), (1,)), 1, Tally, said()).ones == (7,)


def test_threads_take_turns() -> None:
    ledger, starts, refused = Ledger(800), [], []
    barrier = threading.Barrier(8)

    def ask(thread: int) -> None:
        barrier.wait()
        for i in range(100):
            try:
                ledger.transaction(1 + i * 8 + thread, FIRST, 1, Tally, draw)
            except BadInput:
                refused.append(i)

    def draw(first: int) -> Tally:
        starts.append(first)
        return Tally(1, (first,))

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(starts) == list(range(ledger.spent))  # every record once, none skipped
    assert len(starts) + len(refused) == 800


def test_a_forked_copy_answers_nothing() -> None:
    ledger, people = Ledger(10), PersonLedger()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - seen by the parent alone
        outcome = b""
        for ask in (
            lambda: ledger.transaction(1, FIRST, 7, Tally, said()),
            lambda: people.transaction(1, PersonQuery(1, 0, (), ()), PersonReport, lambda who: PersonReport(who, 1)),
        ):
            try:
                ask()
                outcome += b"answered"
            except BadInput:
                outcome += b"refused."
        os.write(writing, outcome)
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b"refused.refused."
    assert ledger.transaction(1, FIRST, 7, Tally, said()).ones == (0,)


def test_a_ledger_is_not_copied() -> None:
    for ledger in (Ledger(10), PersonLedger()):
        with pytest.raises(TypeError, match="cannot be"):
            pickle.dumps(ledger)


def test_each_person_once_in_any_order() -> None:
    people = PersonLedger()
    asked = {who: PersonQuery(who, 0, (1,), ((0.5, float(who)),)) for who in (7, 2, 5)}
    sent = {who: people.transaction(who, asked[who], PersonReport, lambda who: PersonReport(who, 3)) for who in asked}

    def again(who: int) -> PersonReport:
        raise AssertionError("drawn again")

    for who in (5, 7, 2):
        assert people.transaction(who, asked[who], PersonReport, again) == sent[who]
        with pytest.raises(BadInput, match=f"person {who} has already answered another query"):
            people.transaction(who, PersonQuery(who, 1, (1,), ((0.5, 1.0),)), PersonReport, again)
