"""The envelope every message travels in: protocol version, study, round, kind; strict bytes <-> values.

A message says which protocol it speaks, which study it belongs to (`protocol.card.identity`) and which round. What does
not fit is refused with one sentence that names what was wrong and never a value, so bytes from a stranger can
neither ride along with a report nor be echoed into a log.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import msgspec

from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import Message, to_bytes

VERSION = 1
LARGEST = 1 << 24  # bytes of a message: a round of a walk sends a letter a record, everything else is far smaller
M = TypeVar("M", bound=Message)


class Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message with what says where it belongs."""

    version: int
    study: bytes
    round: int
    kind: str
    body: msgspec.Raw


class Opened(NamedTuple):
    """What an envelope held."""

    round: int
    message: Message


def kind_of(message: type[Message]) -> str:
    """Return what a kind of message is called on the wire.

    >>> from sottovoce.protocol.messages import PersonQuery
    >>> kind_of(PersonQuery)
    'person-query'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "-", message.__name__).lower()


def seal(study: bytes, round: int, message: Message) -> bytes:
    """Put a message of a study's round into its envelope.

    >>> from sottovoce.protocol.messages import Tally
    >>> unseal(seal(b"0123456789abcdef", 3, Tally(3, (10, 12))), b"0123456789abcdef", [Tally])
    Opened(round=3, message=Tally(round=3, ones=(10, 12)))
    """
    body = msgspec.Raw(to_bytes(message))
    return msgspec.msgpack.encode(Envelope(VERSION, study, round, kind_of(type(message)), body))


def unseal(
    data: bytes, study: bytes, kinds: Sequence[type[Message]], round: int | None = None, largest: int = LARGEST
) -> Opened:
    """Open an envelope, refusing whatever is not a message of these kinds, of this study and, if given, of this round.

    ``study`` is its identity; no more than ``largest`` bytes are looked at.
    """
    if len(data) > largest:
        raise BadInput(f"the message is larger than {largest:,} bytes; send less at a time.")
    try:
        found = msgspec.msgpack.decode(data, type=Envelope)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise BadInput("these bytes are not a message of this protocol; send one envelope and nothing else.") from None
    if found.version != VERSION:
        raise BadInput(
            f"the message is of another protocol version than {VERSION}; use the same version on both sides."
        )
    if found.study != study:
        raise BadInput("the message belongs to another study; send it to where that study is run.")
    named = {kind_of(kind): kind for kind in kinds}
    if found.kind not in named:
        raise BadInput(f"the message is of another kind; {' or '.join(sorted(named))} is expected here.")
    if found.round < 1 or (round is not None and found.round != round):
        expected = "a round from 1 on" if round is None else f"round {round}"
        raise BadInput(f"the message belongs to another round; {expected} is expected here.")
    kind = named[found.kind]
    try:
        message = msgspec.msgpack.decode(found.body, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise BadInput(
            f"the message is not a whole {found.kind}: a field is missing, too many or of another type; "
            f"send the fields of {kind.__name__} alone."
        ) from None
    if getattr(message, "round", found.round) != found.round:
        raise BadInput("the message and its envelope name different rounds; send one round at a time.")
    return Opened(found.round, message)
