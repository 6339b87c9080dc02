"""A private quantile regression on the rows of files: all is checked, then planned or asked, each row once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sottovoce.api.regression.stream import Progress, of_rows, opened, warnings_of
from sottovoce.client.reading.design_matrix import ReadRows
from sottovoce.client.reading.files import Paths
from sottovoce.client.reading.regression_files import FileRows, read_regression_files
from sottovoce.core.calling import public
from sottovoce.core.checks import check_callers, confidence
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy
from sottovoce.server.explanation import Explanation
from sottovoce.server.regression import feasibility
from sottovoce.server.regression.design import Design, design_of
from sottovoce.server.regression.expected import explain_regression
from sottovoce.server.regression.plan import RegressionPlan
from sottovoce.server.regression.result import RegressionResult
from sottovoce.server.regression.settings import DEFAULTS, RegressionSettings, read_settings


@public
def regression_study(
    paths: Paths,
    response: str,
    features: Sequence[str],
    *,
    level: float = 0.95,
    person: str | None = None,
    missing: str = "refuse",
    marks: Any = None,
    **options: Any,
) -> "FileStudy":
    r"""Check everything about a regression on Parquet, Arrow or CSV files; nobody is asked yet.

    ``features`` are columns in the order of the coefficients, and ``options`` parameters of `PrivateQuantileRegressor`.
    Of all rows of a ``person`` one is drawn; rows with ``missing`` values are refused, or dropped and counted.
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
    dice = SystemEntropy() if given["randomness"] is None else given["randomness"]
    how: dict[str, Any] = {"bounds": settings.bounds, "clip": settings.clip, "levels": settings.levels}
    how["two_valued"] = settings.two_valued
    files = read_regression_files(
        paths, response, features, **how, person=person, missing=missing, dice=dice.words, **(marks or {})
    )
    found = files.found
    design = design_of(settings, found.bounds)
    plan = RegressionPlan(settings, design, found.bounds, settings.starts(found.bounds.to_scaled), certainty, response)
    feasibility.check(found.rows.size, design, settings)
    return FileStudy(plan, files, given["randomness"])


@dataclass(frozen=True, eq=False)
class FileStudy:
    """A regression that may begin: what is public of it, and its rows."""

    plan: RegressionPlan
    files: FileRows
    randomness: RandomSource | None

    @property
    def found(self) -> ReadRows:
        """Return the rows."""
        return self.files.found

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
    def warnings(self) -> tuple[str, ...]:
        """Return what is worth knowing before anybody is asked; what the rows show is for their holder."""
        return warnings_of(self.plan, self.found)

    def explain(self) -> Explanation:
        """Return what would be asked, what is protected, and how wide the intervals will be; nobody is asked."""
        return replace(explain_regression(self.plan, self.people), hints=of_rows(self.found))

    def run(self, progress: Progress | None = None) -> RegressionResult:
        """Ask every row once; ``progress`` is called with the number of people who have just answered."""
        check_callers(None, progress)
        stream = opened(self.plan, self.found, self.randomness)
        stream.count(self.found.rows, fit=True)
        stream.ask(self.found, progress, whole=True)
        return stream.result
