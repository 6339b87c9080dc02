"""API keys: who may begin, pause and close studies, read results that are not open, and send without a limit.

A key is 32 bytes of the operating system's, shown once; the log keeps its SHA-256 alone. That needs no slow hash: there
is nothing to guess in 256 random bits.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterable

from sottovoce.collector.store import CollectorStore, KeptKey
from sottovoce.core.checks import is_one_of, unknown
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import SystemEntropy

ROLES = {
    "admin": "begins, pauses, closes and scrubs studies, and reads",
    "reader": "reads results where they are not open to all",
    "sender": "uploads without a rate limit, such as a gateway of many devices",
}
PREFIX, LONGEST = "sv_", 100


def make_key(store: CollectorStore, name: str, role: str) -> str:
    """Make a key with a role, keep its digest, and return it: it is never shown again."""
    if not is_one_of(role, tuple(ROLES)):
        raise unknown("role", role, tuple(ROLES))
    if not (name.strip() and len(name) <= LONGEST and name.isprintable()):
        raise BadInput(f"a key needs a name of up to {LONGEST} printable characters, by which it is revoked; give one.")
    key = PREFIX + base64.urlsafe_b64encode(SystemEntropy().words(4).tobytes()).decode().rstrip("=")
    store.add_key(KeptKey(_digest(key), name, role))
    return key


def role_of(key: str | None, kept: Iterable[KeptKey]) -> str | None:
    """Return the role of a key; None where there is no such."""
    if key is None:
        return None
    digest, found = _digest(key), None
    for each in kept:
        if hmac.compare_digest(digest, each.digest):
            found = each.role
    return found


def key_in(header: str | None) -> tuple[str | None, bool]:
    """Return the key of an Authorization header, and whether a program has sent it.

    Programs send ``Bearer KEY``. A browser that was asked for a password sends it as ``Basic``, by itself from then on,
    even where another site's page makes it do so: that is good for reading alone.
    """
    kind, _, rest = (header or "").strip().partition(" ")
    if kind.lower() == "bearer":
        return rest.strip() or None, True
    if kind.lower() == "basic":
        try:
            text = base64.b64decode(rest.strip(), validate=True).decode()
        except ValueError:
            return None, False
        return text.partition(":")[2] or None, False
    return None, False


def _digest(key: str) -> bytes:
    """Return what the log keeps of a key."""
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()
