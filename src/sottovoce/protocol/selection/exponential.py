"""Two exponential mechanisms on integer weights: the symmetric one, and the paper's, kept for comparison.

*Weights* fall like a discrete exponential of which no step costs more than a given factor: ``W[0] = 2^bits`` and
``W[k + 1] = ceil(W[k] p / 2^64)``. Rounding up keeps each ratio ``W[k] / W[k + 1]`` within ``2^64 / p``, and no weight
reaches zero: the table ends where it stops falling, and its last entry goes on for ever.

**The symmetric mechanism** (McSherry and Talwar 2007, doi:10.1109/FOCS.2007.66) on how many ranks a cell lies off. With
``x = max(0, scores above the cell - (size - order))`` and ``y = max(0, scores below it - (order - 1))`` a cell is x
ranks too low or y ranks too high; at most one of them is positive, and both are zero for the cell of the ``order``-th
smallest score alone. Its weight is ``low[x]`` or ``high[y]``, from two falling tables of integers.

*Privacy.* Let A and B be the steepest steps of the two tables. A score that moves up to a higher cell lets x grow by at
most one and y shrink by at most one, in some cells: a weight falls by a factor A or less, or rises by B or less, and so
does the sum Z of all weights; moving down is the same backwards. A probability is a weight over Z, hence the factor
``A B``; the textbook's bound would be the larger of their squares.

The cost is less, as Z cannot fall that much. Before and after, one cell has the full weight W, that of the ``order``-th
smallest score, and any other at most ``M = max(low[1], high[1])``. If that cell stays, the others hold R, at most
``S = (cells - 1) M``, and ``Z / Z' <= (W + R) / (W + R / A)``, which grows with R. If it changes, its successor held at
most M and holds W now: with R for all but the two, ``Z / Z' <= (W + M + R) / (W + (W + R) / A)``, no more than the same
at M + R. So a probability changes by at most ``B (W + S) / (W + S / A)`` or, backwards, ``A (W + S) / (W + S / B)``.

*Failure.* Let c < order scores lie below s. A cell whose edge is below s has ``x >= order - c``, and there are at
most ``cells - 1`` such cells; the cell of the ``order``-th smallest score is not among them. So the probability is at
most ``odds / (1 + odds)`` with ``odds = (cells - 1) low[order - c] / low[0]``.

**The paper's private quantile** (Algorithm 2 of Humbert, Le Bars, Bellet and Arlot 2023, arXiv:2302.06322). A cell has
weight ``exp(-max(a above, b below))`` for the scores above and below it, ``a = epsilon / 2`` and ``b = epsilon (1 - q)
/ (2 q)`` for a level q in [1/2, 1): the smaller of two falling tables of integers. The paper takes q as the order over
the number of scores, or 1/2 if that is less.

*Privacy.* As above every log-weight moves within [-a, b], so the mechanism costs a + b = epsilon / (2 q): less than the
``stated`` epsilon, by up to a half.

*Failure.* A cell whose edge is below s, with c < order scores below s, has at least size - c above. The cell of
the ``order``-th smallest score has at most size - order above and order - 1 below. Their weights bound the odds.
"""

import functools
import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.protocol.exact import exponential as exponential_of
from sottovoce.protocol.selection.base import WeightedSelection, checked, scores_above, scores_below
from sottovoce.protocol.selection.geometric import SMALLEST, WORD, cost, numerators

_HALVINGS = 50  # of a budget, down to the last digit of a float

BITS = 100  # a weight reaches 2^-100 of the largest before the table is flat
MOST = 1 << 29  # bits in one table: 64 MB
_TOO_LONG = "this selection needs tables beyond 64 MB; choose the sparse vector, which needs none."


@dataclass(frozen=True, eq=False)
class WeightTable:
    """The weights of a table and its steepest step."""

    weights: tuple[int, ...]
    steepest: Fraction

    def at(self, place: int) -> int:
        """Return the weight at a place from 0 on."""
        return self.weights[min(place, len(self.weights) - 1)]

    def relative(self, places: Ints, to: int) -> Floats:
        """Return the weights at places from 0 on as multiples of a weight."""
        kinds, where = np.unique(np.minimum(places, len(self.weights) - 1), return_inverse=True)
        return np.array([self.weights[k] / to for k in kinds.tolist()])[where].reshape(places.shape)


