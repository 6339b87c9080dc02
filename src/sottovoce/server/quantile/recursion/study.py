"""What a walk over sites needs to know: levels, shares, channels, sizes, schedule, start and pace; all of it public."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.errors import BadInput
from sottovoce.protocol.channel import Channel
from sottovoce.protocol.walk import moves
from sottovoce.server.quantile.asking import spread_offsets
from sottovoce.server.quantile.recursion.step_size import StepSize

RUN_OUT = 4.0  # standard deviations between the expected and the possible number of turns of a site


class WalkArrays(NamedTuple):
    """The study as the arrays that a kernel reads, one entry a site."""

    sizes: Ints
    ratios: Floats
    offsets: Floats
    shares: Floats
    moves: Floats
    rates: Floats
    mixing: Floats


@dataclass(frozen=True, eq=False)
class WalkStudy:
    """Local stochastic gradient descent over sites.

    ``sizes`` are the records each site can spend; the horizon is the largest. A smaller site answers the same fraction
    of its records over any stretch and its step is larger in proportion, so the shares stay those of the estimand.
    ``mixing`` replaces the server's average by talk among neighbours (`graph.metropolis`); ``participation`` below one
    lets a random part of the sites answer in each round; the first ``burn`` of the rounds (of the iterations, if
    the pace goes by them) is left out of the regression; ``first`` is the last round number already used at the sites.
    """

    taus: Floats
    shares: Floats
    channels: tuple[Channel, ...]
    sizes: Ints
    elapsed: Ints
    start: float
    pace: StepSize
    mixing: Floats | None = None
    participation: float = 1.0
    burn: float = 0.05
    first: int = 0

    def __post_init__(self) -> None:
        n = len(self.channels)
        if n == 0 or not (np.shape(self.taus) == np.shape(self.shares) == np.shape(self.sizes) == (n,)):
            raise BadInput(f"taus, shares and sizes need one entry for each of the {n} sites; correct the study.")
        if not np.all((self.taus > 0) & (self.taus < 1)):
            raise BadInput("tau lies strictly between 0 and 1 at every site; correct it.")
        if not np.all(self.shares > 0) or abs(float(np.sum(self.shares)) - 1) > 1e-9:
            raise BadInput("shares are positive and sum to one; correct them.")
        if int(np.min(self.sizes)) < 1 or len(self.elapsed) < 1:
            raise BadInput("every site needs a record and the schedule a round; leave empty sites out.")
        if not 0 < self.participation <= 1:
            raise BadInput(f"participation lies in (0, 1], not {self.participation!r}; give the part that answers.")
        if self.mixing is not None and self.participation < 1:
            raise BadInput("participation below 1 needs the server's average; leave the graph out.")
        if not np.isfinite(self.start):
            raise BadInput(f"the start must be a finite number, not {self.start!r}; give a rough location.")

    @property
    def tau(self) -> float:
        """Return the level of the estimand: only the weighted sum of the sites' levels enters."""
        return float(np.sum(self.shares * self.taus))

    @property
    def chosen(self) -> int:
        """Return how many sites answer in a round."""
        return int(np.ceil(self.participation * len(self.channels) - 1e-9))

    @cached_property
    def burnt(self) -> int:
        """Return after how many rounds the regression starts: a part of whatever the pace counts in."""
        if self.pace.shared or self.elapsed.strides == (0,):
            return int(self.burn * len(self.elapsed))
        reached = np.cumsum(self.elapsed)
        return int(np.searchsorted(reached, self.burn * reached[-1], side="right"))

    @cached_property
    def plan(self) -> WalkArrays:
        """Return the arrays for the kernels."""
        n = len(self.channels)
        sizes = np.asarray(self.sizes, dtype=np.int64)
        return WalkArrays(
            sizes,
            sizes / sizes.max(),
            spread_offsets(n),
            np.ascontiguousarray(self.shares, dtype=np.float64),
            np.array([moves(channel, tau) for channel, tau in zip(self.channels, self.taus, strict=True)]),
            np.array([1 / float(channel.table[1, 0] - channel.table[0, 0]) for channel in self.channels]),
            np.empty((0, 0)) if self.mixing is None else np.ascontiguousarray(self.mixing, dtype=np.float64),
        )


def horizon(largest: int, sites: int, participation: float, longest: int = 1) -> int:
    """Return how many iterations can be planned so that hardly any site runs out of records.

    Parameters
    ----------
    largest
        The number of records of the largest site.
    sites
        How many sites there are.
    participation
        The part of them that answers in a round.
    longest
        The iterations of the longest round.

    Examples
    --------
    >>> horizon(10_000, 10, 1.0), horizon(10_000, 10, 0.5)
    (10000, 19442)
    """
    part = np.ceil(participation * sites - 1e-9) / sites
    if part >= 1:
        return largest
    # the largest t with t part + RUN_OUT sqrt(t longest part (1 - part)) <= largest
    half = RUN_OUT * np.sqrt(longest * (1 - part)) / 2
    return max(1, int((np.sqrt(half**2 + largest) - half) ** 2 / part))
