"""A regression from its first rows to its latest result: rows are read, asked and forgotten, batch by batch."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sottovoce.api.asking import spend_columns
from sottovoce.client.answered import AnsweredRows
from sottovoce.client.fingerprint import Column, mark, row_words
from sottovoce.client.reading.design_matrix import ReadRows, read, read_features
from sottovoce.client.record import look_tied
from sottovoce.client.regression.hints import STANDARDISED, of_covariates, standardised
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Floats
from sottovoce.core.calling import warn
from sottovoce.core.checks import check_callers
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.core.random_source import RandomSource, SystemEntropy, is_private, parts_of
from sottovoce.local.regression.dithered import CHUNK, DitheredRun, Order, order_for, people
from sottovoce.local.regression.liu_hu import LiuHuRun
from sottovoce.local.regression.pilot import Pilot
from sottovoce.protocol.regression.dithered.study import DitheredStudy
from sottovoce.server.regression import feasibility
from sottovoce.server.regression.design import design_of
from sottovoce.server.regression.expected import barely
from sottovoce.server.regression.plan import RegressionPlan, RegressionStudy
from sottovoce.server.regression.result import RegressionResult
from sottovoce.server.regression.settings import check_unchanged, read_settings

WORD = 2.0**-53
TIED = (
    "many responses are tied, and ties spoil the intervals: spread each evenly over the step it is rounded to, before "
    "anybody is asked"
)
LOST = (
    "this estimator was unpickled, and whose rows have answered it is known only in the process that asked them: go on "
    "there, or save its result and fit a new estimator to rows that have not answered."
)
Progress = Callable[[int], None]


@dataclass(eq=False)
class RegressionRuns:
    """The recursions of a plan, one a channel, from the first person on."""

    plan: RegressionPlan
    dice: RandomSource
    recursions: list[DitheredRun | LiuHuRun] = field(default_factory=list)

    def __post_init__(self) -> None:
        plan = self.plan
        self._for_pilot, self._for_levels, *self._for_runs = parts_of(self.dice, 2 + len(plan.design.channels))
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
        return self.plan.result(fits, self.people, is_private(self.dice), clipped)

    def _divided(self, rows: Rows) -> list[Rows]:
        """Draw for every person, in public, the channel that they are asked through."""
        channels = len(self.plan.design.channels)
        if channels == 1:
            return [rows]
        draws = (self._for_levels.words(rows.size) >> np.uint64(11)) * (WORD * channels)
        return [taken(rows, np.flatnonzero(draws.astype(np.int64) == channel)) for channel in range(channels)]


def _run(study: RegressionStudy, people: int) -> DitheredRun | LiuHuRun:
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


Warn = Callable[[str], None]


@dataclass(eq=False)
class RegressionStream:
    """The plan of a regression under way, its recursions, and the result so far."""

    plan: RegressionPlan
    named: bool
    runs: RegressionRuns
    randomness: RandomSource | None
    clipped: int = 0
    broken: bool = False
    answered: AnsweredRows = field(default_factory=AnsweredRows, repr=False)  # the rows of this stream
    in_all: float | None = 0.0  # what the dearest of them has cost in this process; None: simulated
    result: RegressionResult = field(init=False)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Return the names of the columns, if they had any."""
        return self.plan.bounds.names if self.named else None

    @property
    def people(self) -> int:
        """Return how many people were asked."""
        return self.runs.people

    def read(self, given: Mapping[str, Any], X: Any, y: Any, progress: Progress | None, warn: Warn) -> ReadRows:  # noqa: N803
        """Check a further batch, and that the parameters are those that the stream began with."""
        check_callers(given["randomness"], progress)
        self._check_whole()
        settings, bounds = self.plan.settings, self.plan.bounds
        check_unchanged(settings, bounds, self.randomness, given)
        feasibility.check_batches(settings)
        known: dict[str, Any] = {"names": self.names, "p": self.plan.p, "levels": settings.levels}
        known["two_valued"] = settings.two_valued
        return read(X, y, bounds, settings.clip, **known, collinear=False, warn=warn)

    def ask(self, found: ReadRows, progress: Progress | None, *, whole: bool) -> None:
        """Ask every row once, after `count`; if the search for guesses did not end, the ``whole`` data were lost."""
        self.broken = True  # until the answers are there: whoever is interrupted must not ask the same people again
        self.runs.ask(found.rows, progress)
        self.clipped += found.clipped
        cost = None if self.in_all is None else {"rows": self.in_all}
        result = replace(self.runs.result(self.clipped), in_all=cost)
        result.scaled.sum()  # computed now, while an interruption is still noticed
        self.result, self.broken = result, False
        if whole and self.runs.waiting:
            raise SearchFailed(
                f"the search for location and scale asked all {found.rows.size:,} people and did not end; "
                "give density and size, public guesses, or more people.",
                parameter=("density", "size"),
            )

    def count(self, rows: Rows, *, fit: bool) -> None:
        """Count rows that are about to answer, by whole rows and by responses; refuse those of an earlier batch.

        Only a simulated `fit` may be followed by a batch of the same rows, which have nothing to lose.
        """
        self._check_whole()
        private = self.randomness is None or is_private(self.randomness)
        if self.answered.lost and private:
            raise BadInput(LOST)
        bounds, budget = self.plan.bounds, self.plan.epsilon
        raw = rows.features() * bounds.half + bounds.centre
        whole: list[Column] = [row_words(raw, rows.response())]
        marks = mark(whole)
        if any(self.answered.look(whole, marks)):
            raise BadInput("some of these rows have answered in an earlier batch of this fit; give rows that have not.")
        if standardised(raw):
            warn(STANDARDISED)
        columns = [*whole, rows.response()]
        total = spend_columns(columns, mark(columns), [budget] * 2, self.randomness)
        self.in_all = None if total is None or self.in_all is None else max(self.in_all, *total)
        if private or not fit:
            self.answered.book(whole, marks, [budget])

    def __getstate__(self) -> dict[str, Any]:
        """Leave at home what is for whoever holds the rows."""
        return {**vars(self), "clipped": 0}

    def _check_whole(self) -> None:
        if self.broken:
            raise BadInput(
                "the last batch was interrupted and some of its people may have answered: begin anew with people "
                "who have not."
            )

    def features(self, X: Any, warn: Warn) -> Floats:  # noqa: N803
        """Read raw covariates to predict for."""
        return read_features(X, self.names, self.plan.p, levels=self.plan.settings.levels, warn=warn)


