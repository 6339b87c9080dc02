"""The rows of a regression from files: several, with categories, without missing values, one row a person."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sottovoce.client.reading.categories import as_columns, places
from sottovoce.client.reading.column import NUMBERS, NotNumbers
from sottovoce.client.reading.design_matrix import ReadRows, plain_warning, read_opened
from sottovoce.client.reading.files import Paths, expand
from sottovoce.client.reading.formats import Marks, read_table, where
from sottovoce.client.reading.frames import Roll, check_column_names, check_dice, one_row_a_person
from sottovoce.client.reading.labels import code_persons, join_files, number_persons
from sottovoce.client.reading.matrix import DECLARE, from_columns
from sottovoce.client.reading.reader import open_column
from sottovoce.client.reading.table import check_missing
from sottovoce.core.categories import Levels, check_declared, dummies
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import quoted


@dataclass(frozen=True, eq=False)
class FileRows:
    """The rows of a regression, and how many were left out: with missing values, and further rows of a person."""

    found: ReadRows
    dropped: int
    further: int
    per_person: bool


def read_regression_files(
    paths: Paths,
    response: str,
    features: Sequence[str],
    *,
    bounds: Any = None,
    clip: bool = False,
    levels: Levels | None = None,
    two_valued: Sequence[str] = (),
    person: str | None = None,
    missing: str = "refuse",
    dice: Roll | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
) -> FileRows:
    r"""Read the rows of a regression from Parquet, Arrow or CSV files, or refuse them before anything is spent.

    Paths may have "~" and wildcards; rows are those of all files, one below the other. Under missing="drop" rows in
    which anything is missing are left out and counted. Of all rows of a ``person`` one is drawn, by ``dice``.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "trips.csv"
    ...     _ = file.write_text("minutes,miles\n9,2\n20,7.5\n31,12\n")
    ...     read_regression_files(file, "minutes", ["miles"], bounds=(0, 30)).found[:3]
    (Rows(3 records of 1 covariate, values hidden), ('miles',), True)
    """
    check_missing(missing)
    declared, names = dict(levels or {}), [features] if isinstance(features, str) else list(features)
    columns = [response, *names, *([] if person is None else [person])]
    _check_columns(columns, names, declared)
    if person is not None:
        check_dice(dice)
    marks, files = Marks(delimiter, decimal).checked(), expand(paths)
    parts: dict[str, list[Any]] = {name: [] for name in columns}
    numeric = [name for name in columns if name not in declared and name != person]
    for file in files:
        try:
            table = read_table(file, columns, numeric, accepts=NUMBERS, marks=marks)
            for name in columns:
                column, place = table.column(name), where(file, name)
                if name == person:
                    parts[name].append(code_persons(column, place))
                elif name in declared:
                    parts[name].append(places(column, declared[name], place, missing=missing == "drop"))
                else:
                    opened = open_column(column, place)
                    parts[name].append(opened.chunk(0, opened.size).copy())
        except BadInput as refusal:
            told = str(refusal)
            text = told.endswith(NUMBERS.rule) and " holds text in row " in told
            if not text or quoted(response) in told.partition(" holds ")[0]:
                raise
            raise NotNumbers(told.removesuffix(NUMBERS.rule) + DECLARE) from None
    whole = {name: np.concatenate(parts[name]) for name in columns if name != person}
    rows, dropped = np.arange(whole[response].size), 0
    if missing == "drop":
        gone = [whole[name] < 0 if name in declared else np.isnan(whole[name]) for name in whole]
        rows = np.flatnonzero(~np.any(gone, axis=0))
        dropped = whole[response].size - rows.size
        if not rows.size:
            raise BadInput("every row has a missing value: give files with complete rows")
    complete = rows.size
    if person is not None:
        people = number_persons(join_files(parts[person]), f"column {quoted(person)}")
        rows = rows[one_row_a_person(people[rows], dice)]
    if rows.size < whole[response].size:
        whole = {name: values[rows] for name, values in whole.items()}
    found = _read(whole, response, names, declared, bounds, clip, files, two_valued)
    return FileRows(found, dropped, complete - rows.size, person is not None)


def _check_columns(columns: list[str], names: list[str], declared: Levels) -> None:
    """Refuse names of columns that cannot be read."""
    if not names:
        raise BadInput("no columns are named as covariates: name at least one")
    check_column_names(columns)
    for name in columns:
        if columns.count(name) > 1:
            raise BadInput(f"column {name!r} is named twice: response, covariates and person are different columns")
    check_declared(declared, names)


def _read(
    whole: dict[str, Any],
    response: str,
    names: list[str],
    declared: Levels,
    bounds: Any,
    clip: bool,
    files: Sequence[Path],
    two_valued: Sequence[str],
) -> ReadRows:
    """Put the columns together, categories as columns of 0 and 1, and check them."""
    labels: list[str] = []
    columns: list[Any] = []
    for name in names:
        labels += dummies(name, declared[name]) if name in declared else [name]
        columns += as_columns(whole[name], declared[name]) if name in declared else [whole[name]]

    def place(name: str) -> str:
        return where(files[0], name) if len(files) == 1 else f"column {quoted(name)} of {len(files):,} files"

    matrix = from_columns(labels, columns, place)
    given: dict[str, Any] = {
        "levels": declared,
        "two_valued": two_valued,
        "where": place(response),
        "warn": plain_warning,
    }
    return read_opened(matrix, whole[response], bounds, clip, **given)
