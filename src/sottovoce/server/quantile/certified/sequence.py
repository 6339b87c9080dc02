"""The confidence sequence as a conversation: a short search, then rounds that grow with all that was asked before.

Every round asks one point below and one above; after each of them stands an interval that holds at all times at once.
So one may look at any of them, stop where it is short enough, and go on when more records come.
"""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.inference.quantile.wealth import LEAST, MOST, Fortunes, Wager, reached, told, wagered
from sottovoce.server.quantile.asking import Ask
from sottovoce.server.quantile.certified.lottery import Lottery
from sottovoce.server.quantile.certified.policy import promising
from sottovoce.server.quantile.certified.protocol import Asker, CertifiedStudy, guided, search

FIRST = 0.12  # noise, over the tail, of the number of records for which the search is made
ROUNDS, GROWTH = 40, 0.15  # rounds in all, about, and the part of the reports so far that a round asks, at least
AHEAD = 0.6  # part of the reports so far within which classes are to be rejected
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

    @property
    def estimate(self) -> float:
        """Return the estimate after the last round."""
        return self.milestones[-1].estimate


def sequence_protocol(
    study: CertifiedStudy, until: float = 0.0, after: Sequel | None = None
) -> Generator[Ask, Ints, Sequel]:
    """Run the whole conversation, until the interval is no longer than a width; go on after an earlier one."""
    asker = Asker(study, Lottery(study.crowd, study.coin))
    wagers, marks = ([], []) if after is None else (list(after.wagers), list(after.milestones))
    rounds_before, reports_before = (marks[-1].rounds, marks[-1].reports) if marks else (0, 0)
    limits = study.bounds or (-math.inf, math.inf)
    for wager in wagers:
        _remember(asker, wager)
    aim, fortunes = -math.log(study.alpha), told(wagers)
    tail = min(study.tau, 1 - study.tau)
    window, _ = yield from search(asker, math.ceil((asker.precision * tail * FIRST) ** -2))
    so_far = reports_before + asker.reports
    growth = (1 + asker.left / so_far) ** (1 / max(ROUNDS - asker.rounds, 4)) - 1
    growth = max(growth, min(GROWTH, asker.left / (4 * so_far)))
    while asker.left >= 2:
        now = max(min(round(growth * so_far), asker.left), 2)
        if asker.left - now < LAST * now:
            now = asker.left
        horizon = max(min(AHEAD * so_far, asker.left), now) / 2
        window, guide = guided(asker, window)
        counts = (now // 2, now - now // 2)
        needs, power = _needs(fortunes, aim), asker.precision * math.sqrt(horizon)
        whole = asker.precision * math.sqrt(so_far / 2)
        inside = np.nextafter(limits[0], math.inf), np.nextafter(limits[1], -math.inf)
        points = [
            float(np.clip(promising(fortunes.edges, needs, guide, power, whole, side, limits), *inside)) + 0.0
            for side in (-1, 1)
        ]
        told_now = yield from asker.ask(points, counts)
        for point, side, count, (below, missing) in zip(points, (-1, 1), counts, told_now, strict=True):
            against = below + missing if side < 0 else below  # lots that found nobody count against the query
            wager = Wager(point, side, count, against, asker.success, horizon, aim)
            wagers.append(wager)
            fortunes = wagered(fortunes, wager)
        so_far = reports_before + asker.reports
        window, guide = guided(asker, window)
        low, high = reached(fortunes, study.alpha)
        low, high = max(low, limits[0]), min(high, limits[1])
        estimate = float(np.clip(guide.centre, low, high))
        marks.append(SequenceMark(rounds_before + asker.rounds, so_far, len(wagers), estimate))
        if high - low <= until:
            break
    return Sequel(study.tau, tuple(wagers), tuple(marks), limits)


def _remember(asker: Asker, wager: Wager) -> None:
    """Let an earlier answer guide."""


def _needs(fortunes: Fortunes, aim: float) -> Floats:
    """Return how many standard errors, over the horizon, would take each class to its aim."""
    lack = np.maximum(aim - fortunes.wealth, 0.0)
    stake = np.sqrt(2 * np.clip(lack, LEAST, MOST))
    return np.where(fortunes.peaks >= aim, -np.inf, stake / 2 + lack / stake)
