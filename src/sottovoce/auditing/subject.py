"""What is audited: a client, two neighbouring inputs that the audit made itself, and all bytes that come back."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from sottovoce.auditing.bound import Transcript
from sottovoce.auditing.parts import ExactCost
from sottovoce.core.errors import BadInput

STUDY = b"audit of privacy"  # 16 bytes that name no study of anybody


REFUSED = b"refused: "  # before the sentence of whoever does not answer


class Answering(Protocol):
    """A door, or something that stands in its place: bytes in, bytes out."""

    def answer(self, data: bytes) -> bytes:
        """Answer one query."""


class InputPair(NamedTuple):
    """Two neighbouring inputs: what they are in words, and the distribution of what is told under each, if known."""

    words: str
    laws: tuple[Sequence[float], Sequence[float]] | None = None


class AuditSubject(NamedTuple):
    """A client to be audited: its exact cost, its pairs of inputs, and how trials are made.

    ``sample`` takes the number of a pair, which of its inputs (0 or 1), and how many trials; ``read`` says what a
    transcript tells; ``collision`` bounds the chance that two honest transcripts tell the same.
    """

    name: str
    cost: ExactCost
    pairs: tuple[InputPair, ...]
    sample: Callable[[int, int, int], list[Transcript]]
    read: Callable[[Transcript], int]
    collision: float


class NotHere(BadInput):
    """What a client needs to run is not installed, so it is not audited here."""


def said_by(door: Answering, *queries: bytes) -> Transcript:
    """Return all that a door says to some queries; a refusal is a word like another."""
    said = []
    for query in queries:
        try:
            said.append(door.answer(query))
        except BadInput as error:
            said.append(REFUSED + str(error).encode())
    return tuple(said)
