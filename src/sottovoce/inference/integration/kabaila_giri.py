r"""An interval for a target's quantile that a source of unknown shift shortens (Kabaila and Giri 2009; Pratt 1961).

doi:10.1016/j.jspi.2009.03.018 and doi:10.1080/01621459.1961.10480644.

The target's estimate is `N(theta, v0)`, the source's `N(theta + b, vS)`, independent, and nothing is known of the shift
`b`. With their difference `d`, `D = v0 + vS`, the distance `x = |d| / sqrt(D)` and the ratio `vS / v0`, the interval is
the target's own with half-lengths times `inflation(x)`, moved by `sign(d) move(x) v0 / sqrt(D) = pull(x) d v0 / D`.
Both functions come from a table (`scripts/solve_kabaila_giri.py`). It minimises the mean length at `b = 0` while,
whatever `b`, the coverage is at least the level and the mean length at most 1.03 times the target's own: about 5 %
shorter where source and target agree. Nothing that covers whatever the shift can be 15 % shorter at 95 % (Pratt). From
distance 5 on, 6.5 at 99 %, it is the target's own interval.

The table's first row was solved for a source without error. It covers whatever a source that is independent of the
target says, because it does for each single thing that the source may say: `interval_untrusted`.
"""

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from sottovoce.core.errors import BadInput
from sottovoce.inference.common.measured import SiteEstimate

# The distance from which on the interval is the target's own, by level: chosen by hand before the table was solved.
LAST = {0.8: 5.0, 0.9: 5.0, 0.95: 5.0, 0.99: 6.5}
LEVELS: tuple[float, ...] = tuple(LAST)
# The first row serves up to the first ratio, the last one, the target's own interval, from the last ratio on.
RATIOS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0, 1.8, 3.0, 5.5, 10.0, 20.0, 40.0, 100.0)
PIECES = 20
TABLE = "kabaila_giri.csv"  # a line for each level and ratio: moves at knots 1 to 19, then inflations at knots 0 to 19


class Shape(NamedTuple):
    """How far the centre goes towards the source, in shares of v0 d / D, and the factor of the half-lengths."""

    pull: float
    inflation: float


class ShapeRow(NamedTuple):
    """Move and inflation at equal steps of the distance from 0 to the last."""

    move: tuple[float, ...]
    inflation: tuple[float, ...]
    last: float


OWN = Shape(0.0, 1.0)


def shape(level: float, ratio: float, distance: float) -> Shape:
    """Look up how the target's own interval changes.

    ``ratio`` is the source's variance over the target's, ``distance`` the absolute difference of their estimates in its
    own standard errors.

    >>> near, far = shape(0.95, 1.0, 0.0), shape(0.95, 1.0, 5.0)
    >>> round(near.inflation, 2), far
    (0.92, Shape(pull=0.0, inflation=1.0))
    """
    rows = table(level)
    if not ratio >= 0.0:
        raise BadInput(f"ratio is {ratio}, but the variance of a source over that of the target is not negative.")
    return at(blend(rows, ratio), distance)


def interval(target: SiteEstimate, own: tuple[float, float], source: SiteEstimate, level: float) -> tuple[float, float]:
    """Return the target's interval with the help of a source.

    ``own`` is the target's own interval at this level, symmetric or not; ``source`` the sources pooled, independent of
    the target.

    >>> target, source = SiteEstimate(10.0, 2.0), SiteEstimate(10.5, 1.0)
    >>> low, high = interval(target, target.interval(0.95), source, 0.95)
    >>> round(low, 1), round(high, 1)
    (6.3, 13.7)
    """
    difference = source.estimate - target.estimate
    if not 0.0 < target.std_error < math.inf or not math.isfinite(difference):
        table(level)
        return own
    # Roots first: a variance may leave the range of floats where an error does not.
    root = source.std_error / target.std_error
    found = shape(level, root * root, abs(difference) / math.hypot(target.std_error, source.std_error))
    return changed(target.estimate, own, found.pull * difference / (1.0 + root * root), found.inflation)


def interval_untrusted(
    target: SiteEstimate, own: tuple[float, float], source_estimate: float, level: float
) -> tuple[float, float]:
    """Return the target's interval with the help of a number that is independent of the target.

    The number is close to the target if all goes well: a median of sources for instance.

    >>> target = SiteEstimate(10.0, 2.0)
    >>> low, high = interval_untrusted(target, target.interval(0.95), 10.5, 0.95)
    >>> round(low, 1), round(high, 1)
    (6.4, 13.6)
    """
    return interval(target, own, SiteEstimate(source_estimate, 0.0), level)


def changed(estimate: float, own: tuple[float, float], by: float, inflation: float) -> tuple[float, float]:
    """Move and inflation the target's own interval; leave it bit for bit where nothing changes."""
    if by == 0.0 and inflation == 1.0:
        return own
    return estimate + by - inflation * (estimate - own[0]), estimate + by + inflation * (own[1] - estimate)


def at(row: ShapeRow, distance: float) -> Shape:
    """Interpolate between the knots."""
    if not distance >= 0.0:
        raise BadInput(f"distance is {distance}, but it is the size of a difference and not negative.")
    if distance >= row.last:
        return OWN
    steps = distance * PIECES / row.last
    knot = int(steps)
    share = steps - knot
    move, inflation = ((1.0 - share) * part[knot] + share * part[knot + 1] for part in (row.move, row.inflation))
    # The first piece starts at the origin: its pull is constant.
    return Shape(move / distance if knot else row.move[1] * PIECES / row.last, inflation)


def blend(rows: Sequence[ShapeRow], ratio: float) -> ShapeRow:
    """Interpolate between the rows of two ratios, linearly in the ratio's logarithm."""
    if ratio <= RATIOS[0]:
        return rows[0]
    if ratio >= RATIOS[-1]:
        return rows[-1]
    k = bisect_right(RATIOS, ratio) - 1
    share = math.log(ratio / RATIOS[k]) / math.log(RATIOS[k + 1] / RATIOS[k])
    move, inflation = (
        tuple((1.0 - share) * below + share * above for below, above in zip(*parts, strict=True))
        for parts in ((rows[k].move, rows[k + 1].move), (rows[k].inflation, rows[k + 1].inflation))
    )
    return ShapeRow(move, inflation, rows[k].last)


@lru_cache(maxsize=len(LEVELS))
def table(level: float) -> tuple[ShapeRow, ...]:
    """Return the rows of a level, or refuse one that has none."""
    from importlib.resources import files

    if level not in LAST:
        known = ", ".join(f"{each:g}" for each in LEVELS)
        raise BadInput(
            f"level is {level}, but the interval helped by a source has a table for {known} only: ask for one of these."
        )
    lines = (files(__package__) / TABLE).read_text(encoding="ascii").splitlines()[1:]
    rows = [row for row in ([float(text) for text in line.split(",")] for line in lines) if row[0] == level]
    # Nothing moves at the first and the last knot, and nothing is inflated at the last.
    return tuple(ShapeRow((0.0, *row[2 : PIECES + 1], 0.0), (*row[PIECES + 1 :], 1.0), LAST[level]) for row in rows)
