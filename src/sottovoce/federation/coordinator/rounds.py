"""A study from its first question to its result: rounds that survive whatever happens to either side.

A reply is checked by the method that asked for it before it is kept, and kept before anything goes on. Whoever has not
answered is asked again, with the same bytes, until the deadline. Replies that are late, forged, doubled, too large or
impossible are refused, named and logged without a value. A site whose ledger has gone back is out of the study.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple, Protocol

from sottovoce.core import codec
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.core.roster import Roster
from sottovoce.federation import words
from sottovoce.federation.coordinator.log import StudyLog
from sottovoce.federation.coordinator.studies import PlannedRounds, planned
from sottovoce.federation.study import StudyTerms
from sottovoce.protocol import card as cards
from sottovoce.protocol import wire
from sottovoce.protocol.messages import Message
from sottovoce.server.method import Absent, Method, Queries

TICK = 0.5  # seconds between looks at the clock
AGAIN = 10.0  # seconds after which whoever has not answered is asked again, with the same bytes


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

    what: str  # hello, opened, told, refused, absent, round, over
    site: str = ""
    round: int = 0
    words: str = ""
    records: int = 0
    interval: tuple[float, float] | None = None  # so far, where the method can tell

    def line(self) -> str | None:
        """Return one line for whoever watches."""
        if self.what == "hello":
            return f"{self.site} is there, with {self.records:,} records"
        if self.what == "opened":
            return f"{self.site} takes part"
        if self.what == "told":
            return f"round {self.round}: {self.site} has answered"
        if self.what == "absent":
            return f"round {self.round}: goes on without {self.site}"
        if self.what == "refused":
            return f"round {self.round}: refused from {self.site}: it {self.words}"
        if self.what == "round":
            return f"round {self.round}: {self.records:,} records have answered"
        return f"{self.what}: {self.words}" if self.words else self.what


class StudyPaused(BadInput):
    """A study cannot go on now; nothing is lost, and it goes on from its log when it is started again."""


Watch = Callable[[Happened], None]
Expected = Callable[[str, words.Reply], bool]


class Rounds:
    """Conducts one study over a post, with a log."""

    def __init__(
        self,
        terms: StudyTerms,
        log: StudyLog,
        post: Post,
        watch: Watch | None = None,
        random: Callable[[], bytes] | None = None,
    ) -> None:
        self.terms, self.log, self.post = terms, log, post
        self._watch: Watch = (lambda _: None) if watch is None else watch
        self._random = _fresh if random is None else random
        self.plan: PlannedRounds | None = None

    def conduct(self) -> Any:
        """Ask until there is a result, from wherever the log stands; tell every site that the study is over."""
        begun = self.log.begin(codec.to_bytes(self.terms), self._random(), self._random())
        roster = self._roster() if begun.roster is None else codec.from_bytes(begun.roster, Roster)
        plan = self.plan = planned(self.terms, roster, begun.coin, begun.nonce)
        if begun.card is None:
            self.log.settle(codec.to_bytes(roster), cards.to_bytes(plan.card))
        elif begun.card != cards.to_bytes(plan.card):
            raise BadInput("this program makes another card of these terms than the log holds; use the same version.")
        study = cards.identity(plan.card)
        for warning in plan.warnings:
            self._watch(Happened("warning", words=warning))
        self._open(plan, study)
        try:
            result = self._asked(plan, study)
        except SearchFailed as error:
            self.log.finish("failed", None)
            self._over(study, str(error))
            raise
        result = _without_privacy(result) if roster.seeded else result
        self.log.finish("done", json.dumps(result.to_dict(), allow_nan=False))
        self._over(study, "done")
        return result

    def _roster(self) -> Roster:
        """Ask who the sites are, until all have said so."""
        hellos: dict[str, words.Hello] = {}

        def fits(site: str, reply: words.Reply) -> bool:
            if not isinstance(reply, words.Hello):
                return False
            if reply.site != site or reply.version != wire.VERSION or reply.size < 0:
                raise BadInput("says hello under another name, version or without records")
            hellos[site] = reply
            self._watch(Happened("hello", site, records=reply.size))
            return True

        order = words.encode(words.Who(self.terms.name))
        self._exchange(dict.fromkeys(self.terms.sites, order), fits, 0, self.terms.rounds.wait)
        missing = [site for site in self.terms.sites if site not in hellos]
        if missing:
            raise StudyPaused(f"{_listed(missing)} did not say hello; start the study again when they are there.")
        first = hellos[self.terms.sites[0]]
        for site, hello in hellos.items():
            if hello.unit != first.unit:
                raise BadInput(
                    f"site {site!r} holds {hello.unit.plural}, others {first.unit.plural}; ask for one unit."
                )
        sizes = tuple(hellos[site].size for site in self.terms.sites)
        people = all(hello.per_person for hello in hellos.values())
        seeded = any(hello.seeded for hello in hellos.values())
        return Roster(self.terms.sites, sizes, first.unit, per_person=people, seeded=seeded, column=first.column)

    def _open(self, plan: PlannedRounds, study: bytes) -> None:
        """Invite all sites that take part; a refusal ends the study before anything was asked."""
        opened: set[str] = set()
        card = cards.to_bytes(plan.card)

        def fits(site: str, reply: words.Reply) -> bool:
            if isinstance(reply, words.Refused) and reply.study in (study, bytes(16)):
                raise _SiteRefused(site, reply.why)
            if not isinstance(reply, words.Joined) or reply.study != study:
                return False
            self._check_head(site, reply.counter, reply.head)
            opened.add(site)
            self._watch(Happened("opened", site))
            return True

        self._exchange(dict.fromkeys(plan.names, words.encode(words.Invite(card))), fits, 0, self.terms.rounds.wait)
        missing = [name for name in plan.names if name not in opened]
        if missing:
            raise StudyPaused(f"{_listed(missing)} did not open the study; start it again when they are there.")

    def _asked(self, plan: PlannedRounds, study: bytes) -> Any:
        """Fold the log, and ask what is not in it."""
        method, state = plan.method, plan.method.init()
        while (queries := method.query(state)) is not None:
            state = self._round(plan, study, method, state, queries)
        return method.outcome(state)

    def _round(self, plan: PlannedRounds, study: bytes, method: Method[Any, Any], state: Any, queries: Queries) -> Any:
        """Ask one round until it is answered."""
        round, names = queries.round, plan.names
        questions = {
            name: wire.seal(study, round, message)
            for name, message in zip(names, queries.messages, strict=True)
            if message is not None
        }
        if not questions:
            return method.step(state, [None] * len(names))
        known = self.log.asked(round)
        if any(name in known and known[name] != question for name, question in questions.items()):
            raise BadInput(
                f"round {round} asks something else than the log says was asked; go on with the version that asked it."
            )
        new = {name: question for name, question in questions.items() if name not in known}
        if new:
            self.log.ask(round, new)
        for name, body in self.log.told(round).items():
            if name in questions:
                state = method.step(state, _only(names, name, _opened(method, study, round, body)))
        for name, spent in self.log.absent(round).items():
            if name in questions:
                state = method.step(state, _only(names, name, Absent(round, spent)))
        still = method.query(state)
        if still is None or still.round != round:
            return state
        waiting = {
            name: words.encode(words.Question(study, questions[name]))
            for name, message in zip(names, still.messages, strict=True)
            if message is not None and name in questions
        }
        held = [state]

        def fits(site: str, reply: words.Reply) -> bool:
            if isinstance(reply, words.Refused) and reply.study == study:
                raise BadInput(f"refuses: {reply.why}")
            if not isinstance(reply, words.Answered) or reply.study != study:
                return False
            self._newer_head(site, reply.counter, reply.head)
            message = _opened(method, study, round, reply.envelope)
            after = method.step(held[0], _only(names, site, message))  # refuses what no site can have said
            self.log.tell(round, site, reply.envelope, reply.counter, reply.head)
            held[0] = after
            self._watch(Happened("told", site, round))
            return True

        rules, begun = self.terms.rounds, time.monotonic()
        enough = len(names) if rules.least is None else rules.least  # sites that must not be missing
        left = self._exchange(waiting, fits, round, rules.deadline if enough < len(names) else rules.wait)
        while left and len(names) - len(left) < enough and time.monotonic() - begun < rules.wait:
            left = self._exchange({name: waiting[name] for name in left}, fits, round, min(AGAIN, rules.wait))
        if left:
            held[0] = self._closed_without(left, plan, method, held[0], round, known)
        so_far = getattr(method, "so_far", None)
        interval = None if so_far is None else so_far(held[0])
        self._watch(Happened("round", round=round, records=queries.records, interval=interval))
        return held[0]

    def _closed_without(
        self,
        left: Sequence[str],
        plan: PlannedRounds,
        method: Method[Any, Any],
        state: Any,
        round: int,
        known: Mapping[str, bytes],
    ) -> Any:
        """Close a round without sites whose deadline is over, if enough have answered; else the study pauses.

        What a site was handed it may have spent, whatever became of its reply, so that these records count as spent;
        so do those of questions that an earlier coordinator logged, of which nobody knows whether they were handed.
        """
        rules = self.terms.rounds
        paused = StudyPaused(
            f"{_listed(left)} did not answer round {round}; nothing is lost, and the study goes on when it is started "
            "again."
        )
        if rules.least is None or len(plan.names) - len(left) < rules.least:
            raise paused
        for name in left:
            spent = name in known or self.post.handed(name)
            try:
                after = method.step(state, _only(plan.names, name, Absent(round, spent)))
            except BadInput:  # this method needs every site
                raise paused from None
            self.log.miss(round, name, spent)
            state = after
            self._watch(Happened("absent", name, round))
        return state

    def _exchange(self, orders: Mapping[str, bytes], fits: Expected, round: int, seconds: float) -> list[str]:
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
                if site in waiting and fits(site, reply):
                    del waiting[site]
            except _SiteRefused:
                raise
            except BadInput as error:
                why = words.sentence(str(error))
                self.log.refuse(site, round, why)
                self._watch(Happened("refused", site, round, why))
        return list(waiting)

    def _check_head(self, site: str, counter: int, head: bytes) -> None:
        """Keep the head of a site's ledger, unless it is refused or known."""
        if self._newer_head(site, counter, head):
            self.log.keep_head(site, counter, head)

    def _newer_head(self, site: str, counter: int, head: bytes) -> bool:
        """Refuse a site whose ledger has gone back: what it has forgotten it could say again, with other noise."""
        known = self.log.head(site)
        if known is not None and (counter < known[0] or (counter == known[0] and head != known[1])):
            raise BadInput("shows a ledger that has gone back to an earlier time; it is out of this study")
        return known is None or counter > known[0]

    def _over(self, study: bytes, how: str) -> None:
        """Tell all sites that the study is over, and wait a little until they have heard it."""
        told: set[str] = set()

        def fits(site: str, reply: words.Reply) -> bool:
            if not isinstance(reply, words.Bye) or reply.study != study:
                return False
            self._check_head(site, reply.counter, reply.head)
            told.add(site)
            return True

        order = words.encode(words.Over(study, how))
        self._exchange(dict.fromkeys(self.terms.sites, order), fits, 0, min(30.0, self.terms.rounds.deadline))
        self._watch(Happened("over", words=how))


class _SiteRefused(BadInput):
    """A site does not take part."""

    def __init__(self, site: str, why: str) -> None:
        super().__init__(f"site {site!r} does not take part: {words.sentence(why)}")


def _opened(method: Method[Any, Any], study: bytes, round: int, envelope: bytes) -> Message:
    """Open an envelope of this round, with a reply that the method understands."""
    return wire.unseal(envelope, study, method.replies, round).message


def _only(names: Sequence[str], name: str, message: Message) -> list[Message | None]:
    """Return one site's reply among the others that have not come."""
    return [message if each == name else None for each in names]


def _without_privacy(result: Any) -> Any:
    """Say of a result that seeded noise protected nobody."""
    if hasattr(result, "results"):
        return replace(result, results=tuple(map(_without_privacy, result.results)))
    return replace(result, private=False) if any(each.name == "private" for each in fields(result)) else result


def _listed(names: Sequence[str]) -> str:
    """Name some sites."""
    shown = ", ".join(repr(name) for name in names[:4])
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return f"site{'s' if len(names) > 1 else ''} {shown}{more}"


def _fresh() -> bytes:
    """Return sixteen bytes of the system's entropy."""
    from sottovoce.core.random_source import SystemEntropy

    return SystemEntropy().words(2).tobytes()
