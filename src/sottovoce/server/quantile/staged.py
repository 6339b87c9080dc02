"""The default method: search, pilot, then stages of frozen queries that double in size; pairs where records are scarce.

Every query is answered by the same fraction of each site's records. After a search for location and scale, a pilot of
three points and stages of three points close in on the quantile; where the distribution function is seen to bend as it
does between two modes, or with ``robust``, stages have five points. The interval inverts the test that weighs the
stages by their design (`inference.quantile.inversion`); what a stage shows may raise the allowance for its own
curvature, which lengthens the interval, and never lowers it.

Where the noise exceeds 4 % of the tail (`server.quantile.feasibility`), and ``robust`` is not asked for, the records
left after the search are asked in pairs instead (`server.quantile.scarce`).
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import SearchFailed
from sottovoce.inference.quantile.inversion import Stage, back, root, through
from sottovoce.server.quantile.asking import Ask, Decoded, QueryAllocator, SiteProfile, present_shares
from sottovoce.server.quantile.curvature import Bends, dips_between_shoulders, steeper_pilot, steeper_shoulders
from sottovoce.server.quantile.feasibility import SCARCE, support
from sottovoce.server.quantile.layout import BENT, five, three
from sottovoce.server.quantile.pilot import find_pilot
from sottovoce.server.quantile.scarce import Fitted, pairs_protocol
from sottovoce.server.quantile.search import Found, find
from sottovoce.server.quantile.working_model import WorkingModel

FIRST_MASS = 1.2  # allowance of the pilot, in units of its own cubed mass: it is wide, and may be wrong by its slope
STEEP = 0.1  # allowance for each squared change of the logarithm of the density over one spacing
BEND = 0.08  # relative slope error from which stages go on with five points
VAST = 1e100  # a scale beyond it, or below its inverse, is no finding: squares of it would not be numbers
LOST = 0.4  # of the tail: a middle point further off than this (and four errors) means the pilot was mistaken


@dataclass(frozen=True)
class StagedStudy:
    """What the staged design needs to know: level, sites, and optional public knowledge."""

    tau: float
    crowd: SiteProfile
    bounds: tuple[float, float] | None = None
    scale: float | None = None
    robust: bool = False

    @property
    def scarce(self) -> bool:
        """Tell whether the records are asked in pairs."""
        return not self.robust and support(self.crowd, self.tau).ratio > SCARCE


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


class KeptStage(NamedTuple):
    """An answered stage: its points as the lens shows them, and its allowance."""

    heard: Decoded
    places: Floats
    spacing: float
    allowance: float
    origin: float
    bend: float


def staged_protocol(study: StagedStudy, found: Found | None = None) -> Generator[Ask, Ints, Local | Fitted]:
    """Run the whole conversation: search, pilot, stages; start again, with more care, where it got lost.

    ``found`` is a location and scale that another conversation has found already.
    """
    talker = QueryAllocator(study.crowd)
    for attempt in range(3):
        if found is None or attempt > 0:
            found = yield from find(talker, study.bounds, study.scale, 0.8**attempt, attempt == 0, study.tau)
        if not 1 / VAST < found.scale < VAST:
            break
        guide = WorkingModel(found.centre, found.scale, study.tau)
        for heard in found.heard:
            guide.hear(heard)
        if study.scarce:
            fitted = yield from pairs_protocol(talker, study.tau, guide)
            if fitted is not None:
                return fitted
        for _ in range(0 if study.scarce else 3):
            pilot = yield from find_pilot(talker, study.tau, guide)
            if pilot is None:
                break
            local = yield from _stages(talker, study, pilot, guide)
            if local is not None:
                return local
        if talker.spent > 0.5:
            break
    raise SearchFailed(
        f"the search for the {study.tau:g} quantile asked {talker.spent:.0%} of the records without finding it; "
        "give public bounds= around it, or a resolution= if the records are rounded."
    )


def _stages(
    talker: QueryAllocator, study: StagedStudy, pilot: Decoded, guide: WorkingModel
) -> Generator[Ask, Ints, Local | None]:
    """Double the records stage by stage around the current root; None where the pilot turns out to be mistaken."""
    tau, tail = study.tau, min(study.tau, 1 - study.tau)
    noise = math.sqrt(study.crowd.unit_variance)
    before = talker.spent - float(pilot.counts.sum() / study.crowd.sizes.sum())
    mass = float(pilot.below[2] - pilot.below[0]) / 2
    middle = float(pilot.points[1])
    bends = Bends(pilot)
    places = _seen(pilot.points, middle, bends.best)
    half = float(places[2] - places[0]) / 2
    kept = [KeptStage(pilot, places, half, FIRST_MASS * tail * max(0.6, mass / tail) ** 3, middle, bends.best)]
    slope, shrink, bent, dips = mass / half, 1.0, False, False
    reach = float(pilot.points[2] - pilot.points[0]) / 2
    centre = root(as_stages(kept, study), middle, reach)
    milestones = [Milestone(len(talker.heard), talker.reports, centre, reach)]
    while talker.left > 1e-9:
        used = talker.spent - before
        now = min(used, talker.left)
        if talker.left - now < 0.35 * used:
            now = talker.left
        error, crooked, bend = noise / math.sqrt(used), study.robust or bent, bends.best
        widest = 0.75 * float(np.diff(_seen(pilot.points[[0, 2]], centre, bend))[0]) / 2
        plan = five(error, tail, slope, widest, shrink) if crooked else three(error, tail, slope, widest)
        places = plan.spacing * plan.offsets
        heard = yield from talker.ask([back(place, centre, bend) for place in places], now * plan.parts)
        if _is_lost(heard, tau):
            guide.hear(pilot)
            guide.hear(heard)
            return None
        steep = min(STEEP * (bend * plan.spacing) ** 2, 0.3)
        allowance = plan.allowance + steep * slope * plan.spacing / (4 if crooked else 1)
        if crooked:
            steeper, doubt = steeper_shoulders(heard)
            beyond = min(max(0.0, abs(steeper) - doubt), 2.0)
            shrink = min(shrink, max(0.5, 1 / (1 + beyond)))
            allowance += BENT * beyond * slope * plan.spacing / 4
            dips |= dips_between_shoulders(heard)
        else:
            steeper, doubt = steeper_pilot(
                pilot, pilot.points - centre, heard, float(heard.points[2] - heard.points[0]) / 2
            )
            beyond = steeper - 0.5 * doubt
            if beyond > BEND:
                bent, allowance = True, max(allowance, beyond * slope * plan.spacing)
        kept.append(KeptStage(heard, places, plan.spacing, allowance, centre, bend))
        slope = _slope(kept[1:], slope)
        bends.hear(heard, places, bend)
        reach = float(heard.points[-1] - heard.points[0])
        centre = root(as_stages(kept, study), centre, 1.5 * reach)
        milestones.append(Milestone(len(talker.heard), talker.reports, centre, reach))
    return Local(tuple(as_stages(kept, study)), centre, reach, tuple(milestones), dips)


def _seen(points: Floats, origin: float, bend: float) -> Floats:
    """Return points as a lens shows them."""
    return np.array([through(float(point), origin, bend) for point in points])


def _is_lost(heard: Decoded, tau: float) -> bool:
    """Tell whether a stage's middle point lies far from the level."""
    middle = len(heard.points) // 2
    allowed = LOST * min(tau, 1 - tau) + 4 * math.sqrt(float(heard.variances[middle]))
    return abs(float(heard.below[middle]) - tau) > allowed


def _slope(kept: list[KeptStage], before: float) -> float:
    """Pool the side contrasts within stages into one slope; keep the old one if noise swallowed it."""
    weight, total = 0.0, 0.0
    for heard, _, spacing, *_ in kept:
        middle = len(heard.points) // 2
        variance = float(heard.variances[middle - 1] + heard.variances[middle + 1])
        weight += 2 * spacing**2 / variance
        total += spacing * float(heard.below[middle + 1] - heard.below[middle - 1]) / variance
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
