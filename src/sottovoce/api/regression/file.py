"""A private quantile regression on the rows of one file: all is checked, then planned or asked, each row once."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sottovoce.api.regression.recursions import Progress
from sottovoce.api.regression.stream import Stream, opened
from sottovoce.client.reading.design_matrix import ReadRows
from sottovoce.client.reading.regression_files import read_regression_file
from sottovoce.core.arrays import Floats
from sottovoce.core.checks import check_callers, confidence
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource
from sottovoce.server.description import finite
from sottovoce.server.regression import gate as regression_gate
from sottovoce.server.regression import plot as regression_plot
from sottovoce.server.regression import summary as regression_summary
from sottovoce.server.regression.design import Design
from sottovoce.server.regression.design.choose import design_of
from sottovoce.server.regression.settings import Settings, read_settings

# The parameters of `PrivateQuantileRegressor`, without the second that importing scikit-learn takes.
DEFAULTS = MappingProxyType(
    {
        "tau": 0.5, "epsilon": 1.0, "channel": "auto", "bounds": None, "inference": "dithered", "clip": False,
        "schedule": "auto", "density": None, "size": None, "start": None, "second_moments": None, "limit": None,
        "groups": None, "tree": (4, 4), "shuffle": True, "randomness": None,
    }
)  # fmt: skip


def regression_study(
    path: str | os.PathLike[str], response: str, features: Sequence[str], *, level: float = 0.95, **options: Any
) -> "FileStudy":
    r"""Check everything about a regression on a Parquet, Arrow or CSV file; nobody is asked yet.

    Parameters
    ----------
    path
        The file.
    response
        The column of the responses.
    features
        The columns of the covariates, in the order of the coefficients.
    level
        The confidence level of the intervals.
    options
        Parameters of `PrivateQuantileRegressor`.

    Examples
    --------
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
    found = read_regression_file(path, response, features, bounds=settings.bounds, clip=settings.clip)
    design = design_of(settings, found.rows.p)
    starts = settings.starts(found.bounds.to_scaled)
    regression_gate.check(found.rows.size, design, settings)
    return FileStudy(settings, design, starts, found, response, certainty, given["randomness"])


@dataclass(frozen=True, eq=False)
class FileStudy:
    """A regression that may begin: what is public of it, and its rows."""

    settings: Settings
    design: Design
    starts: Floats | None
    found: ReadRows
    response: str
    level: float
    randomness: RandomSource | None

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

    def run(self, progress: Progress | None = None) -> "FileResult":
        """Ask every row once; ``progress`` is called with the number of people who have just answered."""
        check_callers(None, progress)
        stream = opened(self.settings, self.design, self.starts, self.found, self.randomness)
        stream.ask(self.found, progress, whole=True)
        return FileResult(stream, self.response, self.level)


@dataclass(frozen=True, eq=False)
class FileResult:
    """What the people of a file told."""

    stream: Stream
    response: str
    level: float

    def summary(self) -> str:
        """Return a table that a statistician reads at a glance."""
        title, *rest = regression_summary.summary(self.stream, self.level).split("\n")
        return "\n".join([title, f"{'Response:':<15}{self.response}", *rest])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for strict JSON."""
        return {"response": self.response, **regression_summary.to_dict(self.stream, self.level)}

    def plot(self, path: str | os.PathLike[str]) -> Path:
        """Draw the coefficients with their intervals; of several levels, against tau."""
        return regression_plot.plot(self.stream, path, self.level)
