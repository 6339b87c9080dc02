"""Reading data frames and files into the sites of a study, with the system's dice where persons are drawn."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sottovoce.client.reading import files, frames
from sottovoce.client.reading.table import SiteTable as SiteTable
from sottovoce.core.calling import public
from sottovoce.core.censoring import read_censoring
from sottovoce.core.random_source import RandomSource, SystemEntropy, is_private
from sottovoce.core.roster import check_kind


@public
def read_frame(
    frame: Any,
    *,
    value: str,
    site: str | None = None,
    person: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    missing: str = "refuse",
    randomness: RandomSource | None = None,
    kind: str | None = None,
    censored: Any = None,
    flag: str | None = None,
) -> SiteTable:
    """Read the sites of a study from a data frame: pandas, polars, Arrow, or anything narwhals knows.

    Parameters
    ----------
    frame
        The data frame.
    value
        The column of records: numbers, durations, dates or moments.
    site
        The column that says where a record is held; without it all records are held in one place.
    person
        The column of persons, to make the person rather than the row the unit of privacy: one row each is drawn.
        ``7``, ``7.0`` and ``"007 "`` are one person.
    group
        The column of public groups, for `group_quantiles`.
    weight
        The column of public weights of a survey: how much each record counts.
    missing
        "refuse" missing values, or "drop" and count them.
    randomness
        None for the operating system's entropy; `sim.dice` for simulation.
    kind
        What the records are declared to be, as for `federated_quantile`.
    censored
        The public limits beyond which values are known as symbols only, as for `federated_quantile`.
    flag
        The column that marks numbers which are limits: ``<`` (or ``true``) for below, ``>`` for above, else empty.

    Examples
    --------
    >>> import pyarrow as pa
    >>> frame = pa.table({"wait": [3.0, 4.0, 9.0, 5.0], "clinic": ["a", "a", "b", "b"]})
    >>> read_frame(frame, value="wait", site="clinic").names
    ('a', 'b')
    """
    dice = SystemEntropy() if randomness is None else randomness
    marks: dict[str, Any] = {"censored": read_censoring(censored), "flag": flag}
    columns: dict[str, Any] = {"value": value, "site": site, "person": person, "group": group, "weight": weight}
    table = frames.read_frame(frame, **columns, missing=missing, dice=dice.words, **marks)
    kind = check_kind(kind, table.unit)
    return replace(table, seeded=person is not None and not is_private(dice), kind=kind, column=value)


@public
def read_files(
    paths: str | Path | Sequence[str | Path],
    *,
    value: str,
    site: str | None = None,
    person: str | None = None,
    group: str | None = None,
    weight: str | None = None,
    missing: str = "refuse",
    randomness: RandomSource | None = None,
    kind: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    censored: Any = None,
    flag: str | None = None,
) -> SiteTable:
    """Read the sites of a study from Parquet, CSV or Arrow files: one with a site column, or one a site.

    Parameters
    ----------
    paths
        A path, a glob such as ``"clinics/*.parquet"``, or several of them.
    value
        The column of records.
    site
        The column that says where a record is held; without it each file is a site, named by the file.
    person
        The column of persons, to make the person rather than the row the unit of privacy.
    group, weight
        The columns of public groups and weights, as for `read_frame`.
    missing
        "refuse" missing values, or "drop" and count them.
    randomness
        None for the operating system's entropy; `sim.dice` for simulation.
    kind
        What the records are declared to be, as for `federated_quantile`.
    delimiter
        What parts the columns of CSV files: a character, "comma", "semicolon", "tab" or "pipe"; found out unless given.
    decimal
        What parts the decimals of numbers in CSV files, "." or ","; found out unless given, or refused where the first
        lines leave it open.
    censored, flag
        Limits beyond which values are symbols, and the column that marks them, as for `read_frame`.
    """
    dice = SystemEntropy() if randomness is None else randomness
    marks: dict[str, Any] = {"delimiter": delimiter, "decimal": decimal}
    marks |= {"censored": read_censoring(censored), "flag": flag}
    columns: dict[str, Any] = {"value": value, "site": site, "person": person, "group": group, "weight": weight}
    table = files.read_files(paths, **columns, missing=missing, dice=dice.words, **marks)
    kind = check_kind(kind, table.unit)
    return replace(table, seeded=person is not None and not is_private(dice), kind=kind, column=value)
