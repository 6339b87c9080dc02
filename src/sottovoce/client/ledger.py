"""What a site remembers having spent and sent: one record, one report a study.

Spend first, then answer, then remember the bytes; a retry of the same query gets the same bytes, anything else about a
finished round is refused.
"""

from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import Query


class Ledger:
    """Counts the records that have answered, and keeps the last reply for retries."""

    __slots__ = ("_last", "_reply", "_size", "_spent")

    def __init__(self, size: int) -> None:
        self._size = size
        self._spent = 0
        self._last: Query | None = None
        self._reply: bytes | None = None

    @property
    def spent(self) -> int:
        """Return how many records have answered."""
        return self._spent

    def replay(self, query: Query) -> bytes | None:
        """Return the remembered reply if this very query was answered last; refuse any other query of a past round."""
        if self._last is None or query.round > self._last.round:
            return None
        if query != self._last or self._reply is None:
            raise BadInput(
                f"round {query.round} was already answered, up to round {self._last.round}; ask a later round."
            )
        return self._reply

    def spend(self, query: Query) -> int:
        """Spend the records a query needs; return the position of the first."""
        wanted = sum(query.counts)
        if wanted > self._size - self._spent:
            raise BadInput(
                f"round {query.round} asks {wanted} records, but only {self._size - self._spent} have not answered "
                "yet; ask fewer."
            )
        first = self._spent
        self._spent += wanted
        self._last, self._reply = query, None
        return first

    def remember(self, reply: bytes) -> None:
        """Keep the bytes that were sent."""
        self._reply = reply
