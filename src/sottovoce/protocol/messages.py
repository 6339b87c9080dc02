"""What crosses the wire: a study, a query, reports or their tally; strict bytes <-> values.

A field too many, too few or of the wrong type is refused, so nothing can ride along with a report.
"""

from typing import TypeVar

import msgspec

from sottovoce.core.errors import BadInput


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=False):
    """A value with one strict encoding."""


class Study(Message, frozen=True):
    """What one site is asked to take part in: the level, the budget of a report, and the public resolution."""

    tau: float
    epsilon: float
    resolution: float = 0.0


class Query(Message, frozen=True):
    """One round at one site: points, how many records answer at each, and how far a report moves the point."""

    round: int
    points: tuple[float, ...]
    counts: tuple[int, ...]
    step: float = 0.0


class WalkQuery(Query, frozen=True):
    """A query that is answered by the letters themselves, because the point moves with each of them."""


class Reports(Message, frozen=True):
    """The letters of a round, in the order of the query's points: all that leaves the records of a site."""

    round: int
    letters: bytes


class Tally(Message, frozen=True):
    """How many letters of a round were one, at each point: the sum of the reports and nothing more."""

    round: int
    ones: tuple[int, ...]


class PersonQuery(Message, frozen=True):
    """What one person is asked in a regression: a block, the slopes it speaks of, and where the quantiles stand.

    With ``slopes`` empty and two ``factors`` they are asked for a bit about that product of covariates instead.
    """

    person: int
    block: int
    slopes: tuple[int, ...]
    points: tuple[tuple[float, ...], ...]
    factors: tuple[int, ...] = ()


class PersonReport(Message, frozen=True):
    """One person's letter: all that leaves their record."""

    person: int
    letter: int


M = TypeVar("M", bound=Message)


def to_bytes(message: Message) -> bytes:
    """Encode a message."""
    return msgspec.msgpack.encode(message)


def from_bytes(data: bytes, kind: type[M]) -> M:
    """Decode a message of a kind, or refuse.

    Examples
    --------
    >>> from_bytes(to_bytes(Tally(3, (10, 12))), Tally)
    Tally(round=3, ones=(10, 12))
    """
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise BadInput(
            f"these bytes are not a {kind.__name__}: {error}; send the fields of {kind.__name__} alone."
        ) from None
