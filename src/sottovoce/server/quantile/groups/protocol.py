"""Groups as one conversation: a common search that guides all of them, then one conversation a group, side by side.

Alone, a small group would spend most of its records on finding out where its quantile is. Together the groups find it
with a few percent of everybody's: location and scale of all records, which then guide each group, and say within which
window a certified one is asked. No answer of the search is evidence about a group, and no end is cut off at the window.

Where the records of a group are scarce (`server.quantile.scarce`) it is certified: its own search would have seen an
atom, that of all cannot, and the shape of all records is not that of a few. Whether records keep to a grid, as amounts
do that people round, is asked of all records together, too, where some group has too few to see it: such groups are
certified if so, and ask for themselves if not.

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
from sottovoce.server.quantile.asking import Ask, Decoded, QueryAllocator, SiteProfile
from sottovoce.server.quantile.certified.protocol import Certificate
from sottovoce.server.quantile.feasibility import STAGES, support
from sottovoce.server.quantile.grid import SHARE, keep_to_a_grid, share_needed
from sottovoce.server.quantile.levels import together
from sottovoce.server.quantile.method import default_protocol
from sottovoce.server.quantile.scarce import Fitted
from sottovoce.server.quantile.search import Found, find
from sottovoce.server.quantile.staged import VAST, Local, StagedStudy

WINDOW = 25.0  # scales about the centre in which certified groups are asked
ATOM = 1.0  # errors of a group: atoms of a grid of so much mass, or more, are not left to a smooth curve
HINT = 0.15  # standard error that a hint of the search counts as: groups may lie elsewhere
PLACES, BELOW = (-5.0, -1.0, 0.0, 1.0, 5.0), (0.02, 0.25, 0.5, 0.75, 0.98)  # what is hinted, in scales about the centre


class Opening(NamedTuple):
    """What all groups learn together: where the records lie, and how many of each site are left."""

    found: Found | None
    left: Ints
    grid: bool = False  # whether the records of all keep to a grid, where that was asked


def has_common_search(whole: SiteProfile, groups: int) -> bool:
    """Tell whether the groups search together: there are several, and enough records in all."""
    return groups > 1 and support(whole, 0.5).ratio < STAGES.refuse


def groups_protocol(
    studies: Sequence[StagedStudy], members: Sequence[Ints], whole: SiteProfile, certified: Sequence[bool]
) -> Generator[Ask, Ints, list[Local | Fitted | Certificate]]:
    """Search together, then run one conversation a group, each with its own sites, ``members`` of the whole."""
    blind = [not exact and study.phases and share_needed(study.crowd) > SHARE
             for study, exact in zip(studies, certified, strict=True)]  # fmt: skip
    opening = yield from _open(studies[0], len(studies), whole, list(compress(studies, blind)))
    talks, asked, found = [], [], opening.found
    for study, own, exact, unseeing in zip(studies, members, certified, blind, strict=True):
        crowd, stay = _left(study.crowd, opening.left[own])
        exact |= unseeing and opening.grid
        study = replace(study, crowd=crowd)
        if found is not None:
            scale = found.scale if study.scale is None else study.scale
            window = found.centre - WINDOW * found.scale, found.centre + WINDOW * found.scale
            study = replace(study, scale=scale, window=window)
            exact = exact or study.scarce
        talks.append(default_protocol(study, exact, found))
        asked.append(own[stay])
    return (yield from together(talks, asked, len(whole.sizes)))


def _left(crowd: SiteProfile, left: Ints) -> tuple[SiteProfile, Bools]:
    """Return the profile of the sites that have records left, and which they are."""
    stay = left > 0
    shares = crowd.shares[stay]
    return SiteProfile(shares / shares.sum(), crowd.rates[stay], left[stay]), stay


def _open(
    first: StagedStudy, groups: int, whole: SiteProfile, blind: Sequence[StagedStudy]
) -> Generator[Ask, Ints, Opening]:
    """Find location and scale for all, and ask for a grid where some group needs to know.

    ``blind`` are the studies that could not see a grid by themselves; the steps that matter to them are looked at.
    """
    if not has_common_search(whole, groups):
        return Opening(None, whole.sizes)
    talker = QueryAllocator(whole)
    found = yield from find(talker, first.bounds, first.scale, tau=first.tau)
    grid = False
    if blind and 1 / VAST < found.scale < VAST:
        noise = median(math.sqrt(study.crowd.unit_variance) for study in blind)
        error = noise * found.scale / (first.tau * (1 - first.tau))
        grid = yield from keep_to_a_grid(talker, error, found.scale, ATOM)
    return Opening(_hints(found), np.maximum(whole.sizes - talker.asked, 0), grid)


def _hints(found: Found) -> Found:
    """Return what the groups are told of the search: few and vague answers, since theirs may differ."""
    points = np.array([found.centre + place * found.scale for place in PLACES])
    nobody = np.zeros((1, len(points)), dtype=np.int64)
    hint = Decoded(points, np.array(BELOW), np.full(len(points), HINT**2), nobody, nobody)
    return Found(found.centre, found.scale, (hint,))
