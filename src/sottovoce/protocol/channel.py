"""The channel: a public distribution from private symbols to public letters, held as integers.

Row ``j`` of ``weights`` says on how many outcomes of a die with ``total`` outcomes symbol ``j`` is sent as each letter.
Epsilon follows from these integers alone, in exact arithmetic; the decoding ``table`` makes the gradient unbiased:
``distribution @ table == vertices``.
"""

import math
from dataclasses import KW_ONLY, InitVar, dataclass
from fractions import Fraction

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.exact import check_within, logarithm

OUTCOMES = 1 << 62  # of the die: fits a signed 64-bit integer; a 64-bit word without its two low bits is one throw


@dataclass(frozen=True, eq=False)
class Channel:
    """A randomiser: ``vertices`` (J, dim), integer ``weights`` (J, M) and the decoding ``table`` (M, dim).

    ``budget`` is the epsilon it was asked for: weights that would cost more are refused.
    """

    name: str
    vertices: Floats
    weights: tuple[tuple[int, ...], ...]
    table: Floats
    _: KW_ONLY
    budget: InitVar[float] = math.inf

    def __post_init__(self, budget: float) -> None:
        totals = {sum(row) for row in self.weights}
        letters = {len(row) for row in self.weights}
        if len(totals) != 1 or len(letters) != 1 or min(totals) < 1 or min(min(row) for row in self.weights) < 0:
            raise ValueError("channel weights need rows of one length and one positive total, without negative entries")
        if len(self.vertices) != len(self.weights) or len(self.table) != len(self.weights[0]):
            raise ValueError("channel vertices and table must match the weights' rows and columns")
        check_within(self.ratio, budget, f"the channel {self.name!r}")

    @property
    def total(self) -> int:
        """Return the number of outcomes of the die."""
        return sum(self.weights[0])

    @property
    def ratio(self) -> Fraction | None:
        """Return the largest likelihood ratio of any letter, exactly; None if unbounded."""
        worst = Fraction(1)
        for column in zip(*self.weights, strict=True):
            low, high = min(column), max(column)
            if low == 0 and high > 0:
                return None
            if high > 0:
                worst = max(worst, Fraction(high, low))
        return worst

    @property
    def epsilon(self) -> float:
        """Return the realised epsilon, computed from the integers."""
        ratio = self.ratio
        return math.inf if ratio is None else logarithm(ratio)

    @property
    def distribution(self) -> Floats:
        """Return the probabilities of the letters given each symbol."""
        return np.array([[float(Fraction(w, self.total)) for w in row] for row in self.weights])
