"""A design: the channel that was chosen, what it is predicted to reach, and what else was weighed."""

import math
import textwrap
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce.server.regression.design.covariates import Covariates
from sottovoce.server.regression.design.omega import covariance

_LINE = 100  # characters of an explanation's lines


class Alternative(NamedTuple):
    """A channel that was weighed: standard errors (levels, p + 1) and trace for one person and density 1."""

    name: str
    description: str
    errors: Floats
    trace: float


def alternative(channel: RegressionChannel, known: Covariates, description: str) -> Alternative:
    """Return what a channel is predicted to reach."""
    spread = np.array([covariance(channel, known, level) for level in range(len(channel.taus))])
    seconds = np.diagonal(spread, axis1=1, axis2=2)
    return Alternative(channel.name, description, np.sqrt(seconds), float(seconds.sum()))


@dataclass(frozen=True, eq=False)
class Design:
    """The chosen channel (for several levels that are split: one channel a level) and the alternatives."""

    name: str
    channels: tuple[RegressionChannel, ...]
    known: Covariates
    epsilon: float
    alternatives: tuple[Alternative, ...]
    why: str

    @staticmethod
    def of(channel: RegressionChannel, known: Covariates, why: str) -> "Design":
        """Return a design that was asked for, with nothing else weighed."""
        return Design(channel.name, (channel,), known, channel.epsilon, (alternative(channel, known, why),), why)

    @property
    def channel(self) -> RegressionChannel:
        """Return the channel; of a split design, that of the first level."""
        return self.channels[0]

    @property
    def split(self) -> bool:
        """Tell whether each person answers for one level only, drawn at random in public."""
        return len(self.channels) > 1

    @property
    def taus(self) -> tuple[float, ...]:
        """Return the quantile levels."""
        return tuple(tau for channel in self.channels for tau in channel.taus)

    @property
    def alternative(self) -> Alternative:
        """Return the prediction for what was chosen."""
        return next(a for a in self.alternatives if a.name == self.name)

    def __str__(self) -> str:
        return self.explain()

    def explain(self, n: int = 1_000_000, density: float = 1.0) -> str:
        """Return a short table: predicted standard errors for ``n`` people, and people needed, against the rest."""
        chosen, scale = self.alternative, 1 / (math.sqrt(n) * density)
        levels = ", ".join(f"{tau:g}" for tau in self.taus)
        head = f"channel {self.name} (tau {levels}; {self.known.p} slopes; epsilon {self.epsilon:g}): {self.why}."
        lines = [
            *textwrap.wrap(head, _LINE, subsequent_indent="  ", break_on_hyphens=False),
            f"Predicted standard errors for {n:,} people at density {density:g}:",
            "",
        ]
        lines.append(f"{'':2}{'channel':<16}{'intercept':>11}{'slopes':>23}{'people':>9}")
        for other in sorted(self.alternatives, key=lambda a: a.trace):
            errors = np.sqrt((other.errors**2).mean(axis=0)) * scale
            mark = "*" if other is chosen else " "
            people = f"{other.trace / chosen.trace:.2f}x"
            lines.append(f"{mark} {other.name:<16}{errors[0]:>11.3g}{_range(errors[1:]):>23}{people:>9}")
        return "\n".join([*lines, "", "people: how many are needed for the same mean squared error (* chosen)."])


def _range(errors: Floats) -> str:
    """Return a slope's error, or the smallest and largest of several."""
    if len(errors) == 0:
        return "-"
    low, high = f"{errors.min():.3g}", f"{errors.max():.3g}"
    return low if low == high else f"{low} to {high}"
