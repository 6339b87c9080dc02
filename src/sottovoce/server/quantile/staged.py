"""The default method: search, pilot, then stages of frozen queries that double in size; pairs where records are scarce.

Every query is answered by the same fraction of each site's records. After a search for location and scale, a pilot of
three points and stages of three points close in on the quantile; where the distribution function is seen to bend as it
does between two modes, stages have five points. The interval inverts the test that weighs the
stages by their design (`inference.quantile.inversion`); what a stage shows may raise the allowance for its own
curvature, which lengthens the interval, and never lowers it.

Where the noise exceeds 4 % of the tail (`server.quantile.feasibility`), the records left after the search are asked in
pairs instead (`server.quantile.scarce`).

A stage asks at a middle point, which gets most records, and at side points, which keep the slope known. With noise
``e`` (the error of the distribution function from all records so far) and a mass offset ``a``, side points at ``a /
slope`` make the slope's relative error ``e / (a sqrt(side))``. The offset falls like ``e^(1/3)``, which balances that
noise against the curvature; the side share ``2.5 e / a`` minimises the length of the interval.

Between two modes the density at the quantile is smaller than at its shoulders, so side points that are too wide
overestimate the slope and the interval comes out too short. The checks `steeper_pilot` and `steeper_shoulders` return
how much steeper the wide view is than the narrow one, relatively, and the standard error of that. `Bends` learns how
fast the density changes, for the lens.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.inference.quantile.inversion import Stage, back, information, root, through
from sottovoce.server.quantile.asking import Ask, Decoded, QueryAllocator, SiteProfile, present_shares
from sottovoce.server.quantile.certified.curves import Answers, pooled
from sottovoce.server.quantile.certified.protocol import Certificate, CertifiedStudy, certified_protocol
from sottovoce.server.quantile.feasibility import PAIRS, SCARCE, support
from sottovoce.server.quantile.grid import keep_to_a_grid
from sottovoce.server.quantile.pilot import find_pilot
from sottovoce.server.quantile.scarce import Fitted, pairs_protocol
from sottovoce.server.quantile.search import Found, find
from sottovoce.server.quantile.working_model import WorkingModel

PILOT_BEND = 0.25  # relative variance of what a wide pilot says of the density's slope at the quantile
SURE, LARGER = 3.0, 1.25  # standard errors and ratio from which a dip of the density is worth a warning
STEEPEST = 1.5  # the largest change of the logarithm of the density over the pilot's narrow side that a lens may have
LIMIT = 5.0  # the largest that is looked for
WIDEST = 0.4  # of the tail: the largest mass offset
FALL = 1.5  # offset = FALL * tail * (noise / tail)^(1/3)
CURVE = 1.0  # allowance for the cubic term: relative slope error CURVE * (offset / tail)^2, as in a hyperbolic tail
# five points: slope noise is three times that of three points with the same reach, so more records go to the sides
NARROWER, OUTER = 0.85, 0.12
SLOPE_ERROR = 0.2  # allowance for what five points still miss between two modes
BENT = 0.4  # more of it, for each unit by which the shoulders were seen to be steeper
FIRST_MASS = 1.2  # allowance of the pilot, in units of its own cubed mass: it is wide, and may be wrong by its slope
STEEP = 0.1  # allowance for each squared change of the logarithm of the density over one spacing
BEND = 0.08  # relative slope error from which stages go on with five points
VAST = 1e100  # a scale beyond it, or below its inverse, is no finding: squares of it would not be numbers
ENOUGH = 0.2  # of the records: what is left is worth certifying
NEAR = 6.5  # errors of all records so far: offset of a pair that looks at the shape close to the quantile
LATER, CLOSER = 0.3, 0.4  # part of the records from which on stages are such pairs, if so much closer than three points
CURVED = 0.6  # what a straight line may leave out of a bend that the lens has not straightened, of offset^2 / tail
SURPRISE, RATIO, DOUBT = 4.0, 2.7, 0.15  # alarms: errors of a middle, errors of a slope, and what a slope may change
LEANING = 0.45  # least ratio of the slopes on both sides of a pilot, after the lens
DIP, LATER_DIP = 0.6, 0.45  # of the pilot's slope: a first pair, a later one that is surely less steep is in a valley
FAR_SIDE = 3.0  # times the mass that was meant to lie between two points, surely: an atom is between them
SHRUNK = 10.0  # errors of the quantile over the scale that the search found: it found that of an atom
LOST = 0.4  # of the tail: a middle point further off than this (and four errors) means the pilot was mistaken


def steeper_pilot(pilot: Decoded, places: Floats, stage: Decoded, spacing: float) -> tuple[float, float]:
    """Compare the pilot's slope at the stage's middle with the stage's own, scaled to the stage's width.

    ``places`` are the pilot's points in the coordinate of the stage, whose middle is zero.
    """
    x, y = places, pilot.below
    first, second = (y[1] - y[0]) / (x[1] - x[0]), (y[2] - y[1]) / (x[2] - x[1])
    wide = float(x[2] - x[0]) / 2
    there = float(first - (second - first) / (x[2] - x[0]) * (x[0] + x[1]))
    here = float(stage.below[2] - stage.below[0]) / (2 * spacing)
    if there <= 0 or here <= 0:
        return 0.0, 0.0
    there_error = math.sqrt(float(pilot.variances[0] + pilot.variances[2])) / (2 * wide)
    here_error = math.sqrt(float(stage.variances[0] + stage.variances[2])) / (2 * spacing)
    # a cubic term bends a secant by its squared half-width
    part = (spacing / wide) ** 2
    factor = part / max(1 - part, 0.5)
    ratio = there / here
    return (ratio - 1) * factor, factor * ratio * math.hypot(there_error / there, here_error / here)


def log_slope(below: Floats, variances: Floats, places: Floats, unit: float = 1.0) -> tuple[float, float]:
    """Return how fast the logarithm of the density changes over three places, a unit, and the variance of that."""
    left, right = float(below[1] - below[0]), float(below[2] - below[1])
    if left + right < 2 * math.sqrt(float(variances[0] + variances[2])):
        return 0.0, math.inf
    floor = 0.1 * (left + right)
    left, right = max(left, floor), max(right, floor)
    behind, ahead = (float(gap) / unit for gap in np.diff(places))
    slope, steepness = _exponential(behind, ahead, math.log(right / left))
    # the middle value enters both differences
    variance = variances[0] / left**2 + variances[2] / right**2 + variances[1] * (1 / left + 1 / right) ** 2
    return slope, float(variance) / steepness**2


def _exponential(behind: float, ahead: float, odds: float) -> tuple[float, float]:
    """Return the ``b`` for which a density ``exp(b x)`` holds the given log odds of mass ahead over mass behind.

    The second value is how fast the log odds grow with ``b`` there.
    """

    def log_odds(b: float) -> float:
        return _log_mass(b, ahead) - _log_mass(-b, behind)

    low, high = -LIMIT / min(behind, ahead), LIMIT / min(behind, ahead)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if log_odds(middle) < odds else (low, middle)
    b, nudge = (low + high) / 2, 1e-4 / min(behind, ahead)
    return b, (log_odds(b + nudge) - log_odds(b - nudge)) / (2 * nudge)


def _log_mass(b: float, gap: float) -> float:
    """Return the logarithm of the mass of ``exp(b x)`` between 0 and a gap."""
    u = b * gap
    if abs(u) < 1e-6:
        return math.log(gap) + u / 2
    return math.log(math.expm1(u) / b) if u < 30 else u - math.log(b)


class Secants(NamedTuple):
    """The slopes between the inner and between the outer points of five, in units of the spacing, with errors."""

    inner: float
    inner_error: float
    outer: float
    outer_error: float


def secants(stage: Decoded) -> Secants:
    """Return the inner and outer secants of a stage of five points."""
    below, variances = stage.below, stage.variances
    return Secants(
        float(below[3] - below[1]) / 2,
        math.sqrt(float(variances[1] + variances[3])) / 2,
        float(below[4] - below[0]) / 4,
        math.sqrt(float(variances[0] + variances[4])) / 4,
    )


def steeper_shoulders(stage: Decoded) -> tuple[float, float]:
    """Compare the outer secant of five points with the inner one; certainly steeper where the inner one is noise."""
    inner, inner_error, outer, outer_error = secants(stage)
    if inner < 2 * inner_error:
        return 1.0, 0.0
    return outer / inner - 1, math.hypot(outer_error / inner, outer * inner_error / inner**2)


def dips_between_shoulders(stage: Decoded) -> bool:
    """Tell whether the density is clearly and much smaller between the inner points of five than beyond them."""
    inner, inner_error, outer, outer_error = secants(stage)
    return outer > LARGER * inner and outer - inner > SURE * math.hypot(inner_error, outer_error)


class Bends:
    """How fast the logarithm of the density changes at the quantile, as far as known; shrunk towards zero."""

    def __init__(self, pilot: Decoded) -> None:
        self._widest = float(pilot.points[2] - pilot.points[0]) / 2  # the unit: squares of raw ones may not exist
        self._steepest = STEEPEST * self._widest / float(np.min(np.diff(pilot.points)))
        self._estimate, variance = log_slope(pilot.below, pilot.variances, pilot.points, self._widest)
        # the pilot is wide: what it sees may be half of what is true at the quantile
        self._variance = variance + PILOT_BEND * self._estimate**2

    @property
    def best(self) -> float:
        """Return the estimate, shrunk by its own noise and kept moderate over the width of the pilot."""
        shrunk = self._estimate**3 / (self._estimate**2 + self._variance) if self._estimate else 0.0
        return min(max(shrunk, -self._steepest), self._steepest) / self._widest

    def hear(self, heard: Decoded, places: Floats, bend: float) -> None:
        """Learn from a stage: what its lens did not straighten."""
        n = len(places) // 2
        ends = [n - 1, n, n + 1]
        more, variance = log_slope(heard.below[ends], heard.variances[ends], places[ends], self._widest)
        weight = self._variance / (self._variance + variance)
        self._estimate += weight * (bend * self._widest + more - self._estimate)
        self._variance *= 1 - weight


class Layout(NamedTuple):
    """A stage to be asked: spacing, points in spacings, parts of the stage's records, allowance at one spacing."""

    spacing: float
    offsets: Floats
    parts: Floats
    allowance: float


