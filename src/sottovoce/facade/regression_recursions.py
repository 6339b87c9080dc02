"""Which recursion a regression runs, and what every one of them offers: one channel, its people, and a fit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sottovoce.client.randomness import Dice
from sottovoce.client.rows import Rows
from sottovoce.design import Design
from sottovoce.design.omega import omega_at
from sottovoce.engine.online import Online
from sottovoce.errors import BadInput
from sottovoce.estimators.online_study import OnlineStudy
from sottovoce.facade.regression_settings import Floats, Settings
from sottovoce.inference.region import Ellipsoid
from sottovoce.protocol.blocks import RegressionChannel

Progress = Callable[[int], None]


class Fit(Protocol):
    """An estimate in units of scaled covariates."""

    @property
    def people(self) -> int:
        """Return how many people were asked."""

    @property
    def point(self) -> Floats:
        """Return the coefficients, (levels, d), intercept first."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what the user should know of it."""

    def interval(self, index: int, contrast: Floats, level: float) -> tuple[float, float]:
        """Return the interval of a contrast of one level's coefficients, or refuse."""

    def ellipsoid(self, index: int, level: float) -> Ellipsoid:
        """Return the ellipsoid of one level's coefficients, or refuse."""


class Recursion(Protocol):
    """A recursion under way: it asks people, and keeps sums of their reports."""

    @property
    def people(self) -> int:
        """Return how many people were asked so far."""

    def ask(self, rows: Rows, dice: Dice, shuffle: bool, progress: Progress | None = None) -> None:
        """Ask every row once."""

    def estimate(self) -> Fit:
        """Return the fit to all people so far."""


@dataclass(frozen=True, eq=False)
class Guess:
    """Public guesses in units of scaled covariates: density (levels,), size of the coefficients, start (levels, d)."""

    density: Floats
    size: float
    start: Floats


def recursions(settings: Settings, design: Design, guess: Guess) -> list[Recursion]:
    """Return a recursion for each channel of a design."""
    found: list[Recursion] = []
    first = 0
    for channel in design.channels:
        own = slice(first, first + len(channel.taus))
        first = own.stop
        found.append(_recursion(settings, design, channel, Guess(guess.density[own], guess.size, guess.start[own])))
    return found


def _recursion(settings: Settings, design: Design, channel: RegressionChannel, guess: Guess) -> Recursion:
    if settings.inference == "dithered":
        noise = np.array([omega_at(channel, design.known, level) for level in range(len(channel.taus))])
        moments = design.known.information
        return Online(
            OnlineStudy(channel, noise, guess.density, guess.size, guess.start, moments, limit=settings.limit)
        )
    raise BadInput(f"inference {settings.inference!r} is not connected yet; choose 'dithered'.")
