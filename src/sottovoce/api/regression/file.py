"""A private quantile regression on the rows of one file: all is checked, then planned or asked, each row once."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sottovoce.api.regression.stream import Progress, opened
from sottovoce.client.reading.design_matrix import ReadRows, read_regression_file
from sottovoce.core.checks import check_callers, confidence
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource
from sottovoce.server.description import finite
from sottovoce.server.regression import feasibility
from sottovoce.server.regression.design import Design, design_of
from sottovoce.server.regression.plan import RegressionPlan
from sottovoce.server.regression.result import RegressionResult
from sottovoce.server.regression.settings import DEFAULTS, RegressionSettings, read_settings


def regression_study(
    path: str | os.PathLike[str],
    response: str,
    features: Sequence[str],
    *,
    level: float = 0.95,
    marks: Any = None,
    **options: Any,
) -> "FileStudy":
    r"""Check everything about a regression on a Parquet, Arrow or CSV file; nobody is asked yet.

    ``features`` are columns in the order of the coefficients, and ``options`` parameters of `PrivateQuantileRegressor`.
    ``marks`` are ``delimiter`` and ``decimal`` of a CSV file, where they are not to be found out.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "trips.csv"
    ...     _ = file.write_text("minutes,miles\n" + "9,2\n20,7.5\n" * 50)
    ...     study = regression_study(file, "minutes", ["miles"], epsilon=4, bounds=(0, 30), density=0.1, size=9)
    >>> study.people, study.design.name
    (100, 'lp')
    """
    unknown = [name for name in options if name not in DEFAULTS]
    if unknown:
        raise BadInput(f"{unknown[0]!r} is no parameter of a regression; give some of {', '.join(DEFAULTS)}.")
    given = {**DEFAULTS, **options}
    check_callers(given["randomness"], None)
    settings, certainty = read_settings(given), confidence(level)
    found = read_regression_file(path, response, features, bounds=settings.bounds, clip=settings.clip, **(marks or {}))
    design = design_of(settings, found.rows.p)
    plan = RegressionPlan(settings, design, found.bounds, settings.starts(found.bounds.to_scaled), certainty, response)
    feasibility.check(found.rows.size, design, settings)
    return FileStudy(plan, found, given["randomness"])


@dataclass(frozen=True, eq=False)
class FileStudy:
    """A regression that may begin: what is public of it, and its rows."""

    plan: RegressionPlan
    found: ReadRows
    randomness: RandomSource | None

    @property
    def settings(self) -> RegressionSettings:
        """Return the checked parameters."""
        return self.plan.settings

    @property
    def design(self) -> Design:
        """Return the channel, and why it was chosen."""
        return self.plan.design

    @property
    def people(self) -> int:
        """Return how many people will be asked."""
        return self.found.rows.size

    @property
    def density(self) -> float:
        """Return the density that predictions are made at: the smallest that was guessed, or 1."""
        return 1.0 if self.settings.density is None else float(self.settings.density.min())

    def explain(self) -> str:
        """Say which channel was chosen and why, with predictions for this many people."""
        return self.design.explain(self.people, self.density)

    def to_dict(self) -> dict[str, Any]:
        """Return the design as plain values: standard errors are of coefficients of scaled covariates."""
        chosen, scale = self.design.alternative, 1 / (math.sqrt(self.people) * self.density)
        return {
            "channel": self.design.name,
            "why": self.design.why,
            "split": self.design.split,
            "tau": list(self.design.taus),
            "epsilon": finite(self.design.epsilon),
            "people": self.people,
            "density": self.density,
            "alternatives": [
                {"channel": each.name, "errors": (each.errors * scale).tolist(), "people": each.trace / chosen.trace}
                for each in sorted(self.design.alternatives, key=lambda each: each.trace)
            ],
        }

    def run(self, progress: Progress | None = None) -> RegressionResult:
        """Ask every row once; ``progress`` is called with the number of people who have just answered."""
        check_callers(None, progress)
        stream = opened(self.plan, self.found, self.randomness)
        stream.ask(self.found, progress, whole=True)
        return stream.result
