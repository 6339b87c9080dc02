"""The certified interval as a conversation: search, rounds that close in, then rounds at the most promising points.

A search asks several points a round where the belief about the quantile lies; its answers guide, and are no evidence.
Then every round asks one point below and one above. The first of these rounds are small and grow: part of each budget
is bet on them alone, so that far classes are rejected early and no end stays open. The rest of the records answers in
`ROUNDS` rounds. If an end has no certificate before the last two rounds, they ask where one is sure to be had.

Answers that people give late are a query of their own at the point and label of theirs: nobody knew their letters when
these were chosen, nor when the round that came meanwhile was. They come before that round's evidence.
"""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Ints
from sottovoce.inference.quantile.error_budgets import Classes, Evidence, heard, hull, interval, opened
from sottovoce.server.quantile.asking import CERTIFYING, Ask, Attendance, Decoded, SiteProfile
from sottovoce.server.quantile.certified.curves import (
    HUGE,
    TINY,
    Answers,
    Axis,
    Guide,
    LocalLine,
    Window,
    narrowed,
    nearest_sure,
    pooled,
)
from sottovoce.server.quantile.certified.lottery import Lottery
from sottovoce.server.quantile.certified.policy import best_point, rescue_point

LEAST, NOISE = 0.03, 2.5  # parts of the records for the search: at least, and for each s / tail
REPORTS, POINTS = 6.0, 15  # of the search: reports a point, over the squared rate, and points a round at most
GROWTH = 4.0  # of the closing rounds
MORE = 0.03  # part of a budget bet on a main round alone
SURE = 4.6  # standard errors at which closing rounds ask
ROUNDS, MOST_ROUNDS = 13, 20  # main rounds, and rounds in all
FEW = 0.04  # of the tail: noise from which on reports are few
MEND = 0.8  # of the reports left: for an end without a certificate where the other has one
LATE = 7  # last rounds, in which an open end is rescued
FINEST = TINY / HUGE  # of the largest magnitude: no unit is finer
VAST = 1e30  # units: nothing is asked beyond
LOCAL = 0.12  # of the tail: noise from which on a straight line is the guide


class Pace(NamedTuple):
    """How a study divides its reports, chosen by measurement.

    ``search`` is the largest part that the search may take, in ``paid`` rounds and at ``most`` so many; it ends where
    the doubt about the quantile is ``found`` of the tail. ``bet`` is the part of a budget that is bet on a closing
    round alone, ``swell`` how much larger each main round is than the last, ``far`` the units of noise from which on
    lengths count by their logarithm.
    """

    search: float
    paid: int
    most: int
    found: float
    bet: float
    swell: float
    far: float


PLENTY, SCANT = Pace(0.25, 9, 12, 0.15, 0.5, 1.15, 30.0), Pace(0.15, 5, 7, 0.3, 0.1, 1.05, 3.0)
ANYWHERE = SCANT._replace(search=0.2, paid=7, most=12)  # few records, and no bounds


@dataclass(frozen=True)
class CertifiedStudy:
    """What the certified interval needs to know: level, sites, error, public knowledge, and the public coin."""

    tau: float
    crowd: SiteProfile
    alpha: float
    coin: bytes
    bounds: tuple[float, float] | None = None
    scale: float | None = None
    window: tuple[float, float] | None = None  # within which is asked, where others have found it: no limit of the ends


class CertifiedMark(NamedTuple):
    """Where the conversation stood: rounds, reports, pieces of evidence so far, and the estimate."""

    rounds: int
    reports: int
    evidence: int
    estimate: float


@dataclass(frozen=True)
class Certificate:
    """What a certified conversation leaves: the evidence, the probability of a one at the level, the way there."""

    evidence: tuple[Evidence, ...]
    success: float
    estimate: float
    milestones: tuple[CertifiedMark, ...]
    bounds: tuple[float, float]
    alpha: float
    rounds_before: int = 0  # of another conversation, which handed over
    reports_before: int = 0


class Tallied(NamedTuple):
    """What was heard at a point: reports, how many of them lay below, and how many lots found nobody."""

    reports: int
    below: int
    missing: int


