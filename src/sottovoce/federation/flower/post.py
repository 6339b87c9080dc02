"""A post over Flower's nodes: sites are known by their names, since a node that restarts may come back under a new id.

Every node is asked once who it is. A name stays with the node that first said it, and goes to another that says it only
when the first one is gone, fails, or is silent with an order in its hands. Dead nodes stay listed.
"""

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from sottovoce.core.errors import BadInput
from sottovoce.federation import words

LOOK = 2.0  # seconds between looks at which nodes there are
SILENT = 15.0  # seconds without a reply after which another node of the same name is turned to
AGAIN = 10.0  # seconds after which a node with nobody behind it is asked again who it is
PATIENCE = 60.0  # seconds after which an order that was not answered is sent to the same node again
SHORTEST, LONGEST = 0.01, 0.25  # seconds between looks for replies


class LetterBox(Protocol):
    """What Flower does for us: it lists nodes, takes letters to them, and hands out replies."""

    def nodes(self) -> Collection[int]:
        """Return the ids of the nodes that are listed."""

    def push(self, letters: Sequence[tuple[int, bytes]]) -> Sequence[str | None]:
        """Send bytes to nodes; return the mark of each letter, None where it was not taken."""

    def pull(self, marks: Collection[str]) -> Iterable[tuple[str, bytes | None]]:
        """Return the replies that have come to some letters, by their marks; None where the node failed."""


class _Letter(NamedTuple):
    """An order on its way: to which node, and since when."""

    node: int
    order: bytes
    at: float


class GridPost:
    """A post over Flower; with ``pinned`` a name belongs to one node, and no other is asked."""

    def __init__(
        self,
        letters: LetterBox,
        study: str,
        sites: Collection[str],
        pinned: Mapping[str, int] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._letters, self._sites, self._clock, self._sleep = letters, frozenset(sites), clock, sleep
        self._who = words.encode(words.Who(study))
        self._pinned = pinned is not None
        self._home: dict[str, int] = dict(pinned or {})
        self._rival: dict[str, int] = {}
        self._names: dict[int, str] = {node: site for site, node in self._home.items()}
        self._asked: dict[int, float] = {}  # when a node was last asked who it is
        self._orders: dict[str, bytes] = {}
        self._way: dict[str, _Letter] = {}
        self._came: deque[tuple[str, bytes]] = deque()
        self._looked, self._pause = -LOOK, SHORTEST

    def send(self, site: str, order: bytes) -> None:
        """Keep the newest order of a site; it goes out with the next look for replies."""
        self._orders[site] = order
        self._pause = SHORTEST

    def handed(self, site: str) -> bool:  # noqa: ARG002
        """Say that a site may have got its order: what a node has done with it is not known."""
        return True

    def receive(self, timeout: float) -> tuple[str, bytes] | None:
        """Return the next reply and whose it is; send what is to be sent first."""
        end = self._clock() + timeout
        while not self._came:
            self._look()
            self._deliver()
            self._collect()
            rest = end - self._clock()
            if self._came or rest <= 0:
                break
            self._sleep(min(self._pause, rest))
            self._pause = min(1.5 * self._pause, LONGEST)
        if not self._came:
            return None
        self._pause = SHORTEST
        site, reply = self._came.popleft()
        return site, reply

    def _look(self) -> None:
        """See which nodes there are, and ask new ones who they are; a name whose node is gone goes to its rival."""
        if self._pinned or self._clock() < self._looked + LOOK:
            return
        self._looked = self._clock()
        nodes = set(self._letters.nodes())
        for site in [site for site, node in self._home.items() if node not in nodes]:
            self._turn(site)
        again = self._looked - PATIENCE
        new = [node for node in sorted(nodes) if node not in self._names and self._asked.get(node, again) <= again]
        self._push([(node, self._who) for node in new])
        self._asked.update(dict.fromkeys(new, self._looked))

    def _deliver(self) -> None:
        """Send each site its newest order, unless it is on its way already."""
        now, due = self._clock(), []
        since = {(letter.node, letter.order): letter.at for letter in self._way.values()}  # the latest of each
        for site, order in self._orders.items():
            if site in self._rival and now > since.get((self._home[site], order), now) + SILENT:
                self._turn(site)
            node = self._home.get(site)
            if node is not None and now >= since.get((node, order), now - PATIENCE) + PATIENCE:
                due.append((node, order))
        self._push(due)

    def _push(self, letters: list[tuple[int, bytes]]) -> None:
        if letters:
            for (node, order), mark in zip(letters, self._letters.push(letters), strict=True):
                if mark is not None:
                    self._way[mark] = _Letter(node, order, self._clock())

    def _collect(self) -> None:
        """Take the replies that have come; a letter is answered once, whatever comes after."""
        for mark, reply in self._letters.pull(list(self._way)) if self._way else ():
            letter = self._way.pop(mark, None)
            if letter is None:
                continue
            site = self._names.get(letter.node)
            if site is None:
                site = self._named(letter.node, reply)
                if site is None or self._orders.get(site) != letter.order:
                    continue
            if reply is not None:
                self._came.append((site, reply))
            if (reply is not None or not self._turn(site)) and self._orders.get(site) == letter.order:
                del self._orders[site]  # answered, or failed: whoever waits sends it again

    def _named(self, node: int, reply: bytes | None) -> str | None:
        """Learn who a node is from its first reply; return the site whose order this answers, if it is one of ours."""
        try:
            hello = None if reply is None else words.reply_of(reply)
        except BadInput:
            hello = None
        if not isinstance(hello, words.Hello):
            self._asked[node] = self._clock() + AGAIN - PATIENCE  # nobody is there yet
            return None
        self._names[node] = hello.site
        if hello.site not in self._sites:
            return None
        if hello.site in self._home:
            self._rival[hello.site] = node
            return None
        self._home[hello.site] = node
        return hello.site

    def _turn(self, site: str) -> bool:
        """Turn to the other node of a name, if there is one; the first is a stranger again."""
        if site not in self._rival:
            return False
        del self._names[self._home[site]]
        self._asked[self._home[site]] = self._clock()
        self._home[site] = self._rival.pop(site)
        return True
