"""What one person is asked in a regression: a public draw of a block, and the channel that the block answers through.

A block tells the side (on which side of the fitted quantiles the response lies), some slopes, or both. Its decoded
coordinates are multiplied with public ``gains`` so that the blocks together are unbiased for every coordinate: the sum
over blocks of probability x inclusion x gain is one (Horvitz and Thompson 1952, doi:10.1080/01621459.1952.10483446;
with equal gains, the paper's). ``Tables`` is the same channel as flat arrays, so that compiled code on both sides of
the wire reads the same numbers.
"""

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, InitVar, dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import OUTCOMES, Channel
from sottovoce.protocol.exact import check_within
from sottovoce.protocol.regression.box_channel import BoxChannel, box_channel

BOX, MATRIX, OPEN = 0, 1, 2
FORM, KINDS, SLOPES, CELLS, WIDTH, POSITIONS, FIXED = range(7)  # columns of the plan
LOW, COMMON, EXTRA, INSIDE = range(4)  # columns of the outcomes
Weights = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Open:
    """No channel at all: the exact score of all coordinates, which is not private."""

    name: str = "open"
    epsilon: float = math.inf


@dataclass(frozen=True, eq=False)
class Block:
    """A channel, how often it is asked, and of which slopes (1..p); None: a uniform random choice for each person.

    ``gains`` is (levels, p + 1). A ``Channel`` (a matrix) speaks of the side and one slope, its symbols being
    side-major: side 0 with each grid place of the slope, then side 1.
    """

    probability: float
    channel: BoxChannel | Channel | Open
    slopes: tuple[int, ...] | None
    gains: Floats

    @property
    def side(self) -> bool:
        """Tell whether the block speaks of the side."""
        return not isinstance(self.channel, BoxChannel) or self.channel.kinds > 1

    @property
    def count(self) -> int:
        """Return of how many slopes the block speaks."""
        if isinstance(self.channel, BoxChannel):
            return self.channel.slopes
        return 1 if isinstance(self.channel, Channel) else self.gains.shape[1] - 1

    def inclusion(self, p: int) -> Floats:
        """Return the probability that the block, when it is asked, speaks of each coordinate."""
        included = np.zeros(p + 1)
        included[0] = float(self.side)
        if self.slopes is not None:
            included[list(self.slopes)] = 1.0
        elif p > 0:
            included[1:] = self.count / p
        return included


@dataclass(frozen=True, eq=False)
class RegressionChannel:
    """A public distribution over blocks: everything between a person's record and the decoded gradient.

    ``taus`` ascend. A side is the number of fitted quantiles at or above the response. ``budget`` is the epsilon it was
    asked for: a block that would cost more is refused.
    """

    name: str
    taus: tuple[float, ...]
    p: int
    blocks: tuple[Block, ...]
    _: KW_ONLY
    budget: InitVar[float] = math.inf

    def __post_init__(self, budget: float) -> None:
        if not self.blocks or not all(_fits(block, len(self.taus), self.p) for block in self.blocks):
            raise BadInput(
                f"a block of the channel {self.name!r} is not for its levels, its slopes or a die of 2^62 faces, and "
                "a letter could cost more than it says; build the block for them."
            )
        total = sum((block.probability * block.inclusion(self.p) * block.gains for block in self.blocks), np.zeros(1))
        if np.abs(total - 1).max() > 1e-12:
            raise ValueError("the gains of the blocks do not add up to an unbiased gradient")
        if list(self.taus) != sorted(set(self.taus)):
            raise ValueError("the levels of a regression channel must ascend")
        check_within(self.ratio, budget, f"the channel {self.name!r}")

    @property
    def epsilon(self) -> float:
        """Return the largest epsilon of any block: what one report may tell."""
        return max(block.channel.epsilon for block in self.blocks)

    @property
    def bit(self) -> BoxChannel:
        """Return the channel of one bit at the same budget, for people who are asked about moments instead."""
        return box_channel("bit", self.epsilon, kinds=1, slopes=1, cells=2)

    @property
    def ratio(self) -> Fraction | None:
        """Return the largest likelihood ratio of any block, exactly; None if unbounded."""
        ratios = [None if isinstance(b.channel, Open) else b.channel.ratio for b in self.blocks]
        return None if None in ratios else max(r for r in ratios if r is not None)

    @property
    def letters(self) -> int:
        """Return the size of the largest alphabet of any block (0: none)."""
        return max(_letters(block.channel) for block in self.blocks)

    @property
    def widest(self) -> int:
        """Return the most slopes that any block speaks of."""
        return max(block.count for block in self.blocks)

    def side_scores(self, level: int) -> Floats:
        """Return the score at each side for a level: the indicator of response at or below the fit, less tau."""
        kinds = np.arange(len(self.taus) + 1)
        return (kinds >= len(self.taus) - level).astype(float) - self.taus[level]

    @property
    def radius(self) -> float:
        """Return how far a slope's score can lie from zero."""
        return max(max(tau, 1 - tau) for tau in self.taus)


