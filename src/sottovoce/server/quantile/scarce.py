"""Stages for scarce records: pairs of points around the quantile, read by a smooth curve.

Where the noise of the distribution function is a few percent of the tail, the three-point stages of
`server.quantile.staged` know their own slope too badly. Here all answers inform one curve with three parameters.
Opening pairs, one logit to both sides of where the guide believes the quantile to be, go on until a pair agrees with
the curve; then three pairs, each narrower, take 15, 35 and 50 % of the records left. The last fit uses all pairs, the
wide ones less than they say: what the curve leaves out there counts as noise. A pair holds what came late to it.
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.quantile.logit_curve import LogitCurve, Prior, Readings, allowed, expected, fit, measure
from sottovoce.server.quantile.asking import Ask, Decoded, QueryAllocator, SiteProfile, counted
from sottovoce.server.quantile.fence import Fence, fence_of
from sottovoce.server.quantile.grid import keep_to_a_grid
from sottovoce.server.quantile.working_model import WorkingModel

TRIES = 18
LEAST, MOST, PRECISE = 0.01, 0.03, 4.0  # an opening pair: parts of the records, and noise it aims at, in tails
AGREES = 9.0  # chi-square of two values below which the newest pair agrees with the curve
CENTRAL, STEADY = 0.7, 0.8  # how far, in half widths and logarithms, the curve may move after a pair it agrees with
GIVE_UP = 0.8  # of all records, for the opening
WIDE, WIDEST, LEAST_WIDE = 2.0, 1.0, 0.3  # first pair in logits: WIDE times the cube root of the noise
NARROW = (0.7, 0.5)  # second and third: the square root of these times the noise
PARTS = (0.15, 0.35)  # of what the opening left, for the first and the second pair
PRIOR = Prior(0.0, 4.0, 0.0, 2.0, 0.7)  # in logits around the guide's belief
LAST_BESIDE = 2.5  # errors by which both points of the last pair are on one side: an atom is between it and the others
NEWEST, SHRUNK = 3, 2.0  # pairs that tell sites apart, and as how many answers of a site at the level count beforehand
BESIDE = 0.4  # of the tail: both points further off than this (and four errors) on one side: the opening was mistaken


class Mark(NamedTuple):
    """Where the conversation stood after a pair."""

    rounds: int
    reports: int
    measured: SiteEstimate


class WhoAnswers(NamedTuple):
    """Who is asked for which level, and whether each is a part that was drawn along with the others."""

    crowd: SiteProfile
    tau: float
    mixed: bool


@dataclass(frozen=True)
class Fitted:
    """What the pairs left behind: estimate, error and degrees of freedom, the way there, and the last fit.

    The answers and the curve of that fit are in units of one logit, around ``origin``.
    """

    measured: SiteEstimate
    milestones: tuple[Mark, ...]
    misfit: float
    pairs: int
    answers: Readings
    curve: LogitCurve
    origin: float
    unit: float
    fence: Fence | None = None  # where the last pair missed the quantile


def pairs_protocol(
    talker: QueryAllocator,
    tau: float,
    guide: WorkingModel,
    scale: float = 0.0,
    bounds: tuple[float, float] | None = None,
    mixed: bool = False,
) -> Generator[Ask, Ints, Fitted | None]:
    """Ask all records in pairs; None where no pair agrees with what the others said, or records keep to a grid.

    They are asked for a grid where the ``scale`` of the records is given. Sites are ``mixed`` if each is the records of
    one weight, drawn along with the others.
    """
    crowd, logit, asked = talker.crowd, math.log(tau / (1 - tau)), WhoAnswers(talker.crowd, tau, mixed)
    noise = math.sqrt(crowd.unit_variance - (tau - 0.5) ** 2 * float(np.sum(crowd.shares**2 / crowd.sizes)))
    tail, spread = min(tau, 1 - tau), tau * (1 - tau)
    outer = np.array([_expit(logit - 1), tau, _expit(logit + 1)])
    share = max(LEAST, min((PRECISE * noise / tail) ** 2, MOST))
    opening: list[Decoded] = []
    start = talker.spent
    marks: list[Mark] = []
    agreed, belief = False, guide.quantiles(outer)
    while not agreed:
        if len(opening) == TRIES or talker.spent > start + GIVE_UP:
            return None
        low, _, high = belief
        part = min(share, talker.left)
        heard = yield from talker.ask([low, high], [part / 2, part / 2])
        opening = [talker.with_late(answer) for answer in opening]
        guide.hear(heard)
        belief = guide.quantiles(outer)
        opening.append(heard)
        curve = _curve(asked, opening, belief)
        agreed = len(opening) > 1 and _agrees(asked, curve, opening)
        marks.append(_mark(talker, curve, 2 * len(opening)))
    if scale > 0 and (yield from keep_to_a_grid(talker, noise / (spread * curve.slope), scale)):
        return None
    left = talker.left
    sharp = noise / (math.sqrt(left) * spread)
    first = min(max(WIDE * (noise / spread) ** (1 / 3), LEAST_WIDE), WIDEST)
    widths = (first, *(min(WIDEST, math.sqrt(factor * sharp)) for factor in NARROW))
    pairs: list[Decoded] = []
    for i, (width, part) in enumerate(zip(widths, (PARTS[0] * left, PARTS[1] * left, math.inf), strict=True)):
        now, reach = min(part, talker.left), width / curve.slope
        ends = [curve.root - reach, curve.root + reach]
        if not np.all(np.isfinite(ends)):
            return None
        heard = yield from talker.ask(ends, [now / 2, now / 2])
        opening, pairs = ([talker.with_late(answer) for answer in some] for some in (opening, pairs))
        if talker.left > 0 and _is_beside(heard, tau, BESIDE * tail, 4.0):
            return None
        pairs.append(heard)
        if i < 2:
            kept = pairs if i == 1 else [*opening, *pairs]
            curve = _curve(asked, kept, belief)
            marks.append(_mark(talker, curve, 2 * len(kept)))
    kept, (origin, unit) = [*opening, *pairs], _frame(belief)
    answers = allowed(_answers(asked, kept, origin, unit), (curve.root - origin) / unit, curve.slope * unit)
    seen = fit(answers, PRIOR, curved=True)
    marks.append(_mark(talker, _scaled(seen, origin, unit), 2 * len(kept)))
    fence = fence_of(talker.heard, tau, bounds) if _is_beside(pairs[-1], tau, 0.0, LAST_BESIDE) else None
    return Fitted(marks[-1].measured, tuple(marks), seen.misfit, len(kept), answers, seen, origin, unit, fence)


def _frame(belief: Floats) -> tuple[float, float]:
    """Return the origin and the unit, one logit, in which curves are fitted: what the guide believes."""
    low, root, high = (float(value) for value in belief)
    return root, max((high - low) / 2, math.ulp(root), 1e-300)


def _answers(asked: WhoAnswers, heard: list[Decoded], origin: float, unit: float) -> Readings:
    """Lay some answers end to end for a fit; the last of them, which are next to the quantile, tell the sites apart."""
    ceilings, drops = zip(*_noise(asked, heard), strict=True)
    return Readings(
        np.concatenate([(answer.points - origin) / unit for answer in heard]),
        np.concatenate([answer.below for answer in heard]),
        np.concatenate(ceilings),
        np.concatenate(drops),
        asked.tau,
    )


def _curve(asked: WhoAnswers, heard: list[Decoded], belief: Floats) -> LogitCurve:
    """Fit a straight curve to some answers, starting from what the guide believes."""
    origin, unit = _frame(belief)
    return _scaled(fit(_answers(asked, heard, origin, unit), PRIOR, curved=False), origin, unit)


def _scaled(seen: LogitCurve, origin: float, unit: float) -> LogitCurve:
    """Return a curve in the coordinate of the records."""
    scaled = seen.covariance.copy()
    scaled[0, :] *= unit
    scaled[:, 0] *= unit
    return seen._replace(root=origin + unit * seen.root, log_slope=seen.log_slope - math.log(unit), covariance=scaled)


def _agrees(asked: WhoAnswers, curve: LogitCurve, opening: list[Decoded]) -> bool:
    """Tell whether the curve passes near the newest pair, and its middle and slope are where the pair expected them."""
    heard = opening[-1]
    middle, half = float(heard.points.mean()), float(heard.points[1] - heard.points[0]) / 2
    if half <= 0 or not np.all(heard.variances > 0):  # points as close as doubles go, or nobody left to ask
        return False
    model = expected(curve, heard.points, asked.tau)
    ceilings, drops = _noise(asked, opening)[-1]
    variances = ceilings - drops * (model - 0.5) ** 2
    return (
        float(np.sum((heard.below - model) ** 2 / variances)) < AGREES
        and abs(curve.root - middle) < CENTRAL * half
        and abs(math.log(half) + curve.log_slope) < STEADY
    )


def _is_beside(heard: Decoded, tau: float, off: float, errors: float) -> bool:
    """Tell whether both points of a pair clearly lie on one side of the quantile, by more than a mass."""
    clear = off + errors * np.sqrt(heard.variances)
    return bool(np.all(heard.below - tau > clear) or np.all(tau - heard.below > clear))


def _noise(asked: WhoAnswers, heard: list[Decoded]) -> list[tuple[Floats, Floats]]:
    """Return of each answer the variance at one half, and by how much it falls away from there.

    A value ``F`` of one site has the variance ``(1 / (4 r^2) - (F - 1/2)^2) / n``. Of several it is taken as if each
    had the same ``F``, unless they differ so that it is larger at the quantile: then it is what their own values there
    make it, which their newest answers tell. What is drawn along with the others varies in its share, too.
    """
    crowd, tau = asked.crowd, asked.tau
    near = heard[-NEWEST:]
    ones, counts = (np.sum([part.sum(axis=1) for part in parts], axis=0)
                    for parts in ([each.ones for each in near], [each.counts for each in near]))  # fmt: skip
    usual = (1 - crowd.rates) / 2 + crowd.rates * (1 - tau)
    rate = (ones + SHRUNK * usual) / (counts + SHRUNK)
    below = np.clip(1 - (rate - (1 - crowd.rates) / 2) / crowd.rates, 0.0, 1.0)
    within, drawn = rate * (1 - rate) / crowd.rates**2, (below - tau) ** 2
    found = []
    for each in heard:
        _, noise, few = counted(crowd, each.counts, each.absent)
        drops = noise.sum(axis=0)
        here = np.sum(noise * (within[:, None] + drawn[:, None] * (few | asked.mixed)), axis=0)
        alike = np.sum(noise * (1 / (4 * crowd.rates**2) - (tau - 0.5) ** 2)[:, None], axis=0)
        found.append((each.variances + np.maximum(here - alike, 0.0), drops))
    return found


def _mark(talker: QueryAllocator, curve: LogitCurve, number: int) -> Mark:
    """Write down what is known so far."""
    return Mark(talker.rounds, talker.reports, measure(curve, number))


def _expit(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))
