"""A regression from its first rows to its latest answers: rows are read, asked and forgotten, batch by batch."""

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sottovoce.api.regression.recursions import Progress
from sottovoce.api.regression.runs import Runs
from sottovoce.client.reading.bounds import Bounds
from sottovoce.client.reading.design_matrix import ReadRows, read, read_features
from sottovoce.core.arrays import Floats
from sottovoce.core.checks import check_callers
from sottovoce.core.errors import BadInput, SearchFailed
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.protocol.randomised_response import binary
from sottovoce.server.regression import gate as regression_gate
from sottovoce.server.regression.answers import Answers
from sottovoce.server.regression.changes import check_unchanged
from sottovoce.server.regression.design import Design
from sottovoce.server.regression.design.choose import design_of
from sottovoce.server.regression.settings import Settings, read_settings

Warn = Callable[[str], None]


@dataclass(eq=False)
class Stream:
    """What is public of a regression under way, the recursions, and the answers so far."""

    settings: Settings
    design: Design
    bounds: Bounds
    named: bool
    runs: Runs
    randomness: RandomSource | None
    clipped: int = 0
    broken: bool = False
    answers: Answers = field(init=False)

    @property
    def names(self) -> tuple[str, ...] | None:
        """Return the names of the columns, if they had any."""
        return self.bounds.names if self.named else None

    @property
    def p(self) -> int:
        """Return the number of covariates."""
        return len(self.bounds.names)

    @property
    def people(self) -> int:
        """Return how many people were asked."""
        return self.runs.people

    @property
    def private(self) -> bool:
        """Tell whether the run protects its people."""
        return self.runs.dice.private and math.isfinite(self.epsilon)

    @property
    def epsilon(self) -> float:
        """Return the realised epsilon of a report, computed from the channels that people may be asked through."""
        found = [channel.epsilon for channel in self.design.channels]
        if self.settings.inference == "dithered" and math.isfinite(self.design.epsilon):
            found += [channel.bit.epsilon for channel in self.design.channels]
        if self.settings.searches:
            found.append(binary(self.design.epsilon).epsilon)
        return max(found)

    def read(self, given: Mapping[str, Any], X: Any, y: Any, progress: Progress | None, warn: Warn) -> ReadRows:  # noqa: N803
        """Check a further batch, and that the parameters are those that the stream began with."""
        check_callers(given["randomness"], progress)
        self._check_whole()
        check_unchanged(self.settings, self.bounds, self.randomness, given)
        regression_gate.check_batches(self.settings)
        return read(X, y, self.bounds, self.settings.clip, names=self.names, p=self.p, collinear=False, warn=warn)

    def ask(self, found: ReadRows, progress: Progress | None, *, whole: bool) -> None:
        """Ask every row once; if the search for guesses is then not over, the ``whole`` data were lost."""
        self._check_whole()
        self.broken = True  # until the answers are there: whoever is interrupted must not ask the same people again
        self.runs.ask(found.rows, progress)
        self.clipped += found.clipped
        answers = Answers(self.settings.taus, tuple(self.runs.fits()), self.bounds)
        answers.scaled.sum()  # computed now, while an interruption is still noticed
        self.answers, self.broken = answers, False
        if whole and self.runs.waiting:
            raise SearchFailed(
                f"the search for location and scale asked all {found.rows.size:,} people and did not end; "
                "give density and size, public guesses, or more people."
            )

    def _check_whole(self) -> None:
        if self.broken:
            raise BadInput(
                "the last batch was interrupted and some of its people may have answered: begin anew with people "
                "who have not."
            )

    def features(self, X: Any, warn: Warn) -> Floats:  # noqa: N803
        """Read raw covariates to predict for."""
        return read_features(X, self.names, self.p, warn=warn)


def begin(
    given: Mapping[str, Any],
    X: Any,  # noqa: N803
    y: Any,
    progress: Progress | None,
    warn: Warn,
    *,
    whole: bool,
) -> tuple[Stream, ReadRows]:
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
    starts = settings.starts(found.bounds.to_scaled)
    if whole:
        regression_gate.check(found.rows.size, design, settings)
    else:
        regression_gate.check_batches(settings)
    return opened(settings, design, starts, found, given["randomness"]), found


def opened(
    settings: Settings, design: Design, starts: Floats | None, found: ReadRows, randomness: RandomSource | None
) -> Stream:
    """Return the stream of a regression whose input is checked; nobody is asked yet."""
    # a copy: seeded dice give every fit of an estimator the same numbers, as a seed does in scikit-learn
    dice = SystemEntropy() if randomness is None else copy.deepcopy(randomness)
    return Stream(settings, design, found.bounds, found.named, Runs(settings, design, starts, dice), randomness)
