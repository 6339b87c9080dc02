"""Who may do what at a collector: what a request's key allows, and how often a sender without one may come."""

from typing import Any

from sottovoce.collector.keys import key_in, role_of
from sottovoce.collector.limits import RateLimit
from sottovoce.collector.store import CollectorStore

RATE = 100.0  # requests a second from one address, where the command says nothing else
ADMIN = "this needs the key of an admin, sent as 'Authorization: Bearer KEY'; 'sottovoce key add' makes one."
READER = "results are for readers here: give a reader's key as the password."
OFTEN = "too many requests come from this address; send the same again later."


class Access:
    """The keys of a log, which are looked up anew each time, and the limit of those who have none."""

    def __init__(self, store: CollectorStore, rate: float = RATE, readers_only: bool = False) -> None:
        self._store, self._limit, self._readers_only = store, RateLimit(rate), readers_only

    def may_change(self, header: str | None) -> bool:
        """Tell whether a request may begin, pause, close or scrub studies."""
        key, by_program = key_in(header)
        return key is not None and by_program and role_of(key, self._store.all_keys()) == "admin"

    def may_read(self, header: str | None) -> bool:
        """Tell whether a request may see results."""
        if not self._readers_only:
            return True
        key, _ = key_in(header)
        return key is not None and role_of(key, self._store.all_keys()) in ("admin", "reader")

    def wait(self, scope: Any, size: int = 0) -> float:
        """Return 0 if a request may come now, or the seconds after which it may."""
        client = scope.get("client")
        seconds = self._limit.wait(client[0] if client else "", size)
        if not seconds:
            return 0.0
        header = next((value for name, value in scope["headers"] if name == b"authorization"), None)
        key, _ = key_in(None if header is None else header.decode("latin-1"))
        known = key is not None and role_of(key, self._store.all_keys()) in ("admin", "sender")
        return 0.0 if known else seconds
