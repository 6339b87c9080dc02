"""One study as it runs: its groups, their folds, and what is to be kept; every report is checked and folded first.

What was folded is kept by the next commit (`collector.studies`), and nobody is told before.
"""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from sottovoce.collector.fold import AGAIN, REPLAYED, TAKEN, ClosedRound, Fold
from sottovoce.collector.ids import IdIndex
from sottovoce.collector.peers import Part
from sottovoce.collector.store import ALONE, CollectorStore, KeptRound, KeptStudy, unscrubbed
from sottovoce.collector.study import CollectedStudy
from sottovoce.collector.tokens import was_issued
from sottovoce.core.errors import BadInput
from sottovoce.protocol.device import ID, IDENTITY, REPORT, SIZE, Reports, identity, read_card, unpack

LOG = logging.getLogger("sottovoce.collector")
STATES = ("open", "paused", "closed")
CLOSED, PAUSED, NO_GROUP = "the study is closed", "the study is paused", "there is no such group"
ELSEWHERE = "another process owns the group"
ASIDE = "the study is set aside, because a round of it cannot be closed; its operator is told in the program's log"
TOGETHER = 1000  # rows of the log that are folded at once
# up to FEW groups are looked at in each commit; more of them only so often, and for so many seconds at once
FEW, LOOK, AT_ONCE = 16, 0.05, 0.02
NOT_ISSUED = "the study takes reports with its own tokens alone"


class Uploaded(NamedTuple):
    """What became of an upload: how many reports are kept, which were not and why, and whether anything new is kept."""

    accepted: int
    refused: tuple[tuple[int, str], ...]
    new: int


