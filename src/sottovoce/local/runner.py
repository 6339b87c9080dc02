"""The one runner of one process: every query of a method goes to the doors of its sites, one after the other."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sottovoce.client.door import Door
from sottovoce.protocol.wire import seal
from sottovoce.server.method import Gather, Method, Queries, Replies, converse, opened

Outcome = TypeVar("Outcome")
State = TypeVar("State")
Progress = Callable[[int], None]


def run(
    method: Method[Any, Outcome], doors: Sequence[Door], progress: Progress | None = None, state: Any = None
) -> Outcome:
    """Ask the doors until the method has its outcome.

    ``progress`` is called after each round with the number of records that have just answered; ``state`` is where to go
    on, the beginning if None.
    """
    return method.outcome(run_to_end(method, doors, progress, state))


def run_to_end(
    method: Method[State, Any], doors: Sequence[Door], progress: Progress | None = None, state: State | None = None
) -> State:
    """Ask the doors until nothing more is asked, and return the state."""
    return converse(method, _asked(doors, progress), state)


def _asked(doors: Sequence[Door], progress: Progress | None) -> Gather:
    """Return what brings the replies of doors in this process."""

    def gather(queries: Queries) -> Replies:
        replies = [
            None if message is None else door.ask(queries.round, message)
            for door, message in zip(doors, queries.messages, strict=True)
        ]
        if progress is not None:
            progress(queries.records)
        return replies

    return gather


def through_bytes(method: Method[Any, Outcome], doors: Sequence[Door], study: bytes) -> Gather:
    """Return what brings the replies as a network would: every message goes through its bytes."""

    def gather(queries: Queries) -> Replies:
        data = [
            None if message is None else door.answer(seal(study, queries.round, message))
            for door, message in zip(doors, queries.messages, strict=True)
        ]
        return opened(method, study, queries, data)

    return gather
