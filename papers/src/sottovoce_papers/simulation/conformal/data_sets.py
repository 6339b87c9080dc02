"""The five regression data sets of the paper's section 5.2, read from a folder that the user names.

Each lies at ``<folder>/<name>/<name>.parquet``; the folder is named by the variable SOTTOVOCE_DATA. Features are
standardised; of texts the place in the alphabet is taken.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput

VARIABLE = "SOTTOVOCE_DATA"
SHAPES = {"bio": (100, 10), "bike": (100, 10), "community": (80, 10), "star": (80, 10), "concrete": (40, 10)}
"""Sites and scores a site, in the paper's setting of many small sites; turned about, in that of few large ones."""


class DataSet(NamedTuple):
    """Features, standardised, and responses."""

    name: str
    features: Floats
    responses: Floats


def data_folder(names: Sequence[str] = tuple(SHAPES)) -> Path | None:
    """Return the folder that SOTTOVOCE_DATA names, None unless it holds all of the sets."""
    folder = Path(os.environ.get(VARIABLE, ""))
    held = VARIABLE in os.environ and all((folder / name / f"{name}.parquet").is_file() for name in names)
    return folder if held else None


def absent(names: Sequence[str] = tuple(SHAPES)) -> str:
    """Return the reason to skip what needs the data sets.

    >>> absent(["bio"])
    'SOTTOVOCE_DATA names no folder with bio/bio.parquet'
    """
    return f"{VARIABLE} names no folder with " + ", ".join(f"{name}/{name}.parquet" for name in names)


def read_set(folder: Path, name: str) -> DataSet:
    """Read one of the sets, without records that lack a value."""
    if name not in SHAPES:
        raise BadInput(f"there is no data set {name!r}; choose {', '.join(SHAPES)}.")
    table = pq.read_table(folder / name / f"{name}.parquet")
    if name == "bio":
        return _made(name, table, table["RMSD"], ["RMSD"])
    if name == "bike":
        when = pc.strptime(table["datetime"], "%Y-%m-%d %H:%M:%S", "s")
        for part in ("year", "month", "day_of_week", "hour"):
            table = table.append_column(part, getattr(pc, part)(when))
        return _made(name, table, table["count"], ["datetime", "casual", "registered", "count"])
    if name == "community":
        lacking = [column for column in table.column_names if table[column].null_count or _has_nan(table[column])]
        response = "ViolentCrimesPerPop"
        return _made(name, table, table[response], [*table.column_names[:5], *lacking, response])
    if name == "star":
        table = _complete(table)
        scores = [column for column in table.column_names if column[:-1] in ("read", "math")]
        return _made(name, table, pc.add(table["read3"], table["math3"]), [table.column_names[0], *scores])
    return _made(name, table, table.columns[-1], [table.column_names[-1]])


def _made(name: str, table: pa.Table, response: pa.ChunkedArray, left_out: Sequence[str]) -> DataSet:
    columns = [_numbers(table[column]) for column in table.column_names if column not in left_out]
    features = np.column_stack(columns)
    spread = features.std(axis=0)
    return DataSet(name, (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0), _numbers(response))


def _numbers(column: pa.ChunkedArray) -> Floats:
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return np.unique(column.to_numpy().astype(str), return_inverse=True)[1].astype(np.float64)
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _has_nan(column: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(column.type) and bool(np.isnan(column.to_numpy()).any())


def _complete(table: pa.Table) -> pa.Table:
    """Return the records that lack nothing."""
    table = table.drop_null()
    held = np.ones(table.num_rows, dtype=np.bool_)
    for column in table.columns:
        if pa.types.is_floating(column.type):
            held &= ~np.isnan(column.to_numpy())
    return table.filter(pa.array(held))
