"""The gate: can these records, at these budgets, support this quantile at all?

``s = sqrt(sum p^2 / (4 r^2 N))`` is the error of the estimated distribution function if every record answered at the
quantile. Beyond some part of the tail ``min(tau, 1 - tau)`` intervals stop covering or say nothing, so the question is
refused before anything is spent; a little earlier it is answered with a warning. Three-point stages and walks go up to
4 %, the pairs for scarce records (`server.quantile.scarce`), which the default turns to beyond that, up to 15 %. All
search first, which costs the more the larger ``s`` is, whatever the tail: beyond ``s = .02`` too much, so that at the
median all stop at 4 %. A certified interval may be tried up to 25 %; how far it will reach, in levels, is public too.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sottovoce.core.errors import Infeasible
from sottovoce.inference.common.normal import two_sided
from sottovoce.server.quantile.asking import SiteProfile
from sottovoce.server.quantile.certified.lottery import drawn

SCARCE = 0.04
TOO_DEAR = 0.02  # noise at which the search asks two fifths of the records
MOST = 1e15
MIDDLE = 0.1  # levels no farther from the median are supported as well as it
REACH, POWER = 1.65, 1.4  # a certified interval reaches at most REACH * (z + POWER) errors within bounds
NEAREST, TAILED = 1.515, 4.7  # with many records, and with noise over tail (decision 0075)
SEARCHED, COSTLY, FURTHER = 1_300.0, 0.029, 33.0  # without bounds: with the squared error, and beyond some with it
UNEVEN = 1.1  # times the error, from which on what very unequal sites lose by being drawn by lot is counted
FOUND, DEEP = 0.17, 0.05  # error over tail up to which a search without bounds finds the quantile; at the .99 quantile


class Limits(NamedTuple):
    """From which ratio on a design warns, and how long intervals get there; from which ratio on it refuses."""

    warn: float
    refuse: float
    longer: str
    dear: float = TOO_DEAR

    def at(self, tau: float) -> "Limits":
        """Return the limits at a level, where the search may be what costs too much."""
        tail = min(tau, 1 - tau)
        return self._replace(refuse=min(self.refuse, self.dear / tail))


STAGES, PAIRS = Limits(0.03, SCARCE, "half as long again"), Limits(0.03, 0.15, "half as long again, or twice as long")
ANY = Limits(math.inf, math.inf, "", math.inf)  # nobody is refused or left out: groups are planned one by one
CERTIFIED = PAIRS._replace(refuse=0.25, dear=math.inf)  # beyond it not even one end could be certified


@dataclass(frozen=True)
class NoiseToTail:
    """How well the records support a level: noise over tail, and what share of the variance each site causes."""

    ratio: float
    variance_shares: tuple[float, ...]

    def records_for(self, records: int, ratio: float) -> int:
        """Return how many records, divided over the sites as now, would bring the noise down to a ratio."""
        return _round_up(records * (self.ratio / ratio) * (self.ratio / ratio))


def support(crowd: SiteProfile, tau: float) -> NoiseToTail:
    """Measure the support of a level."""
    parts = crowd.shares**2 / (4 * crowd.rates**2 * crowd.sizes)
    total = float(parts.sum())
    return NoiseToTail(math.sqrt(total) / min(tau, 1 - tau), tuple(float(part) for part in parts / total))


def check(crowd: SiteProfile, tau: float, names: tuple[str, ...], limits: Limits = STAGES) -> NoiseToTail:
    """Return the support of a level, or refuse with the number of records it would need."""
    measured, most = support(crowd, tau), limits.at(tau).refuse
    if measured.ratio > most:
        records = int(crowd.sizes.sum())
        worst = int(np.argmax(measured.variance_shares))
        blame = ""
        if len(names) > 1 and measured.variance_shares[worst] > 2 / len(names):
            blame = f" (site {names[worst]!r} causes {measured.variance_shares[worst]:.0%} of the noise)"
        needed = measured.records_for(records, most)
        raise Infeasible(
            f"the {tau:g} quantile needs about {needed:,} records at these budgets and shares, "
            f"and there are {records:,}{blame}: {advice(tau)}."
        )
    return measured


def advice(tau: float, private: bool = True) -> str:
    """Say what would help where records are too few for a level; at the median, no other level is better supported.

    >>> advice(0.9), advice(0.5)
    ('add records, raise epsilon, or ask a level nearer 0.5', 'add records, or raise epsilon')
    """
    ways = ["add records", "raise epsilon"][: 1 + private] + ["ask a level nearer 0.5"] * (abs(tau - 0.5) > MIDDLE)
    return ", ".join(ways[:-1]) + f", or {ways[-1]}" if len(ways) > 1 else ways[0]


def reach(crowd: SiteProfile, tau: float, level: float = 0.95, bounded: bool = False) -> tuple[float, float]:
    """Return from which quantile to which a certified interval will run, about; 0 and 1 where an end may stay open.

    >>> low, high = reach(SiteProfile(np.ones(1), np.array([0.76]), np.array([300])), 0.5, bounded=True)
    >>> round(low, 2), round(high, 2)
    (0.29, 0.71)
    """
    success = (1 - crowd.rates) / 2 + crowd.rates * tau  # of a record asked at the quantile
    error = math.sqrt(np.sum(crowd.shares**2 * success * (1 - success) / (crowd.rates**2 * crowd.sizes)))
    tail = min(tau, 1 - tau)
    if not bounded and error > min(FOUND, DEEP * (100 * tail) ** 0.35) * tail:
        return 0.0, 1.0
    rate, number, missing = drawn(crowd)
    chance = (1 - rate) / 2 + rate * tau
    by_lot = math.sqrt(chance * (1 - chance) / number) / rate
    if by_lot < UNEVEN * error:  # sites that are drawn by lot as they count lose next to nothing
        by_lot, missing = error, 0.0
    half = _reached(by_lot, tail, bounded) * (two_sided(level) + POWER) * by_lot + missing / rate
    return max(tau - half, 0.0), min(tau + half, 1.0)


def _reached(error: float, tail: float, bounded: bool) -> float:
    """Return how many errors a certified interval reaches, in units of ``z + POWER``.

    With many records the next certified point is near; in a tail and where a search takes a part, it is further.
    """
    deep = math.log(max(MIDDLE / tail, 1.0))
    search = SEARCHED * min(error, COSTLY) ** 2 + FURTHER * max(error - COSTLY, 0.0)
    far = NEAREST + max(TAILED * (1 + 0.3 * deep) * error / tail, search)
    return min(far, REACH * (1 + 0.3 * deep)) if bounded else far


def expected(low: float, high: float) -> str:
    """Say in words how far an interval will reach.

    >>> expected(0.383, 1.0)
    'from about the 38 % quantile on, its upper end open or far out'
    """
    first, last = (f"the {round(100 * end, 0 if high - low > 0.05 else 1):g} % quantile" for end in (low, high))
    if low > 0 and high < 1:
        return f"from about {first} to {last}"
    if low > 0:
        return f"from about {first} on, its upper end open or far out"
    if high < 1:
        return f"up to about {last}, its lower end open or far out"
    return "with both ends open or far out"


def _round_up(number: float) -> int:
    """Round up to two digits, as a plan would be stated; nobody has more than a thousand million million records."""
    number = min(number, MOST)
    unit = int(10 ** max(0, math.floor(math.log10(max(number, 1))) - 1))
    return math.ceil(number / unit - 1e-9) * unit
