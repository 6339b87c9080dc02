"""A regression under way: whom it asks for which level, and the recursions that hear them; no record stays.

Every recursion has dice of its own, and so have the search for guesses and the public draw of levels: each is thrown a
fixed number of times a person, in their order, so that it does not matter in which batches people arrive.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sottovoce.api.regression.recursions import Fit, OneLevel, Progress, Recursion, Waiting, recursions
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Floats
from sottovoce.core.random_source import RandomSource
from sottovoce.local.regression.dithered import CHUNK, DitheredRun, Order, order_for, people
from sottovoce.local.regression.pilot import Pilot
from sottovoce.server.regression.design import Design
from sottovoce.server.regression.dithered.guess import Guess
from sottovoce.server.regression.settings import Settings

WORD = 2.0**-53


@dataclass(eq=False)
class Runs:
    """The recursions of a design, one a channel, from the first person on."""

    settings: Settings
    design: Design
    starts: Floats | None
    dice: RandomSource
    recursions: list[Recursion] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._for_pilot, self._for_levels, *self._for_runs = self.dice.split(2 + len(self.design.channels))
        settings = self.settings
        self._pilot = Pilot(settings.taus, self.design.known.p, self.design.epsilon) if settings.searches else None

    @property
    def people(self) -> int:
        """Return how many people have answered."""
        searched = 0 if self._pilot is None else self._pilot.people
        return searched + sum(recursion.people for recursion in self.recursions)

    @property
    def waiting(self) -> bool:
        """Tell whether the first people are still being asked for location and scale."""
        return self._pilot is not None and self._pilot.guess is None

    def ask(self, rows: Rows, progress: Progress | None = None) -> None:
        """Ask every row once, each for one level if the design is split."""
        order = None
        if self._pilot is not None and self._pilot.guess is None:
            order = _search(self._pilot, rows, self._for_pilot, self.settings.shuffle, progress)
            if self._pilot.guess is None:
                return
            if self.design.split or self.settings.inference != "dithered":
                rows, order = _left(rows, order), None
        parts = self._divided(rows)
        if not self.recursions:
            self.recursions = recursions(self.settings, self.design, self._guess(), [part.size for part in parts])
        for recursion, dice, part in zip(self.recursions, self._for_runs, parts, strict=True):
            if order is not None and isinstance(
                recursion, DitheredRun
            ):  # goes on in the order of the search, nobody moved
                recursion.ask(part, dice, order, progress)
            elif part.size:
                recursion.ask(part, dice, self.settings.shuffle, progress)

    def fits(self) -> list[tuple[Fit, int]]:
        """Return, for each level, a fit and the number of the level in it."""
        d = self.design.known.p + 1
        fits: list[Fit] = [recursion.estimate() for recursion in self.recursions] or [
            Waiting(self.people, np.full((len(channel.taus), d), np.nan)) for channel in self.design.channels
        ]
        if self.recursions and self.design.split:
            fits = [OneLevel(fit, len(fits)) for fit in fits]
        return [
            (fit, level)
            for fit, channel in zip(fits, self.design.channels, strict=True)
            for level in range(len(channel.taus))
        ]

    def _guess(self) -> Guess:
        """Return the guesses that were given, and for the rest what the first people told."""
        settings, found = self.settings, None if self._pilot is None else self._pilot.guess
        start = np.zeros((len(settings.taus), self.design.known.p + 1)) if found is None else found.start
        return Guess(
            settings.density if settings.density is not None else found.density,  # type: ignore[union-attr]
            settings.size if settings.size is not None else found.size,  # type: ignore[union-attr]
            start if self.starts is None else self.starts,
        )

    def _divided(self, rows: Rows) -> list[Rows]:
        """Draw for every person, in public, the channel that they are asked through."""
        channels = len(self.design.channels)
        if channels == 1:
            return [rows]
        draws = (self._for_levels.words(rows.size) >> np.uint64(11)) * (WORD * channels)
        return [taken(rows, np.flatnonzero(draws.astype(np.int64) == channel)) for channel in range(channels)]


def taken(rows: Rows, which: npt.NDArray[np.intp] | npt.NDArray[np.uint64] | slice) -> Rows:
    """Return some of the rows, in the order asked for."""
    return Rows(rows.features()[which], rows.response()[which])


def _search(pilot: Pilot, rows: Rows, dice: RandomSource, shuffle: bool, progress: Progress | None) -> Order:
    """Ask the first people for location and scale; return in which order the others stand, and where they begin."""
    key = order_for(dice, shuffle).key
    asked = 0
    while asked < rows.size and pilot.guess is None:
        where = people(rows.size, key, asked, min(CHUNK, rows.size - asked))
        done = pilot.take(rows, where, dice.words(len(where)).reshape(-1, 1))
        asked += done
        if progress is not None:
            progress(done)
    return Order(key, asked)


def _left(rows: Rows, order: Order) -> Rows:
    """Return the rows that an order has not come to yet."""
    key, asked = order
    return taken(rows, slice(asked, None) if key is None else people(rows.size, key, asked, rows.size - asked))
