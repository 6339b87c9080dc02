"""The loop between a procedure and its sites: rounds counted, nobody bothered for nothing, tallies in place."""

from collections.abc import Generator

import numpy as np
import pytest

from sottovoce.core.arrays import Ints
from sottovoce.local.quantile.conversation import converse
from sottovoce.protocol.messages import Query, Tally
from sottovoce.server.quantile.asking import Ask


class Door:
    def __init__(self, factor: int) -> None:
        self.factor = factor
        self.queries: list[Query] = []

    def tally(self, query: Query) -> Tally:
        self.queries.append(query)
        return Tally(query.round, tuple(self.factor * n for n in query.counts))


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
    assert converse(procedure(ASKS, heard), [Door(1), Door(10)]) == ("done", 3)
    assert [ones.tolist() for ones in heard] == [[[1], [20]], [[0, 0], [30, 0]], [[4, 0], [0, 50]]]
    assert all(ones.dtype == np.int64 for ones in heard)


def test_a_site_without_records_to_ask_is_left_in_peace() -> None:
    doors = [Door(1), Door(1)]
    converse(procedure(ASKS, []), doors)
    assert [query.round for query in doors[0].queries] == [1, 3]
    assert doors[1].queries == [
        Query(1, (0.5,), (2,)),
        Query(2, (0.1, 0.9), (3, 0)),
        Query(3, (0.2, 0.3), (0, 5)),
    ]
    assert {type(value) for query in doors[1].queries for value in (*query.points, *query.counts)} == {float, int}


def test_progress_is_told_of_every_record_once() -> None:
    told: list[int] = []
    converse(procedure(ASKS, []), [Door(1), Door(1)], told.append)
    assert told == [3, 3, 9]


def test_what_a_procedure_raises_is_not_swallowed() -> None:
    def lost() -> Generator[Ask, Ints, None]:
        yield ASKS[0]
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        converse(lost(), [Door(1), Door(1)])
