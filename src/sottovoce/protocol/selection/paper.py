"""The paper's private quantile (Algorithm 2 of Humbert, Le Bars, Bellet and Arlot 2023), kept for comparison.

A cell has weight ``exp(-max(a above, b below))`` for the scores above and below it, ``a = epsilon / 2`` and
``b = epsilon (1 - q) / (2 q)`` for a level q in [1/2, 1): the smaller of two falling tables of integers. The paper
takes q as the order over the number of scores, or 1/2 if that is less.

*Privacy.* As in `exponential` every log-weight moves within [-a, b], so the mechanism costs a + b = epsilon / (2 q):
less than the ``stated`` epsilon, by up to a half.

*Failure.* A cell whose edge is below s, with c < order scores below s, has at least size - c above. The cell of
the ``order``-th smallest score has at most size - order above and order - 1 below. Their weights bound the odds.
"""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.protocol.exact import logarithm
from sottovoce.protocol.selection.base import affordable, check_shape, checked, scores_above, scores_below
from sottovoce.protocol.selection.exponential import normalised
from sottovoce.protocol.selection.geometric import SMALLEST, WORD, cost
from sottovoce.protocol.selection.tables import BITS, Table, table


@dataclass(frozen=True)
class PaperExponential:
    """Algorithm 2 with ``above / 2^64`` and ``below / 2^64`` as the factors of one score above or below a cell."""

    size: int
    order: int
    cells: int
    above: int
    below: int
    stated: float
    name: ClassVar[str] = "paper"

    def __post_init__(self) -> None:
        check_shape(self.size, self.order, self.cells)
        if not 1 <= self.order < self.size:
            raise BadInput(
                f"the paper's mechanism needs an order from 1 to {self.size - 1} of {self.size} scores, "
                f"not {self.order}; choose the sparse vector, or give the site more scores."
            )

    @property
    def tables(self) -> tuple[Table, Table]:
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

    @property
    def epsilon(self) -> float:
        """Return the realised epsilon, computed from the tables."""
        return logarithm(self.ratio)

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

    def distribution(self, counts: Ints) -> Floats:
        """Return the probability of every cell."""
        return normalised(self.weights(counts))


def paper(size: int, order: int, cells: int, epsilon: float) -> PaperExponential:
    """Return the paper's mechanism for its own epsilon; what it really costs is computed.

    Parameters
    ----------
    size
        The public number of scores.
    order
        The rank that is asked for, from 1 to ``size - 1``.
    cells
        The number of cells of the grid.
    epsilon
        The paper's epsilon; finite.

    Examples
    --------
    >>> mechanism = paper(200, 180, 101, 1.0)
    >>> mechanism.stated, mechanism.q, round(mechanism.epsilon, 6)
    (1.0, 0.9, 0.555556)
    """
    if not epsilon >= SMALLEST or math.isinf(epsilon):
        raise BadInput(f"epsilon {epsilon!r} makes no selection; give a finite budget of at least {SMALLEST:g}.")
    level = max(Fraction(order, max(size, 1)), Fraction(1, 2))
    slopes = Fraction(1, 2), (1 - level) / (2 * level)
    above, below = (_numerator(epsilon, slope) for slope in slopes)
    return affordable(PaperExponential(size, order, cells, above, below, epsilon), epsilon)


def _numerator(epsilon: float, part: Fraction) -> int:
    """Return the smallest numerator of which a step costs at most a part of a budget."""
    with localcontext() as context:
        context.prec = 80
        exponent = Decimal(epsilon) * part.numerator / part.denominator
        return math.ceil(WORD / Fraction(exponent.exp()))
