"""What the universal checks need to know of a method."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sottovoce.client.door import Door
from sottovoce.protocol.messages import Message
from sottovoce.server.method import Method, Queries, Replies

AS_LISTED, TURNED = (0, 1, 2), (2, 0, 1)


class Subject(NamedTuple):
    """A method on one study, who would answer what, and what its outcome says in one number."""

    make: Callable[[], Method[Any, Any]]  # afresh, so that nothing is remembered
    reply: Callable[[Any, Queries], Replies]  # a pure function of state and queries
    point: Callable[[Any], float]
    tolerance: float = 1e-9  # when the sites change places
    stride: int = 3  # of how many states one is checked
    anytime: bool = False  # whether there is an outcome before the end


Case = Callable[[Sequence[int]], Subject]
"""A subject whose sites stand in an order; methods without sites ignore it."""


def answered_by(doors: Sequence[Door]) -> Callable[[Any, Queries], Replies]:
    """Return the replies of doors, each asked once a round and remembered, so that a round may be asked for again."""
    said: dict[tuple[int, int], Message] = {}

    def reply(state: Any, queries: Queries) -> Replies:
        for k, message in enumerate(queries.messages):
            if message is not None and (queries.round, k) not in said:
                said[queries.round, k] = doors[k].ask(queries.round, message)
        return [None if message is None else said[queries.round, k] for k, message in enumerate(queries.messages)]

    return reply
