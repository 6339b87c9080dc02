"""Do records keep to a grid? Prices that end in .99, ages, amounts in round thousands; from the answers alone.

A single atom of a few errors' mass cannot be seen in the distribution function, and yet spoils an interval of that
length. But atoms of rounded records recur with a period, in all records at once: a few are asked on which half of a
period they lie, and as many a quarter of it further on. Of records that are smooth at that scale one half lies on each;
of records on a grid, wherever it begins, all or none. People round to 1, 2 or 5 times a power of ten.
"""

import math
from collections.abc import Generator

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.server.quantile.asking import Ask, QueryAllocator, SiteProfile

SHARE, MOST_SHARE = 0.03, 0.06  # of the records: where they suffice, and where they are few
ENOUGH = 100.0  # reports without noise that show a grid which all records keep to, among three periods
FINEST, COARSEST = 0.6, 30.0  # steps that matter, in errors of the quantile: finer do no harm, coarser are seen
SMOOTH, WIDEST = 0.3, 1.0  # of the spread of the records: longer periods see their shape, more and more
UNEVEN, SHAPED = 0.02, 0.2  # what the shape may do to a half, at `SMOOTH` and at `WIDEST`
MOST = 5  # periods
ALARM = 14.0  # chi-square of two halves: by chance once in 1,000 periods


def periods_between(low: float, high: float) -> Floats:
    """Return the steps people round to, from one to another, the coarsest `MOST` of them.

    >>> periods_between(0.3, 12.0).tolist()
    [0.5, 1.0, 2.0, 5.0, 10.0]
    """
    if not 0 < low <= high < math.inf:
        return np.empty(0)
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    steps = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    return np.array([step for step in steps if low <= step <= high][-MOST:])


def share_needed(crowd: SiteProfile) -> float:
    """Return the part of the records that shows a grid among some periods."""
    return 4 * ENOUGH * crowd.unit_variance


def keep_to_a_grid(
    talker: QueryAllocator, error: float, spread: float, least: float = 0.0
) -> Generator[Ask, Ints, bool]:
    """Ask a few records for their phase; ``error`` is that of the quantile, ``spread`` that of the records.

    Where others than those asked are to profit, atoms of less than ``least`` errors' mass are let pass.
    """
    periods = np.repeat(periods_between(FINEST * error, min(COARSEST * error, WIDEST * spread)), 2)
    if len(periods) == 0:
        return False
    share = min(max(share_needed(talker.crowd), SHARE), MOST_SHARE)
    points = np.where(np.arange(len(periods)) % 2, periods / 4, 0.0)
    heard = yield from talker.ask(points, np.full(len(periods), share / len(periods)), periods)
    uneven = np.interp(periods / spread, [SMOOTH, WIDEST], [UNEVEN, SHAPED])
    halves = heard.below - 0.5
    if least > 0:  # zeros are multiples of every period: what all have in common is no grid
        pairs = halves.reshape(-1, 2)
        alike = np.abs(np.sign(pairs).sum(axis=0)) == len(pairs)
        halves = (pairs - alike * np.sign(pairs) * np.abs(pairs).min(axis=0)).ravel()
    off = np.maximum(np.abs(halves) - uneven, 0.0)
    seen = (off**2 / heard.variances).reshape(-1, 2).sum(axis=1) > ALARM
    atoms = 2 * np.hypot(off[::2], off[1::2]) * periods[::2] / error
    return bool(np.any(seen & (atoms >= least)))
