"""A regression under way: whom it asks for which level, and the recursions that hear them; no record stays.

Every recursion has dice of its own, and so have the search for guesses and the public draw of levels: each is thrown a
fixed number of times a person, in their order, so that it does not matter in which batches people arrive.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from sottovoce.client.regression.rows import Rows
from sottovoce.core.random_source import RandomSource
from sottovoce.local.regression.dithered import CHUNK, DitheredRun, Order, order_for, people
from sottovoce.local.regression.liu_hu import LiuHuRun
from sottovoce.local.regression.pilot import Pilot
from sottovoce.server.regression.dithered.study import DitheredStudy
from sottovoce.server.regression.plan import RegressionPlan, Study
from sottovoce.server.regression.result import RegressionResult

WORD = 2.0**-53
Progress = Callable[[int], None]


@dataclass(eq=False)
class RegressionRuns:
    """The recursions of a plan, one a channel, from the first person on."""

    plan: RegressionPlan
    dice: RandomSource
    recursions: list[DitheredRun | LiuHuRun] = field(default_factory=list)

    def __post_init__(self) -> None:
        plan = self.plan
        self._for_pilot, self._for_levels, *self._for_runs = self.dice.split(2 + len(plan.design.channels))
        searches = plan.settings.searches
        self._pilot = Pilot(plan.settings.taus, plan.p, plan.design.epsilon) if searches else None

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
        settings, order = self.plan.settings, None
        if self._pilot is not None and self._pilot.guess is None:
            order = _search(self._pilot, rows, self._for_pilot, settings.shuffle, progress)
            if self._pilot.guess is None:
                return
            if self.plan.design.split or settings.inference != "dithered":
                rows, order = _left(rows, order), None
        parts = self._divided(rows)
        if not self.recursions:
            guess = self.plan.guess(None if self._pilot is None else self._pilot.guess)
            studies = self.plan.studies(guess)
            self.recursions = [_run(study, part.size) for study, part in zip(studies, parts, strict=True)]
        for recursion, dice, part in zip(self.recursions, self._for_runs, parts, strict=True):
            if order is not None and isinstance(recursion, DitheredRun):  # in the order of the search, nobody moved
                recursion.ask(part, dice, order, progress)
            elif part.size:
                recursion.ask(part, dice, settings.shuffle, progress)

    def result(self, clipped: int) -> RegressionResult:
        """Return what everybody so far told."""
        fits = [recursion.estimate() for recursion in self.recursions]
        return self.plan.result(fits, self.people, self.dice.private, clipped)

    def _divided(self, rows: Rows) -> list[Rows]:
        """Draw for every person, in public, the channel that they are asked through."""
        channels = len(self.plan.design.channels)
        if channels == 1:
            return [rows]
        draws = (self._for_levels.words(rows.size) >> np.uint64(11)) * (WORD * channels)
        return [taken(rows, np.flatnonzero(draws.astype(np.int64) == channel)) for channel in range(channels)]


def _run(study: Study, people: int) -> DitheredRun | LiuHuRun:
    """Return the run of a study; ``people`` is how many it will ask first."""
    if isinstance(study, DitheredStudy):
        return DitheredRun(study)
    return LiuHuRun(study, people if study.inference == "higrad" else None)


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
