"""The one door of a site: bytes in, bytes out, for every exchange of every method.

Behind it stands the site of a method, which checks a query, spends and answers it (`client.ledger`). The door opens
envelopes of its own study alone and looks at no more bytes than its limits allow.
"""

import math
from typing import NamedTuple, NoReturn, Protocol, SupportsIndex

from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import Message
from sottovoce.protocol.wire import LARGEST, seal, unseal


class SiteLimits(NamedTuple):
    """What a site is ready to take part in, whatever a study asks."""

    epsilon: float = math.inf
    points: int = 10_000
    rounds: int = 1_000_000
    size: int = LARGEST

    def check_budget(self, epsilon: float) -> None:
        """Refuse a study that costs a record more than the site allows; NaN and negative budgets too."""
        if not 0 <= epsilon <= self.epsilon:
            raise BadInput("the study costs a record more than this site allows; ask for a smaller epsilon.")

    def check_round(self, round: int) -> None:
        """Refuse rounds without end."""
        if not 1 <= round <= self.rounds:
            raise BadInput(f"this site answers rounds 1 to {self.rounds:,}; end the study before.")

    def check_points(self, points: int) -> None:
        """Refuse a query without points, or with more than the site is ready for."""
        if not 1 <= points <= self.points:
            raise BadInput(f"this site answers 1 to {self.points:,} points at a time; ask fewer.")


class AnsweringSite(Protocol):
    """What a door needs of the site of a method."""

    @property
    def kinds(self) -> tuple[type[Message], ...]:
        """Return the kinds of query that it answers."""

    def reply(self, round: int, query: Message) -> Message:
        """Check, spend and answer a query; the same again gets the same again."""


class Door:
    """Answers the queries of one study for one site."""

    __slots__ = ("_limits", "_site", "_study")

    def __init__(self, site: AnsweringSite, study: bytes, limits: SiteLimits | None = None) -> None:
        self._site = site
        self._study = study
        self._limits = SiteLimits() if limits is None else limits

    def __repr__(self) -> str:
        return f"Door({self._site!r})"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a door cannot be pickled or copied: records do not leave the site")

    def answer(self, data: bytes) -> bytes:
        """Answer one query; refuse what is not one, with nothing spent."""
        round, query = unseal(data, self._study, self._site.kinds, largest=self._limits.size)
        self._limits.check_round(round)
        return seal(self._study, round, self._site.reply(round, query))

    def ask(self, round: int, query: Message) -> Message:
        """Answer a query of this process, without the bytes between."""
        self._limits.check_round(round)
        return self._site.reply(round, query)
