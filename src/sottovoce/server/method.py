"""What every method is: four pure functions over a plain state.

    state = method.init()
    while (queries := method.query(state)) is not None:
        state = method.step(state, replies)
    result = method.outcome(state)

A state is plain (numbers, tuples, arrays), so it goes to bytes and back (`core.codec`), and it is never changed: `step`
returns a new one. Queries and replies stand in the order of the sites. None among the queries: that site is not asked;
None among the replies: it did not answer, and `query` asks it again, with the same bytes, until it does. `Absent` among
the replies: its deadline is over, and the round may close without it; a method that needs every site refuses it.
Replies are hostile until checked: `step` refuses what does not fit, and the state stays as it was.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from sottovoce.core import codec
from sottovoce.protocol import wire
from sottovoce.protocol.messages import Message

State = TypeVar("State")
Outcome = TypeVar("Outcome", covariant=True)


class Queries(NamedTuple):
    """What the sites are asked in a round, in their order (None: not asked), and how many records answer."""

    round: int
    messages: Sequence[Message | None]
    records: int = 0


class Absent(Message, frozen=True):
    """What a coordinator says in place of a site's reply: the site is absent from this round, its deadline is over.

    It has spent nothing in it, unless ``spent`` says so: where the site may have had the question, and its reply was
    lost or came too late, its records of the round count as asked and are not asked again. ``gone`` says that it will
    never answer again: nobody waits for it any more, and what it has said so far counts.
    """

    round: int
    spent: bool = False
    gone: bool = False


Replies = Sequence[Message | None]
Gather = Callable[[Queries], Replies]


class Method(Protocol[State, Outcome]):
    """A way to estimate something from replies."""

    @property
    def replies(self) -> tuple[type[Message], ...]:
        """Return the kinds of reply that it understands."""

    @property
    def state(self) -> type[State]:
        """Return the type of its state, by which a stored one is read back."""

    def init(self) -> State:
        """Return the state before anything was asked."""

    def query(self, state: State) -> Queries | None:
        """Return what is asked next; None once there is an outcome."""

    def step(self, state: State, replies: Replies) -> State:
        """Return the state after some replies to what was asked; refuse replies that do not fit."""

    def outcome(self, state: State) -> Outcome:
        """Return what the study came to."""


def converse(method: Method[State, Any], gather: Gather, state: State | None = None) -> State:
    """Run a method to its last state, or on from one; ``gather`` brings the replies, from wherever the sites are."""
    now = method.init() if state is None else state
    while (queries := method.query(now)) is not None:
        now = method.step(now, gather(queries))
    return now


def restore(method: Method[State, Any], data: bytes) -> State:
    """Decode a method's state, which `core.codec.to_bytes` encoded, or refuse."""
    return codec.from_bytes(data, method.state)


def opened(method: Method[Any, Any], study: bytes, queries: Queries, replies: Sequence[bytes | None]) -> Replies:
    """Open the envelopes of a round's replies, refusing what is not one; what each says is checked by `step`."""
    return [
        None if data is None else wire.unseal(data, study, method.replies, queries.round).message for data in replies
    ]
