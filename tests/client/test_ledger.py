"""One record, one report: spend first, remember the bytes, refuse the rest."""

import pytest

from sottovoce.client.ledger import Ledger
from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import Query

FIRST, SECOND = Query(1, (0.0, 1.0), (3, 4)), Query(2, (0.5,), (2,))


def test_positions_follow_one_another() -> None:
    ledger = Ledger(10)
    assert (ledger.spend(FIRST), ledger.spent) == (0, 7)
    assert (ledger.spend(SECOND), ledger.spent) == (7, 9)


def test_a_retry_gets_the_remembered_bytes() -> None:
    ledger = Ledger(10)
    assert ledger.replay(FIRST) is None
    ledger.spend(FIRST)
    ledger.remember(b"sent")
    assert ledger.replay(Query(1, (0.0, 1.0), (3, 4))) == b"sent"
    assert ledger.spent == 7


@pytest.mark.parametrize(
    "changed",
    [Query(1, (0.0, 1.5), (3, 4)), Query(1, (0.0, 1.0), (3, 3)), Query(1, (0.0, 1.0), (3, 4), 0.1), Query(0, (), ())],
)
def test_anything_else_about_a_past_round_is_refused(changed: Query) -> None:
    ledger = Ledger(10)
    ledger.spend(FIRST)
    ledger.remember(b"sent")
    with pytest.raises(BadInput, match=rf"round {changed.round} was already answered, up to round 1; ask a later"):
        ledger.replay(changed)
    assert ledger.spent == 7
    assert ledger.replay(FIRST) == b"sent"


def test_an_older_round_is_refused_even_if_unchanged() -> None:
    ledger = Ledger(10)
    for query, reply in ((FIRST, b"one"), (SECOND, b"two")):
        ledger.spend(query)
        ledger.remember(reply)
    with pytest.raises(BadInput, match="already answered, up to round 2"):
        ledger.replay(FIRST)


def test_spent_but_not_sent_is_not_asked_again() -> None:
    # the site failed between spending and answering: those records are lost, not asked twice
    ledger = Ledger(10)
    ledger.spend(FIRST)
    with pytest.raises(BadInput, match="already answered"):
        ledger.replay(FIRST)
    assert ledger.spend(SECOND) == 7


def test_more_than_is_left_is_refused_and_nothing_changes() -> None:
    ledger = Ledger(8)
    ledger.spend(FIRST)
    ledger.remember(b"sent")
    with pytest.raises(BadInput, match="round 2 asks 2 records, but only 1 have not answered yet; ask fewer"):
        ledger.spend(SECOND)
    assert ledger.spent == 7
    assert ledger.replay(FIRST) == b"sent"
    assert ledger.spend(Query(2, (0.5,), (1,))) == 7
