"""What every private selection offers: a public grid, integers, the epsilon they cost, and how often it falls short.

A site holds ``size`` scores, a public number, and is asked for the ``order``-th smallest. A public grid of edges
``e_1 < ... < e_B`` cuts the line into ``cells = B + 1``: cell 0 is ``(-inf, e_1]``, cell b is ``(e_b, e_{b+1}]``, cell
B is ``(e_B, inf)``. The site names a cell, which stands for its upper edge. Neighbours are two sets of scores of which
one score is replaced: in counts, one unit moves from a cell to another.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, InitVar, dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.protocol.exact import check_within, logarithm

LARGEST = 1 << 53  # sizes and orders up to here, and noise on top of them, fit 64-bit integers


@dataclass(frozen=True)
class Selection(ABC):
    """A public distribution from the counts of ``size`` scores to a cell, near the score of rank ``order``, from 1.

    ``budget`` is the epsilon it was asked for: integers that would cost more are refused.
    """

    size: int
    order: int
    cells: int
    name: ClassVar[str]
    _: KW_ONLY
    budget: InitVar[float] = math.inf

    def __post_init__(self, budget: float) -> None:
        if not 1 <= self.size <= LARGEST:
            raise BadInput(
                f"a site has at least one score and at most 2^53, not {self.size}; leave out a site without scores."
            )
        if abs(self.order) > LARGEST:
            raise BadInput(f"the order {self.order} is beyond 2^53; give one between 1 and the number of scores.")
        if self.cells < 2:
            raise BadInput(f"a grid has at least 2 cells, not {self.cells}; give at least one edge.")
        self._check()
        if budget != math.inf:
            check_within(self.ratio, budget, f"this {self.name} selection")

    @abstractmethod
    def _check(self) -> None:
        """Refuse what the integers of this selection cannot be."""

    @property
    @abstractmethod
    def ratio(self) -> Fraction:
        """Return a bound, from the integers alone, of every likelihood ratio between neighbours."""

    @property
    def epsilon(self) -> float:
        """Return the realised epsilon, the logarithm of the ratio."""
        return logarithm(self.ratio)

    @property
    @abstractmethod
    def unbounded(self) -> float:
        """Bound the chance to name the cell without an upper edge when it holds no score."""

    @abstractmethod
    def failure(self, distance: npt.ArrayLike) -> Floats:
        """Bound the probability that the edge lies below a level with ``order + distance`` scores below it."""

    @abstractmethod
    def distribution(self, counts: Ints) -> Floats:
        """Return the probability of every cell, given how many scores each cell holds."""


class WeightedSelection(Selection):
    """A selection that draws each cell in proportion to an integer."""

    @abstractmethod
    def weights(self, counts: Ints) -> list[int]:
        """Return the integer weight of every cell."""

    def distribution(self, counts: Ints) -> Floats:
        """Return the probability of every cell, given how many scores each cell holds."""
        weights = self.weights(counts)
        total = sum(weights)
        return np.array([weight / total for weight in weights])


def checked(mechanism: Selection, counts: Ints) -> Ints:
    """Return counts that belong to a mechanism; the message about others shows none of them."""
    if counts.shape != (mechanism.cells,) or counts.min() < 0 or int(counts.sum()) != mechanism.size:
        raise ValueError(f"counts must be {mechanism.cells} numbers from 0 on that add up to {mechanism.size}")
    return counts


def scores_below(counts: Ints) -> Ints:
    """Count the scores in lower cells than each.

    >>> scores_below(np.array([3, 0, 2])).tolist()
    [0, 3, 3]
    """
    return np.cumsum(counts) - counts


def scores_above(counts: Ints) -> Ints:
    """Count the scores in higher cells than each.

    >>> scores_above(np.array([3, 0, 2])).tolist()
    [2, 2, 0]
    """
    return np.cumsum(counts[::-1])[::-1] - counts


def grid(edges: npt.ArrayLike) -> Floats:
    """Return the edges of a public grid as an array that cannot be changed.

    Edges are chosen without a look at the scores.
    """
    line = np.array(edges, dtype=np.float64)
    if line.ndim != 1 or line.size == 0 or not np.isfinite(line).all() or (line[1:] <= line[:-1]).any():
        raise BadInput("a grid is a list of finite edges, each larger than the one before; give at least one.")
    line.flags.writeable = False
    return line
