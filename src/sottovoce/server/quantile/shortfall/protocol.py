"""The conversation of a shortfall: some records answer about the quantile, the others at points in the tail beyond it.

Both parts ask the same question of a record, whether it lies above a point, once. Beyond the quantile one report is as
good as another (`inference.quantile.excess`): they are asked on a grid in equal steps up to the far bound, and at the
upper end of the quantile's interval as many as its length is worth. A tenth of them go first, on a coarser grid: they
tell how far out the lower end of the interval should look, where noise would cost more than what is there to be found.
Which site answers is drawn by lot, as for a certified quantile, so that unequal sites are one.
"""

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.digits import multiple
from sottovoce.inference.common.normal import two_sided
from sottovoce.inference.quantile.excess import Excess
from sottovoce.server.description import Interval
from sottovoce.server.quantile.asking import Ask, SiteProfile
from sottovoce.server.quantile.certified.curves import Answers, isotonic
from sottovoce.server.quantile.certified.lottery import Lottery
from sottovoce.server.quantile.certified.protocol import Asker, CertifiedStudy, Tallied
from sottovoce.server.quantile.method import Left, default_protocol, staged_study
from sottovoce.server.quantile.plan import QuantilePlan
from sottovoce.server.quantile.solutions import staged_solution

FIRST, FIRST_POINTS = 0.1, 64  # part of the reports beyond the quantile that go first, and at how many points
POINTS, EACH = 1024, 16  # points of the grid at most, and reports at each at least
CELLS = 1 << 21  # sites x points at most: the table of a round
FEWEST = 16  # points, however many sites there are
OF_QUANTILE = 0.2  # of the whole error: that of the quantile's interval; a half stays for the other end
CUTS = 33  # how far the lower end might look, in equal ratios
SLACK = 1e-9  # of a step: a point so little below a multiple is one


class Parted(NamedTuple):
    """What both parts left behind."""

    quantile: Left
    excess: Excess
    quantile_reports: int


@dataclass(frozen=True)
class ShortfallStudy:
    """What the conversation needs to know: the quantile's plan, which tail, the part that asks for it, the error."""

    plan: QuantilePlan
    upper: bool
    part: float
    alpha: float = 0.05
    coin: bytes = b""
    certified: bool = False

    @property
    def mass(self) -> float:
        """Return the mass of the tail."""
        return 1 - self.plan.tau if self.upper else self.plan.tau

    @property
    def limits(self) -> tuple[float, float]:
        """Return the public bounds of the records, turned so that the tail is the upper one."""
        bounds, step = self.plan.bounds or (-math.inf, math.inf), self.plan.resolution
        return self.turned(bounds[0] + step / 2, bounds[1] - step / 2)

    def turned(self, low: float, high: float) -> tuple[float, float]:
        """Return an interval turned so that the tail is the upper one; and back."""
        return (low, high) if self.upper else (-high, -low)

    def ends_of(self, interval: Interval) -> tuple[float, float]:
        """Return the ends of a quantile's interval, turned, inside the bounds."""
        low, high = self.turned(*interval)
        least, most = self.limits
        return min(max(low, least), most), min(max(high, least), most)

    def asked(self, value: float) -> float:
        """Return the point where a record is asked whether it lies beyond a turned value.

        Records that are multiples of a step are dithered by it: half way to the next one they still tell which.
        """
        step = self.plan.resolution
        if step == 0:
            return value + 0.0 if self.upper else float(np.nextafter(-value, -math.inf))
        place = math.floor(value / step + SLACK)
        return multiple(place, step) + step / 2 if self.upper else multiple(-place, step) - step / 2


def shortfall_protocol(study: ShortfallStudy) -> Generator[Ask, Ints, Parted]:
    """Run both parts."""
    plan, crowd = study.plan, study.plan.crowd
    firsts = firsts_of(crowd, study.part)
    staged = staged_study(plan, 1 - OF_QUANTILE * study.alpha, study.coin)
    left = yield from default_protocol(
        replace(staged, crowd=SiteProfile(crowd.shares, crowd.rates, firsts)), study.certified
    )
    solution = staged_solution(left)
    found = solution.interval(1 - OF_QUANTILE * study.alpha)
    ends = Interval(plan.rounded(found.low, -1), plan.rounded(found.high, 1))
    low, high = study.ends_of(ends)
    start, _ = study.ends_of(Interval(*[plan.rounded(solution.point)] * 2))
    rest = SiteProfile(crowd.shares, crowd.rates, crowd.sizes - firsts)
    excess = yield from _beyond(study, rest, low, min(max(start, low), high), high)
    return Parted(left, excess, int(left.milestones[-1].reports + getattr(left, "reports_before", 0)))


