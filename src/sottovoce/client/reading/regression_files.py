"""From a file on disk, Parquet, Arrow or CSV, to the checked, scaled rows of a regression."""

import os
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sottovoce.client.reading.column import NUMBERS, RECORDS, NotNumbers
from sottovoce.client.reading.design_matrix import ReadRows, plain_warning, read_opened
from sottovoce.client.reading.files import expand
from sottovoce.client.reading.formats import read_table, where
from sottovoce.client.reading.matrix import from_columns
from sottovoce.core.errors import BadInput


def read_regression_file(
    path: str | os.PathLike[str], response: str, features: Sequence[str], *, bounds: Any = None, clip: bool = False
) -> ReadRows:
    r"""Read the records of a regression from one Parquet, Arrow or CSV file, or refuse them before anything is spent.

    Parameters
    ----------
    path
        The file; "~" and wildcards are expanded, and must name one file.
    response
        The column of the responses.
    features
        The columns of the covariates, in the order of the coefficients.
    bounds
        The public bounds of the covariates, see `read_bounds`; None when they are in [-1, 1] already.
    clip
        Move covariates beyond a bound to the bound, and count the rows, instead of refusing them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "trips.csv"
    ...     _ = file.write_text("minutes,miles\n9,2\n20,7.5\n31,12\n")
    ...     read_regression_file(file, "minutes", ["miles"], bounds=(0, 30))[:3]
    (Rows(3 records of 1 covariate, values hidden), ('miles',), True)
    """
    names = [features] if isinstance(features, str) else list(features)
    if not names:
        raise BadInput("no columns are named as covariates: name at least one")
    columns = [response, *names]
    for name in columns:
        if columns.count(name) > 1:
            raise BadInput(f"column {name!r} is named twice: the response and the covariates are different columns")
    file, *others = expand(path)
    if others:
        raise BadInput(f"{path} matches {len(others) + 1:,} files: give one file")
    try:
        table = read_table(file, columns)
    except BadInput as refusal:
        # The reader of a quantile's records would also take dates.
        if not str(refusal).endswith(RECORDS.rule):
            raise
        raise NotNumbers(str(refusal).removesuffix(RECORDS.rule) + NUMBERS.rule) from None
    textual = ".csv" in file.name.lower() or ".tsv" in file.name.lower()
    covariates = [_parsed(table.column(name), where(file, name)) if textual else table.column(name) for name in names]
    matrix = from_columns(names, covariates, lambda name: where(file, name))
    return read_opened(matrix, table.column(response), bounds, clip, where=where(file, response), warn=plain_warning)


def _parsed(column: Any, place: str) -> Any:
    """Turn a column of text, as the reader of CSV files gives it, into whole numbers, numbers or truth values."""
    trimmed = pc.utf8_trim_whitespace(column)
    for kind in (pa.int64(), pa.float64(), pa.bool_()):
        try:
            return trimmed.cast(kind)
        except pa.ArrowInvalid:
            continue
    for row, cell in enumerate(trimmed):
        try:
            cell.cast(pa.float64())
        except pa.ArrowInvalid:
            raise NUMBERS.refusal(place, row, "text") from None
    raise AssertionError("a column that is no column of numbers has a cell that is no number")
