"""The default method: search, pilot, then stages of frozen queries that double in size; pairs where records are scarce.

Every query is answered by the same fraction of each site's records. After a search for location and scale, a pilot of
three points and stages of three points close in on the quantile; where the distribution function is seen to bend as it
does between two modes, stages have five points, and the last ones are pairs close to it. The interval inverts the test
that weighs the stages by their design (`inference.quantile.inversion`); what is seen may raise the allowance for a
stage's curvature, which lengthens the interval, and never lowers it.

Where the noise exceeds 4 % of the tail (`server.quantile.feasibility`), the records left after the search are asked in
pairs instead (`server.quantile.scarce`).

Where a stage speaks against a smooth density (`server.quantile.shape`), the records left are certified; where few are,
the interval goes on to points that are sure.

What comes late to a stage joins its sums, once the next has answered: where that one asks did not depend on it. Late
answers to the search or to a grid come after what they could decide, and are only counted; those to a rough pilot are
known to whatever reads all answers, as the fence and the certified guide.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.inference.quantile.inversion import Stage, back, information, root, through
from sottovoce.server.quantile.apart import completed, grouped, groups_of, letter_variances
from sottovoce.server.quantile.asking import LOCAL, Ask, Decoded, QueryAllocator, SiteProfile, counted
from sottovoce.server.quantile.certified.protocol import Certificate, CertifiedStudy, certified_protocol
from sottovoce.server.quantile.curvature import Bends, dips_between_shoulders, steeper_pilot, steeper_shoulders
from sottovoce.server.quantile.feasibility import PAIRS, SCARCE, support
from sottovoce.server.quantile.fence import Fence, fence_of
from sottovoce.server.quantile.grid import keep_to_a_grid
from sottovoce.server.quantile.layouts import NEAR, KeptStage, five, mass_offset, pair, three
from sottovoce.server.quantile.pilot import find_pilot
from sottovoce.server.quantile.scarce import Fitted, pairs_protocol
from sottovoce.server.quantile.search import Found, find
from sottovoce.server.quantile.shape import is_lost, is_odd, leans, reconsidered
from sottovoce.server.quantile.working_model import WorkingModel

BENT = 0.4  # more allowance of five points, for each unit by which the shoulders were seen to be steeper
FIRST_MASS = 1.2  # allowance of the pilot, in units of its own cubed mass: it is wide, and may be wrong by its slope
STEEP = 0.1  # allowance for each squared change of the logarithm of the density over one spacing
BEND = 0.08  # relative slope error from which stages go on with five points
VAST = 1e100  # a scale beyond it, or below its inverse, is no finding: squares of it would not be numbers
ENOUGH = 0.2  # of the records: what is left is worth certifying
LATER, CLOSER = 0.3, 0.4  # part of the records from which on stages are such pairs, if so much closer than three points
SHRUNK = 10.0  # errors of the quantile over the scale that the search found: it found that of an atom


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
    window: tuple[float, float] | None = None  # about what they found, where a certified study asks
    mixed: bool = False  # whether what answers as a site is the records of one weight, drawn along with the others

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
    fence: Fence | None = None  # where the last stage spoke against a smooth density


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
            spread = found.scale if study.phases else 0.0
            fitted = yield from pairs_protocol(talker, study.tau, guide, spread, study.bounds, study.mixed)
            if fitted is not None:
                return fitted
        else:
            pilot = yield from find_pilot(talker, study.tau, guide)
            if pilot is not None and not (yield from _is_rough(talker, study, pilot, found.scale)):
                local = yield from _stages(talker, study, talker.with_late(pilot))
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
    rest = SiteProfile(crowd.shares, crowd.rates, np.maximum(crowd.sizes - talker.asked, 0))
    handed = CertifiedStudy(study.tau, rest, study.alpha, study.coin, study.bounds, study.scale, study.window)
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
    if study.watch and leans(pilot, places):
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
        more = _more_noise(kept, study, centre, noise / math.sqrt(used))
        error, crooked, bend = more * noise / math.sqrt(used), bent, bends.best
        widest = 0.75 * float(np.diff(_seen(pilot.points[[0, 2]], centre, bend))[0]) / 2
        plan = five(error, tail, slope, widest, shrink) if crooked else three(error, tail, slope, widest)
        after = more * noise / math.sqrt(used + now)
        if study.watch and used + now > LATER and NEAR * after < CLOSER * mass_offset(error, tail):
            plan, crooked = pair(after, tail, slope, widest), False
        places = plan.spacing * plan.offsets
        points = [back(place, centre, bend) for place in places]
        apart = bool(np.all(np.diff(points) > 0)) or not study.watch
        if not (apart and np.all(np.isfinite(points))):  # around an atom, as narrow as doubles go
            return None
        heard = yield from talker.ask(points, now * plan.parts, need=LOCAL)
        kept = [stage._replace(heard=talker.with_late(stage.heard)) for stage in kept]
        if heard.absent is not None:
            if not np.all(heard.counts.any(axis=0)):  # only who is away has records left
                continue
            heard = talker.heard[-1] = completed(heard, kept, study.crowd, tau)
        odd_here = study.watch and is_odd(heard, as_stages(kept, study), tau, centre, before_pairs, plan)
        if odd_here or is_lost(heard, tau):
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
        kept = reconsidered(kept, centre)
        centre = root(as_stages(kept, study), centre, 1.5 * reach)
        milestones[-1] = milestones[-1]._replace(centre=centre)
    fence = fence_of(talker.heard, tau, study.bounds) if odd else None
    return Local(tuple(as_stages(kept, study)), centre, reach, tuple(milestones), dips, fence)


def _seen(points: Floats, origin: float, bend: float) -> Floats:
    """Return points as a lens shows them."""
    return np.array([through(float(point), origin, bend) for point in points])


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


def _more_noise(kept: list[KeptStage], study: StagedStudy, centre: float, meant: float) -> float:
    """Return by what factor the noise is larger than if nobody had been absent."""
    if all(stage.heard.absent is None for stage in kept):
        return 1.0
    return max(1.0, 1 / math.sqrt(information(as_stages(kept, study), centre)[1]) / meant)


def as_stages(kept: list[KeptStage], study: StagedStudy) -> list[Stage]:
    """Turn what was heard into stages of the test, with variances from the pooled middle points of each site.

    From the first absence on, every group of sites that were in the same stages has values of its own.
    """
    crowd, drawn = study.crowd, study.tau if study.mixed else None
    if any(heard.absent is not None for heard, *_ in kept):
        return grouped(kept, crowd, study.tau, groups_of([heard for heard, *_ in kept]), drawn)
    spread = letter_variances(kept, crowd, drawn)
    return [
        Stage(
            places,
            heard.below - study.tau,
            np.sum(counted(crowd, heard.counts).noise * spread, axis=0),
            allowance,
            spacing,
            origin,
            bend,
        )
        for heard, places, spacing, allowance, origin, bend in kept
    ]
