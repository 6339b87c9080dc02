"""What the dithered recursion is told before the first person is asked, all of it public.

A study has a channel; what a fit has to know of it, and what is stored, has none.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.protocol.regression.blocks import Open, RegressionChannel, Tables, tables_of
from sottovoce.protocol.regression.decode import alphabets, check_sendable
from sottovoce.protocol.regression.dithered.declared import Declared
from sottovoce.protocol.regression.overheard import Overheard, overheard_of


@dataclass(frozen=True, eq=False)
class ChannelStudy:
    """What every study has: the channel that people answer through."""

    channel: RegressionChannel

    @property
    def taus(self) -> tuple[float, ...]:
        """Return the quantile levels."""
        return self.channel.taus

    @property
    def levels(self) -> int:
        """Return how many quantile levels are fitted."""
        return len(self.channel.taus)

    @property
    def d(self) -> int:
        """Return the number of coefficients, the intercept among them."""
        return self.channel.p + 1


class StoredDithered(NamedTuple):
    """The terms of a study as they are stored: plain, and without its channel."""

    taus: tuple[float, ...]
    omega: Floats
    density: Floats
    size: float
    start: Floats
    moments: Floats

    @property
    def levels(self) -> int:
        """Return how many quantile levels are fitted."""
        return len(self.taus)

    @property
    def d(self) -> int:
        """Return the number of coefficients, the intercept among them."""
        return int(self.start.shape[1])

    @property
    def tails(self) -> Floats:
        """Return the smaller of tau and 1 - tau at each level."""
        taus = np.array(self.taus)
        return np.asarray(np.minimum(taus, 1 - taus))


@dataclass(frozen=True, eq=False)
class DitheredStudy(ChannelStudy):
    """The channel, its predicted noise, and guesses, which people correct: wrong ones cost people.

    ``moments`` is E x x' with x = (1, z), a guess that people are asked to correct unless it is ``known``.
    """

    omega: Floats  # (levels, d, d): covariance of a decoded gradient at the truth
    density: Floats  # (levels,): of the response about its quantile
    size: float  # of the coefficients, as a vector, about the start
    start: Floats  # (levels, d)
    moments: Floats  # (d, d)
    known: bool = False
    limit: float = math.inf  # how far a coefficient may move from its start
    declared: Declared | None = None  # columns of two values, categories, and single moments that are known

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
        return self.terms.tails

    @property
    def terms(self) -> StoredDithered:
        """Return what a fit has to know, plain."""
        guesses = (np.asarray(each, dtype=np.float64) for each in (self.start, self.moments))
        return StoredDithered(self.taus, self.omega, self.density, float(self.size), *guesses)

    @cached_property
    def tables(self) -> Tables:
        """Return the channel as arrays, if its reports are letters."""
        tables = tables_of(self.channel)
        check_sendable(tables)
        return tables

    @cached_property
    def overheard(self) -> Overheard:
        """Return how letters are read for moments."""
        return overheard_of(self.channel)

    @cached_property
    def alphabets(self) -> Ints:
        """Return how many letters each block has, and last a bit."""
        return alphabets(self.channel)


DitheredTerms = DitheredStudy | StoredDithered  # what a fit has to know: just run, or read back
