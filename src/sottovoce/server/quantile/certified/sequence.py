"""The confidence sequence as a conversation: a short search, then rounds that grow with all that was asked before.

Every round asks one point below and one above; after each of them stands an interval that holds at all times at once.
So one may look at any of them, stop where it is short enough, and go on when more records come.

Answers that people give late are wagered on at the point of their question, under what the bets were fixed by when it
was asked; they come before those of the round that was open meanwhile, whose bets follow the wealth after them.
"""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.inference.quantile.wealth import Fortunes, Wager, reached, stakes, told
from sottovoce.server.quantile.asking import Ask
from sottovoce.server.quantile.certified.curves import Guide
from sottovoce.server.quantile.certified.lottery import Lottery
from sottovoce.server.quantile.certified.policy import promising
from sottovoce.server.quantile.certified.protocol import Asker, CertifiedStudy, guided, search

FIRST = 0.12  # noise, over the tail, of the number of records for which the search is made
ROUNDS, SLOWER = 40, 4.0  # rounds in all, about, and by what the first ones grow faster than the last
GROWTH = 0.1  # part of the reports so far that a round asks, at least
AHEAD = 1.0  # part of the reports so far within which classes are to be rejected
KELLY = 1.3  # bets at most, over those under which wealth would grow fastest if the guide were right
LEAST = 0.2  # standard errors, over the horizon, that a point is taken to be off at least
LAST = 0.4  # of a round: what would be left over with less joins it


class SequenceMark(NamedTuple):
    """Where the sequence stood: rounds, reports, wagers so far, and the estimate."""

    rounds: int
    reports: int
    wagers: int
    estimate: float


@dataclass(frozen=True)
class Sequel:
    """What a confidence sequence leaves behind, and goes on from: the level, all wagers, the way there."""

    tau: float
    wagers: tuple[Wager, ...]
    milestones: tuple[SequenceMark, ...]
    bounds: tuple[float, float]

    def within(self, ends: tuple[float, float]) -> tuple[float, float]:
        """Keep an interval within the public bounds."""
        return max(ends[0], self.bounds[0]), min(ends[1], self.bounds[1])

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the interval after the last round."""
        return self.within(reached(told(self.wagers), alpha))


def sequence_protocol(
    study: CertifiedStudy, enough: Callable[[float, float, float], bool] | None = None, after: Sequel | None = None
) -> Generator[Ask, Ints, Sequel]:
    """Run the whole conversation, until ends and estimate are told to be enough; go on after an earlier one."""
    asker = Asker(study, Lottery(study.crowd, study.coin))
    limits = study.bounds or (-math.inf, math.inf)
    before = after or Sequel(study.tau, (), (), limits)
    rounds_before, so_far = before.milestones[-1][:2] if before.milestones else (0, 0)
    for wager in before.wagers:  # what was heard guides
        below = (wager.below / wager.reports - (1 - wager.rate) / 2) / wager.rate
        asker.hear(wager.point, below, wager.reports * wager.rate**2 / (wager.success * (1 - wager.success)))
    sequel = Sequel(study.tau, before.wagers, before.milestones, study.bounds or before.bounds)
    records = (asker.precision * min(study.tau, 1 - study.tau) * FIRST) ** -2
    window, _ = yield from search(asker, records=math.ceil(records))
    fortunes, aim, so_far = told(sequel.wagers), -math.log(study.alpha), so_far + asker.reports
    growing = Growing(so_far, so_far + asker.left, ROUNDS - asker.questions)
    window, guide = guided(asker, window)
    newest: list[Wager] = []  # of the round before: what comes late to the search guides
    while asker.left >= 2 and not asker.broken:
        now = growing.portion(so_far, asker.left)
        horizon = max(min(AHEAD * so_far, asker.left), now) / 2
        power, whole = asker.precision * math.sqrt(horizon), asker.precision * math.sqrt(so_far / 2)
        needs, counts = _needs(fortunes, aim), (now // 2, now - now // 2)
        inside = np.nextafter(sequel.bounds[0], math.inf), np.nextafter(sequel.bounds[1], -math.inf)
        best = [promising(fortunes.edges, needs, guide, power, whole, side, sequel.bounds) for side in (-1, 1)]
        points = [float(np.clip(point, *inside)) + 0.0 for point in best]
        caps = [KELLY * _kelly(asker, guide, point, side, power) for point, side in zip(points, (-1, 1), strict=True)]
        spoken = asker.reports
        heard = yield from asker.ask(points, counts)
        wagers = [
            wager._replace(reports=late.reports, below=late.below)
            for wager, late in zip(newest, asker.late, strict=False)
            if late.reports
        ]
        newest = []
        for side, point, cap, (reports, below, missing) in zip((-1, 1), points, caps, heard, strict=True):
            count = reports + missing
            against = below + missing if side < 0 else below  # lots that found nobody count against the query
            rate, success = asker.lottery.rate, asker.success
            newest.append(Wager(point, side, count, against, success, horizon, aim, cap, rate))
        wagers += newest
        fortunes = told(wagers, fortunes)
        so_far += asker.reports - spoken
        window, guide = guided(asker, window)
        low, high = sequel.within(reached(fortunes, study.alpha))
        estimate = float(np.clip(guide.centre, low, high))
        told_so_far = (*sequel.wagers, *wagers)
        mark = SequenceMark(rounds_before + asker.rounds, so_far, len(told_so_far), estimate)
        sequel = Sequel(study.tau, told_so_far, (*sequel.milestones, mark), sequel.bounds)
        if enough is not None and enough(low, high, estimate):
            break
    if sequel.milestones:
        return sequel
    mark = SequenceMark(rounds_before + asker.rounds, so_far, 0, float(np.clip(guide.centre, *sequel.bounds)))
    return Sequel(study.tau, sequel.wagers, (mark,), sequel.bounds)


class Growing(NamedTuple):
    """How rounds grow from some reports to others: as so many, the first ones faster than the last."""

    start: int
    end: int
    rounds: int

    def portion(self, so_far: int, left: int) -> int:
        """Return how many reports the next round asks."""
        whole = math.log(self.end / self.start)
        pace = whole * math.log(SLOWER) / (SLOWER - 1) / max(self.rounds, 4)
        growth = math.expm1(pace * (SLOWER - (SLOWER - 1) * math.log(so_far / self.start) / whole))
        now = max(min(round(max(growth, GROWTH) * so_far), left), 2)
        return left if left - now < LAST * now else now


def _needs(fortunes: Fortunes, aim: float) -> Floats:
    """Return how many standard errors, over the horizon, would take each class to its aim."""
    _, lack = stakes(fortunes.wealth, aim)
    return np.where(fortunes.peaks >= aim, -np.inf, np.sqrt(2 * lack))


def _kelly(asker: Asker, guide: Guide, point: float, side: int, power: float) -> float:
    """Return the bet under which wealth would grow fastest at a point, as far as the guide knows."""
    drift = -side * float(guide.masses(np.array([point]))[0] @ guide.weights)
    return max(drift, LEAST / power) * asker.lottery.rate / (asker.success * (1 - asker.success))