@functools.lru_cache(maxsize=16)
def table(numerator: int, length: int, bits: int = BITS) -> WeightTable:
    """Return the table of a numerator: at most ``length`` steps, fewer where it stops falling.

    One step costs at most a factor 2^64 over the numerator; the first weight is 2^bits.

    >>> table(1 << 63, 9, bits=3).weights, table(1 << 63, 9).steepest
    ((8, 4, 2, 1), Fraction(2, 1))
    """
    falls = -math.log(numerator / 2.0**64)  # a step; the table is flat when all bits have fallen
    if min(length, bits * math.log(2) / max(falls, 1e-19)) * bits > 4 * MOST:
        raise BadInput(_TOO_LONG)
    weights, held = [1 << bits], bits
    steep, flat = 1, 1
    while len(weights) <= length:
        weight = weights[-1]
        lower = -(-weight * numerator >> 64)
        if lower == weight:
            break
        if weight * flat > steep * lower:
            steep, flat = weight, lower
        weights.append(lower)
        held += lower.bit_length()
        if held > MOST:
            raise BadInput(_TOO_LONG)
    return WeightTable(tuple(weights), Fraction(steep, flat))


@dataclass(frozen=True)
class Exponential(WeightedSelection):
    """The mechanism whose weights fall by ``low / 2^64`` a rank below the order and ``high / 2^64`` a rank above it."""

    low: int
    high: int
    name: ClassVar[str] = "exponential"

    def _check(self) -> None:
        if not 1 <= self.order <= self.size:
            raise BadInput(
                f"the order {self.order} is not between 1 and the number of scores, {self.size}; "
                "choose the sparse vector, which takes any, or give the site more scores."
            )

    @property
    def tables(self) -> tuple[WeightTable, WeightTable]:
        """Return the weights of cells that are too low, and of cells that are too high."""
        # to the next power of two, so that many orders share a table
        low, high = (1 << reach.bit_length() for reach in (self.order, self.size - self.order + 1))
        return table(self.low, low), table(self.high, high)

    @property
    def ratio(self) -> Fraction:
        """Return the bound of every likelihood ratio, from the tables."""
        low, high = self.tables
        return _ratio(low.steepest, high.steepest, Fraction(max(low.at(1), high.at(1)), low.at(0)), self.cells)

    def failure(self, distance: npt.ArrayLike) -> Floats:
        """Bound the probability that the edge lies below a level with ``order + distance`` scores below it."""
        ranks = np.maximum(-np.asarray(distance, dtype=np.int64), 0)
        low = self.tables[0]
        odds = (self.cells - 1) * low.relative(ranks, low.at(0))
        return np.where(ranks > 0, odds / (1 + odds), 1.0)

    @property
    def unbounded(self) -> float:
        """Bound the chance to name the cell without an upper edge when it holds no score."""
        weight = self.tables[1].at(self.size - self.order + 1)
        return weight / (weight + self.tables[0].at(0))

    def weights(self, counts: Ints) -> list[int]:
        """Return the integer weight of every cell."""
        low, high = self.tables
        too_low = np.maximum(scores_above(checked(self, counts)) - (self.size - self.order), 0)
        too_high = np.maximum(scores_below(counts) - (self.order - 1), 0)
        return [low.at(x) if x else high.at(y) for x, y in zip(too_low.tolist(), too_high.tolist(), strict=True)]


def exponential(size: int, order: int, cells: int, epsilon: float, split: float = 0.5) -> Exponential:
    """Return the mechanism that spends as much of a budget as integers allow, and never more.

    ``split`` is the share of the budget for the slope below the order; the rest is for the slope above.

    >>> mechanism = exponential(200, 182, 101, 1.0)
    >>> mechanism.epsilon <= 1.0 < mechanism.epsilon + 1e-8
    True
    >>> mechanism.failure([-30, -20, 0]).round(4)
    array([0.    , 0.0041, 1.    ])
    """
    return Exponential(size, order, cells, *_slopes(epsilon, split, cells), budget=epsilon)


def _ratio(low: Fraction, high: Fraction, next_best: Fraction, cells: int) -> Fraction:
    """Return the bound A B (W + S) / (min(A, B) W + S) for W = 1."""
    others = (cells - 1) * next_best
    return low * high * (1 + others) / (min(low, high) + others)