def three(noise: float, tail: float, slope: float, widest: float) -> Layout:
    """Lay out three points."""
    offset = _offset(noise, tail)
    side = min(max(2.5 * noise / offset, 0.03), 0.4)
    parts = np.array([side, 2 - 2 * side, side]) / 2
    return Layout(min(offset / slope, widest), np.array([-1.0, 0.0, 1.0]), parts, CURVE * tail * (offset / tail) ** 3)


def five(noise: float, tail: float, slope: float, widest: float, shrink: float) -> Layout:
    """Lay out five points, whose polynomial sees a cubic term too; narrower where the shoulders are steep."""
    offset = NARROWER * shrink * _offset(noise, tail)
    side = min(max(5.0 * noise / offset, 0.05), 0.5)
    parts = np.array([side * OUTER, side * (1 - OUTER), 2 - 2 * side, side * (1 - OUTER), side * OUTER]) / 2
    spacing = min(offset / (2 * slope), widest)
    # four: the product of the distances to the other nodes, in spacings, at the middle node
    allowance = max(CURVE * tail * (offset / tail) ** 3, SLOPE_ERROR * slope * spacing) / 4
    return Layout(spacing, np.arange(-2.0, 3.0), parts, allowance)


def pair(noise: float, tail: float, slope: float, widest: float) -> Layout:
    """Lay out two points close to the quantile: all their records count, and they see the slope there."""
    offset = NEAR * noise
    spacing = min(offset / slope, widest)
    return Layout(spacing, np.array([-1.0, 1.0]), np.array([0.5, 0.5]), CURVED * (slope * spacing) ** 2 / tail)


