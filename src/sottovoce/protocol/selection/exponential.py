"""The symmetric exponential mechanism (McSherry and Talwar 2007) on how many ranks a cell lies off.

With ``x = max(0, scores above the cell - (size - order))`` and ``y = max(0, scores below it - (order - 1))`` a cell is
x ranks too low or y ranks too high; at most one of them is positive, and both are zero for the cell of the ``order``-th
smallest score alone. Its weight is ``low[x]`` or ``high[y]``, from two falling tables of integers (`tables`).

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
"""

import functools
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.protocol.exact import exponential as exponential_of
from sottovoce.protocol.exact import logarithm
from sottovoce.protocol.selection.base import affordable, check_shape, checked, scores_above, scores_below
from sottovoce.protocol.selection.geometric import WORD, numerators
from sottovoce.protocol.selection.tables import Table, table

_HALVINGS = 50


@dataclass(frozen=True)
class Exponential:
    """The mechanism whose weights fall by ``low / 2^64`` a rank below the order and ``high / 2^64`` a rank above it."""

    size: int
    order: int
    cells: int
    low: int
    high: int
    name: ClassVar[str] = "exponential"

    def __post_init__(self) -> None:
        check_shape(self.size, self.order, self.cells)
        if not 1 <= self.order <= self.size:
            raise BadInput(
                f"the order {self.order} is not between 1 and the number of scores, {self.size}; "
                "choose the sparse vector, which takes any, or give the site more scores."
            )

    @property
    def tables(self) -> tuple[Table, Table]:
        """Return the weights of cells that are too low, and of cells that are too high."""
        # to the next power of two, so that many orders share a table
        low, high = (1 << reach.bit_length() for reach in (self.order, self.size - self.order + 1))
        return table(self.low, low), table(self.high, high)

    @property
    def ratio(self) -> Fraction:
        """Return the bound of every likelihood ratio, from the tables."""
        low, high = self.tables
        return _ratio(low.steepest, high.steepest, Fraction(max(low.at(1), high.at(1)), low.at(0)), self.cells)

    @property
    def epsilon(self) -> float:
        """Return the realised epsilon, computed from the tables."""
        return logarithm(self.ratio)

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

    def distribution(self, counts: Ints) -> Floats:
        """Return the probability of every cell."""
        return normalised(self.weights(counts))


def normalised(weights: list[int]) -> Floats:
    """Return integers of any size as shares of their sum.

    >>> normalised([1 << 2000, 3 << 2000])
    array([0.25, 0.75])
    """
    total = sum(weights)
    return np.array([weight / total for weight in weights])


def exponential(size: int, order: int, cells: int, epsilon: float, split: float = 0.5) -> Exponential:
    """Return the mechanism that spends as much of a budget as integers allow, and never more.

    Parameters
    ----------
    size
        The public number of scores.
    order
        The rank that is asked for, between 1 and ``size``.
    cells
        The number of cells of the grid.
    epsilon
        The budget of the site's one message; finite.
    split
        The share of the budget for the slope below the order; the rest is for the slope above.

    Examples
    --------
    >>> mechanism = exponential(200, 182, 101, 1.0)
    >>> mechanism.epsilon <= 1.0 < mechanism.epsilon + 1e-8
    True
    >>> mechanism.failure([-30, -20, 0]).round(4)
    array([0.    , 0.0041, 1.    ])
    """
    return affordable(Exponential(size, order, cells, *_slopes(epsilon, split, cells)), epsilon)


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
