"""Who may use the page: whoever was given its address, once; and no other web site through somebody's browser.

The address ends in ``#`` and a token, which browsers keep to themselves. The page exchanges it for a key that stays in
its tab, and sends that key as a header with every request, which no other site can. A cookie would go to every other
program on a port of this machine.
"""

import hmac
import threading
from collections.abc import Callable, Mapping

from sottovoce.core.random_source import SystemEntropy

HOST = "127.0.0.1"
USED = "this address was used already; the terminal shows a fresh one."
UNKNOWN = "this address is of another session; take the one that the terminal shows."
STRANGER = "the page's key is missing or of another session; take the address that the terminal shows."


def fresh() -> str:
    """Return 256 random bits as text."""
    return SystemEntropy().words(4).tobytes().hex()


class Entrance:
    """One key for a session, and a token that is good once; ``renewed`` is given the next one if it is shown again."""

    def __init__(self, renewed: Callable[[str], None] = lambda _: None) -> None:
        self._key, self.token, self._used, self._renewed = fresh(), fresh(), list[str](), renewed
        self._lock = threading.Lock()

    def enter(self, token: object) -> str | None:
        """Return the key for a token that nobody has used; None for any other."""
        if not isinstance(token, str) or not token.isascii():
            return None
        with self._lock:
            good, used = hmac.compare_digest(token, self.token), self.was_used(token)
            if good or used:
                self.token = fresh()
            if good:
                self._used.append(token)
        if used:
            self._renewed(self.token)
        return self._key if good else None

    def was_used(self, token: object) -> bool:
        """Tell whether a token was good before."""
        return (
            isinstance(token, str) and token.isascii() and any(hmac.compare_digest(token, used) for used in self._used)
        )

    def knows(self, header: str | None) -> bool:
        """Tell whether a request shows the key."""
        scheme, _, key = (header or "").partition(" ")
        return scheme.lower() == "bearer" and key.isascii() and hmac.compare_digest(key, self._key)


def refusal(method: str, path: str, headers: Mapping[str, str], port: int) -> str | None:
    """Say why a request may be one of another web site, by its name for this machine and by where it comes from.

    >>> refusal("GET", "/", {"host": "127.0.0.1:80"}, 80), refusal("GET", "/", {"host": "evil.example"}, 80)
    (None, 'this page is for this machine alone.')
    """
    own = {f"{name}:{port}" for name in (HOST, "localhost")}
    host, origin = headers.get("host", ""), headers.get("origin")
    if host not in own:
        return "this page is for this machine alone."
    if origin != f"http://{host}" and (origin is not None or method != "GET"):
        return "this page takes no orders from other sites."
    link = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not (path == "/" and link):
        return "this page takes no orders from other sites."
    return None
