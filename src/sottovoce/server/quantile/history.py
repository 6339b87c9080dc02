"""A conversation as pure functions over a plain state: the state is the log of answers, and replaying it is the fold.

A procedure that adapts its queries is easiest to read as a conversation (a generator); a store wants a state. Because a
conversation depends on nothing but the answers, the tuple of answers *is* its state: `query` replays it and returns
what is asked next, `step` appends an answer, `outcome` replays a finished one. A log survives any restart.
"""

from collections.abc import Callable, Generator
from typing import TypeVar

import numpy as np

from sottovoce.core.arrays import Ints
from sottovoce.core.errors import BadInput
from sottovoce.server.quantile.asking import Ask

Outcome = TypeVar("Outcome")
Start = Callable[[], Generator[Ask, Ints, Outcome]]
History = tuple[Ints, ...]


def init() -> History:
    """Return the state before anything was asked."""
    return ()


def query(start: Start[Outcome], history: History) -> Ask | None:
    """Return what is asked next; None once the conversation is over."""
    asked, _ = _replay(start, history)
    return asked


def step(start: Start[Outcome], history: History, ones: Ints) -> History:
    """Return the state after one more answer, refusing an answer that does not fit the question."""
    asked = query(start, history)
    if asked is None:
        raise BadInput("the conversation is over; nothing was asked.")
    if ones.shape != asked.counts.shape or np.any(ones < 0) or np.any(ones > asked.counts):
        raise BadInput(
            f"round {len(history) + 1} asked {asked.counts.shape[0]} sites at {asked.counts.shape[1]} points; "
            "answer with one count of ones for each, none above what was asked."
        )
    return (*history, ones)


def outcome(start: Start[Outcome], history: History) -> Outcome | None:
    """Return what the conversation came to; None while it goes on."""
    _, result = _replay(start, history)
    return result


def _replay(start: Start[Outcome], history: History) -> tuple[Ask | None, Outcome | None]:
    """Run a conversation on the answers so far."""
    procedure = start()
    asked = next(procedure)
    for ones in history:
        try:
            asked = procedure.send(ones)
        except StopIteration as end:
            return None, end.value
    return asked, None