def _offset(noise: float, tail: float) -> float:
    return tail * min(WIDEST, FALL * math.pow(noise / tail, 1 / 3))


@dataclass(frozen=True)
class StagedStudy:
    """What the staged design needs to know: level, sites, and optional public knowledge."""

    tau: float
    crowd: SiteProfile
    bounds: tuple[float, float] | None = None
    scale: float | None = None
    alpha: float = 0.05
    coin: bytes = b""
    phases: bool = False  # whether records are asked if they keep to a grid
    watch: bool = True  # whether stages look at the shape, and hand over where it is not smooth

    @property
    def scarce(self) -> bool:
        """Tell whether the records are asked in pairs."""
        return support(self.crowd, self.tau).ratio > SCARCE

    @property
    def too_few(self) -> bool:
        """Tell whether there are too few records for anything but the certified interval."""
        return self.watch and support(self.crowd, self.tau).ratio > PAIRS.at(self.tau).refuse


class Milestone(NamedTuple):
    """Where the conversation stood after a stage."""

    rounds: int
    reports: int
    centre: float
    reach: float


@dataclass(frozen=True)
class Local:
    """What the stages left behind: everything the interval needs."""

    stages: tuple[Stage, ...]
    centre: float
    reach: float
    milestones: tuple[Milestone, ...]
    dips: bool
    fence: Answers | None = None  # all answers, where the last stage spoke against a smooth density


