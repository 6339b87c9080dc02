"""Parallel chains of one site, whose spread tells their error: (3.6), (3.7) of the paper on data integration.

A site's records are dealt to ``M`` chains, each a walk of its own; chain averages are independent, so their average has
the standard error ``sd / sqrt(M)`` with ``M - 1`` degrees of freedom. What the printed text leaves open or gets wrong:

* (3.3) has the wrong sign and runs away; (3.6) has the right one. Its bracket is ``-r`` times the gradient that
  `protocol.walk` decodes, so its step ``c t^-beta``, without ``1 / r``, is ``c r t^-beta`` here.
* The step presumes records of scale one, hence ``unit``; a start at 0, far from the quantile, is forgotten too slowly.
* A bias that all chains share is not seen by their spread: where the density slopes (``tau`` other than one half) it is
  that of a walk of ``n / M`` records, however many chains are averaged.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sottovoce.core.errors import BadInput
from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.regression import groups
from sottovoce.protocol.channel import Channel
from sottovoce.server.quantile.asking import SiteProfile
from sottovoce.server.quantile.recursion.schedule import elapsed
from sottovoce.server.quantile.recursion.step_size import StepSize
from sottovoce.server.quantile.recursion.study import WalkStudy

SHORTEST = 100  # records a chain, below which its average is little but its start


@dataclass(frozen=True, eq=False)
class ChainStudy:
    """What the chains of one site need to know; ``start`` and ``unit`` are looked for where they are None."""

    tau: float
    channel: Channel
    chains: int = 10  # as in the paper's Table 1
    constant: float = 1.0
    power: float = 0.6
    start: float | None = None
    unit: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.tau < 1:
            raise BadInput(f"tau lies strictly between 0 and 1, not {self.tau!r}; correct it.")
        if self.chains < 2:
            raise BadInput(f"chains tell an error by their spread, and {self.chains!r} has none; give at least 2.")
        if not 0 < self.constant < math.inf:
            raise BadInput(f"the step constant must be positive and finite, not {self.constant!r}; 1 is the paper's.")
        if not 0.5 < self.power < 1:
            raise BadInput(f"the power of the step lies between 0.5 and 1, not {self.power!r}; 0.6 is the paper's.")
        if self.start is not None and not math.isfinite(self.start):
            raise BadInput(f"the start must be a finite number, not {self.start!r}; give a rough location, or None.")
        if self.unit is not None and not 0 < self.unit < math.inf:
            raise BadInput(f"the unit must be positive and finite, not {self.unit!r}; give a rough scale, or None.")

    @property
    def rate(self) -> float:
        """Return the response rate that the channel's table undoes."""
        return 1 / float(self.channel.table[1, 0] - self.channel.table[0, 0])

    def crowd(self, records: int) -> SiteProfile:
        """Return the site as the only one of a crowd, for the search."""
        return SiteProfile(np.ones(1), np.array([self.rate]), np.array([records]))

    def length(self, records: int) -> int:
        """Return how many records each chain asks; the remainder of the division is not asked."""
        each = records // self.chains
        if each < SHORTEST:
            raise BadInput(
                f"{self.chains} chains need at least {self.chains * SHORTEST:,} records, and there are {records:,}; "
                "make fewer chains, or add records."
            )
        return each


def chain(study: ChainStudy, start: float, unit: float, length: int) -> WalkStudy:
    """Return one chain: a walk of one site, a record a round, of step ``c r t^-beta``, from a start in some unit.

    Examples
    --------
    >>> from sottovoce.protocol.randomised_response import binary
    >>> from sottovoce.server.quantile.recursion.step_size import step_length
    >>> walk = chain(ChainStudy(0.5, binary(1.0986122886681098)), 0.0, 1.0, 200)  # a rate of one half
    >>> round(step_length(walk.pace, 1, 1, 1.0), 6), round(step_length(walk.pace, 32, 1, 1.0), 6)
    (0.5, 0.0625)
    """
    one = np.ones(1)
    scale = study.constant * study.rate * unit
    return WalkStudy(
        taus=study.tau * one,
        shares=one,
        channels=(study.channel,),
        sizes=np.array([length]),
        elapsed=elapsed("every:1", length),
        start=start,
        pace=StepSize(scale, study.power, 0.0, 1.0, True, False),
    )


def measure(averages: npt.ArrayLike) -> SiteEstimate:
    """Return the average of the chains' averages, with the error that their spread tells: (3.7) over n.

    Examples
    --------
    >>> measure([1.0, 2.0, 3.0, 6.0])
    SiteEstimate(estimate=3.0, std_error=1.0801234497346435, df=3)
    """
    rows = np.asarray(averages, dtype=np.float64)[:, None]
    variance = float(groups.covariance(rows)[0, 0]) / len(rows)
    return SiteEstimate(float(groups.mean(rows)[0]), math.sqrt(variance), len(rows) - 1)