@dataclass
class Asker:
    """Asks by lot, and keeps what was heard, as answers for the guide; ``late`` is what came to the question before."""

    study: CertifiedStudy
    lottery: Lottery
    points: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    precisions: list[float] = field(default_factory=list)
    rounds: int = 0
    questions: int = 0
    reports: int = 0
    left: int = 0
    late: list[Tallied] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.left = self.lottery.planned
        self._before: list[float] = []  # the points of the question before
        self._attendance = Attendance(self.study.crowd.shares)
        self.success = (1 - self.lottery.rate) / 2 + self.lottery.rate * self.study.tau
        self.precision = self.lottery.rate / math.sqrt(self.success * (1 - self.success))  # root, of one report

    def ask(self, points: Sequence[float], counts: Sequence[int]) -> Generator[Ask, Ints, list[Tallied]]:
        """Ask some points; return of each what was heard.

        A site that is absent is asked again at the same points, which moves its letters in time and not in law. Lots of
        a site that stays away find nobody and count against the query, so that the successes of a query are at least
        those of the round with all its letters, whatever kept the site away: what was shown of them holds. Of people
        who come by themselves, as many count as came: their number is not chosen by what they say.
        """
        drawn = [self.lottery.draw(count) for count in counts]
        table = np.column_stack([taken for taken, _ in drawn])
        planned = sum(counts)
        self.left -= planned
        ask, lottery = Ask(np.asarray(points, dtype=np.float64), table), self.lottery
        given = yield from self._attendance.gather(ask, lambda: lottery.left + table.sum(axis=1), CERTIFYING)
        lottery.left += (table - given.counts).sum(axis=1) - given.lost
        self._hear_late(given.late)
        if given.arrived:
            lottery.left = np.maximum(lottery.left, 0)
            self.left = max(self.left + planned - int(given.counts.sum()), 0)
        self.rounds, self.questions = self.rounds + given.rounds, self.questions + 1
        self.reports += int(given.counts.sum())
        found = []
        for place, (taken, missing) in enumerate(drawn):
            told = self._tallied(points[place], given.ones[:, place], given.counts[:, place])
            found.append(told if given.arrived else told._replace(missing=missing + int(taken.sum()) - told.reports))
        self._before = list(points)
        return found

    def _hear_late(self, late: Ints | None) -> None:
        """Take in what came late to the question before; to one that was not asked here nothing is added."""
        self.late = []
        if late is None or not self._before:
            return
        ones, counts = late
        self.late = [self._tallied(at, ones[:, place], counts[:, place]) for place, at in enumerate(self._before)]
        self.lottery.left -= counts.sum(axis=1)
        self.left -= int(counts.sum())
        self.reports += int(counts.sum())

    def _tallied(self, point: float, ones: Ints, counts: Ints) -> Tallied:
        """Return what was heard at a point, and let the guide hear it."""
        answered = int(counts.sum())
        below = answered - int(ones.sum())
        if answered > 0:
            rate = self.lottery.rate
            self.hear(point, (below / answered - (1 - rate) / 2) / rate, answered * self.precision**2)
        return Tallied(answered, below, 0)

    @property
    def broken(self) -> bool:
        """Tell whether so much of the shares is gone for good that no further answer is evidence."""
        return float(self.study.crowd.shares[self._attendance.gone].sum()) > CERTIFYING.most

    def hear(self, point: float, value: float, precision: float) -> None:
        """Take in an answer."""
        self.points.append(float(point))
        self.values.append(value)
        self.precisions.append(precision)

    def noise(self, records: int | None = None) -> float:
        """Return the error of the distribution function from some records, or all that are left, over the tail."""
        count = self.left if records is None else records
        tail = min(self.study.tau, 1 - self.study.tau)
        return 1 / (self.precision * math.sqrt(count) * tail) if count > 0 else math.inf

    @property
    def answers(self) -> Answers:
        """Return all answers so far."""
        return pooled(self.points, self.values, self.precisions)


