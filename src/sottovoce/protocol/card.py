"""The study card: the public terms that every party of a study agrees on, and their digest, which names the study.

The identity stands in every message (`protocol.wire`), so an answer to one study can never be counted in another. Terms
are plain values: numbers, texts, and channels as the integers that decide their epsilon.
"""

import hashlib
from typing import Any

import msgspec

from sottovoce.core.errors import BadInput
from sottovoce.protocol.wire import VERSION

METHODS = ("quantile", "regression", "integration", "conformal", "coverage")
DIGEST = 16  # bytes of SHA-256


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a study is: method, name, a nonce that keeps equal studies apart, and its public terms.

    >>> card = Card("quantile", {"tau": 0.5, "sites": ["north", "south"], "epsilon": [1.0, 2.0]})
    >>> identity(card).hex()
    '100dc1b7d83c0de0dd44c4696cc7a4ab'
    >>> identity(card) == identity(Card("quantile", card.terms, nonce=b"again"))
    False
    """

    method: str
    terms: dict[str, Any]
    name: str = ""
    nonce: bytes = b""
    version: int = VERSION


def identity(card: Card) -> bytes:
    """Return the 16 bytes that name a study: a digest of its card, the same wherever it is computed."""
    return hashlib.sha256(to_bytes(card)).digest()[:DIGEST]


def to_bytes(card: Card) -> bytes:
    """Encode a card in its one canonical form."""
    return msgspec.msgpack.encode(card, order="deterministic")


def from_bytes(data: bytes) -> Card:
    """Decode a card, or refuse."""
    try:
        card = msgspec.msgpack.decode(data, type=Card)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise BadInput("these bytes are not a study card; send the card alone.") from None
    if card.version != VERSION:
        raise BadInput(f"the study card is of another protocol version than {VERSION}; use the same on both sides.")
    if card.method not in METHODS:
        raise BadInput(f"the study card names an unknown method; one of {', '.join(METHODS)} is expected.")
    return card
