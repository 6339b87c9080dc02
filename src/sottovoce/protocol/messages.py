"""What crosses the wire, method by method: what a site or a person is asked, and all that they say; strict bytes.

A field too many, too few or of the wrong type is refused, so nothing can ride along with a report. In a regression a
batch is asked under one point and one design; what falls to each person follows from their public word
(`protocol.regression.questions`), so that everybody can check that their question was drawn and not chosen for them.
Conformal prediction has one round each; the one-record questions of mechanism "local" are `Query` and `Tally`.
"""

from typing import TypeVar

import msgspec

from sottovoce.core.errors import BadInput

Vector = tuple[float, ...]
ROUND = 1  # of conformal prediction: there is only one
M = TypeVar("M", bound="Message")


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, array_like=False):
    """A value with one strict encoding."""


class Study(Message, frozen=True):
    """What one site is asked to take part in: the level, the budget of a report, and the public resolution."""

    tau: float
    epsilon: float
    resolution: float = 0.0


class Query(Message, frozen=True):
    """One round at one site: points, how many records answer at each, and how far a report moves the point.

    A positive period, one a point where there are any, makes of a point that does not move a phase question: whether
    the record lies in the upper half of its period, counted from the point on.
    """

    round: int
    points: tuple[float, ...]
    counts: tuple[int, ...]
    step: float = 0.0
    periods: tuple[float, ...] = ()


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

    With ``slopes`` empty and two ``factors`` they are asked for a bit about that product of covariates instead, or,
    with two combinations as ``pair``, about the product of those, moved to ``within``; with a fitted quantile as well
    in ``points``, about that product turned by the side of the quantile on which the response lies.
    """

    person: int
    block: int
    slopes: tuple[int, ...]
    points: tuple[tuple[float, ...], ...]
    factors: tuple[int, ...] = ()
    pair: tuple[tuple[float, ...], ...] = ()
    within: tuple[float, ...] = ()


class PersonReport(Message, frozen=True):
    """One person's letter: all that leaves their record."""

    person: int
    letter: int


class PeopleQuery(Message, frozen=True):
    """A batch of people, ``first`` and the ``count`` from there on, asked under one point and one query design.

    Public words come of ``key``. ``points`` is (levels, p + 1); ``pairs`` (pairs, 2, p + 1), ``ranges`` (2 pairs, 2),
    ``ways`` (ways, 2, p + 1), ``steps`` (ways, 3) and ``upto`` (1 + 2 pairs + ways,) are those of
    `questions.QueryDesign`.
    """

    round: int
    first: int
    count: int
    key: bytes
    points: tuple[Vector, ...]
    pairs: tuple[tuple[Vector, ...], ...]
    ranges: tuple[Vector, ...]
    ways: tuple[tuple[Vector, ...], ...]
    steps: tuple[Vector, ...]
    upto: Vector


class PeopleReport(Message, frozen=True):
    """One letter each, in the order of the people: all that leaves their records."""

    round: int
    letters: tuple[int, ...]


class PilotQuery(Message, frozen=True):
    """The people from ``first`` on are asked on which side of a point their response lies, so many at each point.

    It is answered by a `Tally`: one bit a person, of which the sums alone are sent.
    """

    round: int
    first: int
    points: Vector
    counts: tuple[int, ...]


class LoopQuery(Message, frozen=True):
    """A site is to ask its ``count`` people from ``first`` on in a loop of its own, one after the other.

    ``runs`` says where the recursion of each channel stands (`protocol.regression.carried`), from which the site goes
    on. It is answered by `Reports`: one letter a person, from which the server repeats what the site has done.
    """

    round: int
    first: int
    count: int
    runs: tuple[bytes, ...]


class OrderQuery(Message, frozen=True):
    """Ask for order statistics of a site's scores, by rank from 1; a site without privacy answers it."""

    orders: tuple[int, ...]


class OrderReport(Message, frozen=True):
    """The scores of the asked ranks, infinite where a site has fewer."""

    values: tuple[float, ...]


class CellQuery(Message, frozen=True):
    """Ask for a cell of a public grid, drawn by a mechanism that is to cost at most epsilon."""

    mechanism: str
    order: int
    epsilon: float
    edges: tuple[float, ...]


class CellReport(Message, frozen=True):
    """The cell that a site names, from 0: it stands for its upper edge, and the last one for infinity."""

    cell: int


class SumQuery(Message, frozen=True):
    """Ask for a site's share of a secure sum: counts above each edge, with one of ``sites`` shares of noise.

    The summed noise has the ratio ``noise / 2^64`` (`protocol.selection.polya`); ``noise`` zero is none.
    """

    edges: tuple[float, ...]
    noise: int
    sites: int


class SumShare(Message, frozen=True):
    """Noisy counts above each edge up to the next, modulo 2^32; one share alone is not private."""

    counts: tuple[int, ...]


class CoverageQuery(Message, frozen=True):
    """Ask how many scores a threshold covers, with two-sided geometric noise of ratio ``noise / 2^64``; zero is none.

    A site without privacy also tells the scores of some ``orders``.
    """

    threshold: float
    noise: int
    orders: tuple[int, ...] = ()


class CoverageCount(Message, frozen=True):
    """How many scores are covered, with noise where there is any, and the scores of the asked ranks."""

    covered: int
    values: tuple[float, ...] = ()


def to_bytes(message: Message) -> bytes:
    """Encode a message."""
    return msgspec.msgpack.encode(message)


def from_bytes(data: bytes, kind: type[M]) -> M:
    """Decode a message of a kind, or refuse.

    >>> from_bytes(to_bytes(Tally(3, (10, 12))), Tally)
    Tally(round=3, ones=(10, 12))
    """
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise BadInput(
            f"these bytes are not a {kind.__name__}: {error}; send the fields of {kind.__name__} alone."
        ) from None