def certified_protocol(
    study: CertifiedStudy, known: Sequence[Decoded] = (), before: tuple[int, int] = (0, 0)
) -> Generator[Ask, Ints, Certificate]:
    """Run the whole conversation; ``known`` are answers that another one has heard, in so many rounds and reports.

    It is held in a public unit, a power of two, in which the numbers are moderate whatever the unit of the records.
    """
    within = study.bounds or study.window
    size = max(map(abs, within)) if within else study.scale or 1.0
    unit = math.ldexp(1.0, math.frexp(size)[1] - 1)
    bounds, scale = None, study.scale and study.scale / unit
    if within:
        bounds = within[0] / unit, within[1] / unit
        scale = min(max((study.scale or TINY) / unit, FINEST), 1.0)
    inner = _conversation(replace(study, bounds=bounds, scale=scale), known, unit)
    try:
        ask = next(inner)
        while True:
            ask = inner.send((yield ask._replace(points=ask.points * unit)))
    except StopIteration as end:
        found: Certificate = end.value
    limits = study.bounds or (-math.inf, math.inf)
    evidence = tuple(piece._replace(point=piece.point * unit) for piece in found.evidence)
    marks = tuple(mark._replace(estimate=mark.estimate * unit) for mark in found.milestones)
    low, high = interval(evidence, found.success, study.alpha)
    estimate = min(max(marks[-1].estimate, low, limits[0]), high, limits[1])
    return Certificate(evidence, found.success, estimate, marks, limits, study.alpha, *before)


def _conversation(study: CertifiedStudy, known: Sequence[Decoded], unit: float) -> Generator[Ask, Ints, Certificate]:
    """Run the conversation in a public unit."""
    asker = Asker(study, Lottery(study.crowd, study.coin))
    for answer in known:
        for point, value, variance in zip(answer.points, answer.below, answer.variances, strict=True):
            if variance > 0 and abs(float(point)) / VAST <= unit:
                asker.hear(float(point) / unit, float(value), 1 / float(variance))
    pace = PLENTY if asker.noise() < FEW else ANYWHERE if study.bounds is None else SCANT
    window, first = yield from search(asker, pace)
    limits = study.bounds or (-math.inf, math.inf)
    whole = asker.precision * math.sqrt(asker.lottery.planned / 2)
    classes = opened(np.array([study.alpha]))
    evidence: list[Evidence] = []
    newest: list[Evidence] = []  # of the round before: what comes late to a search guides, and is no evidence either
    marks: list[CertifiedMark] = []
    plan, closings = _portions(asker.left, first, MOST_ROUNDS - asker.questions, pace.swell)
    for index, part in enumerate(plan):
        if asker.broken:
            break
        remaining = asker.left
        horizons = _horizons(remaining, hull(classes))
        window, guide = guided(asker, window)
        closing = index < closings
        counts = [min(max(int(part * horizon), 1), horizon) if part < 1 else horizon for horizon in horizons]
        sides = [(side, n, h) for side, n, h in zip((-1, 1), counts, horizons, strict=True) if n > 0]
        points = [
            _point(
                asker, classes, guide, side, n if closing else horizon, whole, limits, closing, plan[index:], pace.far
            )
            for side, n, horizon in sides
        ]
        if not sides:
            break
        told = yield from asker.ask(points, [n for _, n, _ in sides])
        pieces = [late_piece(piece, *said[:2]) for piece, said in zip(newest, asker.late, strict=False) if said.reports]
        newest = []
        for point, (side, _, horizon), (reports, below, missing) in zip(points, sides, told, strict=True):
            n = reports + missing
            against = below + missing if side < 0 else below  # lots that found nobody count against the query
            newest.append(Evidence(point, side, n, against, max(horizon, n), pace.bet if closing else MORE))
        for piece in (*pieces, *newest):
            classes = heard(classes, piece, asker.success)
        evidence += (*pieces, *newest)
        marks.append(CertifiedMark(asker.rounds, asker.reports, len(evidence), guide.centre))
    _, guide = guided(asker, window)
    marks = [*marks[:-1], CertifiedMark(asker.rounds, asker.reports, len(evidence), guide.centre)]
    return Certificate(tuple(evidence), asker.success, guide.centre, tuple(marks), limits, study.alpha)


