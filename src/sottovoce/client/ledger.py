"""What a site remembers having spent and sent: one record, one report a study.

Spending records, drawing the noise and remembering the reply are one transaction: until its entry is kept nothing has
been said, so an interrupted answer costs nothing, and once it is kept the same query gets the same reply for ever. A
ledger belongs to one process; threads take turns. Where entries are kept is a storage: in memory here, on disk in
`client.site_ledger`. The noise is drawn inside the storage's transaction, and a reply leaves after its end.
"""

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple, NoReturn, Protocol, SupportsIndex, TypeVar

from sottovoce.core.errors import BadInput
from sottovoce.protocol.messages import Message

Reply = TypeVar("Reply", bound=Message)


class Entry(NamedTuple):
    """One answered query: its round (or person), the records it took from which place on, and what was said."""

    key: int
    query: Message
    first: int
    records: int
    reply: Message


class Storage(Protocol):
    """Where a ledger of rounds keeps its entries."""

    def transaction(self) -> AbstractContextManager[None]:
        """Return what makes one of looking, drawing and keeping; whatever was kept leaves the site only after it."""

    def find(self, key: int) -> Entry | None:
        """Return the entry of a round, if it is still known."""

    def last(self) -> Entry | None:
        """Return the entry that was kept last."""

    def keep(self, entry: Entry) -> None:
        """Keep an entry for good once the transaction ends, or raise."""


class PeopleStorage(Protocol):
    """Where a ledger of people keeps its entries."""

    def transaction(self) -> AbstractContextManager[None]:
        """Return what makes one of looking, drawing and keeping; whatever was kept leaves the site only after it."""

    def about(self, first: int, count: int) -> Entry | None:
        """Return the first entry that speaks of any of ``count`` people from ``first`` on."""

    def keep(self, entry: Entry) -> None:
        """Keep an entry for good once the transaction ends, or raise."""

    @property
    def taken(self) -> int:
        """Return how many people have answered."""


class Turns:
    """Lets one transaction run at a time, in the process that opened the site and in no copy of it."""

    __slots__ = ("_lock", "_process")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process = os.getpid()

    def __enter__(self) -> None:
        if os.getpid() != self._process:  # before the lock: a fork may have copied it while it was held
            raise BadInput("this site was opened by another process; open it again where it is to answer.")
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("a ledger cannot be pickled or copied: what was spent cannot be spent again")


class MemoryStorage:
    """Entries in memory: the last one, or all of them."""

    def __init__(self, every: bool = False) -> None:
        self._every = every
        self._entries: dict[int, Entry] = {}
        self._last: Entry | None = None
        self._turns = Turns()

    def transaction(self) -> AbstractContextManager[None]:
        """Return the turn of one transaction: what was not kept was not spent, so nothing has to be undone."""
        return self._turns

    def find(self, key: int) -> Entry | None:
        """Return the entry of a round or person, if it is still known."""
        return self._entries.get(key)

    def last(self) -> Entry | None:
        """Return the entry that was kept last."""
        return self._last

    def keep(self, entry: Entry) -> None:
        """Keep an entry."""
        if not self._every:
            self._entries.clear()
        self._entries[entry.key] = entry
        self._last = entry


class PeopleMemory(MemoryStorage):
    """Entries in memory, each found under everybody whom it speaks of."""

    def __init__(self) -> None:
        super().__init__(every=True)

    @property
    def taken(self) -> int:
        """Return how many people have answered."""
        return len(self._entries)

    def about(self, first: int, count: int) -> Entry | None:
        """Return the first entry that speaks of any of ``count`` people from ``first`` on."""
        entries = self._entries
        for person in range(first, first + count):
            if person in entries:
                return entries[person]
        return None

    def keep(self, entry: Entry) -> None:
        """Keep an entry."""
        self._entries.update(dict.fromkeys(range(entry.first, entry.first + entry.records), entry))
        self._last = entry


class Ledger:
    """Counts the records that have answered, round by round, and knows what was said.

    >>> from sottovoce.protocol.messages import Query, Tally
    >>> ledger = Ledger(10)
    >>> ledger.transaction(1, Query(1, (0.5,), (4,)), 4, Tally, lambda first: Tally(1, (2,)))
    Tally(round=1, ones=(2,))
    >>> ledger.spent, ledger.left
    (4, 6)
    """

    __slots__ = ("_size", "_storage")

    def __init__(self, size: int, storage: Storage | None = None) -> None:
        self._size = size
        self._storage: Storage = MemoryStorage() if storage is None else storage

    @property
    def spent(self) -> int:
        """Return how many records have answered."""
        last = self._storage.last()
        return 0 if last is None else last.first + last.records

    @property
    def left(self) -> int:
        """Return how many records have not answered."""
        return self._size - self.spent

    def transaction(
        self, round: int, query: Message, count: int, kind: type[Reply], draw: Callable[[int], Reply]
    ) -> Reply:
        """Spend records, draw their reply and keep both, or return what this very query was told before.

        ``draw`` makes the reply, given how many records have answered before; if it fails, nothing is spent. Rounds go
        up, and what was said in one ``kind`` of reply is not said in another as well.
        """
        with self._storage.transaction():
            last = self._storage.last()
            if last is not None and round <= last.key:
                known = self._storage.find(round)
                if known is None or known.query != query or not isinstance(known.reply, kind):
                    raise BadInput(f"round {round} was already answered, up to round {last.key}; ask a later round.")
                return known.reply
            first = 0 if last is None else last.first + last.records
            if count > self._size - first:
                raise BadInput(
                    f"round {round} asks {count} records, but only {self._size - first} have not answered yet; "
                    "ask fewer."
                )
            reply = draw(first)
            self._storage.keep(Entry(round, query, first, count, reply))
            return reply


class PersonLedger:
    """Remembers what each person was asked and said: once each, in any order, one by one or in groups.

    >>> from sottovoce.protocol.messages import PersonQuery, PersonReport
    >>> ledger = PersonLedger()
    >>> query = PersonQuery(7, 0, (1,), ((0.5, -1.0),))
    >>> ledger.transaction(7, query, PersonReport, lambda person: PersonReport(person, 3))
    PersonReport(person=7, letter=3)
    """

    __slots__ = ("_storage",)

    def __init__(self, storage: PeopleStorage | None = None) -> None:
        self._storage: PeopleStorage = PeopleMemory() if storage is None else storage

    @property
    def spent(self) -> int:
        """Return how many people have answered."""
        return self._storage.taken

    def transaction(self, person: int, query: Message, kind: type[Reply], draw: Callable[[int], Reply]) -> Reply:
        """Draw a person's reply and keep it, or return what this very query was told before."""
        return self.group(person, 1, query, kind, draw)

    def group(self, first: int, count: int, query: Message, kind: type[Reply], draw: Callable[[int], Reply]) -> Reply:
        """Draw the reply of ``count`` people from ``first`` on and keep it, or return what they were told before."""
        with self._storage.transaction():
            known = self._storage.about(first, count)
            if known is None:
                reply = draw(first)
                self._storage.keep(Entry(first, query, first, count, reply))
                return reply
            if (known.first, known.records, known.query) != (first, count, query) or not isinstance(known.reply, kind):
                person = max(first, known.first)
                raise BadInput(f"person {person} has already answered another query; ask someone else.")
            return known.reply
