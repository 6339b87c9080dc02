"""What one person is asked in a regression: a public draw of a block, and the channel that the block answers through.

A block speaks of the face (on which side of the fitted quantiles the response lies), of some slopes, or of both. Its
decoded coordinates are multiplied with public ``gains`` so that the blocks together are unbiased for every coordinate:
the sum over blocks of probability x inclusion x gain is one (Horvitz-Thompson; with equal gains, the paper's).
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.regression.box_channel import BoxChannel, box_channel


@dataclass(frozen=True)
class Open:
    """No channel at all: the exact score of all coordinates, which is not private."""

    name: str = "open"
    epsilon: float = math.inf


@dataclass(frozen=True, eq=False)
class Block:
    """A channel, how often it is asked, and of which slopes (1..p); None: a uniform random choice for each person.

    ``gains`` is (levels, p + 1). A ``Channel`` (a matrix) speaks of the face and one slope, its symbols being
    face-major: face 0 with each grid place of the slope, then face 1.
    """

    probability: float
    channel: BoxChannel | Channel | Open
    slopes: tuple[int, ...] | None
    gains: Floats

    @property
    def face(self) -> bool:
        """Tell whether the block speaks of the face."""
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
        included[0] = float(self.face)
        if self.slopes is not None:
            included[list(self.slopes)] = 1.0
        elif p > 0:
            included[1:] = self.count / p
        return included


@dataclass(frozen=True, eq=False)
class RegressionChannel:
    """A public law over blocks: everything between a person's record and the decoded gradient.

    ``taus`` ascend. A face is the number of fitted quantiles at or above the response.
    """

    name: str
    taus: tuple[float, ...]
    p: int
    blocks: tuple[Block, ...]

    def __post_init__(self) -> None:
        total = sum((block.probability * block.inclusion(self.p) * block.gains for block in self.blocks), np.zeros(1))
        if np.abs(total - 1).max() > 1e-12:
            raise ValueError("the gains of the blocks do not add up to an unbiased gradient")
        if list(self.taus) != sorted(set(self.taus)):
            raise ValueError("the levels of a regression channel must ascend")

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

    def faces(self, level: int) -> Floats:
        """Return the score at each face for a level: the indicator of response at or below the fit, less tau."""
        kinds = np.arange(len(self.taus) + 1)
        return (kinds >= len(self.taus) - level).astype(float) - self.taus[level]

    @property
    def radius(self) -> float:
        """Return how far a slope's score can lie from zero."""
        return max(max(tau, 1 - tau) for tau in self.taus)


def _letters(channel: BoxChannel | Channel | Open) -> int:
    if isinstance(channel, Open):
        return 0
    return channel.letters if isinstance(channel, BoxChannel) else len(channel.weights[0])
