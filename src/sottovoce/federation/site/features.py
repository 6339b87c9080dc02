"""The columns beside the value that a site opens for regressions: read when it starts, and never shown or sent.

Numbers beyond the public bounds of a study are moved to them, those between two declared values to the nearer one, and
categories that it does not name are its "other": a site that refused such a study would say something about its
records, and could be asked again and again.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, SupportsIndex

import numpy as np

from sottovoce.client.reading.categories import as_columns
from sottovoce.client.reading.column import NUMBERS
from sottovoce.client.reading.files import expand
from sottovoce.client.reading.formats import Marks, read_table, where
from sottovoce.client.reading.frames import one_row_a_person
from sottovoce.client.reading.labels import Coded, code_labels, code_persons, join_coded, join_files, number_persons
from sottovoce.client.reading.reader import open_column
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Floats
from sottovoce.core.bounds import Bounds
from sottovoce.core.categories import OTHER
from sottovoce.core.checks import label_text
from sottovoce.core.errors import BadInput
from sottovoce.core.shown import quoted
from sottovoce.federation.site.policy import RecordColumns


class AskedColumns(NamedTuple):
    """What a study asks for: the response, covariates in their order, levels of categories, and public bounds."""

    response: str
    features: tuple[str, ...]
    levels: Mapping[str, tuple[str, ...]]
    bounds: Bounds  # of the columns that covariates become
    two_valued: tuple[str, ...] = ()  # those that take their two bounds alone


class FeatureColumns:
    """Holds numbers and categories by the name of their column, one a record."""

    __slots__ = ("_categories", "_numbers")

    def __init__(self, numbers: Mapping[str, Floats], categories: Mapping[str, Coded]) -> None:
        self._numbers, self._categories = dict(numbers), dict(categories)

    def __repr__(self) -> str:
        return f"FeatureColumns({len(self._numbers)} of numbers, {len(self._categories)} of categories, values hidden)"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("FeatureColumns cannot be pickled or copied: records do not leave the site")

    def check(self, asked: AskedColumns) -> None:
        """Refuse a study of columns that this site does not open."""
        for name in asked.features:
            categories = name in asked.levels
            if name not in (self._categories if categories else self._numbers):
                kind = "categories" if categories else "features"
                raise BadInput(
                    f"the study asks for column {quoted(name)}, which the policy of this site does not open as one of "
                    f"its {kind}; ask its operator."
                )

    def rows(self, asked: AskedColumns, response: Floats) -> Rows:
        """Return the rows of a regression, scaled by the study's public bounds."""
        columns: list[Any] = []
        for name in asked.features:
            if name in asked.levels:
                codes, labels = self._categories[name]
                known = {level: place for place, level in enumerate(asked.levels[name])}
                placed = [known.get(label_text(each).strip(), known[OTHER]) for each in labels.to_pylist()]
                columns += as_columns(np.array([*placed, 0], dtype=np.int64)[codes], asked.levels[name])
            else:
                columns.append(self._numbers[name])
        scaled = np.clip(asked.bounds.scale(np.column_stack(columns)), -1.0, 1.0)
        for name in asked.two_valued:
            at = asked.bounds.names.index(name)
            scaled[:, at] = np.where(scaled[:, at] >= 0, 1.0, -1.0)
        return Rows(np.ascontiguousarray(scaled), np.ascontiguousarray(response))

    def words(self) -> list[bytes]:
        """Return the columns as bytes, for a digest by which a site knows its records again."""
        found = [name.encode() + self._numbers[name].tobytes() for name in sorted(self._numbers)]
        for name in sorted(self._categories):
            codes, labels = self._categories[name]
            found.append(name.encode() + codes.tobytes() + "\0".join(map(str, labels.to_pylist())).encode())
        return found


class ReadColumns(NamedTuple):
    """The values of a site's records, what stands beside them, and whose they are, if that is known."""

    values: Floats
    features: FeatureColumns
    people: list[bytes] | None


def read_columns(paths: Sequence[str], asked: RecordColumns, dice: Any) -> ReadColumns:
    """Read all columns that a policy opens; of all rows of a person one is drawn, by ``dice``."""
    numeric, persons = [asked.value, *asked.features], [] if asked.person is None else [asked.person]
    names = [*numeric, *asked.categories, *persons]
    if len(set(names)) < len(names):
        raise BadInput("[records] of the policy names a column twice: value, features, categories and person differ.")
    marks = Marks(asked.delimiter, asked.decimal).checked()
    parts: dict[str, list[Any]] = {name: [] for name in names}
    for path in expand([Path(each) for each in paths]):
        table = read_table(path, names, numeric, accepts=NUMBERS, marks=marks)
        for name in names:
            column, place = table.column(name), where(path, name)
            if name in numeric:
                opened = open_column(column, place)
                parts[name].append(opened.chunk(0, opened.size).copy())
            else:
                parts[name].append(code_persons(column, place) if name in persons else code_labels(column, place, None))
    numbers = {name: np.concatenate(parts[name]) for name in numeric}
    categories = {name: join_coded(parts[name]) for name in asked.categories}
    for name, each in numbers.items():
        if np.isinf(each).any():
            raise BadInput(f"column {quoted(name)} holds an infinite number; remove that row, or cap the value.")
    lost = [np.isnan(each) for each in numbers.values()] + [each.codes < 0 for each in categories.values()]
    gone = np.any(lost, axis=0)
    if gone.any() and asked.missing != "drop":
        raise BadInput('a row has a missing value; remove such rows, or set missing = "drop" in [records].')
    rows, people = np.flatnonzero(~gone), None
    if not rows.size:
        raise BadInput("every row of this site has a missing value; give files with complete rows.")
    if asked.person is not None:
        coded = join_files(parts[asked.person])
        rows = rows[one_row_a_person(number_persons(coded, f"column {quoted(asked.person)}")[rows], dice)]
        texts = [str(each).encode() for each in coded.labels.to_pylist()]
        people = sorted(texts[code] for code in coded.codes[rows])
    values = np.ascontiguousarray(numbers[asked.value][rows])
    beside = {name: np.ascontiguousarray(numbers[name][rows]) for name in asked.features}
    chosen = {name: Coded(each.codes[rows], each.labels) for name, each in categories.items()}
    return ReadColumns(values, FeatureColumns(beside, chosen), people)