def late_piece(piece: Evidence, reports: int, below: int) -> Evidence:
    """Return the evidence of reports that came late to a query, over what was left of its horizon."""
    return piece._replace(reports=reports, below=below, horizon=max(piece.horizon - piece.reports, reports), pot=0.0)


def search(asker: Asker, pace: Pace = PLENTY, records: int = 1 << 62) -> Generator[Ask, Ints, tuple[Window, int]]:
    """Find where the quantile is, roughly; return the window and how many reports a closing round starts with."""
    study, records = asker.study, min(asker.left, records)
    tail = min(study.tau, 1 - study.tau)
    budget = min(LEAST + NOISE * asker.noise(records), pace.search) * records
    unit, far = (TINY, HUGE) if study.scale is None else (study.scale, HUGE * study.scale)
    low, high = study.bounds or (-far, far)
    window = Window(low, high, low, high, unit)
    each = REPORTS / asker.lottery.rate**2
    batch = min(POINTS * max(each, 0.0003 * records), budget / pace.paid)
    number = int(min(max(batch / each, 3), POINTS))
    count = max(int(batch / number), 2)
    axis = Axis(unit)
    parts = np.linspace(0, 1, number + 2)[1:-1]
    spent, rounds = 0, 0
    points = np.clip(axis.back(axis.of(low) + (axis.of(high) - axis.of(low)) * parts), low, high)
    while True:
        if asker.points:
            window, belief = narrowed(asker.answers, study.tau, window)
            over = rounds >= pace.most or spent + number * count > 1.3 * budget
            if belief.doubt < pace.found * tail or over:
                break
            points = np.unique(np.clip(belief.quantile(parts), low, high))
        count = min(count, max(asker.left // (4 * len(points)), 1))
        yield from asker.ask(points.tolist(), [count] * len(points))
        spent, rounds = spent + count * len(points), rounds + 1
        if asker.broken:
            break
    return window, max(count * number // 4, 4)


def _portions(left: int, first: int, rounds: int, swell: float) -> tuple[list[float], int]:
    """Return the parts of what is left that each round asks, and how many of them close in before the main ones."""
    parts, size, half = [], float(first), left / 2
    while size < half / (2 * ROUNDS):
        parts.append(size / half)
        half -= size
        size *= GROWTH
    weights = swell ** np.arange(max(min(ROUNDS, rounds - len(parts)), 4))
    return [*parts, *(weights / np.cumsum(weights[::-1])[::-1]).tolist()], len(parts)


def _horizons(left: int, ends: tuple[float, float]) -> tuple[int, int]:
    """Divide the reports left between the sides: equally, or most of them to the only end without a certificate."""
    low, high = map(math.isfinite, ends)
    first = int(left * (0.5 if low == high else 1 - MEND if low else MEND))
    return first, left - first


def guided(asker: Asker, window: Window) -> tuple[Window, Guide]:
    """Return the guide for what is known: curves while it is little, then a line."""
    tau, answers = asker.study.tau, asker.answers
    if 1 / math.sqrt(float(answers.precisions.sum())) < LOCAL * min(tau, 1 - tau):
        line = LocalLine(answers, tau, (window.lowest, window.highest))
        if line.settled:
            return window, line
    return narrowed(answers, tau, window)


def _point(
    asker: Asker,
    classes: Classes,
    guide: Guide,
    side: int,
    reports: int,
    whole: float,
    limits: tuple[float, float],
    closing: bool,
    to_come: Sequence[float],
    far: float,
) -> float:
    """Return where one side asks."""
    power = asker.precision * math.sqrt(reports)
    if closing:
        point = nearest_sure(guide, side, power, SURE)
    else:
        point = best_point(classes, guide, power, whole, side, limits, far)
        if len(to_come) <= LATE and not math.isfinite(hull(classes)[0 if side < 0 else 1]):
            safe = rescue_point(asker.answers, asker.study.tau, power, side)
            point = point if safe is None else (min(point, safe) if side < 0 else max(point, safe))
    inside = max(np.nextafter(limits[0], math.inf), -VAST), min(np.nextafter(limits[1], -math.inf), VAST)
    return float(np.clip(point, *inside)) + 0.0
