"""The one loop between a method and its sites: rounds counted, nobody bothered for nothing, tallies in place."""

from collections.abc import Generator

import numpy as np
import pytest

from sottovoce.client.door import Door
from sottovoce.core.arrays import Ints
from sottovoce.local.runner import run, run_to_end
from sottovoce.protocol.messages import Message, Query, Tally
from sottovoce.server.quantile.asking import Ask
from sottovoce.server.quantile.conversation import Conversation


class Counter:
    """A site that says one for the first so many of the records asked at each point."""

    kinds: tuple[type[Message], ...] = (Query,)

    def __init__(self, most: int) -> None:
        self.most = most
        self.queries: list[Query] = []

    def reply(self, round: int, query: Message) -> Message:
        assert isinstance(query, Query)
        self.queries.append(query)
        return Tally(round, tuple(min(self.most, n) for n in query.counts))


def doors_of(*sites: Counter) -> list[Door]:
    return [Door(site, b"study") for site in sites]


def procedure(asks: list[Ask], heard: list[Ints]) -> Generator[Ask, Ints, str]:
    for ask in asks:
        ones = yield ask
        heard.append(ones.copy())
    return "done"


ASKS = [
    Ask(np.array([0.5]), np.array([[1], [2]])),
    Ask(np.array([0.1, 0.9]), np.array([[0, 0], [3, 0]])),
    Ask(np.array([0.2, 0.3]), np.array([[4, 0], [0, 5]])),
]


def test_tallies_come_back_in_their_places() -> None:
    heard: list[Ints] = []
    conversation = Conversation(lambda: procedure(ASKS, heard))
    log = run_to_end(conversation, doors_of(Counter(3), Counter(2)))
    assert (conversation.outcome(log), log.rounds, log.reports, log.spent.tolist()) == ("done", 3, 15, [5, 10])
    assert [ones.tolist() for ones in heard] == [[[1], [2]], [[0, 0], [2, 0]], [[3, 0], [0, 2]]]
    assert all(ones.dtype == np.int64 for ones in heard)


def test_a_site_without_records_to_ask_is_left_in_peace() -> None:
    one, two = Counter(1), Counter(1)
    run(Conversation(lambda: procedure(ASKS, [])), doors_of(one, two))
    assert [query.round for query in one.queries] == [1, 3]
    assert two.queries == [
        Query(1, (0.5,), (2,)),
        Query(2, (0.1, 0.9), (3, 0)),
        Query(3, (0.2, 0.3), (0, 5)),
    ]
    assert {type(value) for query in two.queries for value in (*query.points, *query.counts)} == {float, int}


def test_progress_is_told_of_every_record_once() -> None:
    told: list[int] = []
    run(Conversation(lambda: procedure(ASKS, [])), doors_of(Counter(1), Counter(1)), told.append)
    assert told == [3, 3, 9]


def test_what_a_procedure_raises_is_not_swallowed() -> None:
    def lost() -> Generator[Ask, Ints, None]:
        yield ASKS[0]
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        run(Conversation(lost), doors_of(Counter(1), Counter(1)))
