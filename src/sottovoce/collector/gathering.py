"""One study as it runs: groups, their folds and the log; every report is checked, folded, kept, and then acknowledged.

What was folded is kept by the next commit, and nobody is told before. If a commit fails, the folds know more than the
log does, so nothing more is taken: after a restart the folds are those of the log.
"""

import json
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sottovoce.collector.fold import AGAIN, TAKEN, AskedNow, GroupFold
from sottovoce.collector.store import CollectorStore, KeptStudy, unscrubbed
from sottovoce.collector.study import CollectedStudy
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import SystemEntropy
from sottovoce.protocol.device import IDENTITY, SIZE, card_text, identity, read_card, unpack
from sottovoce.server.quantile.sequence import SequenceQuantile

STATES = ("open", "paused", "closed")
CLOSED, PAUSED, NO_GROUP = "the study is closed", "the study is paused", "there is no such group"


class Uploaded(NamedTuple):
    """What became of an upload: how many reports are kept, which were not and why, and whether anything new is kept."""

    accepted: int
    refused: tuple[tuple[int, str], ...]
    new: int


class Gathering:
    """A study that people answer; ``clock`` tells the time of its rounds."""

    def __init__(self, study: CollectedStudy, store: CollectorStore, clock: Callable[[], float] = time.time) -> None:
        self.study, self._store, self._clock = study, store, clock
        words = SystemEntropy().words(4).tobytes()
        terms = json.dumps(study._replace(plan=None)._asdict() | {"card": card_text(study.card(""))}, default=list)  # type: ignore[arg-type]
        fresh = KeptStudy(card_text(study.card(words[:8].hex())), terms, words[16:], "open")
        kept = store.begin(fresh)
        self.card, self.identity, self.state = kept.card, identity(kept.card), kept.state
        read_card(self.card)
        self.refusals: dict[str, int] = {}
        self.trajectory: list[dict[str, Any]] = []
        self._pending: list[bytes] = []
        self._broken = False
        self._restore(kept.coin)

    def _restore(self, coin: bytes) -> None:
        """Fold what the log holds: the sums of closed rounds, then the reports of the open ones."""
        now = self._clock()
        self.folds = [
            GroupFold(self.study.conversation(coin + bytes([group & 255, group >> 8])), self.study.pauses, now)
            for group in range(len(self.study.groups))
        ]
        rounds = self._store.rounds()
        for group, closed, _, at in rounds:
            fold = self.folds[group]
            if fold.round is None or not np.array_equal(fold.round.points, closed.points):
                raise BadInput("the log holds rounds that this study does not ask; use the log and version of it.")
            fold.follow(closed, now)
            fold.reports += int(closed.counts.sum())
            self._note(group, at)
        for reports in self._store.reports(unscrubbed(rounds, len(self.folds))):
            for report in reports.tolist():
                id, round, group, point, letter = report
                fold = self.folds[group]
                if fold.round is not None and fold.round.number == round:
                    fold.take(bytes(id), round, point, letter, now)

    def asked(self, group: int) -> AskedNow | None:
        """Return what a group is asked now; None where it should ask again later, or never."""
        return self.folds[group].asked if self.state == "open" else None

    @property
    def over(self) -> bool:
        """Tell whether nobody is asked any more."""
        return self.state == "closed" or all(fold.round is None for fold in self.folds)

    def upload(self, body: bytes) -> Uploaded:
        """Check and fold the reports of an upload; `commit` keeps them, and only then may they be acknowledged."""
        self._check_whole()
        reports, now = unpack(body, self.identity), self._clock()
        refused: list[tuple[int, str]] = []
        new: list[bytes] = []
        for k, (id, round, group, point, letter) in enumerate(reports.tolist()):
            if self.state != "open":
                said = CLOSED if self.state == "closed" else PAUSED
            elif group >= len(self.folds):
                said = NO_GROUP
            else:
                said = self.folds[group].take(bytes(id), round, point, letter, now)
            if said == TAKEN:
                new.append(body[IDENTITY + k * SIZE : IDENTITY + (k + 1) * SIZE])
            elif said != AGAIN:
                refused.append((k, said))
                self.refusals[said] = self.refusals.get(said, 0) + 1
        self._pending += new
        return Uploaded(len(reports) - len(refused), tuple(refused), len(new))

    def commit(self) -> None:
        """Keep all that was folded, and close the rounds whose time has come."""
        self._check_whole()
        try:
            if self._pending:
                self._store.append(b"".join(self._pending))
                self._pending.clear()
            for group, fold in enumerate(self.folds):
                now = self._clock()
                if self.state == "open" and (closed := fold.close(now)) is not None:
                    self._store.close_round(group, closed)
                    self._note(group, now)
        except Exception:
            self._broken = True
            raise

    def _check_whole(self) -> None:
        """Refuse to go on once a commit has failed: a later one would leave a gap in the log."""
        if self._broken:
            raise BadInput("the log cannot be written; nothing more is taken until the collector is started again.")

    def set_state(self, state: str) -> None:
        """Pause, open or close the study; one that is closed stays so."""
        if state not in STATES or (self.state == "closed" and state != "closed"):
            raise BadInput("a study can be open or paused, and closed for good; it stays as it is.")
        self.commit()
        self._store.set_state(state)
        self.state = state

    def scrub(self) -> int:
        """Remove the letters of closed rounds from the log, so that ids and sums stay; return how many reports."""
        self.commit()
        return self._store.scrub(unscrubbed(self._store.rounds(), len(self.folds)))

    def estimate(self, group: int) -> dict[str, Any]:
        """Return what a group is known by now: reports, rounds, and the interval, if it is valid at this time."""
        fold = self.folds[group]
        found: dict[str, Any] = {
            "group": self.study.groups[group],
            "tau": self.study.plan.tau,
            "level": self.study.level,
            "method": self.study.method,
            "reports": fold.reports,
            "rounds": fold.log.rounds,
            "epsilon": self.study.plan.epsilons["people"],
            "over": fold.round is None,
            "interval": None,
            "estimate": None,
        }
        if fold.round is None:
            result = fold.method.outcome(fold.log)
            found |= {"interval": _plain(result.interval.low, result.interval.high), "estimate": result.estimate}
        elif isinstance(fold.method, SequenceQuantile) and (ends := fold.method.so_far(fold.log)) is not None:
            found |= {"interval": _plain(*ends), "estimate": fold.method.estimate_so_far(fold.log)}
        return found

    def _note(self, group: int, at: float) -> None:
        """Remember the interval after a round, for whoever looks at the way here."""
        now = self.estimate(group)
        self.trajectory.append(
            {"at": at, **{key: now[key] for key in ("group", "rounds", "reports", "interval", "estimate", "over")}}
        )


