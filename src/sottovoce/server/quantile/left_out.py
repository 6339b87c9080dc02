"""Which sites are too small to take part: left out, by public numbers alone, so that they do not end a study.

A site whose share in the estimand is far above its part of the records causes most of the noise. Where a study would be
refused for the noise of small sites, or could give nothing but a certified interval that nobody asked for, it goes on
without them, and says so: the estimand is another one then.
"""

from collections.abc import Collection, Sequence

import numpy as np

from sottovoce.core.arrays import Bools, Floats
from sottovoce.core.checks import first_few
from sottovoce.core.roster import Roster
from sottovoce.server.quantile.asking import SiteProfile
from sottovoce.server.quantile.feasibility import Limits, support

SMALL = 0.5  # of the mean size: larger sites are not left out, but refused with what they would need


def small_sites(
    crowd: SiteProfile, taus: Floats, thinned: float, limits: Limits, fewest: int = 0
) -> tuple[SiteProfile, Bools]:
    """Return the sites that stay, their shares summing to one again, and which they are.

    Sites with less than ``fewest`` records go first, then small ones, the noisiest first, while the noise is beyond the
    limits of the design; if that does not help, they stay, and a refusal is about all of them.
    """
    stay = crowd.sizes >= fewest if np.any(crowd.sizes >= fewest) else np.ones(len(taus), dtype=np.bool_)
    small, kept = crowd.sizes < SMALL * crowd.sizes.mean(), stay.copy()
    while True:
        part = _part(crowd, kept)
        level = overall(part.shares, taus[kept])
        measured = support(part.thinned(thinned), level)
        if measured.ratio <= limits.at(level).refuse:
            return part, kept
        noise = np.zeros(len(taus))
        noise[kept] = measured.variance_shares
        noise[~(small & kept)] = 0
        if not noise.any():
            return _part(crowd, stay), stay
        kept[int(np.argmax(noise))] = False


def overall(shares: Floats, taus: Floats) -> float:
    """Return the level of the estimand; where all sites have one level it is that level, to the last digit.

    >>> overall(np.full(3, 1 / 3), np.full(3, 0.9))
    0.9
    """
    return float(taus[0]) if np.all(taus == taus[0]) else float(f"{np.sum(shares * taus):.15g}")


def without(names: Sequence[str], left: int, part: float | None = None) -> str:
    """Say which sites are left out, or parts of sites with which ``part`` of the whole, and over which the answer is.

    >>> without(["north"], 2)
    "site 'north' has too few records to take part and is left out, not asked: the answer is over the 2 sites left"
    """
    parts = part is not None
    noun = "part" if parts else "site"
    many = f"each of {len(names):,} {noun}s ({first_few(names, 3 if parts else 6)}) has"
    who = f"{noun} {names[0]!r} has" if len(names) == 1 else many
    over = f"the one {noun}" if left == 1 else f"the {left:,} {noun}s"
    counted = f" ({part:.2%} of the whole)" if part is not None else ""
    return f"{who} too few records to take part and is left out{counted}, not asked: the answer is over {over} left"


def part_of(roster: Roster, gone: Collection[str]) -> float | None:
    """Return what part of the whole some parts of sites count; None where whole sites answer."""
    if roster.strata is None:
        return None
    counts = np.array(roster.sizes) * np.array(roster.weights)
    return float(counts[[name in gone for name in roster.names]].sum() / counts.sum())


def _part(crowd: SiteProfile, stay: Bools) -> SiteProfile:
    """Return the profile of some of the sites."""
    if stay.all():
        return crowd
    shares = crowd.shares[stay]
    return SiteProfile(shares / shares.sum(), crowd.rates[stay], crowd.sizes[stay])
