"""The default method: search, pilot, then stages of frozen queries that double in size (staged design).

Every query is answered by the same fraction of each site's records. After a search for location and scale, a pilot of
three points and stages of three (``robust``: five) points close in on the quantile; the interval comes from inverting
the test that weighs the stages by their design alone (`inference.inversion`).
"""

import math
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from sottovoce.errors import Lost
from sottovoce.estimators.asking import Ask, Counts, Crowd, Heard, Talker
from sottovoce.estimators.guide import Guide
from sottovoce.estimators.search import find
from sottovoce.inference.inversion import Stage, invert, root


@dataclass(frozen=True)
class StagedStudy:
    """What the staged design needs to know: level, sites, and optional public knowledge."""

    tau: float
    crowd: Crowd
    bounds: tuple[float, float] | None = None
    scale: float | None = None
    robust: bool = False

    @property
    def tail(self) -> float:
        """Return the smaller of tau and 1 - tau."""
        return min(self.tau, 1 - self.tau)


@dataclass(frozen=True)
class Local:
    """What the local stages left behind: everything the interval needs."""

    stages: tuple[Stage, ...]
    centre: float
    reach: float
    wide: float
    searched: float
    suspicious: bool


def talk(study: StagedStudy) -> Generator[Ask, Counts, Local]:
    """Run the whole conversation: search, pilot, stages."""
    talker = Talker(study.crowd)
    for attempt in range(3):
        found = yield from find(talker, study.bounds, study.scale, care=0.6**attempt)
        guide = Guide(found.centre, found.scale, study.tau)
        for heard in found.heard:
            guide.hear(heard.points, heard.below, heard.variances)
        for _ in range(3):
            pilot = yield from _pilot(talker, study, guide)
            if pilot is None:
                break
            local = yield from _stages(talker, study, pilot, guide)
            if local is not None:
                return local
        if talker.spent > 0.5:
            break
    raise Lost("the search did not find the quantile; give public bounds=, or check that the data are not constant.")


def _pilot(talker: Talker, study: StagedStudy, guide: Guide) -> Generator[Ask, Counts, Heard | None]:
    """Find three points around the quantile that hold about .6 of the tail on each side."""
    tau, tail, unit = study.tau, study.tail, study.crowd.unit_variance
    levels = np.array([tau - 0.6 * tail, tau, tau + 0.6 * tail])
    rough = unit / (ROUGH * tail) ** 2
    tries = 0
    while talker.spent < 0.6 and tries < 10:
        tries += 1
        heard = yield from talker.ask(guide.quantiles(levels), np.full(3, rough))
        guide.hear(heard.points, heard.below, heard.variances)
        if not _brackets(heard, tau, tail, slack=0.3):
            continue
        share = min(max((math.sqrt(unit) / (0.06 * tail)) ** 2, 0.05), 0.15) * talker.left
        heard = yield from talker.ask(guide.quantiles(levels), share * np.array([0.3, 0.4, 0.3]))
        if _brackets(heard, tau, tail, slack=0.0):
            return heard
        guide.hear(heard.points, heard.below, heard.variances)
        tries += 2
    return None


def _brackets(heard: Heard, tau: float, tail: float, slack: float) -> bool:
    """Tell whether three points bracket the level with a usable mass between them."""
    low, middle, high = heard.below
    error = math.sqrt(float(heard.variances[0] + heard.variances[2])) / 2
    mass = (high - low) / 2
    inside = low + (0.1 - slack) * tail < tau < high - (0.1 - slack) * tail
    central = abs(middle - tau) < 0.5 * tail + 2 * math.sqrt(float(heard.variances[1]))
    return bool(inside and central and max(0.25 * tail, 2 * error) < mass < 0.85 * tail + error)


def _stages(talker: Talker, study: StagedStudy, pilot: Heard, guide: Guide) -> Generator[Ask, Counts, Local | None]:
    """Double the records a stage, around the current root, with side points that shrink."""
    tau, tail = study.tau, study.tail
    noise = math.sqrt(study.crowd.unit_variance)
    searched = talker.spent - _used(study.crowd, pilot)
    half = (pilot.points[2] - pilot.points[0]) / 2
    pilot_mass = (pilot.below[2] - pilot.below[0]) / 2
    widest = 0.75 * half
    kept: list[tuple[Heard, float, float]] = [(pilot, half, 1.2 * tail * max(0.6, pilot_mass / tail) ** 3)]
    slope = pilot_mass / half
    shrink, bump, five = 1.0, 0.0, study.robust
    suspicious = False
    centre = root(_as_stages(kept, study), float(pilot.points[1]), float(half))
    while talker.left > 1e-9:
        used = talker.spent - searched
        now = min(used, talker.left)
        if talker.left - now < 0.35 * used:
            now = talker.left
        error = noise / math.sqrt(used)
        offset = tail * min(XMAX, CSHR * (error / tail) ** (1 / 3))
        side = min(max(2.5 * error / offset, 0.03), 0.4)
        side = min(side / shrink, 0.45)
        spacing = min(shrink * offset / slope, widest)
        if five:
            offset *= RW * shrink
            side = min(max(ROM * error / offset, 0.05), 0.5)
            spacing = min(0.5 * offset / slope, widest)
            points = centre + spacing * np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
            parts = np.array([side * ROB, side * (1 - ROB), 2 - 2 * side, side * (1 - ROB), side * ROB]) / 2
        else:
            points = centre + spacing * np.array([-1.0, 0.0, 1.0])
            parts = np.array([side, 2 - 2 * side, side]) / 2
        heard = yield from talker.ask(points, now * parts)
        middle = len(points) // 2
        if abs(heard.below[middle] - tau) > 0.4 * tail + 4 * math.sqrt(float(heard.variances[middle])):
            guide.hear(pilot.points, pilot.below, pilot.variances)
            guide.hear(heard.points, heard.below, heard.variances)
            return None
        allowance = ALW * tail * (offset / tail) ** 3
        if five:
            bent, doubt = _bend(heard, spacing)
            beyond = min(max(0.0, bent - DOU * doubt), 2.0)
            shrink = min(shrink, max(0.5, 1 / (1 + SHR * beyond)))
            allowance = max(allowance, (KAP + CB * beyond) * slope * spacing) / 4
        kept.append((heard, spacing, allowance))
        slope = _slope(kept[1:], slope)
        if not five:
            shrink, bump = _nonlinear(pilot, half, heard, spacing, centre)
            if bump > AUTO:
                five = suspicious = True
                kept[-1] = (heard, spacing, max(allowance, bump * slope * spacing))
            shrink = 1.0
        centre = root(_as_stages(kept, study), centre, 3 * spacing)
    last = kept[-1][1]
    return Local(tuple(_as_stages(kept, study)), centre, 2 * last, 1.3 * last, searched, suspicious)

