"""The integers of every channel and mechanism as plain values, and the likelihood ratio that follows from them.

A part is what a certificate holds: the form of a mechanism, its shape, and its weights as decimal texts. Its cost is
computed from these alone, with the classes that clients use, so a part that says something else is refused or seen.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import msgspec

from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import OUTCOMES, Channel
from sottovoce.protocol.exact import logarithm, within
from sottovoce.protocol.randomised_response import with_flips
from sottovoce.protocol.regression.blocks import Open, RegressionChannel
from sottovoce.protocol.regression.box_channel import BoxChannel
from sottovoce.protocol.selection import Mechanism
from sottovoce.protocol.selection.exponential import BITS, Exponential, PaperExponential
from sottovoce.protocol.selection.geometric import NoisyCount, Polya
from sottovoce.protocol.selection.geometric import ratio as ratio_of
from sottovoce.protocol.selection.sparse_vector import SparseVector

MOST_WEIGHTS = 200_000  # of one part: no channel of this package has a tenth of it
MOST_STEPS = 200_000  # of one table of an exponential mechanism, computed in a second; a longer one is not computed
WHOLE = re.compile(r"0|[1-9]\d{0,19}", re.ASCII)
Auditable = Channel | BoxChannel | RegressionChannel | Mechanism | NoisyCount | Polya


class ChannelPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One mechanism: whose it is, its form, its shape, its weights, and the budget that was asked (None: unbounded)."""

    role: str
    form: str
    shape: tuple[int, ...]
    weights: tuple[tuple[str, ...], ...]
    asked: float | None = None


class ExactCost(NamedTuple):
    """What a part costs: the largest likelihood ratio (None: unbounded) and its logarithm, rounded upwards."""

    part: ChannelPart
    ratio: Fraction | None

    @property
    def epsilon(self) -> float:
        """Return the exact epsilon."""
        return math.inf if self.ratio is None else logarithm(self.ratio)

    @property
    def kept(self) -> bool:
        """Tell whether the integers keep to the budget that was asked."""
        return within(self.ratio, math.inf if self.part.asked is None else self.part.asked)


class TooLong(BadInput):
    """The cost of a part would take longer to compute than whoever verifies is ready for."""


def parts_of(made: Auditable | Open, asked: float | None = None, role: str = "channel") -> list[ChannelPart]:
    """Return the parts of a channel or mechanism: of a regression its blocks, and the bit about moments.

    >>> from sottovoce.protocol.randomised_response import binary
    >>> [part] = parts_of(binary(1.0), 1.0)
    >>> part.form, part.weights
    ('bit', (('1240273392707995214',),))
    """
    budget = None if asked is None or math.isinf(asked) else float(asked)

    def part(form: str, shape: Sequence[int], *weights: Sequence[int]) -> list[ChannelPart]:
        return [ChannelPart(role, form, tuple(shape), tuple(tuple(map(str, row)) for row in weights), budget)]

    if isinstance(made, RegressionChannel):
        blocks = enumerate(made.blocks, start=1)
        found = [each for k, block in blocks for each in parts_of(block.channel, asked, f"{role}, block {k}")]
        open_ = any(isinstance(block.channel, Open) for block in made.blocks)
        return found if open_ else found + parts_of(made.bit, asked, f"{role}, bit about moments")
    if isinstance(made, Open):
        return part("open", ())
    if isinstance(made, BoxChannel):
        return part("box", (made.kinds, made.slopes, made.cells, made.width), (made.low, made.extra, made.spare))
    if isinstance(made, Channel):
        flips = made.weights[0][-1]
        if made.weights == ((OUTCOMES - flips, flips), (flips, OUTCOMES - flips)):
            return part("bit", (), (flips,))
        return part("matrix", (), *made.weights)
    if isinstance(made, NoisyCount):
        return part("count", (), (made.numerator,))
    if isinstance(made, Polya):
        return part("sum", (made.sites,), (made.numerator,))
    place = (made.size, made.order, made.cells)
    if isinstance(made, SparseVector):
        return part("sparse-vector", place, (made.query, made.threshold))
    if isinstance(made, Exponential):
        return part("exponential", place, (made.low, made.high))
    return part("paper", place, (made.above, made.below))


def cost_of(part: ChannelPart) -> ExactCost:
    """Return what a part costs, or refuse one that is no mechanism."""
    try:
        made = made_of(part)
        ratio = made if made is None or isinstance(made, Fraction) else made.ratio
    except TooLong:
        raise
    except (ValueError, ArithmeticError, LookupError, TypeError):  # the classes of the protocol refuse with these
        raise BadInput("the integers of a part make no mechanism of its form; ask whoever wrote it.") from None
    return ExactCost(part, ratio)


