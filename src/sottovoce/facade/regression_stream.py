"""A regression from its first rows to its latest answers: rows are read, asked and forgotten, batch by batch."""

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sottovoce.channels.binary import binary
from sottovoce.client.randomness import Dice, SystemDice
from sottovoce.client.reading.bounds import Bounds
from sottovoce.client.reading.design_matrix import ReadRows, read, read_features
from sottovoce.design import Design
from sottovoce.errors import Lost
from sottovoce.facade import regression_gate
from sottovoce.facade.federated import check_callers
from sottovoce.facade.regression_answers import Answers
from sottovoce.facade.regression_design import design_of
from sottovoce.facade.regression_recursions import Progress
from sottovoce.facade.regression_runs import Runs
from sottovoce.facade.regression_settings import Floats, Settings, read_settings

Warn = Callable[[str], None]


@dataclass(eq=False)
class Stream:
    """What is public of a regression under way, the recursions, and the answers so far."""

    settings: Settings
    design: Design
    bounds: Bounds
    named: bool
    runs: Runs
    seeded: bool
    clipped: int
    answers: Answers

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
        return not self.seeded and math.isfinite(self.epsilon)

    @property
    def epsilon(self) -> float:
        """Return the realised epsilon of a report, computed from the channels that people may be asked through."""
        found = max(channel.epsilon for channel in self.design.channels)
        return max(found, binary(self.design.epsilon).epsilon) if self.settings.searches else found

    def go_on(self, X: Any, y: Any, progress: Progress | None, warn: Warn) -> None:  # noqa: N803
        """Ask the rows of a further batch."""
        check_callers(None, progress)
        regression_gate.check_batches(self.settings)
        found = read(X, y, self.bounds, self.settings.clip, names=self.names, p=self.p, collinear=False, warn=warn)
        self.runs.ask(found.rows, progress)
        self.clipped += found.clipped
        self.answers = Answers(self.settings.taus, tuple(self.runs.fits()), self.bounds)

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
) -> Stream:
    """Check everything, then ask the first rows; if they are the ``whole`` data, they must be able to tell enough.

    Parameters
    ----------
    given
        The parameters of the estimator.
    X, y
        The raw rows.
    progress
        Called with the number of people who have just answered.
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
    return asked(settings, design, starts, found, given["randomness"], progress, whole=whole)


def asked(
    settings: Settings,
    design: Design,
    starts: Floats | None,
    found: ReadRows,
    randomness: Dice | None,
    progress: Progress | None,
    *,
    whole: bool,
) -> Stream:
    """Ask the first rows of a regression whose input is checked."""
    # a copy: seeded dice give every fit of an estimator the same numbers, as a seed does in scikit-learn
    dice = SystemDice() if randomness is None else copy.deepcopy(randomness)
    runs = Runs(settings, design, starts, dice)
    runs.ask(found.rows, progress)
    if whole and runs.waiting:
        raise Lost(
            f"the search for location and scale asked all {found.rows.size:,} people and did not end; "
            "give density and size, public guesses, or more people."
        )
    answers = Answers(settings.taus, tuple(runs.fits()), found.bounds)
    return Stream(settings, design, found.bounds, found.named, runs, not dice.private, found.clipped, answers)