def begin(
    given: Mapping[str, Any],
    X: Any,  # noqa: N803
    y: Any,
    progress: Progress | None,
    warn: Warn,
    *,
    whole: bool,
) -> tuple[RegressionStream, ReadRows]:
    """Check everything; return a stream that has asked nobody yet, and its first rows.

    ``given`` are the parameters of the estimator. ``warn`` is told of what is read all the same. If the rows are the
    ``whole`` data, constant and collinear columns, and too few people, are refused.
    """
    check_callers(given["randomness"], progress)
    settings = read_settings(given)
    found = read(
        X,
        y,
        settings.bounds,
        settings.clip,
        collinear=whole,
        levels=settings.levels,
        two_valued=settings.two_valued,
        warn=warn,
    )
    design = design_of(settings, found.bounds)
    response = getattr(y, "name", None)
    named = response if isinstance(response, str) else ""
    plan = RegressionPlan(settings, design, found.bounds, settings.starts(found.bounds.to_scaled), response=named)
    if whole:
        feasibility.check(found.rows.size, design, settings)
    else:
        feasibility.check_batches(settings)
    return opened(plan, found, given["randomness"]), found


def tied_responses(found: ReadRows) -> tuple[str, ...]:
    """Say, to whoever holds the rows, whether many responses are tied."""
    return (TIED,) if look_tied(found.rows.response()) else ()


def of_rows(found: ReadRows) -> tuple[str, ...]:
    """Say, to whoever holds the rows, what they show."""
    return (*tied_responses(found), *of_covariates(found.rows, found.bounds, found.clipped))


def warnings_of(plan: RegressionPlan, found: ReadRows) -> tuple[str, ...]:
    """Return what is worth knowing before anybody is asked."""
    return (*of_rows(found), *barely(plan, found.rows.size))


def opened(plan: RegressionPlan, found: ReadRows, randomness: RandomSource | None) -> RegressionStream:
    """Return the stream of a regression whose input is checked; nobody is asked yet."""
    # a copy: seeded dice give every fit of an estimator the same numbers, as a seed does in scikit-learn
    try:
        dice = SystemEntropy() if randomness is None else copy.deepcopy(randomness)
    except TypeError:
        raise BadInput(
            f"randomness is copied for every fit, and a {type(randomness).__name__} cannot be; give sim.dice(seed).",
            parameter="randomness",
        ) from None
    return RegressionStream(plan, found.named, RegressionRuns(plan, dice), randomness)
