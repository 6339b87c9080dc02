"""From a column of categories to the places of its values among the declared levels, and to columns of 0 and 1."""

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from sottovoce.client.reading.arrow import pa
from sottovoce.client.reading.labels import arrow_labels, code_labels
from sottovoce.client.reading.reader import is_missing
from sottovoce.core.arrays import Floats, Ints
from sottovoce.core.categories import OTHER, Levels, check_declared, dummies
from sottovoce.core.checks import bad_row, label_text
from sottovoce.core.errors import BadInput

ADVICE = "remove the row, or leave all rows with missing values out"


def places(column: Any, levels: Sequence[str], where: str, *, missing: bool = False) -> Ints:
    """Return the place of each value among the levels; -1 where it is ``missing``, which else is refused.

    >>> places(["UA", "AA", "B6"], ["AA", "UA", "other"], "column 'carrier'").tolist()
    [1, 0, 2]
    """
    codes, labels = code_labels(_arrow(column), where, None if missing else ADVICE)
    known = {level: place for place, level in enumerate(levels)}
    found = np.array([known.get(label_text(each).strip(), known.get(OTHER, -2)) for each in labels.to_pylist()] + [-1])
    placed = found[codes].astype(np.int64)
    if (placed == -2).any():
        advice = f"declare it too, or declare {OTHER!r} for all that are not named"
        raise bad_row(where, int((placed == -2).argmax()), "a level that is not declared", advice)
    return placed


def as_columns(places: Ints, levels: Sequence[str]) -> list[Floats]:
    """Return a column of 0 and 1 for every level but the base."""
    return [(places == place).astype(np.float64) for place in range(1, len(levels))]


def refuse_unseen(features: Floats, names: Sequence[str], levels: Levels) -> None:
    """Refuse a level that no row has, in scaled columns: its column, or the base's others together, are constant."""
    for name, declared in levels.items():
        where = [names.index(dummy) for dummy in dummies(name, declared)]
        seen = (features[:, where] > 0).sum(axis=0)
        rest = len(features) - int(seen.sum())
        for level, rows in zip(declared, (rest, *seen.tolist()), strict=True):
            if not rows:
                raise BadInput(
                    f"no row has the level {level!r} of column {name!r}: leave it out of levels"
                    + (", so that another one is the base." if level == declared[0] else "."),
                    parameter="levels",
                )


def coded(
    names: Sequence[str], columns: Sequence[Any], levels: Levels, where: Any
) -> tuple[tuple[str, ...], list[Any]]:
    """Replace columns of categories, among others, by columns of 0 and 1."""
    check_declared(levels, names)
    found_names: list[str] = []
    found: list[Any] = []
    for name, column in zip(names, columns, strict=True):
        if name in levels:
            found_names += dummies(name, levels[name])
            found += as_columns(places(column, levels[name], where(name)), levels[name])
        else:
            found_names.append(name)
            found.append(column)
    return tuple(found_names), found


def _arrow(column: Any) -> Any:
    """Return a column of labels as Arrow."""
    if type(column).__module__.partition(".")[0] == "pyarrow":
        return column
    series = nw.from_native(column, allow_series=True, pass_through=True)
    if isinstance(series, nw.Series):
        return arrow_labels(series)
    values = column.tolist() if isinstance(column, np.ndarray) else list(column)
    return pa.array([None if is_missing(value) else label_text(value) for value in values], type=pa.large_string())
