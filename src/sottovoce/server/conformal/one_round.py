"""A method that asks every site once: its state is what has come so far, and silent sites are asked again."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, NoReturn, TypeVar

from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import ROUND, Message
from sottovoce.server.method import Queries, Replies

State = TypeVar("State")
Said = TypeVar("Said")
Outcome = TypeVar("Outcome")


class OneRound(ABC, Generic[State, Said, Outcome]):
    """Asks every site once, checks each reply before it counts, and has its outcome when all have answered.

    A site whose message is None is not asked, and counts as heard; all records of a site answer.
    """

    replies: tuple[type[Message], ...]
    state: type[State]

    def __init__(self, messages: Sequence[Message | None], sizes: Sequence[int]) -> None:
        self.messages = tuple(messages)
        self._sizes = tuple(sizes)

    @abstractmethod
    def init(self) -> State:
        """Return the state before anything was asked."""

    @abstractmethod
    def heard(self, state: State) -> Sequence[bool]:
        """Tell which sites have answered."""

    @abstractmethod
    def read(self, place: int, reply: Message) -> Said:
        """Return what a site's reply says, or refuse it (`refuse`)."""

    @abstractmethod
    def added(self, state: State, said: Sequence[Said | None]) -> State:
        """Return the state with what some sites have said."""

    @abstractmethod
    def outcome(self, state: State) -> Outcome:
        """Return what the study came to."""

    def query(self, state: State) -> Queries | None:
        """Return what is asked of the sites that have not answered; None once all have."""
        heard = self._known(state)
        if all(heard):
            return None
        asked = [None if known else message for known, message in zip(heard, self.messages, strict=True)]
        records = sum(size for known, size in zip(heard, self._sizes, strict=True) if not known)
        return Queries(ROUND, asked, records)

    def step(self, state: State, replies: Replies) -> State:
        """Return the state after some replies; if any does not fit, none is counted."""
        heard = self._known(state)
        if len(replies) != len(heard):
            raise BadInput(f"{len(heard):,} sites take part and {len(replies):,} replies came; give one a site.")
        said: list[Said | None] = []
        for place, (known, reply) in enumerate(zip(heard, replies, strict=True)):
            if reply is not None and known:
                raise BadInput(f"site number {place + 1} answered without being asked; leave its reply out.")
            said.append(None if reply is None else self.read(place, reply))
        return self.added(state, said)

    def finished(self, state: State) -> None:
        """Refuse an outcome before all sites have answered: what is promised rests on all of them."""
        missing = sum(not known for known in self._known(state))
        if missing:
            raise BadInput(f"{missing:,} of {len(self.messages):,} sites have not answered; ask them again.")

    def refuse(self, place: int, expected: str) -> NoReturn:
        """Refuse a site's reply, without a value of it."""
        raise BadInput(f"the reply of site number {place + 1} is not {expected}; ask it again.")

    def _known(self, state: State) -> Sequence[bool]:
        """Tell which sites have answered, refusing a state of another study."""
        heard = self.heard(state)
        if len(heard) != len(self.messages):
            raise BadInput("this state belongs to a study of other sites; go on with the plan that it was made by.")
        return heard
