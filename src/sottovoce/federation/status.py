"""What each side shows of itself while it works: names, counts, costs and heads of ledgers.

Never a record, a score, a value of a reply, a point of a question or an id: boards are given none. What a board says is
one plain object, which the page (`federation.status_page`) and the events of the commands are made of.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from sottovoce.federation.coordinator.exchange import Happened
from sottovoce.federation.coordinator.log import StudyLog
from sottovoce.federation.study import StudyTerms

SHOWN = 20  # refusals on a page
NAMED = 4  # sites that a line names
_STATES = {"hello": "there", "willing": "ready", "opened": "takes part", "told": "takes part", "departed": "gone"}


class Notice(NamedTuple):
    """What happened: as fields of a JSON object, and as one line; a line that passes is overwritten by the next."""

    fields: dict[str, Any]
    line: str
    passing: bool = False


class LedgerState(NamedTuple):
    """Where a ledger stands: how many transactions it has kept, and the digest that they end in."""

    counter: int
    head: str


class StudyBoard:
    """What the coordinator of a study shows; ``seen`` says when each site was last in touch."""

    def __init__(
        self, terms: StudyTerms, log: StudyLog, where: str, seen: Callable[[], Mapping[str, float]] | None = None
    ) -> None:
        self._terms, self._log, self._where = terms, log, where
        self._seen: Callable[[], Mapping[str, float]] = dict if seen is None else seen
        self._lock = threading.Lock()
        self._round, self._answered, self._absent = 0, list[str](), list[str]()
        self._interval: list[float | None] | None = None
        self._state = "waiting for sites"
        self._address = ""
        self._records: dict[str, int] = {}
        self._standing = dict.fromkeys(terms.sites, "awaited")
        self._counts = {what: dict(log.counts(what)) for what in ("told", "absent", "refused")}
        self.epsilon = cost_of(terms.asked.get("epsilon", math.inf))

    def listens(self, address: str) -> Notice:
        """Note where the coordinator listens."""
        self._address = address
        return Notice(self._fields("listening", address=address), f"listening on {address}")

    def happened(self, event: Happened) -> Notice:
        """Take note of what happened, and say it."""
        with self._lock:
            self._note(event)
            if event.what != "round":
                extra = {"site": event.site, "round": event.round, "records": event.records, "words": event.words}
                fields = self._fields(event.what, **{name: value for name, value in extra.items() if value})
                return Notice(fields, event.line() or event.what, event.what == "told")
            answered, absent = sorted(self._answered), sorted(self._absent)
            self._answered, self._absent = [], []
            told = self._fields(
                "round", round=event.round, records=event.records, answered=answered, absent=absent,
                epsilon=self.epsilon, interval=self._interval,
            )  # fmt: skip
            return Notice(told, round_line(told), True)

    def status(self) -> dict[str, Any]:
        """Return all that may be seen of the study."""
        now, seen = time.time(), self._seen()
        with self._lock:
            heads = self._log.heads()
            return {
                "side": "coordinator",
                "at": stamp(now),
                "study": self._terms.name,
                "method": self._terms.method,
                "state": self._state,
                "round": self._round,
                "epsilon": self.epsilon,
                "interval": self._interval,
                "address": self._address,
                "log": self._where,
                "sites": [
                    {
                        "site": site,
                        "state": self._standing[site],
                        "records": self._records.get(site),
                        "last_seen": stamp(seen[site]) if site in seen else None,
                        "seconds_since": round(now - seen[site], 1) if site in seen else None,
                        "answered": self._counts["told"].get(site, 0),
                        "absent": self._counts["absent"].get(site, 0),
                        "refused": self._counts["refused"].get(site, 0),
                        "ledger": None if site not in heads else heads_as_state(*heads[site])._asdict(),
                    }
                    for site in self._terms.sites
                ],
                "refusals": [
                    {"at": stamp(each.at), "site": each.site, "round": each.round, "why": each.why}
                    for each in reversed(self._log.refusals(SHOWN))
                ],
            }

    def _note(self, event: Happened) -> None:
        """Count what happened."""
        self._round = max(self._round, event.round)
        if event.site in self._standing:
            self._standing[event.site] = _STATES.get(event.what, self._standing[event.site])
            if event.what in self._counts:
                self._counts[event.what][event.site] = self._counts[event.what].get(event.site, 0) + 1
        if event.what == "hello":
            self._records[event.site] = event.records
        elif event.what == "opened":
            self._state = "asking"
        elif event.what == "told":
            self._answered.append(event.site)
        elif event.what == "absent" and event.site:
            self._absent.append(event.site)
        elif event.what == "over":
            self._state = event.words if event.words in ("done", "given up") else "failed"
        interval = getattr(event, "interval", None)
        if interval is not None:
            self._interval = [end if math.isfinite(end) else None for end in interval]

    def _fields(self, what: str, **extra: Any) -> dict[str, Any]:
        return {"event": what, "at": stamp(time.time()), "study": self._terms.name, **extra}


class SiteBoard:
    """What a site shows to its operator; ``ledger`` returns what may be shown of the ledger (`SiteLedger.show`)."""

    def __init__(
        self, policy: Any, holding: Any, ledger: Callable[[], Mapping[str, Any]], file: Path, url: str
    ) -> None:
        self._policy, self._ledger, self._file, self._url = policy, ledger, file, url
        self._records, self._by_id = int(holding.records.size), holding.people is not None
        self._line, self._since = "connecting", time.time()
        self._heard: float | None = None
        self._refusals: deque[dict[str, Any]] = deque(maxlen=SHOWN)

    def seen(self, event: Any) -> Notice:
        """Take note of an order and how it went, and say it."""
        outcome, _, why = str(event.outcome).partition(": ")
        now = stamp(time.time())
        fields: dict[str, Any] = {"event": event.order, "at": now, "site": self._policy.name, "outcome": outcome}
        fields |= {"study": event.study} if event.study else {}
        fields |= {"round": event.round} if event.round else {}
        fields |= {"why": why} if why else {}
        if why:
            self._refusals.appendleft({"at": now, "order": event.order, "study": event.study, "why": why})
        study = f" of study {event.study}" if event.study else ""
        round = f", round {event.round}" if event.round else ""
        return Notice(fields, f"{event.order}{study}{round}: {event.outcome}", event.order == "question" and not why)

    def reached(self, code: int) -> None:
        """Note that the coordinator has answered."""
        self._heard = time.time()
        if code < 400:
            self._stands("connected")

    def lost(self, words: str) -> Notice | None:
        """Note that the line is down, and say so once."""
        new = self._stands(words)
        fields = {"event": "line", "at": stamp(time.time()), "site": self._policy.name, "words": words}
        return Notice(fields, words) if new else None

    def ends(self) -> Notice:
        """Say where the ledger stands in the end."""
        shown = self._ledger()
        fields = {"event": "ledger", "at": stamp(time.time()), "site": self._policy.name}
        fields |= {"counter": shown["counter"], "head": shown["head"]}
        return Notice(fields, f"ledger {self._file}: {shown['counter']:,} transactions, head {shown['head']}")

    def status(self) -> dict[str, Any]:
        """Return all that the operator may see of the site."""
        shown, policy, now = self._ledger(), self._policy, time.time()
        spent = spent_of(shown, policy.source, self._by_id)
        return {
            "side": "site",
            "at": stamp(now),
            "site": policy.name,
            "source": policy.source,
            "records": self._records,
            "charged": "by id" if self._by_id else "by source",
            "line": {
                "coordinator": self._url,
                "state": self._line,
                "since": stamp(self._since),
                "last_heard": None if self._heard is None else stamp(self._heard),
            },
            "caps": {
                "a_study": policy.epsilon,
                "all_studies": policy.total,
                "spent": plain(spent),
                "left": plain(max(0.0, policy.total - spent)),
            },
            "ledger": {"file": str(self._file), "counter": shown["counter"], "head": shown["head"]},
            "studies": [
                {
                    "study": each["study"][:8],
                    **{
                        name: each[name] for name in ("name", "method", "state", "rounds", "asked", "records", "opened")
                    },
                    "epsilon": plain(each["epsilon"]),
                }
                for each in shown["studies"]
            ],
            "refusals": list(self._refusals),
        }

    def _stands(self, words: str) -> bool:
        """Note the state of the line; tell whether it has changed."""
        changed = words != self._line
        if changed:
            self._line, self._since = words, time.time()
        return changed


def spent_of(shown: Mapping[str, Any], source: str, by_id: bool) -> float:
    """Return what the dearest record of a source has cost over all studies, from what a ledger shows."""
    costs = [each for each in shown["sources"] if each["source"] == source]
    whole = sum(float(each["epsilon"]) for each in costs)
    return whole + (float(shown["dearest"]) if by_id else sum(float(each["epsilon_by_id"]) for each in costs))


def cost_of(asked: Any) -> float | dict[str, float | None] | None:
    """Return what a study costs a record, as its card says: one number or one a site; None without privacy."""
    if isinstance(asked, Mapping):
        return {str(site): plain(value) for site, value in asked.items()}
    return plain(asked)


def plain(value: Any) -> float | None:
    """Return a number that JSON can say, or None."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def cost_line(cost: Any) -> str:
    """Say what a study costs a record.

    >>> cost_line(1.0), cost_line({"north": 0.5, "south": 2.0}), cost_line(None)
    ('epsilon 1 a record', 'epsilon 0.5 to 2 a record', 'without privacy')
    """
    found = list(cost.values()) if isinstance(cost, Mapping) else [cost]
    if None in found or not found:
        return "without privacy" if not any(found) else "partly without privacy"
    ends = f"{min(found):g}" if min(found) == max(found) else f"{min(found):g} to {max(found):g}"
    return f"epsilon {ends} a record"