class KeptStage(NamedTuple):
    """An answered stage: its points as the lens shows them, and its allowance."""

    heard: Decoded
    places: Floats
    spacing: float
    allowance: float
    origin: float
    bend: float


def staged_protocol(
    study: StagedStudy, found: Found | None = None
) -> Generator[Ask, Ints, Local | Fitted | Certificate]:
    """Run the whole conversation: search, pilot, stages; what gets into trouble goes on as certified.

    ``found`` is a location and scale that another conversation has found already.
    """
    talker = QueryAllocator(study.crowd)
    if study.too_few:
        return (yield from certify(talker, study, found))
    if found is None:
        found = yield from find(talker, study.bounds, study.scale, tau=study.tau)
    if 1 / VAST < found.scale < VAST:
        guide = WorkingModel(found.centre, found.scale, study.tau)
        for heard in found.heard:
            guide.hear(heard)
        if study.scarce:
            fitted = yield from pairs_protocol(talker, study.tau, guide, found.scale if study.phases else 0.0)
            if fitted is not None:
                return fitted
        else:
            pilot = yield from find_pilot(talker, study.tau, guide)
            if pilot is not None and not (yield from _is_rough(talker, study, pilot, found.scale)):
                local = yield from _stages(talker, study, pilot)
                if local is not None:
                    return local
    return (yield from certify(talker, study, found))


def _is_rough(talker: QueryAllocator, study: StagedStudy, pilot: Decoded, scale: float) -> Generator[Ask, Ints, bool]:
    """Tell whether records keep to a grid, or the search had shrunk onto an atom."""
    slope = float(pilot.below[2] - pilot.below[0]) / float(pilot.points[2] - pilot.points[0])
    error = math.sqrt(study.crowd.unit_variance) / slope  # that of the quantile, from all records
    if study.watch and error > SHRUNK * scale:
        return True
    return study.phases and (yield from keep_to_a_grid(talker, error, scale))


def certify(talker: QueryAllocator, study: StagedStudy, found: Found | None) -> Generator[Ask, Ints, Certificate]:
    """Go on as certified with the records that are left; what was heard guides."""
    crowd, known = study.crowd, [*(found.heard if found is not None else ()), *talker.heard]
    rest = SiteProfile(crowd.shares, crowd.rates, crowd.sizes - talker.asked)
    handed = CertifiedStudy(study.tau, rest, study.alpha, study.coin, study.bounds, study.scale)
    return (yield from certified_protocol(handed, known, (talker.rounds, talker.reports)))


