"""All that an experiment knows of a method: a sample, a seed and a level in, an estimate out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.local.quantile import compiled_walk as fused
from sottovoce.local.quantile.compiled_walk import Coin
from sottovoce.local.quantile.source import Source
from sottovoce.protocol.randomised_response import binary, epsilon_of_rate
from sottovoce.server.quantile.recursion import regression_root
from sottovoce.server.quantile.recursion import walk as sgd
from sottovoce.server.quantile.recursion.schedule import decay, elapsed
from sottovoce.server.quantile.recursion.walk import Estimate, WalkStudy, horizon
from sottovoce.sim.randomness import dice

Sample = Sequence[Floats]


class Method(Protocol):
    """Estimates from raw records, privately or not; the same sample, seed and level give the same estimate."""

    def __call__(self, sample: Sample, seed: int, level: float) -> Estimate:
        """Return the estimate."""


@dataclass(frozen=True)
class Walk:
    """How the paper's walk is run; `SelfNormalised` and `Regression` differ in what they make of it."""

    tau: float
    rates: Sequence[float]
    schedule: str | Sequence[int] = "every:1"
    shares: Sequence[float] | None = None
    start: float | None = None
    unit: float = 1.0
    constant: float = 20.0
    participation: float = 1.0

    def ended(self, sample: Sample, seed: int) -> tuple[WalkStudy, sgd.WalkState]:
        """Run all rounds over a sample."""
        n, sizes = len(sample), [len(values) for values in sample]
        source = dice(seed)
        start = source.generator().standard_normal() if self.start is None else self.start
        longest = int(elapsed(self.schedule, max(sizes)).max())
        study = WalkStudy(
            np.full(n, self.tau),
            np.full(n, 1 / n) if self.shares is None else np.asarray(self.shares, dtype=np.float64),
            tuple(binary(epsilon_of_rate(rate)) for rate in self.rates),
            np.array(sizes, dtype=np.int64),
            elapsed(self.schedule, horizon(max(sizes), n, self.participation, longest)),
            float(start),
            decay(self.rates, self.unit, self.constant),
            participation=self.participation,
        )
        feeds = [
            Source(values, channel, die)
            for values, channel, die in zip(sample, study.channels, source.split(n), strict=True)
        ]
        return study, fused.run(study, feeds, Coin(study, source))


@dataclass(frozen=True)
class SelfNormalised(Walk):
    """The paper's own method, with the critical value of its own schedule or (``own=False``) as printed.

    Examples
    --------
    >>> method = SelfNormalised(0.5, (0.9, 0.9), start=0.0)
    >>> estimate = method([np.linspace(-1, 1, 500)] * 2, seed=1, level=0.95)
    >>> estimate.low < estimate.point < estimate.high, estimate.n
    (True, 1000)
    """

    own: bool = True

    def __call__(self, sample: Sample, seed: int, level: float) -> Estimate:
        """Return the averaged point and its self-normalised interval."""
        study, state = self.ended(sample, seed)
        return sgd.estimate(study, state, level, self.own)


@dataclass(frozen=True)
class Regression(Walk):
    """The same walk, read by the root of the regression."""

    def __call__(self, sample: Sample, seed: int, level: float) -> Estimate:
        """Return the root and Fieller's interval."""
        study, state = self.ended(sample, seed)
        return regression_root.estimate(study, state, level)