def made_of(part: ChannelPart) -> Channel | BoxChannel | Mechanism | NoisyCount | Fraction | None:
    """Return the mechanism of a part as its class has it; a ratio where there is no class, None without privacy."""
    if part.form not in _MADE:
        raise BadInput("a part is of a form that this version does not know; use the version that wrote it.")
    if sum(map(len, part.weights)) > MOST_WEIGHTS:
        raise TooLong(f"a part has more than {MOST_WEIGHTS:,} weights, and was not computed.")
    if not all(0 <= each <= OUTCOMES for each in map(abs, part.shape)):
        raise BadInput("the shape of a part is beyond every number of this package; ask whoever wrote it.")
    return _MADE[part.form](part.shape, [[_whole(text) for text in row] for row in part.weights])


def costs_of(parts: Sequence[ChannelPart]) -> Iterator[ExactCost]:
    """Yield what parts cost."""
    return map(cost_of, parts)


def _whole(text: str) -> int:
    """Read a decimal text of up to 20 digits."""
    if not WHOLE.fullmatch(text):
        raise BadInput("a weight is no whole number in decimal digits; ask whoever wrote it.")
    return int(text)


def _bit(shape: Sequence[int], weights: list[list[int]]) -> Channel:
    [] = shape
    [[flips]] = weights
    return with_flips(flips)


def _matrix(shape: Sequence[int], weights: list[list[int]]) -> Fraction | None:
    [] = shape
    totals = {sum(row) for row in weights}
    if len({len(row) for row in weights}) != 1 or len(totals) != 1 or min(totals) < 1:
        raise ValueError("no distributions of one alphabet")
    worst = Fraction(1)
    for column in zip(*weights, strict=True):
        low, high = min(column), max(column)
        if low == 0 < high:
            return None
        worst = max(worst, Fraction(high, low)) if high else worst
    return worst


def _box(shape: Sequence[int], weights: list[list[int]]) -> BoxChannel:
    kinds, slopes, cells, width = shape
    [[low, extra, spare]] = weights
    if not (slopes <= 32 and kinds * max(cells, 2) ** slopes <= 1 << 64):  # before a power is taken of anything large
        raise ValueError("no alphabet")
    return BoxChannel("part", kinds, slopes, cells, width, low, extra, spare)


def _count(shape: Sequence[int], weights: list[list[int]]) -> NoisyCount | None:
    [] = shape
    [[numerator]] = weights
    return NoisyCount(numerator) if numerator else None


def _sum(shape: Sequence[int], weights: list[list[int]]) -> Fraction | None:
    [sites] = shape
    [[numerator]] = weights
    if sites < 1:
        raise ValueError("no sites")
    return ratio_of(numerator, numerator) if Polya(numerator, sites).numerator else None


def _sparse(shape: Sequence[int], weights: list[list[int]]) -> SparseVector:
    size, order, cells = shape
    [[query, threshold]] = weights
    return SparseVector(size, order, cells, query, threshold)


def _exponential(shape: Sequence[int], weights: list[list[int]]) -> Exponential:
    size, order, cells = shape
    [[low, high]] = weights
    _check_tables((low, min(order, size)), (high, size - order + 1))
    return Exponential(size, order, cells, low, high)


def _paper(shape: Sequence[int], weights: list[list[int]]) -> PaperExponential:
    size, order, cells = shape
    [[above, below]] = weights
    _check_tables((above, size), (below, size))
    return PaperExponential(size, order, cells, above, below, math.inf)


def _check_tables(*tables: tuple[int, int]) -> None:
    """Refuse tables of weights that are long to compute."""
    for numerator, length in tables:
        if not 0 < numerator < 1 << 64:
            raise ValueError("no numerator")
        fall = max(-math.log(numerator / 2.0**64), 1e-19)
        if min(2 * length, BITS * math.log(2) / fall) > MOST_STEPS:
            raise TooLong("the tables of an exponential mechanism are too long to compute here.")
    if sum(length * -math.log(numerator / 2.0**64) for numerator, length in tables) > MOST_STEPS:
        raise TooLong("the weights of an exponential mechanism are too long to compute here.")


def _open(shape: Sequence[int], weights: list[list[int]]) -> None:
    [], [] = shape, weights


_MADE: dict[
    str, Callable[[Sequence[int], list[list[int]]], Channel | BoxChannel | Mechanism | NoisyCount | Fraction | None]
]
_MADE = {
    "bit": _bit,
    "matrix": _matrix,
    "box": _box,
    "count": _count,
    "sum": _sum,
    "sparse-vector": _sparse,
    "exponential": _exponential,
    "paper": _paper,
    "open": _open,
}
FORMS = tuple(_MADE)
