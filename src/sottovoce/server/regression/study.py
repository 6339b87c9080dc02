"""What the paper's recursion is told before the first person is asked, all of it public.

A study has a channel; what a fit has to know of it, and what is stored, has none.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.protocol.regression.blocks import RegressionChannel, Tables, tables_of
from sottovoce.protocol.regression.box_channel import BoxChannel
from sottovoce.protocol.regression.dithered.study import ChannelStudy
from sottovoce.server.regression.omega import omega

METHODS = ("self-normalised", "groups", "higrad")


class StoredLiuHu(NamedTuple):
    """The terms of a study as they are stored: plain, and without its channel."""

    taus: tuple[float, ...]
    omega: Floats
    start: Floats
    scale: float
    power: float
    offset: float
    inference: str
    chains: int
    tree: tuple[int, ...]
    noise: float
    moments: Floats | None

    @property
    def levels(self) -> int:
        """Return how many quantile levels are fitted."""
        return len(self.taus)

    @property
    def d(self) -> int:
        """Return the number of coefficients, the intercept among them."""
        return int(self.start.shape[1])


@dataclass(frozen=True, eq=False)
class LiuHuStudy(ChannelStudy):
    """Projected stochastic gradient descent with steps ``scale / (i^power + offset)``, averaged (Polyak-Ruppert).

    ``omega``, ``noise`` and ``moments`` only serve to say where the intervals are known to cover too little.
    """

    omega: Floats  # (levels, d, d): covariance of a decoded gradient at the truth
    start: Floats  # (levels, d)
    scale: float  # see `paper_scale`
    power: float = 0.65
    offset: float = 300.0
    limit: float = math.inf  # how far a coefficient may move from its start
    inference: str = "self-normalised"
    groups: int = 0  # 0: p + 5
    tree: tuple[int, ...] = (4, 4)
    # a guess of the response's spread about the fit, as the scale of a logistic distribution; the paper's
    noise: float = 0.5
    moments: Floats | None = None  # (d, d): E x x' with x = (1, z); None: of uniform covariates

    def __post_init__(self) -> None:
        levels, d = len(self.channel.taus), self.channel.p + 1
        if np.shape(self.start) != (levels, d) or np.shape(self.omega) != (levels, d, d):
            raise BadInput(f"start needs shape {(levels, d)} and omega {(levels, d, d)}; correct the study.")
        if not (np.isfinite(self.start).all() and np.isfinite(self.omega).all()):
            raise BadInput("start and omega must be finite; correct the study.")
        if not (0 < self.scale < math.inf and self.offset >= 0 and self.limit > 0 and 0 < self.noise < math.inf):
            raise BadInput("scale, limit and noise must be positive and offset not negative; correct the study.")
        if not 0.5 < self.power < 1:
            raise BadInput(f"power is {self.power}, but averages of the points need 1/2 < power < 1; 0.65 is usual.")
        if self.inference not in METHODS:
            raise BadInput(f"inference {self.inference!r} is not known here; choose one of {', '.join(METHODS)}.")
        if self.inference == "groups" and self.chains < 2:
            raise BadInput(f"{self.groups} groups have no spread to judge by; give at least 2.")

    @property
    def terms(self) -> StoredLiuHu:
        """Return what a fit has to know, plain."""
        return StoredLiuHu(
            self.taus,
            self.omega,
            np.asarray(self.start, dtype=np.float64),
            float(self.scale),
            float(self.power),
            float(self.offset),
            self.inference,
            self.chains,
            tuple(self.tree),
            float(self.noise),
            self.moments,
        )

    @property
    def chains(self) -> int:
        """Return the number of groups."""
        return self.groups or self.channel.p + 5

    @property
    def bounds(self) -> Floats:
        """Return the projection's lowest and highest point, (2, levels, d)."""
        return np.stack([self.start - self.limit, self.start + self.limit])

    @cached_property
    def tables(self) -> Tables:
        """Return the channel as arrays."""
        return tables_of(self.channel)

    def steps(self, times: npt.NDArray[np.int64]) -> Floats:
        """Return the steps at some times, the first person's being 1."""
        return np.asarray(self.scale / (times.astype(np.float64) ** self.power + self.offset))


LiuHuTerms = LiuHuStudy | StoredLiuHu  # what a fit has to know: just run, or read back


def paper_scale(
    channel: RegressionChannel,
    size: float = 1.0,
    normalised: bool = True,
    second_moments: float | Sequence[float] | Floats | None = None,
) -> float:
    """Return the constant of the paper's step for any channel.

    The paper's is ``10 kappa sqrt(s / d)``, divided by ``2 r_max sqrt(d)`` as its tables need, for CQ_X(q, s) with
    ``kappa`` the smallest chance that a record speaks. Other channels have no such chance. With q = 2 and a small
    budget ``(kappa sqrt(s / d))^2`` is the information of a report on a coordinate, ``1 / Omega_jj``, relative to the
    exact score at its largest (half the range of the face, r_max for a slope), where that is smallest; exact scores
    reach 1. So this is what other channels take. Relative to the exact score's own variance it would be up to 3 times
    less at tau = .75, and the start be forgotten too slowly: n x MSE at a million people then is 1.3 to 2.5 times the
    asymptotic one for one report of epsilon 1.

    ``size`` is a public guess of the length of the coefficients, in units of the response, whose unit steps have (the
    paper's is 1). ``normalised`` divides by ``2 r_max sqrt(d)``, a bound of the gradient's length. ``second_moments``
    are those of `server.regression.omega`; the paper's channels do not need them.

    >>> from sottovoce.protocol.regression.box import cq
    >>> round(paper_scale(cq(0.5, 2, 2.0, q=2, s=1)), 2)
    2.54
    """
    if not 0 < size < math.inf:
        raise BadInput(f"size is {size!r}, but a guess of the coefficients' length is positive; correct it.")
    told = _told(channel, second_moments)
    return 10 * size * told / (2 * channel.radius * math.sqrt(channel.p + 1) if normalised else 1.0)


def _told(channel: RegressionChannel, second_moments: float | Sequence[float] | Floats | None) -> float:
    boxes = [block.channel for block in channel.blocks if isinstance(block.channel, BoxChannel)]
    gains = np.concatenate([block.gains[block.gains > 0] for block in channel.blocks])
    if len(boxes) == len(channel.blocks) and all(box.width == 1 for box in boxes) and np.ptp(gains) <= 1e-12:
        return min(float(box.truth) for box in boxes) / math.sqrt(float(gains[0]))
    largest = np.square([0.5] + [channel.radius] * channel.p)
    told = [largest / np.diag(omega(channel, second_moments, level=level)) for level in range(len(channel.taus))]
    return min(math.sqrt(float(np.min(told))), 1.0)