def _stages(talker: QueryAllocator, study: StagedStudy, pilot: Decoded) -> Generator[Ask, Ints, Local | None]:
    """Double the records stage by stage around the current root; None where a stage speaks against a smooth density."""
    tau, tail = study.tau, min(study.tau, 1 - study.tau)
    noise = math.sqrt(study.crowd.unit_variance)
    before = talker.spent - float(pilot.counts.sum() / study.crowd.sizes.sum())
    mass = float(pilot.below[2] - pilot.below[0]) / 2
    middle = float(pilot.points[1])
    bends = Bends(pilot)
    places = _seen(pilot.points, middle, bends.best)
    half = float(places[2] - places[0]) / 2
    kept = [KeptStage(pilot, places, half, FIRST_MASS * tail * max(0.6, mass / tail) ** 3, middle, bends.best)]
    if study.watch and _leans(pilot, places):
        return None
    slope, shrink, bent, dips, odd = mass / half, 1.0, False, False, False
    reach, before_pairs = float(pilot.points[2] - pilot.points[0]) / 2, slope
    centre = root(as_stages(kept, study), middle, reach)
    milestones = [Milestone(talker.rounds, talker.reports, centre, reach)]
    while talker.left > 1e-9:
        used = talker.spent - before
        now = min(used, talker.left)
        if talker.left - now < 0.35 * used:
            now = talker.left
        error, crooked, bend = noise / math.sqrt(used), bent, bends.best
        widest = 0.75 * float(np.diff(_seen(pilot.points[[0, 2]], centre, bend))[0]) / 2
        plan = five(error, tail, slope, widest, shrink) if crooked else three(error, tail, slope, widest)
        after = noise / math.sqrt(used + now)
        if study.watch and used + now > LATER and NEAR * after < CLOSER * _offset(error, tail):
            plan, crooked = pair(after, tail, slope, widest), False
        places = plan.spacing * plan.offsets
        heard = yield from talker.ask([back(place, centre, bend) for place in places], now * plan.parts)
        odd_here = study.watch and _is_odd(heard, as_stages(kept, study), tau, centre, before_pairs, plan)
        if odd_here or _is_lost(heard, tau):
            if talker.left > ENOUGH:
                return None
            odd = True
        steep = min(STEEP * (bend * plan.spacing) ** 2, 0.3)
        allowance = plan.allowance + steep * slope * plan.spacing / (4 if crooked else 1)
        if crooked:
            steeper, doubt = steeper_shoulders(heard)
            beyond = min(max(0.0, abs(steeper) - doubt), 2.0)
            shrink = min(shrink, max(0.5, 1 / (1 + beyond)))
            allowance += BENT * beyond * slope * plan.spacing / 4
            dips |= dips_between_shoulders(heard)
        elif len(places) == 3:
            steeper, doubt = steeper_pilot(
                pilot, pilot.points - centre, heard, float(heard.points[2] - heard.points[0]) / 2
            )
            beyond = steeper - 0.5 * doubt
            if beyond > BEND:
                bent, allowance = True, max(allowance, beyond * slope * plan.spacing)
        kept.append(KeptStage(heard, places, plan.spacing, allowance, centre, bend))
        slope = _slope(kept[1:], slope)
        if len(places) > 2:
            before_pairs = slope
            bends.hear(heard, places, bend)
        reach = float(heard.points[-1] - heard.points[0])
        centre = root(as_stages(kept, study), centre, 1.5 * reach)
        milestones.append(Milestone(talker.rounds, talker.reports, centre, reach))
    if study.watch:
        kept = _reconsidered(kept, centre)
        centre = root(as_stages(kept, study), centre, 1.5 * reach)
    fence = None
    if odd:
        fence = pooled(
            [float(point) for answer in talker.heard for point in answer.points],
            [float(value) for answer in talker.heard for value in answer.below],
            [1 / float(variance) for answer in talker.heard for variance in answer.variances],
        )
    return Local(tuple(as_stages(kept, study)), centre, reach, tuple(milestones), dips, fence)


def _seen(points: Floats, origin: float, bend: float) -> Floats:
    """Return points as a lens shows them."""
    return np.array([through(float(point), origin, bend) for point in points])


def _is_lost(heard: Decoded, tau: float) -> bool:
    """Tell whether a stage's middle point lies far from the level."""
    value, variance = _middle(heard)
    return abs(value - tau) > LOST * min(tau, 1 - tau) + 4 * math.sqrt(variance)


def _middle(heard: Decoded) -> tuple[float, float]:
    """Return the value in the middle of a stage, and its variance."""
    half = len(heard.points) // 2
    if len(heard.points) % 2:
        return float(heard.below[half]), float(heard.variances[half])
    return float(heard.below[half - 1 : half + 1].mean()), float(heard.variances[half - 1 : half + 1].sum()) / 4


