"""Which site answers each report: a public lottery that makes unequal sites one site.

If the site of every report is drawn with probability ``R p / r`` (``p`` its share, ``r`` its rate, and ``R`` such that
these add to one), reports at ``x`` are independent and one with probability ``(1 - R) / 2 + R F(x)``, with
``F = sum p F_k``, however much the sites differ. The coin is public: a hash of the study's key and the number of the
draw, so that a replay draws the same. A lot that falls on a site without records left, or on one that stays away,
counts against its query.
"""

import hashlib
import math

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.inference.quantile.error_budgets import critical_count
from sottovoce.server.quantile.asking import SiteProfile

SINGLE = 1 << 17  # reports up to which every lot is drawn by itself
SPARE = 2.0  # standard deviations of a site's lots that are kept back, so that no site runs dry


class Lottery:
    """Draws sites for reports from records that have not answered."""

    def __init__(self, crowd: SiteProfile, coin: bytes) -> None:
        lots = crowd.shares / crowd.rates
        self.rate = 1 / float(lots.sum())
        self._probabilities = lots * self.rate
        self.left = crowd.sizes.astype(np.int64).copy()
        self._coin, self._drawn = coin, 0
        self.planned = planned(self._probabilities, self.left)

    def draw(self, count: int) -> tuple[Ints, int]:
        """Return how many records of each site answer one query, and how many lots fell on sites that are used up."""
        lots = self._lots(count)
        taken = np.minimum(lots, self.left)
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
    """Return for how many reports the sites' records will very probably last."""
    if len(sizes) == 1:
        return int(sizes[0])
    spread = SPARE * np.sqrt(1 - probabilities)
    root = (np.sqrt(spread**2 + 4 * sizes) - spread) / 2  # of the lots that may be expected of a site
    return max(math.floor(float(np.min(root**2 / probabilities))), 1)
