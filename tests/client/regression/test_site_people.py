"""A site in its turn asks everybody once, answers a retry with the same bytes, and spends nothing on a wrong query."""

from typing import Any

import numpy as np
import pytest
from tests.server.regression.plans import WAYS, over_sites, plan_of, rows_of

from sottovoce.client.door import Door
from sottovoce.core import codec
from sottovoce.core.arrays import Words
from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import LoopQuery, PersonQuery, PilotQuery
from sottovoce.protocol.regression.carried import CarriedRun
from sottovoce.protocol.wire import seal
from sottovoce.sim.randomness import dice

N = 300


def begun(source: Any = None) -> tuple[Door, LoopQuery]:
    method, [door, _] = over_sites(
        plan_of(**WAYS["dithered"]), [rows_of(N), rows_of(5)], [dice(1) if source is None else source, dice(2)]
    )
    queries = method.query(method.init())
    assert queries is not None
    query = queries.messages[0]
    assert isinstance(query, LoopQuery)
    return door, query


def spent(door: Door) -> str:
    return repr(door).split(", ")[1]


def test_a_retry_gets_the_same_bytes_and_everybody_has_answered_once() -> None:
    door, query = begun()
    first = door.answer(seal(b"study", 1, query))
    assert door.answer(seal(b"study", 1, query)) == first
    assert spent(door) == f"{N} answered"
    for other in (
        LoopQuery(2, query.first, query.count, query.runs),
        LoopQuery(2, 10, 20, query.runs),
        PilotQuery(2, 0, (0.5,), (3,)),
    ):
        with pytest.raises(BadInput, match="already answered"):
            door.ask(2, other)


def test_the_letters_are_the_dice_s() -> None:
    (one, query), (other, _) = begun(dice(1)), begun(dice(3))
    assert one.ask(1, query) != other.ask(1, query)


@pytest.mark.parametrize(
    "change",
    [
        {"first": -1},
        {"first": 1},
        {"count": 0},
        {"count": N + 1},
        {"runs": ()},
        {"runs": (b"", b"")},
        {"runs": (b"x",)},
    ],
)
def test_a_query_that_cannot_be_answered_costs_nothing(change: dict[str, Any]) -> None:
    door, query = begun()
    fields = {"round": 1, "first": query.first, "count": query.count, "runs": query.runs, **change}
    with pytest.raises(BadInput):
        door.ask(1, LoopQuery(**fields))
    with pytest.raises(BadInput):
        door.ask(2, query)
    with pytest.raises(BadInput, match="of another kind"):
        door.answer(seal(b"study", 1, PersonQuery(0, 0, (1,), ((0.0, 0.0, 0.0),))))
    assert spent(door) == "0 answered"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_recursion_that_leads_nowhere_costs_nothing() -> None:
    door, query = begun()
    terms, limit, state, *_ = codec.from_bytes(query.runs[0], CarriedRun)
    flat = codec.to_bytes(CarriedRun(terms._replace(omega=np.zeros_like(terms.omega)), limit, state))
    with pytest.raises(BadInput, match="leads nowhere"):
        door.ask(1, LoopQuery(1, query.first, query.count, (flat,)))
    assert spent(door) == "0 answered"


def test_a_site_that_dies_in_its_loop_has_said_and_spent_nothing() -> None:
    class Dying:
        private = False

        def __init__(self) -> None:
            self.left, self.real = 1, dice(1)  # calls: the order alone

        def words(self, n: int) -> Words:
            if not self.left:
                raise KeyboardInterrupt
            self.left -= 1
            return self.real.words(n)

        def split(self, n: int) -> list[Any]:
            raise NotImplementedError

    source = Dying()
    door, query = begun(source)
    with pytest.raises(KeyboardInterrupt):
        door.ask(1, query)
    assert spent(door) == "0 answered"
    source.left = 10
    door.ask(1, query)
    assert spent(door) == f"{N} answered"