def _fits(block: Block, levels: int, p: int) -> bool:
    """Tell whether the encoder sends the letters of a block's alphabet, with the block's integers, and no others."""
    channel, slopes = block.channel, block.slopes
    if block.gains.shape != (levels, p + 1):  # first: p is a stranger's number
        return False
    if slopes is not None and not len(slopes) == block.count == len(set(slopes) & set(range(1, p + 1))):
        return False
    if not block.count <= p or not 0 < block.probability <= 1:
        return False
    if isinstance(channel, BoxChannel):
        return channel.kinds in (1, levels + 1)
    if isinstance(channel, Channel):
        places, rest = divmod(len(channel.weights), 2)
        return levels == 1 and places > 0 and rest == 0 and channel.total == OUTCOMES and channel.table.shape[1] == 2
    return True


def _letters(channel: BoxChannel | Channel | Open) -> int:
    if isinstance(channel, Open):
        return 0
    return channel.letters if isinstance(channel, BoxChannel) else len(channel.weights[0])


def open_channel(taus: float | Sequence[float], p: int) -> RegressionChannel:
    """Return the channel that is not private: one block that tells every coordinate of the score.

    >>> open_channel(0.5, 2).epsilon
    inf
    """
    levels = (float(taus),) if isinstance(taus, float | int) else tuple(float(tau) for tau in taus)
    gains = np.ones((len(levels), p + 1))
    return RegressionChannel("open", levels, p, (Block(1.0, Open(), tuple(range(1, p + 1)), gains),))


class Tables(NamedTuple):
    """One row per block; `client.regression.randomize_row` makes a letter, `protocol.regression.decode` reads it."""

    upto: Floats  # (blocks,): cumulative probabilities
    plan: Ints  # (blocks, 6 + slopes): form, kinds, slopes, cells, width, places of a box; fixed slopes, 0: drawn
    outcomes: Weights  # (blocks + 1, 4): low, low x letters, extra, extra x letters inside; last the bit of a moment
    steps: Weights  # (blocks, 1 + symbols, letters): a matrix's outcomes, cumulative: any symbol's, then each one's own
    score: Floats  # (levels, kinds): the score at each side
    read: Floats  # (blocks, levels, kinds + 1 + d): intercept by side, what is taken off a slope, then its factors
    matrix: Floats  # (blocks, letters, 2): a matrix's decoded side and slope
    radius: float


def tables_of(channel: RegressionChannel) -> Tables:
    """Return the arrays of a regression channel."""
    blocks, levels, d = channel.blocks, len(channel.taus), channel.p + 1
    n, kinds = len(blocks), levels + 1
    matrices = [b.channel for b in blocks if isinstance(b.channel, Channel)]
    letters = max((len(m.weights[0]) for m in matrices), default=1)
    symbols = max((len(m.weights) for m in matrices), default=1)
    tables = Tables(
        np.cumsum([b.probability for b in blocks]),
        np.zeros((n, FIXED + max(channel.widest, 1)), dtype=np.int64),
        np.zeros((n + 1, 4), dtype=np.uint64),
        np.zeros((n, 1 + symbols, letters), dtype=np.uint64),
        np.array([channel.side_scores(level) for level in range(levels)]),
        np.zeros((n, levels, kinds + 1 + d)),
        np.zeros((n, letters, 2)),
        channel.radius,
    )
    tables.upto[-1] = 1.0
    bit = channel.bit
    tables.outcomes[n] = (bit.low, bit.low * bit.letters, bit.extra, bit.extra)
    for i, block in enumerate(blocks):
        if block.slopes is not None:
            tables.plan[i, FIXED : FIXED + len(block.slopes)] = block.slopes
        if isinstance(block.channel, BoxChannel):
            _fill_box(tables, i, block, block.channel, channel)
        elif isinstance(block.channel, Channel):
            _fill_matrix(tables, i, block, block.channel)
        else:
            tables.plan[i, :FIXED] = (OPEN, 2, channel.p, 1, 1, 1)
    return tables


def _fill_box(tables: Tables, i: int, block: Block, box: BoxChannel, channel: RegressionChannel) -> None:
    tables.plan[i, :FIXED] = (BOX, box.kinds, box.slopes, box.cells, box.width, box.positions)
    tables.outcomes[i] = (box.low, box.low * box.letters, box.extra, box.extra * box.inside)
    for level in range(len(channel.taus)):
        sides = channel.side_scores(level) if box.kinds > 1 else np.array([channel.radius])
        kinds, decode = len(channel.taus) + 1, box.decoder(sides)
        if box.kinds > 1:
            tables.read[i, level, :kinds] = (
                (sides - float(decode.shift_side)) * float(decode.side) * block.gains[level, 0]
            )
        tables.read[i, level, kinds] = float(decode.shift_slope)
        tables.read[i, level, kinds + 1 :] = float(decode.slope) * block.gains[level]


def _fill_matrix(tables: Tables, i: int, block: Block, matrix: Channel) -> None:
    symbols, letters = len(matrix.weights), len(matrix.weights[0])
    tables.plan[i, :FIXED] = (MATRIX, 2, 1, symbols // 2, 1, symbols // 2)
    common = [min(column) for column in zip(*matrix.weights, strict=True)]
    rows = [common, *([w - c for w, c in zip(row, common, strict=True)] for row in matrix.weights)]
    for j, row in enumerate(rows):
        tables.steps[i, j, :letters] = np.cumsum(np.array(row, dtype=np.uint64))
        tables.steps[i, j, letters:] = tables.steps[i, j, letters - 1]
    tables.matrix[i, :letters] = matrix.table
    tables.read[i, :, tables.score.shape[1] + 1 :] = block.gains