def _plain(low: float, high: float) -> list[float | None]:
    """Return ends that JSON can say; an open end is null."""
    return [float(end) if np.isfinite(end) else None for end in (low, high)]


def check_replay(study: CollectedStudy, store: CollectorStore) -> dict[str, Any]:
    """Fold the whole log anew, from its reports alone, and compare with the sums kept; refuse a difference."""
    kept = store.known()
    if kept is None:
        raise BadInput("the log holds no study of this name; give the log that the collector wrote.")
    sums: dict[tuple[int, int], tuple[dict[int, int], dict[int, int]]] = {}
    ids: set[bytes] = set()
    doubled = 0
    for reports in store.reports():
        for id, round, group, point, letter in reports.tolist():
            doubled += bytes(id) in ids
            ids.add(bytes(id))
            counts, ones = sums.setdefault((group, round), ({}, {}))
            counts[point] = counts.get(point, 0) + 1
            ones[point] = ones.get(point, 0) + letter
    for group, closed, _, _ in store.rounds():
        if (group, closed.round) not in sums:
            continue  # its letters were scrubbed
        counts, ones = sums[group, closed.round]
        points = range(len(closed.points))
        if [counts.get(k, 0) for k in points] != closed.counts.tolist() or [
            ones.get(k, 0) for k in points
        ] != closed.ones.tolist():
            raise BadInput(
                f"round {closed.round} of group {group} has other sums than its reports; the log is not whole."
            )
    if doubled:
        raise BadInput(f"{doubled:,} ids stand twice in the log; it was changed.")
    again = Gathering(study, store)
    return {
        "study": study.name,
        "identity": again.identity.hex(),
        "reports": sum(fold.reports for fold in again.folds),
        "groups": [again.estimate(group) for group in range(len(again.folds))],
    }