def round_line(told: Mapping[str, Any]) -> str:
    """Say one round in one line.

    >>> round_line({"round": 3, "records": 1200, "answered": ["a", "b"], "absent": [], "epsilon": 1.0})
    'round 3: 1,200 records asked, a and b answered, epsilon 1 a record'
    """
    parts = [f"{told['records']:,} record{'s' if told['records'] != 1 else ''} asked"]
    parts += [f"{listed(told['answered'])} answered"] if told["answered"] else []
    parts += [f"{listed(told['absent'])} absent"] if told["absent"] else []
    parts.append(cost_line(told["epsilon"]))
    interval = told.get("interval")
    if interval is not None:
        low, high = ("open" if end is None else f"{end:.6g}" for end in interval)
        parts.append(f"interval so far {low} to {high}")
    return f"round {told['round']}: {', '.join(parts)}"


def listed(names: list[str]) -> str:
    """Name a few, or count them.

    >>> listed(["a", "b", "c"]), listed(["a"]), listed(list("abcdefg"))
    ('a, b and c', 'a', '7 sites')
    """
    if len(names) > NAMED:
        return f"{len(names)} sites"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def heads_as_state(counter: int, head: bytes) -> LedgerState:
    """Return where a ledger stands, fit for a page."""
    return LedgerState(counter, head.hex())


def stamp(at: float) -> str:
    """Return a time in UTC, in whole seconds.

    >>> stamp(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