def _is_odd(heard: Decoded, stages: list[Stage], tau: float, centre: float, slope: float, plan: Layout) -> bool:
    """Tell whether a stage contradicts a smooth density: its middle surprises, or its slope is another one."""
    value, variance = _middle(heard)
    _, known = information(stages, centre)
    if abs(value - tau) > SURPRISE * math.sqrt(variance + 1 / known):
        return True
    half = len(heard.points) // 2
    sides = heard.below[[half - 1, -half]]  # the neighbours of the middle, on both sides
    seen = float(sides[1] - sides[0]) / (2 * plan.spacing)
    error = math.sqrt(float(heard.variances[[half - 1, -half]].sum())) / (2 * plan.spacing)
    wide = float(np.ptp(stages[0].values[[0, 2]])) / float(np.ptp(stages[0].places[[0, 2]]))
    if len(heard.points) > 2:
        return seen + error < LATER_DIP * wide or seen - 4 * error > FAR_SIDE * slope
    dip = DIP if all(len(stage.places) > 2 for stage in stages) else LATER_DIP
    return seen + error < dip * wide or abs(seen - slope) > RATIO * math.hypot(error, DOUBT * slope)


def _leans(pilot: Decoded, places: Floats) -> bool:
    """Tell whether a pilot is much steeper on one side than on the other, even through the lens."""
    left, right = (float(slope) for slope in np.diff(pilot.below) / np.diff(places))
    return min(left, right) < LEANING * max(left, right)


def _reconsidered(kept: list[KeptStage], centre: float) -> list[KeptStage]:
    """Raise the allowance of stages whose slope at the quantile contradicts that of the last stage."""
    own = [_slope_at(stage, centre) for stage in kept]
    seen, error = own[-1]
    result = []
    for stage, (there, doubt) in zip(kept, own, strict=True):
        wrong = max(0.0, abs(there - seen) - math.hypot(error, doubt))
        part = stage.spacing / (4 if len(stage.places) == 5 else 1)
        result.append(stage._replace(allowance=max(stage.allowance, wrong * part)))
    return result


def _slope_at(stage: KeptStage, at: float) -> tuple[float, float]:
    """Return the slope of a stage's polynomial, seen through its lens, at a point, and the error of it."""
    gap = 1e-3 * stage.spacing
    ahead, behind = (_weights(stage.places, through(at + step, stage.origin, stage.bend)) for step in (gap, -gap))
    weights = (ahead - behind) / (2 * gap)
    return float(weights @ stage.heard.below), math.sqrt(float(weights**2 @ stage.heard.variances))


def _weights(places: Floats, at: float) -> Floats:
    """Return the weights of Lagrange's polynomial at a point."""
    others = [np.delete(places, j) for j in range(len(places))]
    return np.array([np.prod((at - other) / (place - other)) for place, other in zip(places, others, strict=True)])


def _slope(kept: list[KeptStage], before: float) -> float:
    """Pool the side contrasts within stages into one slope; keep the old one if noise swallowed it."""
    weight, total = 0.0, 0.0
    for heard, _, spacing, *_ in kept:
        right = (len(heard.points) + 1) // 2
        left = len(heard.points) - 1 - right  # the neighbours of the middle
        variance = float(heard.variances[left] + heard.variances[right])
        weight += 2 * spacing**2 / variance
        total += spacing * float(heard.below[right] - heard.below[left]) / variance
    slope = total / weight
    return slope if slope > 0.2 * before else before


def as_stages(kept: list[KeptStage], study: StagedStudy) -> list[Stage]:
    """Turn what was heard into stages of the test, with variances from the pooled middle points of each site."""
    crowd = study.crowd
    ones = np.sum([heard.ones[:, len(heard.points) // 2] for heard, *_ in kept], axis=0)
    counts = np.sum([heard.counts[:, len(heard.points) // 2] for heard, *_ in kept], axis=0)
    rate = (ones + 1) / (counts + 2)
    spread = (rate * (1 - rate) / crowd.rates**2)[:, None]
    return [
        Stage(
            places,
            heard.below - study.tau,
            np.sum(present_shares(crowd, heard.counts) ** 2 * spread / np.maximum(heard.counts, 1), axis=0),
            allowance,
            spacing,
            origin,
            bend,
        )
        for heard, places, spacing, allowance, origin, bend in kept
    ]
