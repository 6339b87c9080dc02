"""A regression from its first rows to its latest result: rows are read, asked and forgotten, batch by batch."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sottovoce.api.regression.runs import Progress, RegressionRuns
from sottovoce.client.reading.design_matrix import ReadRows, read, read_features
from sottovoce.core.arrays import Floats
from sottovoce.core.checks import check_callers
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.server.regression import feasibility
from sottovoce.server.regression.design.choose import design_of
from sottovoce.server.regression.plan import RegressionPlan
from sottovoce.server.regression.result import RegressionResult
from sottovoce.server.regression.settings import check_unchanged, read_settings

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
        return read(X, y, bounds, settings.clip, names=self.names, p=self.plan.p, collinear=False, warn=warn)

    def ask(self, found: ReadRows, progress: Progress | None, *, whole: bool) -> None:
        """Ask every row once; if the search for guesses is then not over, the ``whole`` data were lost."""
        self._check_whole()
        self.broken = True  # until the answers are there: whoever is interrupted must not ask the same people again
        self.runs.ask(found.rows, progress)
        self.clipped += found.clipped
        result = self.runs.result(self.clipped)
        result.scaled.sum()  # computed now, while an interruption is still noticed
        self.result, self.broken = result, False
        if whole and self.runs.waiting:
            raise SearchFailed(
                f"the search for location and scale asked all {found.rows.size:,} people and did not end; "
                "give density and size, public guesses, or more people.",
                parameter=("density", "size"),
            )

    def _check_whole(self) -> None:
        if self.broken:
            raise BadInput(
                "the last batch was interrupted and some of its people may have answered: begin anew with people "
                "who have not."
            )

    def features(self, X: Any, warn: Warn) -> Floats:  # noqa: N803
        """Read raw covariates to predict for."""
        return read_features(X, self.names, self.plan.p, warn=warn)


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

    Parameters
    ----------
    given
        The parameters of the estimator.
    X, y
        The raw rows.
    progress
        What will be called with the number of people who have just answered.
    warn
        Told of what is read all the same.
    whole
        Whether no further rows are expected: then constant and collinear columns, and too few people, are refused.
    """
    check_callers(given["randomness"], progress)
    settings = read_settings(given)
    found = read(X, y, settings.bounds, settings.clip, collinear=whole, warn=warn)
    design = design_of(settings, found.rows.p)
    plan = RegressionPlan(settings, design, found.bounds, settings.starts(found.bounds.to_scaled))
    if whole:
        feasibility.check(found.rows.size, design, settings)
    else:
        feasibility.check_batches(settings)
    return opened(plan, found, given["randomness"]), found


def opened(plan: RegressionPlan, found: ReadRows, randomness: RandomSource | None) -> RegressionStream:
    """Return the stream of a regression whose input is checked; nobody is asked yet."""
    # a copy: seeded dice give every fit of an estimator the same numbers, as a seed does in scikit-learn
    dice = SystemEntropy() if randomness is None else copy.deepcopy(randomness)
    return RegressionStream(plan, found.named, RegressionRuns(plan, dice), randomness)