XMAX, CSHR, ROB = 0.4, 1.5, 0.12
RW, ROM, KAP = 0.85, 5.0, 0.2
AUTO, SEB = 0.06, 0.5
DOU, SHR, CB = 1.0, 1.0, 0.4
ROUGH, ALW = 0.35, 0.9

def _bend(heard: Heard, spacing: float) -> tuple[float, float]:
    """Return how much the outer secant of five points differs from the inner one, relatively, and its error."""
    below, variances = heard.below, heard.variances
    inner, outer = (below[3] - below[1]) / 2, (below[4] - below[0]) / 4
    inner_error = math.sqrt(float(variances[1] + variances[3])) / 2
    outer_error = math.sqrt(float(variances[0] + variances[4])) / 4
    if inner < 2 * inner_error:
        return 1.0, 0.0
    return abs(outer / inner - 1), math.hypot(outer_error / inner, outer * inner_error / inner**2)


def _used(crowd: Crowd, heard: Heard) -> float:
    return float(heard.counts.sum() / crowd.sizes.sum())


def _slope(kept: list[tuple[Heard, float, float]], before: float) -> float:
    """Pool the side contrasts within stages into one slope."""
    weight, total = 0.0, 0.0
    for heard, spacing, _ in kept:
        n = len(heard.points) // 2
        precision = (2 * spacing) ** 2 / float(heard.variances[n - 1] + heard.variances[n + 1])
        total += precision * float(heard.below[n + 1] - heard.below[n - 1]) / (2 * spacing)
        weight += precision
    slope = total / weight
    return slope if slope > 0.2 * before else before


def _nonlinear(pilot: Heard, wide: float, heard: Heard, narrow: float, centre: float) -> tuple[float, float]:
    """Compare the pilot's slope at the centre with the stage's; return (shrink, relative slope error)."""
    x, y = pilot.points, pilot.below
    first, second = (y[1] - y[0]) / (x[1] - x[0]), (y[2] - y[1]) / (x[2] - x[1])
    curve = (second - first) / (x[2] - x[0])
    wide_slope = first + curve * (2 * centre - x[0] - x[1])
    wide_error = math.sqrt(float(pilot.variances[0] + pilot.variances[2])) / (2 * wide)
    near_slope = float(heard.below[2] - heard.below[0]) / (2 * narrow)
    near_error = math.sqrt(float(heard.variances[0] + heard.variances[2])) / (2 * narrow)
    if near_slope <= 0 or wide_slope <= 0:
        return 1.0, 0.0
    factor = narrow**2 / max(wide**2 - narrow**2, wide**2 / 2)
    ratio = wide_slope / near_slope
    error = factor * ratio * math.hypot(wide_error / wide_slope, near_error / near_slope)
    beyond = max(0.0, (ratio - 1) * factor - SEB * error)
    if beyond <= 0.03:
        return 1.0, 0.0
    return max(0.35, math.sqrt(0.03 / beyond)), beyond


def _as_stages(kept: list[tuple[Heard, float, float]], study: StagedStudy) -> list[Stage]:
    """Turn what was heard into stages of the test, with variances from the pooled middle points."""
    crowd = study.crowd
    middle_ones = sum(heard.ones[:, len(heard.points) // 2] for heard, _, _ in kept)
    middle_counts = sum(heard.counts[:, len(heard.points) // 2] for heard, _, _ in kept)
    rate = (middle_ones + 1) / (middle_counts + 2)
    spread = crowd.shares**2 * rate * (1 - rate) / crowd.rates**2
    stages = []
    for heard, spacing, allowance in kept:
        variances = np.sum(spread[:, None] / np.maximum(heard.counts, 1), axis=0)
        stages.append(Stage(heard.points, heard.below - study.tau, variances, allowance, spacing))
    return stages


def interval(local: Local, z: float) -> tuple[float, float, float]:
    """Return estimate and interval at a normal quantile."""
    return tuple(invert(list(local.stages), local.centre, local.reach, z))
