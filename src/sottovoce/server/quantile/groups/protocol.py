"""Groups as one conversation: a common search that guides all of them, then one conversation a group, side by side.

Alone, a small group would spend most of its records on finding out where its quantile is. Together the groups find it
with a few percent of everybody's: location and scale of all records, which then guide each group, and say within which
window a certified one is asked. No answer of the search is evidence about a group, and no end is cut off at the window.

Where some group is so small that its own answers could not show that its density is not smooth
(`server.quantile.scarce`), part of everybody's records answers a pooled study first, which looks for that: where it
finds atoms, a grid, a valley or a gap, those groups are certified. Whether records keep to a grid, as amounts do that
people round, is asked of all records together, too, where some group has too few to see it: such groups are certified
then.

Groups share no record and no noise. Given the search, what one group answers is independent of what the others do, so
that intervals of all groups at the levels ``level^(1/m)`` hold together with probability ``level`` (Šidák 1967).
"""

import math
from collections.abc import Generator, Sequence
from dataclasses import replace
from itertools import compress
from statistics import median
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Bools, Ints
from sottovoce.server.quantile.asking import Ask, Decoded, QueryAllocator, SiteProfile, spread_offsets
from sottovoce.server.quantile.certified.protocol import Certificate
from sottovoce.server.quantile.feasibility import STAGES, support
from sottovoce.server.quantile.grid import SHARE, keep_to_a_grid, share_needed
from sottovoce.server.quantile.levels import together
from sottovoce.server.quantile.method import default_protocol
from sottovoce.server.quantile.scarce import Fitted
from sottovoce.server.quantile.search import Found, find
from sottovoce.server.quantile.staged import VAST, Local, StagedStudy, staged_protocol

LOOK, WEAK = 0.012, 0.03  # noise over tail: with which a pooled study sees nearly all that is not smooth; the most
LEAST, MOST = 0.03, 0.2  # of the records: what it takes at least, and at most
WINDOW = 25.0  # scales about the centre in which certified groups are asked
ATOM = 1.0  # errors of a group: atoms of a grid of so much mass, or more, are not left to a smooth curve
HINT = 0.15  # standard error that a hint of the search counts as: groups may lie elsewhere
PLACES, BELOW = (-5.0, -1.0, 0.0, 1.0, 5.0), (0.02, 0.25, 0.5, 0.75, 0.98)  # what is hinted, in scales about the centre


class Opening(NamedTuple):
    """What all groups learn together: where the records lie, whether their density is smooth (None: not known)."""

    found: Found | None
    smooth: bool | None
    left: Ints
    grid: bool = False  # whether the records of all keep to a grid, where that was asked


def has_common_search(whole: SiteProfile, groups: int) -> bool:
    """Tell whether the groups search together: there are several, and enough records in all."""
    return groups > 1 and support(whole, 0.5).ratio < STAGES.refuse


def part_looking(whole: SiteProfile, tau: float) -> float:
    """Return the part of the records that looks whether the density is smooth; none where they could not see it."""
    ratio = support(whole, tau).ratio
    part = min(max((ratio / LOOK) ** 2, LEAST), MOST)
    return part if ratio <= WEAK * math.sqrt(part) else 0.0


def groups_protocol(
    studies: Sequence[StagedStudy], members: Sequence[Ints], whole: SiteProfile, certified: Sequence[bool]
) -> Generator[Ask, Ints, list[Local | Fitted | Certificate]]:
    """Search together, then run one conversation a group, each with its own sites, ``members`` of the whole."""
    watchful = [study for study, exact in zip(studies, certified, strict=True) if not exact and study.scarce]
    blind = [not exact and study.phases and share_needed(study.crowd) > SHARE
             for study, exact in zip(studies, certified, strict=True)]  # fmt: skip
    opening = yield from _open(studies[0], len(studies), whole, bool(watchful), list(compress(studies, blind)))
    talks, asked, found = [], [], opening.found
    for study, own, exact, unseeing in zip(studies, members, certified, blind, strict=True):
        crowd, stay = _left(study.crowd, opening.left[own])
        exact |= unseeing and opening.grid
        study = replace(study, crowd=crowd, phases=study.phases and not (unseeing and found is not None))
        if found is not None:
            scale = found.scale if study.scale is None else study.scale
            window = found.centre - WINDOW * found.scale, found.centre + WINDOW * found.scale
            study = replace(study, scale=scale, window=window, located=opening.smooth is True)
        exact = exact or study.too_few or (study.scarce and opening.smooth is False)
        talks.append(default_protocol(study, exact, found))
        asked.append(own[stay])
    return (yield from together(talks, asked, len(whole.sizes)))


def _left(crowd: SiteProfile, left: Ints) -> tuple[SiteProfile, Bools]:
    """Return the profile of the sites that have records left, and which they are."""
    stay = left > 0
    shares = crowd.shares[stay]
    return SiteProfile(shares / shares.sum(), crowd.rates[stay], left[stay]), stay


def _open(
    first: StagedStudy, groups: int, whole: SiteProfile, watchful: bool, blind: Sequence[StagedStudy]
) -> Generator[Ask, Ints, Opening]:
    """Find location and scale for all, and look whether the density is smooth where some group needs to know.

    ``blind`` are the studies that could not see a grid by themselves; the steps that matter to them are looked at.
    """
    if not has_common_search(whole, groups):
        return Opening(None, None, whole.sizes)
    talker = QueryAllocator(whole)
    found = yield from find(talker, first.bounds, first.scale, tau=first.tau)
    grid = False
    if blind and 1 / VAST < found.scale < VAST:
        noise = median(math.sqrt(study.crowd.unit_variance) for study in blind)
        error = noise * found.scale / (first.tau * (1 - first.tau))
        grid = yield from keep_to_a_grid(talker, error, found.scale, ATOM)
    left = np.maximum(whole.sizes - talker.asked, 0)
    part = part_looking(whole, first.tau) if watchful else 0.0
    if part == 0:
        return Opening(_hints(found, None, first.tau), None, left, grid)
    looking = np.minimum(np.floor(part * left + spread_offsets(len(left))).astype(np.int64), left)
    crowd, stay = _left(whole, looking)
    pooled = staged_protocol(replace(first, crowd=crowd), found)
    [seen] = yield from together([pooled], [np.flatnonzero(stay)], len(left))
    smooth = isinstance(seen, Local) and seen.fence is None and not seen.dips
    return Opening(_hints(found, seen, first.tau), smooth, left - looking, grid)


def _hints(found: Found, seen: Local | Fitted | Certificate | None, tau: float) -> Found:
    """Return what the groups are told of the search: few and vague answers, since theirs may differ."""
    points = [found.centre + place * found.scale for place in PLACES]
    below = list(BELOW)
    if isinstance(seen, Local):
        points.append(seen.centre)
        below.append(tau)
    nobody = np.zeros((1, len(points)), dtype=np.int64)
    hint = Decoded(np.array(points), np.array(below), np.full(len(points), HINT**2), nobody, nobody)
    return Found(found.centre, found.scale, (hint,))