def firsts_of(crowd: SiteProfile, part: float) -> Ints:
    """Return how many records of each site answer for the quantile."""
    return np.asarray(np.floor(crowd.sizes * part + 0.5), dtype=np.int64)


def _beyond(
    study: ShortfallStudy, crowd: SiteProfile, low: float, start: float, high: float
) -> Generator[Ask, Ints, Excess]:
    """Ask beyond a point in the quantile's interval."""
    coin, far = study.coin + b"beyond", study.limits[1]
    if start >= far:  # nothing lies beyond: the quantile is the bound
        none = np.zeros(1, dtype=np.int64)
        return Excess(study.mass, 1.0, far, far, 1, none, none, far, 0, 0, 0, 0, 0, 1, 0)
    public = CertifiedStudy(study.plan.tau, crowd, study.alpha, coin, study.plan.bounds)
    asker = Asker(public, Lottery(crowd, coin))
    number = _points(len(crowd.sizes), int(FIRST * asker.left), FIRST_POINTS)
    each = int(FIRST * asker.left) // number
    coarse = start + (far - start) * np.arange(number) / number
    first = yield from asker.ask([study.asked(value) for value in coarse.tolist()], [each] * number)
    begun = _count(study, first)
    fitted = _fitted(study, coarse, first, asker.lottery.rate)
    number = _points(len(crowd.sizes), asker.left, POINTS)
    edge = min(high - low, far - start) if high < far else 0.0
    width = far - start + edge  # what the reports are spread over
    many = int(asker.left * ((far - start) / width)) // number
    one = (far - start) / number / many
    near = min(int(edge / one), asker.left - many * number)
    grid = start + (far - start) / number * np.arange(number)
    points = [study.asked(value) for value in (*grid.tolist(), *([high] if near else []))]
    told = yield from asker.ask(points, [many] * number + ([near] if near else []))
    most, least = _letters(study, told[:number])
    at_edge = _count(study, told[number:])
    rate = asker.lottery.rate
    before = (each * len(coarse), *begun, len(coarse))
    excess = Excess(study.mass, rate, start, far, many, least, most, high, near, at_edge[1], *before, 0)
    return excess._replace(reach=_reach(excess, coarse, fitted, study.alpha))


def _points(sites: int, reports: int, most: int) -> int:
    """Return at how many points so many reports are asked."""
    return max(min(most, reports // EACH, CELLS // sites), FEWEST)


def _letters(study: ShortfallStudy, told: Sequence[Tallied]) -> tuple[Ints, Ints]:
    """Return of each point how many lie beyond it or could not be asked, and how many said so."""
    least = np.array([n - below if study.upper else below for n, below, _ in told], dtype=np.int64)
    return least + np.array([missing for _, _, missing in told], dtype=np.int64), least


def _count(study: ShortfallStudy, told: Sequence[Tallied]) -> tuple[int, int]:
    """Return both numbers for all points together."""
    most, least = _letters(study, told)
    return int(most.sum()), int(least.sum())


def _fitted(study: ShortfallStudy, coarse: Floats, told: Sequence[Tallied], rate: float) -> Floats:
    """Return the survival function that the first reports fit best, between zero and the mass of the tail."""
    asked = np.array([max(reports, 1) for reports, _, _ in told], dtype=np.float64)
    below = 1 - (_letters(study, told)[1] / asked - (1 - rate) / 2) / rate
    return np.asarray(np.clip(1 - isotonic(Answers(coarse, below, asked)), 0.0, study.mass), dtype=np.float64)


def _reach(excess: Excess, coarse: Floats, fitted: Floats, alpha: float) -> int:
    """Return how many points of the grid the lower end should look at, by the fit to the first reports."""
    number, step = len(excess.least), excess.step
    first = min(int(np.searchsorted(excess.grid, excess.edge)) + 1, number)
    cuts = np.unique(np.minimum(first + np.ceil((number - first) * np.geomspace(1 / 256, 1, CUTS)), number)).astype(int)
    seen = np.interp(excess.grid, coarse + (coarse[1] - coarse[0]) / 2, fitted)
    found = np.concatenate(([0.0], np.cumsum(seen * step)))
    chance = (1 - excess.rate) / 2
    noise = math.sqrt(max(chance * (1 - chance), 1e-6)) / excess.rate * step / excess.each
    z = two_sided(1 - (1 - 2 * OF_QUANTILE) * alpha)
    worth = found[cuts] - z * noise * np.sqrt(excess.near + excess.each * (cuts - first))
    return int(cuts[int(np.argmax(worth))])
