"""Which site answers each report: a public lottery that makes unequal sites one site.

If the site of every report is drawn with probability ``R p / r`` (``p`` its share, ``r`` its rate, and ``R`` such that
these add to one), reports at ``x`` are independent and one with probability ``(1 - R) / 2 + R F(x)``, with
``F = sum p F_k``, however much the sites differ. The coin is public: a hash of the study's key and the number of the
draw, so that a replay draws the same. A lot that falls on a site without records left, or on one that stays away,
counts against its query.

So many lots are planned that all sites very probably last. Where the smallest would end that early (a stratum of few
records of large weight), more are planned, and a part of its lots, evenly over the study, finds nobody: what that costs
is weighed against the reports that the others have left.
"""

import hashlib
import math

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.inference.quantile.error_budgets import critical_count
from sottovoce.server.quantile.asking import SiteProfile

SINGLE = 1 << 17  # reports up to which every lot is drawn by itself
SPARE = 2.0  # standard deviations of a site's lots that are kept back, so that no site runs dry
REACHED, GAIN = 1.7, 0.8  # an interval's reach times the root of its reports, about; what makes it worth missing some
GRID = 200  # numbers of lots that are tried


class Lottery:
    """Draws sites for reports from records that have not answered."""

    def __init__(self, crowd: SiteProfile, coin: bytes) -> None:
        lots = crowd.shares / crowd.rates
        self.rate = 1 / float(lots.sum())
        self._probabilities = lots * self.rate
        self.left = crowd.sizes.astype(np.int64).copy()
        self._coin, self._drawn = coin, 0
        self.planned = planned(self._probabilities, self.left)
        all_last = len(self.left) == 1 or self.planned == lasting(self._probabilities, self.left)
        expected = self._probabilities * (0 if all_last else self.planned)
        self._answered = np.minimum(self.left / np.maximum(expected, 1e-300), 1.0)  # part of each site's lots
        self._fallen = np.zeros(len(self.left), dtype=np.int64)

    def draw(self, count: int) -> tuple[Ints, int]:
        """Return how many records of each site answer one query, and how many lots fell on sites that are used up."""
        lots = self._lots(count)
        before, self._fallen = self._fallen, self._fallen + lots
        heard = np.floor(self._answered * self._fallen + 0.5) - np.floor(self._answered * before + 0.5)
        taken = np.minimum(heard.astype(np.int64), self.left)
        self.left -= taken
        return taken, int(lots.sum() - taken.sum())

    def _lots(self, count: int) -> Ints:
        """Draw lots: one by one, or for many as binomial counts, site after site."""
        sites = len(self.left)
        if sites == 1:
            return np.array([count], dtype=np.int64)
        if count <= SINGLE:
            edges = np.cumsum(self._probabilities)[:-1]
            return np.bincount(np.searchsorted(edges, self._uniforms(count), side="right"), minlength=sites)
        lots, left, rest = np.zeros(sites, dtype=np.int64), count, 1.0
        for site, uniform in enumerate(self._uniforms(sites)[:-1]):
            p = min(float(self._probabilities[site]) / rest, 1 - 1e-12)
            if left > 0:
                lots[site] = min(int(critical_count(np.array([uniform]), left, p)[0]) + 1, left)
            left, rest = left - int(lots[site]), rest - float(self._probabilities[site])
        lots[-1] = left
        return lots

    def _uniforms(self, count: int) -> Floats:
        """Throw the public coin."""
        self._drawn += 1
        data = hashlib.shake_256(self._coin + self._drawn.to_bytes(8, "big")).digest(8 * count)
        return np.asarray((np.frombuffer(data, dtype=np.uint64) >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def planned(probabilities: Floats, sizes: Ints) -> int:
    """Return for how many reports the sites' records will very probably last, or how many are best planned."""
    if len(sizes) == 1:
        return int(sizes[0])
    least = lasting(probabilities, sizes)
    best = _best(probabilities, sizes, least)
    worth = _reach(probabilities, sizes, best) < GAIN * _reach(probabilities, sizes, least)
    return best if worth else least


def lasting(probabilities: Floats, sizes: Ints) -> int:
    """Return for how many reports the records of all sites will very probably last."""
    spread = SPARE * np.sqrt(1 - probabilities)
    root = (np.sqrt(spread**2 + 4 * sizes) - spread) / 2  # of the lots that may be expected of a site
    return max(math.floor(float(np.min(root**2 / probabilities))), 1)


def _best(probabilities: Floats, sizes: Ints, least: int) -> int:
    """Return the number of lots, between one with which all sites last and all records, that reaches least."""
    numbers: list[int] = np.geomspace(least, max(int(sizes.sum()), least), GRID).astype(np.int64).tolist()
    return min(numbers, key=lambda number: _reach(probabilities, sizes, number))


def _reach(probabilities: Floats, sizes: Ints, number: int) -> float:
    """Return how far an interval reaches, in probabilities of a letter: by chance, and by what finds nobody."""
    return REACHED / math.sqrt(number) + unanswered(probabilities, sizes, number)


def unanswered(probabilities: Floats, sizes: Ints, number: int) -> float:
    """Return which part of the lots finds nobody."""
    return float(np.sum(np.maximum(probabilities - sizes / number, 0.0)))


def drawn(crowd: SiteProfile) -> tuple[float, int, float]:
    """Return the rate of all sites as one, how many reports are planned of it, and which part of them finds nobody."""
    lots = crowd.shares / crowd.rates
    rate = 1 / float(lots.sum())
    number = planned(lots * rate, crowd.sizes)
    return rate, number, unanswered(lots * rate, crowd.sizes, number)
