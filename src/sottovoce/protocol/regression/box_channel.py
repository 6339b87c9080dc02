"""A channel too large for a matrix: a side and a few cells, of which the letters near the truth are more likely.

A letter is ``(side, cell, ..., cell)`` in mixed radix. Every letter has ``low`` outcomes of the die, whatever the
record; every letter of the record's box (its own side, and ``width`` consecutive cells for each slope) has ``extra``
outcomes more, and letter 0 the ``spare`` ones that do not divide. So the likelihood ratio is ``(low + extra) / low``
exactly, and two integers say what a matrix of up to 2^32 columns would. With ``width`` 1 it is K-ary randomised
response, with no slope the binary channel.
"""

import math
from dataclasses import KW_ONLY, InitVar, dataclass
from fractions import Fraction

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import OUTCOMES
from sottovoce.protocol.exact import check_within, exponential, logarithm

LETTERS = 1 << 32  # a letter is one 32-bit word
FINEST = 10**8  # fewer outcomes per letter would lose more than 1e-8 of the budget


@dataclass(frozen=True)
class BoxChannel:
    """Two integer weights on ``kinds`` sides and ``cells`` cells for each of ``slopes`` slopes.

    ``budget`` is the epsilon it was asked for: weights that would cost more are refused.
    """

    name: str
    kinds: int
    slopes: int
    cells: int
    width: int
    low: int
    extra: int
    spare: int
    _: KW_ONLY
    budget: InitVar[float] = math.inf

    def __post_init__(self, budget: float) -> None:
        sane = self.kinds >= 1 and self.slopes >= 0 and 1 <= self.width <= self.cells
        sane = sane and (self.cells == 1 or self.slopes <= 32)  # before a stranger's power is taken
        if not sane or self.letters > LETTERS:
            raise ValueError("a box channel needs a side, boxes within its cells, and at most 2^32 letters")
        outcomes = self.letters * self.low + self.inside * self.extra + self.spare
        if min(self.low, self.extra, self.spare) < 0 or outcomes != OUTCOMES:
            raise ValueError("the outcomes of a box channel must add up to the die")
        check_within(self.ratio, budget, f"the box channel {self.name!r}")

    @property
    def letters(self) -> int:
        """Return the size of the alphabet."""
        return self.kinds * int(self.cells**self.slopes)

    @property
    def inside(self) -> int:
        """Return how many letters a record's box holds."""
        return int(self.width**self.slopes)

    @property
    def positions(self) -> int:
        """Return how many places a box can take along one slope."""
        return self.cells - self.width + 1

    @property
    def total(self) -> int:
        """Return the number of outcomes of the die."""
        return OUTCOMES

    @property
    def truth(self) -> Fraction:
        """Return the probability that the record itself speaks."""
        return Fraction(self.extra * self.inside, OUTCOMES)

    @property
    def ratio(self) -> Fraction | None:
        """Return the largest likelihood ratio of any letter, exactly; None if unbounded."""
        if self.extra == 0 or self.letters == self.inside:
            return Fraction(1)
        return None if self.low == 0 else Fraction(self.low + self.extra, self.low)

    @property
    def epsilon(self) -> float:
        """Return the realised epsilon, computed from the integers."""
        ratio = self.ratio
        return math.inf if ratio is None else logarithm(ratio)

    def value(self, cell: int) -> Fraction:
        """Return the middle of a cell of [-1, 1]."""
        return Fraction(2 * cell + 1 - self.cells, self.cells)

    def parts(self, letter: int) -> tuple[int, ...]:
        """Return the side and the cells that a letter names."""
        cells = []
        for _ in range(self.slopes):
            letter, cell = divmod(letter, self.cells)
            cells.append(cell)
        return (letter, *cells)

    def decoder(self, sides: Floats) -> "Decoder":
        """Return the affine inverse that makes a letter's side, and side times cell, unbiased."""
        values = [Fraction(float(side)) for side in sides]
        mean = sum(values, Fraction(0)) / self.kinds
        uniform = Fraction(self.letters * self.low, OUTCOMES)
        spare = Fraction(self.spare, OUTCOMES)
        reach = 1 - Fraction(self.width, self.cells)
        return Decoder(
            uniform * mean + spare * values[0],
            1 / self.truth,
            spare * values[0] * self.value(0),
            Fraction(0) if self.slopes == 0 else 1 / (self.truth * reach),
        )


@dataclass(frozen=True)
class Decoder:
    """``(side - shift_side) * side`` and ``(side x cell - shift_slope) * slope`` are unbiased."""

    shift_side: Fraction
    side: Fraction
    shift_slope: Fraction
    slope: Fraction


def box_channel(name: str, epsilon: float, kinds: int, slopes: int = 0, cells: int = 1, width: int = 1) -> BoxChannel:
    """Return the box channel that spends as much of ``epsilon`` as integers allow, and never more.

    It tells ``kinds`` sides apart; 1 tells nothing of the side. A slope's range is cut into ``cells``, of which a box
    covers ``width``. ``math.inf`` sends the truth.

    >>> channel = box_channel("cq", 1.0, kinds=2, slopes=1, cells=3)
    >>> channel.letters, channel.epsilon <= 1.0 < channel.epsilon + 1e-8
    (6, True)
    """
    if not epsilon > 0:
        raise BadInput(f"epsilon must be positive, not {epsilon!r}; give a budget such as 1, or inf for no privacy.")
    letters, inside = kinds * cells**slopes, width**slopes
    if letters > LETTERS:
        raise BadInput(
            f"{slopes} slopes of {cells} cells make {letters:,} letters, more than the 2^32 a report can carry; "
            "give fewer slopes per block, or fewer cells."
        )
    if math.isinf(epsilon):
        low = 0
    else:
        share = Fraction(OUTCOMES) / (letters + (exponential(epsilon) - 1) * inside)
        low = -(-share.numerator // share.denominator)
        if low < FINEST:
            raise BadInput(
                f"epsilon {epsilon!r} is more than a channel of {letters:,} letters can express within 1e-8; "
                "give a smaller budget, or inf for no privacy."
            )
    extra, spare = divmod(OUTCOMES - letters * low, inside)
    if low > 0 and letters * 10**9 > inside * extra:  # so many letters that rounding them up would cost the truth
        low -= 1
        extra = min(int((exponential(epsilon) - 1) * low), (OUTCOMES - letters * low) // inside)
        spare = OUTCOMES - letters * low - inside * extra
    if extra <= 0:
        raise BadInput(f"epsilon {epsilon!r} is too small for a die of 2^62 outcomes; give a larger budget.")
    return BoxChannel(name, kinds, slopes, cells, width, low, extra, spare, budget=epsilon)
