"""A regression under way: whom it asks for which level, and the recursions that hear them; no record stays.

Every recursion has dice of its own, and so has the public draw of levels: each is thrown once a person, in their order,
so that it does not matter in which batches people arrive.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sottovoce.client.randomness import Dice
from sottovoce.client.rows import Rows
from sottovoce.design import Design
from sottovoce.errors import BadInput
from sottovoce.facade.regression_recursions import Fit, Guess, Progress, Recursion, recursions
from sottovoce.facade.regression_settings import Floats, Settings

WORD = 2.0**-53


@dataclass(eq=False)
class Runs:
    """The recursions of a design, one a channel, from the first person on."""

    settings: Settings
    design: Design
    starts: Floats | None
    dice: Dice
    recursions: list[Recursion] = field(default_factory=list)
    people: int = 0

    def __post_init__(self) -> None:
        self._for_pilot, self._for_levels, *self._for_runs = self.dice.split(2 + len(self.design.channels))

    def ask(self, rows: Rows, progress: Progress | None = None) -> None:
        """Ask every row once, each for one level if the design is split."""
        size, guess = rows.size, None
        if not self.recursions:
            guess, rows = _prepare(self.settings, self.design, self.starts, rows, self._for_pilot)
        parts = self._divided(rows)
        if guess is not None:
            self.recursions = recursions(self.settings, self.design, guess, [part.size for part in parts])
        for recursion, dice, part in zip(self.recursions, self._for_runs, parts, strict=True):
            if part.size:
                recursion.ask(part, dice, self.settings.shuffle, progress)
        self.people += size

    def fits(self) -> list[tuple[Fit, int]]:
        """Return, for each level, a fit and the number of the level in it."""
        fits = [recursion.estimate() for recursion in self.recursions]
        return [
            (fit, level)
            for fit, channel in zip(fits, self.design.channels, strict=True)
            for level in range(len(channel.taus))
        ]

    def _divided(self, rows: Rows) -> list[Rows]:
        """Draw for every person, in public, the channel that they are asked through."""
        channels = len(self.design.channels)
        if channels == 1:
            return [rows]
        draws = (self._for_levels.words(rows.size) >> np.uint64(11)) * (WORD * channels)
        return [taken(rows, np.flatnonzero(draws.astype(np.int64) == channel)) for channel in range(channels)]


def taken(rows: Rows, which: npt.NDArray[np.intp]) -> Rows:
    """Return some of the rows, in the order asked for."""
    return Rows(rows.features()[which], rows.response()[which])


def _prepare(settings: Settings, design: Design, starts: Floats | None, rows: Rows, dice: Dice) -> tuple[Guess, Rows]:  # noqa: ARG001
    """Return the guesses, and the people who are left to ask: a pilot asks the first ones where nobody guessed."""
    levels, d = len(settings.taus), design.known.p + 1
    if settings.density is None or settings.size is None:
        raise BadInput("give density and size, public guesses of the response's density and the coefficients' length.")
    return Guess(settings.density, settings.size, np.zeros((levels, d)) if starts is None else starts), rows
