"""What a coordinator and a resident site say to each other, whatever carries it: orders and replies, strict bytes.

A site answers each order with one reply, and the same order again with the same reply, so that a carrier may lose,
double or delay what it likes. The messages of a study travel inside, each in its own envelope (`protocol.wire`).
"""

import hashlib
from typing import TypeVar

import msgspec

from sottovoce.core.errors import BadInput
from sottovoce.core.unit import Unit
from sottovoce.protocol.wire import LARGEST, VERSION

MOST = LARGEST + (1 << 12)  # bytes of an order or a reply: a message and its frame
WORDS = 300  # characters of a sentence from the other side
T = TypeVar("T")


class _Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag=True):
    """An order or a reply."""


class Who(_Said, frozen=True):
    """Ask a site who it is; ``study`` is the name of what it would take part in."""

    study: str
    version: int = VERSION


class Look(_Said, frozen=True):
    """Show a site the card of a study, to hear whether it would take part; nothing is reserved."""

    card: bytes


class Invite(_Said, frozen=True):
    """Invite a site to a study, by its card (`protocol.card`)."""

    card: bytes


class Question(_Said, frozen=True):
    """Put a question of a study, in its envelope."""

    study: bytes
    envelope: bytes


class Over(_Said, frozen=True):
    """Tell a site that a study is over, how it ended, and how far its ledger is known to have come."""

    study: bytes
    words: str = ""
    counter: int = 0


class Hello(_Said, frozen=True):
    """What is public of a site: its name, how many records of what unit it holds, and the head of its ledger."""

    site: str
    size: int
    unit: Unit
    counter: int
    head: bytes
    column: str = ""
    per_person: bool = False
    seeded: bool = False
    version: int = VERSION


class Willing(_Said, frozen=True):
    """The site would take part in a study as its card says, and has reserved nothing."""

    study: bytes


class Joined(_Said, frozen=True):
    """The site takes part: epsilon is reserved; the last round it has answered, and the head of its ledger."""

    study: bytes
    round: int
    counter: int
    head: bytes


class Answered(_Said, frozen=True):
    """The reply to a question, in its envelope, and the head of the ledger that keeps it."""

    study: bytes
    envelope: bytes
    counter: int
    head: bytes


class Refused(_Said, frozen=True):
    """The site does not do what was ordered, and has spent nothing on it; why, in one sentence without a value."""

    study: bytes
    why: str


class Bye(_Said, frozen=True):
    """The site has ended a study, or never knew it; the head of its ledger."""

    study: bytes
    counter: int
    head: bytes


Order = Who | Look | Invite | Question | Over
Reply = Hello | Willing | Joined | Answered | Refused | Bye


def encode(said: Order | Reply) -> bytes:
    """Encode an order or a reply."""
    return msgspec.msgpack.encode(said)


def order_of(data: bytes) -> Order:
    """Decode an order, or refuse.

    >>> order_of(encode(Who("waits")))
    Who(study='waits', version=1)
    """
    return _decoded(data, Order, "an order")


def reply_of(data: bytes) -> Reply:
    """Decode a reply, or refuse."""
    return _decoded(data, Reply, "a reply")


def _decoded(data: bytes, kind: type[T] | object, what: str) -> T:
    if len(data) > MOST:
        raise BadInput(f"{what} is larger than {MOST:,} bytes; send less at a time.")
    try:
        found: T = msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, BadInput):
        raise BadInput(f"these bytes are not {what} of this protocol; use the same version on both sides.") from None
    return found


def digest(data: bytes) -> bytes:
    """Return by what an order is known again."""
    return hashlib.sha256(data).digest()[:16]


def sentence(text: str) -> str:
    """Cut a sentence of the other side to what is fit for a log: one line of printable characters."""
    return "".join(each if each.isprintable() else " " for each in text[:WORDS])
