"""The top-down sparse vector: scan the cells from the highest and stop at the first that enough scores reach.

AboveThreshold (Dwork, Naor, Reingold, Rothblum and Vadhan 2009, doi:10.1145/1536414.1536467) on the tails of a
histogram, with one-sided geometric noise. Let ``tail_b`` count the scores in cells b and higher, and ``T = size -
order``. Draw zeta once and nu_b anew for each cell; scan b = B, ..., 1 and stop at the first with ``tail_b + nu_b > T +
zeta``; if none stops, name cell 0. With r = p / 2^64 the ratio of the noise nu and s that of zeta, the selection costs
``log(1 / r) + log(1 / s)``.

*Proof.* A score replaced moves from cell i to cell j. Each tail between the two moves by one, all in one direction, and
no other tail moves. Compare the two data sets given the noise of the threshold and a cell b at which the scan stops:

* The tails grow: tail_b <= tail'_b <= tail_b + 1. Pair zeta = z with zeta' = z + 1. Each cell that did not stop has
  ``tail' - (z + 1) <= tail - z``, so it is at least as likely not to stop. Cell b stops if nu_b exceeds
  ``T + z - tail_b``, now ``T + z + 1 - tail'_b``, at most one more: at most a factor 1 / r less likely. And z + 1 is a
  factor 1 / s less likely than z. Together ``1 / (r s)``.
* The tails shrink: tail_b - 1 <= tail'_b <= tail_b. Keep z. Each cell that did not stop is at least as likely not to;
  cell b needs at most one more: a factor ``1 / r``.

If no cell stops, the factors are 1 / s and 1. Sums over z keep the bounds, so ``P(b) <= P'(b) / (r s)`` both ways. Only
``P(noise > k) <= P(noise > k + 1) / r`` was used, in one direction: noise on one side is enough, at half the variance
of two-sided noise of the same budget.

*Failure.* Let c scores lie below s, and s lie in cell b. The edge is below s only if cell b did not stop, though
``tail_b >= size - c``: the probability is at most ``P(nu - zeta <= T - size + c) = P(nu - zeta <= c - order)``. The
number of cells does not enter, so a fine grid costs no validity.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats, Ints
from sottovoce.protocol.selection.base import Selection, checked
from sottovoce.protocol.selection.geometric import WORD, cost, difference_cdf, numerators, ratio

# The share of the cells' noise in the budget: it is drawn for each cell, and its largest draws carry the scan too high.
# From a simulation of 5 sites with 200 scores (docs/decisions/0033): mean coverage .936 with .5, .923 with .6 and .920
# with .7 at epsilon .5, where .9 is wanted.
QUERIES = 0.7
_TAIL = 84.0  # terms that fall by exp(-cost / 2) each are below 1e-18 of the largest after this many units of cost
_UNDERFLOW = 745.0  # exp(-745) is zero in floating point
_PIECE = 1 << 12


@dataclass(frozen=True)
class SparseVector(Selection):
    """The scan with ``query / 2^64`` and ``threshold / 2^64`` as the ratios of its two noises."""

    query: int
    threshold: int
    name: ClassVar[str] = "sparse-vector"

    def _check(self) -> None:
        if not (0 < self.query < WORD and 0 < self.threshold < WORD):
            raise ValueError("the numerators of geometric noise lie between 0 and 2^64")

    @property
    def ratio(self) -> Fraction:
        """Return the bound of every likelihood ratio, from the two integers."""
        return ratio(self.query, self.threshold)

    def failure(self, distance: npt.ArrayLike) -> Floats:
        """Bound the probability that the edge lies below a level with ``order + distance`` scores below it."""
        return difference_cdf(distance, self.query, self.threshold)

    @property
    def unbounded(self) -> float:
        """Return the chance to name the cell without an upper edge when it holds no score."""
        return float(1 - self.failure(self.size - self.order))

    def needs(self, counts: Ints) -> Ints:
        """Return ``T + 1 - tail`` of cells B, ..., 1: a cell stops if its noise, less the threshold's, is as much."""
        tails = np.cumsum(checked(self, counts)[:0:-1])
        return self.size - self.order + 1 - tails

    def distribution(self, counts: Ints) -> Floats:
        """Return the probability of every cell: a sum over the threshold's noise of products over the cells."""
        needs, query, threshold = self.needs(counts), cost(self.query), cost(self.threshold)
        # past `busy` a step of zeta gains the cells less than half of what it costs
        busy = max(0, 1 - int(needs.min())) + math.log1p(2 * len(needs) * query / threshold) / query
        most = math.ceil(min(busy + _TAIL / threshold, _UNDERFLOW / threshold))
        falling = np.zeros(self.cells)
        for start in range(0, most + 1, _PIECE):
            zeta = np.arange(start, min(start + _PIECE, most + 1))
            exponent = -query * np.maximum(needs[:, None] + zeta, 0)
            passed = np.cumprod(np.vstack([np.ones(len(zeta)), -np.expm1(exponent)]), axis=0)
            passed[:-1] *= np.exp(exponent)
            falling += passed @ np.exp(-threshold * zeta)
        return -math.expm1(-threshold) * falling[::-1]


def sparse_vector(size: int, order: int, cells: int, epsilon: float, split: float = QUERIES) -> SparseVector:
    """Return the scan that spends as much of a budget as integers allow, and never more.

    Any order will do: one above ``size`` leans further to the cell without an upper edge. ``split`` is the share of the
    budget for the noise of the cells; the rest is the threshold's.

    >>> mechanism = sparse_vector(200, 182, 101, 1.0)
    >>> mechanism.epsilon <= 1.0 < mechanism.epsilon + 1e-8
    True
    >>> mechanism.failure([-20, -5, 0, 20]).round(4)
    array([0.002 , 0.1777, 0.7964, 1.    ])
    """
    return SparseVector(size, order, cells, *numerators(epsilon, split), budget=epsilon)
