"""Decides by itself which reports a collector may take: a second, slow account of ids, rounds and places.

It knows the study's public terms and what the query said when a round began, and nothing of the collector's code. It
holds for a single sender and a study without grace: a round is over with the upload that has brought its last answer.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

NEW, KNOWN, REFUSED = "new", "known", "refused"
REPORT = 25


class Report(NamedTuple):
    """The fields of 25 bytes."""

    id: bytes
    round: int
    group: int
    point: int
    letter: int


def fields(data: bytes) -> Report:
    """Take 25 bytes apart."""
    numbers = (int.from_bytes(data[start:stop], "big") for start, stop in ((16, 20), (20, 22), (22, 24), (24, 25)))
    return Report(data[:16], *numbers)


class Round:
    """What a round asks and who has answered in it."""

    def __init__(self, number: int, wanted: list[int]) -> None:
        self.number, self.wanted, self.came = number, wanted, [0] * len(wanted)
        self.said: dict[bytes, tuple[int, int]] = {}

    @property
    def full(self) -> bool:
        """Tell whether every point has its answers."""
        return all(came >= wanted for came, wanted in zip(self.came, self.wanted, strict=True))


class Group:
    """One group: the open round, the one before, and all ids that were taken."""

    def __init__(self, query: Callable[[], dict[str, Any]]) -> None:
        self._query, self.taken = query, set[tuple[bytes, int]]()
        self.open: Round | None = None
        self.late: Round | None = None
        self._begin()

    def _begin(self) -> None:
        asked = self._query()
        self.late = self.open
        self.open = Round(asked["round"], list(asked["needs"])) if "needs" in asked else None
        if self.open is None and not asked["over"]:
            raise RuntimeError("a group without grace asks nobody, and is not over")

    def of(self, number: int) -> Round | None:
        """Return the round of a number, if it takes answers."""
        rounds = () if self.open is None else (self.open, self.late)
        return next((each for each in rounds if each is not None and each.number == number), None)

    def take(self, report: Report) -> str:
        """Say what is to become of a report, and count it."""
        round = self.of(report.round)
        if round is None or report.point >= len(round.wanted) or not round.wanted[report.point] or report.letter > 1:
            return REFUSED
        said = round.said.get(report.id)
        if said is not None:
            return KNOWN if said == (report.point, report.letter) else REFUSED
        round.said[report.id] = report.point, report.letter
        round.came[report.point] += 1
        self.taken.add((report.id, report.round))
        return NEW

    def move(self) -> None:
        """Go on to the next round, if the open one is over."""
        if self.open is not None and self.open.full:
            self._begin()


class Oracle:
    """One study: its groups, and the tokens that it takes, if it takes tokens alone."""

    def __init__(self, queries: list[Callable[[], dict[str, Any]]], tokens: list[set[bytes]] | None = None) -> None:
        self.groups = [Group(query) for query in queries]
        self._tokens, self._spent = tokens, set[bytes]()

    def take(self, data: bytes) -> str:
        """Say what is to become of 25 bytes."""
        report = fields(data)
        if report.group >= len(self.groups):
            return REFUSED
        group = self.groups[report.group]
        if self._tokens is not None:
            if report.id not in self._tokens[report.group]:
                return REFUSED
            round = group.of(report.round)
            if report.id in self._spent and (round is None or report.id not in round.said):
                return REFUSED
        found = group.take(report)
        if found == NEW:
            self._spent.add(report.id)
        return found

    def move(self) -> None:
        """Go on where a round is over; to be called after each upload."""
        for group in self.groups:
            group.move()

    @property
    def taken(self) -> list[int]:
        """Return how many reports each group has taken."""
        return [len(group.taken) for group in self.groups]