class Gathering:
    """A study that people answer, from its log on; ``clock`` tells the time of its rounds."""

    def __init__(
        self,
        study: CollectedStudy,
        kept: KeptStudy,
        store: CollectorStore,
        clock: Callable[[], float] = time.time,
        part: Part = ALONE,
    ) -> None:
        self.part = part
        self.study, self.card, self.identity, self.state = study, kept.card, identity(kept.card), kept.state
        self._clock, self.aside = clock, False
        card = read_card(self.card)
        self.refusals: dict[str, int] = {}
        self.elsewhere: dict[int, int] = {}  # reports of groups that other processes own, as they say
        self.trajectory: list[bytes] = []  # as JSON, a fifth of what it is as objects: rounds times groups may be many
        self._pending: list[bytes] = []
        self._due: list[int] = []  # groups that are still to be looked at, whether their rounds close
        self._looked = -math.inf
        self._secret = kept.secret
        self._spent = IdIndex(study.people * len(study.groups)) if kept.secret else None
        now = clock()
        self.folds: list[Fold] = [
            study.fold(kept.coin + bytes([group & 255, group >> 8]), now, card.nonce)
            for group in range(len(study.groups))
        ]
        if self._spent is not None:
            for ids in together(store.ids(study.name)):
                self._spent.fill(ids, np.zeros(len(ids) // ID, np.uint64))
        self._restore(store)

    def _restore(self, store: CollectorStore) -> None:
        """Fold what the log holds: what closed rounds came to, and the reports of those that still take answers."""
        now, rounds = self._clock(), store.rounds(self.study.name)
        ahead = deque(sorted(rounds, key=lambda each: (each.seq, each.round, each.at)))
        self._closed = [0] * len(self.folds)

        kept: list[Reports] = []

        def fold(seq: float) -> None:
            """Fold what came before a row, and close the rounds that were closed before it."""
            while ahead and ahead[0].seq < seq:
                take(kept)
                self._follow([ahead.popleft()])

        def take(kept: list[Reports]) -> None:
            reports = np.concatenate(kept) if kept else np.empty(0, REPORT)
            kept.clear()
            for group in np.unique(reports["group"]).tolist():
                self.folds[group].restore(reports[reports["group"] == group], now)

        for seq, reports in store.reports(self.study.name, unscrubbed(rounds, self.mine)):
            fold(seq)
            kept.append(reports)
            if len(kept) >= TOGETHER:
                take(kept)
        fold(math.inf)
        take(kept)

    def _follow(self, rounds: Iterable[KeptRound]) -> None:
        """Go on from what rounds came to that the log holds, and that were not seen yet."""
        for each in rounds:
            if each.round > self._closed[each.group]:
                self._closed[each.group] = each.round
                self.folds[each.group].follow(ClosedRound(each.round, each.sums), self._clock())
                self._note(each.group, each.at)

    @property
    def mine(self) -> list[int]:
        """Return the groups that this process owns."""
        return [group for group in range(len(self.folds)) if self.part.owns(group)]

    def mirror(self, rounds: Iterable[KeptRound]) -> None:
        """Follow the groups that other processes own, from what their logs say."""
        self._follow(each for each in rounds if not self.part.owns(each.group))

    def follows(self, rounds: Iterable[KeptRound]) -> bool:
        """Tell whether rounds go on from those seen so far, so that none is missing between."""
        next_ = [each + 1 for each in self._closed]
        for each in rounds:
            if each.round > next_[each.group]:
                return False
            next_[each.group] = max(next_[each.group], each.round + 1)
        return True

    def asked(self, group: int) -> dict[str, Any] | None:
        """Return what a group is asked now; None where it should ask again later, or never."""
        return self.folds[group].asked if self.state == "open" and not self.aside else None

    @property
    def over(self) -> bool:
        """Tell whether nobody is asked any more."""
        return self.state == "closed" or all(fold.over for fold in self.folds)

    @property
    def reports(self) -> int:
        """Return how many reports have been taken, here or by other processes."""
        return sum(max(fold.reports, self.elsewhere.get(group, 0)) for group, fold in enumerate(self.folds))

    def upload(self, body: bytes) -> Uploaded:
        """Check and fold the reports of an upload; only when they are kept may they be acknowledged."""
        reports, now = unpack(body, self.identity), self._clock()
        refused: list[tuple[int, str]] = []
        new: list[bytes] = []
        for k, (id, round, group, point, letter) in enumerate(reports.tolist()):
            if self.state != "open":
                said = CLOSED if self.state == "closed" else PAUSED
            elif self.aside:
                said = ASIDE
            elif group >= len(self.folds):
                said = NO_GROUP
            elif not self.part.owns(group):
                said = ELSEWHERE
            elif self._spent is None:
                said = self.folds[group].take(bytes(id), round, point, letter, now)
            else:
                said = self._take_token(bytes(id), round, group, point, letter, now)
            if said == TAKEN:
                new.append(body[IDENTITY + k * SIZE : IDENTITY + (k + 1) * SIZE])
            elif said != AGAIN:
                refused.append((k, said))
                self.refusals[said] = self.refusals.get(said, 0) + 1
        self._pending += new
        return Uploaded(len(reports) - len(refused), tuple(refused), len(new))

    def _take_token(self, id: bytes, round: int, group: int, point: int, letter: int, now: float) -> str:
        """Take a report whose id must be a token: one that was issued, and that has answered in no round before."""
        assert self._secret is not None
        assert self._spent is not None
        if not was_issued(self._secret, self.identity, group, id):
            return NOT_ISSUED
        fold = self.folds[group]
        if self._spent.known(id) is not None and not fold.knows(id, round):
            return REPLAYED
        said = fold.take(id, round, point, letter, now)
        if said == TAKEN:
            self._spent.said(id, 0)
        return said

    def write(self, store: CollectorStore) -> None:
        """Write all that was folded, and what rounds came to whose time has come; the caller commits."""
        if self._pending:
            store.append(self.study.name, b"".join(self._pending))
            self._pending.clear()
        if self.state != "open" or self.aside:
            return
        few, now, until = len(self.folds) <= FEW, self._clock(), time.monotonic() + AT_ONCE
        if not self._due and (few or not 0 <= now - self._looked < LOOK):
            self._due, self._looked = self.mine[::-1], now
        while self._due and (few or time.monotonic() < until):
            if (closed := self._close(group := self._due.pop())) is not None:
                store.close_round(self.study.name, group, closed.round, closed.sums)
                self._closed[group] = closed.round

    def _close(self, group: int) -> ClosedRound | None:
        """Close a round whose time has come; a study that fails at it is set aside, and no other one stops for it."""
        now = self._clock()
        try:
            if (closed := self.folds[group].close(now)) is not None:
                self._note(group, now)
        except Exception as error:
            self.aside = True
            LOG.warning(
                "the study %s is set aside: a round of it cannot be closed (%s).",
                self.identity.hex(),
                type(error).__name__,
            )
            return None
        return closed

    def check_state(self, state: object) -> str:
        """Return a state that the study may be brought to, or refuse."""
        if not isinstance(state, str) or state not in STATES or (self.state == "closed" and state != "closed"):
            raise BadInput("a study can be open or paused, and closed for good; it stays as it is.")
        return state

    def estimate(self, group: int) -> dict[str, Any]:
        """Return what a group is known by now: reports, rounds, and the interval, if it is valid at this time."""
        return {
            "group": self.study.groups[group],
            "level": self.study.level,
            "method": self.study.method,
            "epsilon": self.study.epsilon,
            **self.folds[group].estimate(),
        }

    def _note(self, group: int, at: float) -> None:
        """Remember the interval after a round, for whoever looks at the way here."""
        noted = {"at": at, "group": self.study.groups[group], **self.folds[group].estimate()}
        self.trajectory.append(msgspec.json.encode(noted))


def together(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Join parts, some at a time.

    >>> list(together([b"a", b"b"]))
    [b'ab']
    """
    whole: list[bytes] = []
    for part in parts:
        whole.append(part)
        if len(whole) >= TOGETHER:
            yield b"".join(whole)
            whole.clear()
    if whole:
        yield b"".join(whole)


def owned(groups: Sequence[str], name: str | None) -> int | None:
    """Return the number of a group; the first where none is named, None where there is no such."""
    wanted = groups[0] if name is None else name
    return groups.index(wanted) if wanted in groups else None