@functools.lru_cache(maxsize=1024)
def _slopes(epsilon: float, split: float, cells: int) -> tuple[int, int]:
    """Find the steepest slopes, in proportion to the split, that a budget affords."""
    best, most = numerators(epsilon, split), exponential_of(epsilon)
    cheap, dear = epsilon, epsilon / max(split, 1 - split)
    for _ in range(_HALVINGS):
        middle = (cheap + dear) / 2
        low, high = numerators(middle, split)
        if _ratio(Fraction(WORD, low), Fraction(WORD, high), Fraction(max(low, high), WORD), cells) <= most:
            best, cheap = (low, high), middle
        else:
            dear = middle
    return best


@dataclass(frozen=True)
class PaperExponential(WeightedSelection):
    """Algorithm 2 with ``above / 2^64`` and ``below / 2^64`` as the factors of one score above or below a cell."""

    above: int
    below: int
    stated: float
    name: ClassVar[str] = "paper"

    def _check(self) -> None:
        if not 1 <= self.order < self.size:
            raise BadInput(
                f"the paper's mechanism needs an order from 1 to {self.size - 1} of {self.size} scores, "
                f"not {self.order}; choose the sparse vector, or give the site more scores."
            )

    @property
    def tables(self) -> tuple[WeightTable, WeightTable]:
        """Return the weights by the scores above a cell, and by the scores below it."""
        # the best cell is never worse than this, so that it keeps its lead of 2^100 over cells the tables cannot tell
        best = max(cost(self.above) * (self.size - self.order), cost(self.below) * self.order)
        bits = BITS + math.ceil(best / math.log(2))
        return table(self.above, self.size, bits), table(self.below, self.size, bits)

    @property
    def q(self) -> float:
        """Return the paper's level."""
        return max(self.order / self.size, 0.5)

    @property
    def ratio(self) -> Fraction:
        """Return the bound of every likelihood ratio, from the tables."""
        above, below = self.tables
        return above.steepest * below.steepest

    def failure(self, distance: npt.ArrayLike) -> Floats:
        """Bound the probability that the edge lies below a level with ``order + distance`` scores below it."""
        ranks = np.maximum(-np.asarray(distance, dtype=np.int64), 0)
        above, below = self.tables
        asked = min(above.at(self.size - self.order), below.at(self.order - 1))
        odds = (self.cells - 1) * above.relative(self.size - self.order + ranks, asked)
        return np.where(ranks > 0, odds / (1 + odds), 1.0)

    @property
    def unbounded(self) -> float:
        """Bound the chance to name the cell without an upper edge when it holds no score."""
        above, below = self.tables
        asked, weight = min(above.at(self.size - self.order), below.at(self.order - 1)), below.at(self.size)
        return weight / (weight + asked)

    def weights(self, counts: Ints) -> list[int]:
        """Return the integer weight of every cell."""
        above, below = self.tables
        pairs = zip(scores_above(checked(self, counts)).tolist(), scores_below(counts).tolist(), strict=True)
        return [min(above.at(x), below.at(y)) for x, y in pairs]


def paper(size: int, order: int, cells: int, epsilon: float) -> PaperExponential:
    """Return the paper's mechanism for its own epsilon; what it really costs is computed.

    >>> mechanism = paper(200, 180, 101, 1.0)
    >>> mechanism.stated, mechanism.q, round(mechanism.epsilon, 6)
    (1.0, 0.9, 0.555556)
    """
    if not epsilon >= SMALLEST or math.isinf(epsilon):
        raise BadInput(f"epsilon {epsilon!r} makes no selection; give a finite budget of at least {SMALLEST:g}.")
    level = max(Fraction(order, max(size, 1)), Fraction(1, 2))
    slopes = Fraction(1, 2), (1 - level) / (2 * level)
    above, below = (_numerator(epsilon, slope) for slope in slopes)
    return PaperExponential(size, order, cells, above, below, epsilon, budget=epsilon)


def _numerator(epsilon: float, part: Fraction) -> int:
    """Return the smallest numerator of which a step costs at most a part of a budget."""
    with localcontext() as context:
        context.prec = 80
        exponent = Decimal(epsilon) * part.numerator / part.denominator
        return math.ceil(WORD / Fraction(exponent.exp()))
