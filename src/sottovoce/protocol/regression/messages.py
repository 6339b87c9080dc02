"""What crosses the wire in a regression beside one person's query and report: batches of people, and the first search.

A batch is asked under one point and one design; what falls to each person follows from their public word
(`protocol.regression.questions`), so that everybody can check that their question was drawn and not chosen for them.
"""

from sottovoce.protocol.messages import Message

Vector = tuple[float, ...]


class PeopleQuery(Message, frozen=True):
    """A batch of people, ``first`` and the ``count`` from there on, asked under one point and one query design.

    Public words come of ``key``. ``points`` is (levels, p + 1); ``directions`` (levels, p + 1, p + 1), ``sizes``
    (2, levels) and ``upto`` (3,) are those of `questions.QueryDesign`.
    """

    round: int
    first: int
    count: int
    key: bytes
    points: tuple[Vector, ...]
    directions: tuple[tuple[Vector, ...], ...]
    sizes: tuple[Vector, ...]
    upto: Vector


class PeopleReport(Message, frozen=True):
    """One letter each, in the order of the people: all that leaves their records."""

    round: int
    letters: tuple[int, ...]


class PilotQuery(Message, frozen=True):
    """The people from ``first`` on are asked on which side of a point their response lies, so many at each point.

    It is answered by a `protocol.messages.Tally`: one bit a person, of which the sums alone are sent.
    """

    round: int
    first: int
    points: Vector
    counts: tuple[int, ...]
