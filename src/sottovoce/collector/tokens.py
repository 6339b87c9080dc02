"""Tokens for devices, where a study wants to count each known person once: the id of a report is one that was issued.

A token is 8 random bytes and 8 bytes of HMAC-SHA256 over study, group and these, under a secret of the log. A report
whose id was not issued is refused, and each id counts once in the whole study. Whoever issues tokens knows to whom: if
they also see the log, they can tell whose letter is whose. Epsilon holds all the same, because the letter is private by
itself.
"""

import hashlib
import hmac

from sottovoce.core.random_source import SystemEntropy

NONCE = 8  # bytes, and as many of the code
MOST = 1_000_000  # in one call


def issue(secret: bytes, study: bytes, group: int, count: int) -> list[bytes]:
    """Return new tokens for people of a group."""
    nonces = SystemEntropy().words(count).tobytes()
    parts = (nonces[NONCE * k : NONCE * (k + 1)] for k in range(count))
    return [nonce + _code(secret, study, group, nonce) for nonce in parts]


def was_issued(secret: bytes, study: bytes, group: int, id: bytes) -> bool:
    """Tell whether the id of a report is a token of this study and group."""
    return hmac.compare_digest(_code(secret, study, group, id[:NONCE]), id[NONCE:])


def _code(secret: bytes, study: bytes, group: int, nonce: bytes) -> bytes:
    """Return the code of a nonce."""
    return hmac.digest(secret, study + group.to_bytes(2, "big") + nonce, hashlib.sha256)[:NONCE]
