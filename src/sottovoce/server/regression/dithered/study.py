"""What the online regression is told before the first person is asked: all of it public."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.blocks import Open, RegressionChannel


@dataclass(frozen=True, eq=False)
class DitheredStudy:
    """The channel, its predicted noise, and guesses; wrong guesses cost people, not validity.

    ``moments`` is E x x' with x = (1, z), a guess that people are asked to correct unless it is ``known``.
    """

    channel: RegressionChannel
    omega: Floats  # (levels, d, d): covariance of a decoded gradient at the truth
    density: Floats  # (levels,): of the response about its quantile
    size: float  # of the coefficients, as a vector, about the start
    start: Floats  # (levels, d)
    moments: Floats  # (d, d)
    known: bool = False
    limit: float = math.inf  # how far a coefficient may move from its start

    @property
    def levels(self) -> int:
        """Return how many quantile levels are fitted."""
        return len(self.channel.taus)

    @property
    def d(self) -> int:
        """Return the number of coefficients, the intercept among them."""
        return self.channel.p + 1

    @property
    def exact(self) -> bool:
        """Tell whether exact scores are sent, without privacy."""
        return any(isinstance(block.channel, Open) for block in self.channel.blocks)

    @cached_property
    def bit_rate(self) -> float:
        """Return the probability that a bit about a moment is the record's own."""
        return float(self.channel.bit.truth)

    @property
    def tails(self) -> Floats:
        """Return the smaller of tau and 1 - tau at each level."""
        taus = np.array(self.channel.taus)
        return np.asarray(np.minimum(taus, 1 - taus))
