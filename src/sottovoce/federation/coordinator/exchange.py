"""Orders out, replies in: what a coordinator sends over a post and takes from it, whatever the post loses or doubles.

Replies that are late, forged, doubled, too large or impossible are refused, named and logged without a value. A site
whose ledger has gone back is out of the study; one that has left it is not heard any more.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from sottovoce.core.errors import BadInput
from sottovoce.federation import words
from sottovoce.federation.coordinator.log import StudyLog

TICK = 0.5  # seconds between looks at the clock
AGAIN = 10.0  # seconds after which whoever has not answered is asked again, with the same bytes
LONGEST = 30.0  # seconds that a coordinator waits until all have heard that a study is over


class Post(Protocol):
    """What carries orders to sites and replies back; it may lose and double both."""

    def send(self, site: str, order: bytes) -> None:
        """Put an order where a site will find it; the newest replaces what it has not taken."""

    def receive(self, timeout: float) -> tuple[str, bytes] | None:
        """Return the next reply and the site whose it is, as the carrier knows it; None if none came in time."""

    def handed(self, site: str) -> bool:
        """Tell whether a site may have got the newest order; True where the carrier does not know."""


class Happened(NamedTuple):
    """What may be seen of a study: a round and who answered in it, never a value of a reply."""

    what: str  # hello, willing, opened, told, refused, absent, departed, round, over
    site: str = ""
    round: int = 0
    words: str = ""
    records: int = 0
    interval: tuple[float, float] | None = None  # so far, where the method can tell

    def line(self) -> str | None:
        """Return one line for whoever watches."""
        if self.what == "hello":
            return f"{self.site} is there, with {self.records:,} records"
        if self.what == "willing":
            return f"{self.site} is ready to take part"
        if self.what == "opened":
            return f"{self.site} takes part"
        if self.what == "told":
            return f"round {self.round}: {self.site} has answered"
        if self.what == "absent":
            return f"round {self.round}: goes on without {self.site}"
        if self.what == "departed":
            return f"round {self.round}: {self.site} has left the study, which goes on over the others"
        if self.what == "refused":
            return f"round {self.round}: refused from {self.site}: it {self.words}"
        if self.what == "round":
            return f"round {self.round}: {self.records:,} records have answered"
        return f"{self.what}: {self.words}" if self.words else self.what


Watch = Callable[[Happened], None]
Expected = Callable[[str, words.Reply], bool]


class SiteRefused(BadInput):
    """A site does not take part."""

    def __init__(self, site: str, why: str) -> None:
        super().__init__(f"site {site!r} does not take part: {words.sentence(why)}")


class Exchange:
    """Sends orders and takes the replies that fit; ``gone`` are the sites that have left the study."""

    def __init__(self, log: StudyLog, post: Post, watch: Watch | None) -> None:
        self.log, self.post, self.gone = log, post, frozenset[str]()
        self.watch: Watch = (lambda _: None) if watch is None else watch

    def ask(self, orders: Mapping[str, bytes], fits: Expected, round: int, seconds: float) -> list[str]:
        """Send orders and take the replies that fit, until all have come or the time is up; return who is missing."""
        waiting = dict(orders)
        for site, order in waiting.items():
            self.post.send(site, order)
        end, again = time.monotonic() + seconds, time.monotonic() + AGAIN
        while waiting:
            rest = end - time.monotonic()
            came = self.post.receive(min(max(rest, 0.0), TICK))
            if came is None and rest <= 0:  # what has come by now still counts
                break
            if time.monotonic() > again:
                again = time.monotonic() + AGAIN
                for site, order in waiting.items():
                    self.post.send(site, order)
            if came is None:
                continue
            site, data = came
            try:
                reply = words.reply_of(data)
                if site in self.gone and not isinstance(reply, words.Bye):
                    raise BadInput("has left the study, and is not heard any more")
                if site in waiting and fits(site, reply):
                    del waiting[site]
            except SiteRefused:
                raise
            except BadInput as error:
                why = words.sentence(str(error))
                self.log.refuse(site, round, why)
                self.watch(Happened("refused", site, round, why))
        return list(waiting)

    def check_head(self, site: str, counter: int, head: bytes) -> None:
        """Keep the head of a site's ledger, unless it is refused or known."""
        if self.newer_head(site, counter, head):
            self.log.keep_head(site, counter, head)

    def newer_head(self, site: str, counter: int, head: bytes) -> bool:
        """Refuse a site whose ledger has gone back: what it has forgotten it could say again, with other noise."""
        known = self.log.head(site)
        if known is not None and (counter < known[0] or (counter == known[0] and head != known[1])):
            raise BadInput("shows a ledger that has gone back to an earlier time; it is out of this study")
        return known is None or counter > known[0]

    def over(self, study: bytes, how: str, sites: Collection[str], seconds: float) -> list[str]:
        """Tell sites that a study is over, and wait a little until they have heard it; return who has not."""

        def fits(site: str, reply: words.Reply) -> bool:
            if isinstance(reply, words.Refused) and reply.study == study:
                raise BadInput(f"does not end the study: {reply.why}")
            if not isinstance(reply, words.Bye) or reply.study != study:
                return False
            self.check_head(site, reply.counter, reply.head)
            return True

        orders = {site: self._ending(study, how, site) for site in sites}
        missing = self.ask(orders, fits, 0, min(LONGEST, seconds))
        self.watch(Happened("over", words=how))
        return missing

    def part_with(self, study: bytes, sites: Collection[str]) -> None:
        """Leave word for sites that have left a study, and hear no more of them."""
        self.gone |= frozenset(sites)
        for site in sites:
            self.post.send(site, self._ending(study, "goes on without this site", site))

    def _ending(self, study: bytes, how: str, site: str) -> bytes:
        """Return the order that ends a study at a site, and says how far its ledger is known to have come."""
        known = self.log.head(site)
        return words.encode(words.Over(study, words.sentence(how), 0 if known is None else known[0]))


def listed(names: Sequence[str]) -> str:
    """Name some sites."""
    shown = ", ".join(repr(name) for name in names[:4])
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"site{'s' if len(names) > 1 else ''} {shown}{more}"
