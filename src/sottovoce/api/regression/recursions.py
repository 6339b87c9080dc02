"""Which recursion a regression runs, and what every one of them offers: one channel, its people, and a fit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Floats
from sottovoce.core.errors import Infeasible
from sottovoce.core.random_source import RandomSource
from sottovoce.inference.regression.region import Ellipsoid
from sottovoce.local.regression.dithered import DitheredRun
from sottovoce.local.regression.liu_hu import LiuHuRun
from sottovoce.protocol.regression.blocks import RegressionChannel
from sottovoce.server.regression.design import Design
from sottovoce.server.regression.design.omega import omega_at
from sottovoce.server.regression.dithered.guess import Guess
from sottovoce.server.regression.dithered.study import DitheredStudy
from sottovoce.server.regression.liu_hu.study import LiuHuStudy, paper_scale
from sottovoce.server.regression.settings import Settings

Progress = Callable[[int], None]
Found = TypeVar("Found")


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

    def ask(self, rows: Rows, dice: RandomSource, shuffle: bool, progress: Progress | None = None) -> None:
        """Ask every row once."""

    def estimate(self) -> Fit:
        """Return the fit to all people so far."""


@dataclass(frozen=True, eq=False)
class Waiting:
    """What is known while the first people are still being asked for location and scale: nothing."""

    people: int
    point: Floats

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say that there is no estimate yet."""
        return (self._sentence,)

    @property
    def _sentence(self) -> str:
        return (
            f"{self.people:,} people were asked for location and scale, and that search is not over: "
            "ask more people, or give density and size, public guesses."
        )

    def interval(self, index: int, contrast: Floats, level: float) -> tuple[float, float]:  # noqa: ARG002
        """Refuse."""
        raise Infeasible(self._sentence)

    def ellipsoid(self, index: int, level: float) -> Ellipsoid:  # noqa: ARG002
        """Refuse."""
        raise Infeasible(self._sentence)


@dataclass(frozen=True, eq=False)
class OneLevel:
    """The fit of a level that a part of the people answered for; its refusals say that they count this part alone."""

    fit: Fit
    levels: int

    @property
    def people(self) -> int:
        """Return how many people were asked for this level."""
        return self.fit.people

    @property
    def point(self) -> Floats:
        """Return the coefficients."""
        return self.fit.point

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what the user should know of the fit."""
        return self.fit.warnings

    def interval(self, index: int, contrast: Floats, level: float) -> tuple[float, float]:
        """Return the interval of a contrast, or refuse."""
        return self._told(lambda: self.fit.interval(index, contrast, level))

    def ellipsoid(self, index: int, level: float) -> Ellipsoid:
        """Return the ellipsoid of the coefficients, or refuse."""
        return self._told(lambda: self.fit.ellipsoid(index, level))

    def _told(self, ask: Callable[[], Found]) -> Found:
        try:
            return ask()
        except Infeasible as why:
            sentence = str(why).removesuffix(".")
            raise Infeasible(
                f"{sentence}; counted are the people of this level, one in {self.levels} of all."
            ) from None


def recursions(settings: Settings, design: Design, guess: Guess, sizes: Sequence[int]) -> list[Recursion]:
    """Return a recursion for each channel of a design; ``sizes`` are the people that each will ask first."""
    found: list[Recursion] = []
    first = 0
    for channel, people in zip(design.channels, sizes, strict=True):
        own = slice(first, first + len(channel.taus))
        first = own.stop
        part = Guess(guess.density[own], guess.size, guess.start[own])
        found.append(_recursion(settings, design, channel, part, people))
    return found


def _recursion(settings: Settings, design: Design, channel: RegressionChannel, guess: Guess, people: int) -> Recursion:
    noise = np.array([omega_at(channel, design.known, level) for level in range(len(channel.taus))])
    moments = design.known.information
    if settings.inference == "dithered":
        return DitheredRun(
            DitheredStudy(channel, noise, guess.density, guess.size, guess.start, moments, limit=settings.limit)
        )
    taus = np.array(channel.taus)
    study = LiuHuStudy(
        channel,
        noise,
        guess.start,
        paper_scale(channel, guess.size, second_moments=design.known.cross),
        limit=settings.limit,
        inference=settings.inference,
        groups=settings.groups or 0,
        tree=settings.tree,
        noise=float(np.mean(taus * (1 - taus) / guess.density)),  # the scale of the logistic law of that density
        moments=moments,
    )
    return LiuHuRun(study, people if settings.inference == "higrad" else None)
