"""Reading the scores of many sites from files: calibration scores, and fresh ones to judge a threshold by."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sottovoce.client.reading.files import expand, read_files
from sottovoce.client.reading.table import SCORES, SiteTable
from sottovoce.core.errors import BadInput
from sottovoce.core.random_source import RandomSource, SystemEntropy

Paths = str | Path | Sequence[str | Path]


def read_scores(
    paths: Paths,
    *,
    score: str,
    site: str | None = None,
    person: str | None = None,
    missing: str = "refuse",
    apart_from: Paths = (),
    randomness: RandomSource | None = None,
) -> SiteTable:
    r"""Read the scores of many sites from Parquet, CSV or Arrow files: one a site, or any with a site column.

    Parameters
    ----------
    paths
        A path, a glob such as ``"clinics/*.parquet"``, or several of them.
    score
        The column of scores; one score a site is enough.
    site
        The column that says where a score is held; without it each file is a site, named by the file.
    person
        The column of persons, to make the person rather than the row the unit of privacy: one row each is drawn.
    missing
        "refuse" missing values, or "drop" and count them.
    apart_from
        Files that made the threshold: scores that are to judge it must come from others.
    randomness
        None for the operating system's entropy; `sim.dice` for simulation.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "north.csv").write_text("residual\n0.5\n")
    ...     read_scores(f"{folder}/*.csv", score="residual").records
    (Records(1 record, values hidden),)
    """
    made = {path.resolve() for path in expand(apart_from)} if apart_from else set()
    for path in expand(paths):
        if path.resolve() in made:
            raise BadInput(
                f"{path} is to judge the threshold that it makes; give fresh scores, or none to judge it by its own."
            )
    dice = SystemEntropy() if randomness is None else randomness
    table = read_files(paths, value=score, site=site, person=person, missing=missing, dice=dice.words, needs=SCORES)
    if table.unit.kind != "number":
        raise BadInput(f"column {score!r} holds {table.unit.plural}, and scores must be numbers; name another column.")
    return replace(table, seeded=person is not None and not dice.private)
