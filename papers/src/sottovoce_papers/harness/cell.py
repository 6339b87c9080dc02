"""A cell: one setting of a simulation, run on its own, with a seed that follows from what it is."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sottovoce_papers.harness.measure import Measure

Value = str | int | float
Setting = Mapping[str, Value]


class Row(NamedTuple):
    """What a cell found at one place of a table: beside its own setting it may name more (a method, a horizon)."""

    where: dict[str, Value]
    measures: dict[str, Measure]
    curves: dict[str, list[float]] = {}  # noqa: RUF012


@dataclass(frozen=True)
class Cell:
    """What is run: a recipe, its setting, how often, and the seed of the whole study.

    Two tables that need the same cell share it: a table's name is no part of it.

    Examples
    --------
    >>> cell = Cell("federated.walk", {"tau": 0.5, "method": "C1"}, 100, 1, "1")
    >>> cell.key == Cell("federated.walk", {"method": "C1", "tau": 0.5}, 100, 1, "1").key
    True
    >>> cell.dice == Cell("federated.walk", {"method": "C1", "tau": 0.5}, 200, 1, "2").dice
    True
    """

    recipe: str
    setting: dict[str, Value] = field(hash=False)
    replications: int
    seed: int
    version: str

    @property
    def key(self) -> str:
        """Return the name under which the cell is kept: all that its numbers depend on."""
        return digest(self.recipe, self.setting, self.replications, self.seed, self.version)[:24]

    @property
    def dice(self) -> int:
        """Return the seed of this cell alone, whatever else is run and in whatever order."""
        return int(digest(self.recipe, self.setting, self.seed)[:15], 16)


def digest(*parts: object) -> str:
    """Return a name for some plain values that does not depend on the order of keys."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=dict)
    return hashlib.sha256(text.encode()).hexdigest()


def plain(value: Value) -> str:
    """Return a value as it is compared with print: 0.90, 0.9 and "0.9" are one.

    Examples
    --------
    >>> plain("0.90"), plain(0.9), plain("hetero"), plain("3e8"), plain(300_000_000)
    ('0.9', '0.9', 'hetero', '300000000', '300000000')
    """
    try:
        number = float(value)
    except ValueError:
        return str(value)
    return f"{number:.10g}"


def matches(where: Setting, wanted: Mapping[str, Value | list[Value]]) -> bool:
    """Tell whether a place has all the wanted values; a list wants any of its values.

    Examples
    --------
    >>> matches({"rate": "0.9", "method": "C1"}, {"rate": 0.9, "method": ["C1", "C5"]})
    True
    """
    return all(key in where and plain(where[key]) in _choices(wish) for key, wish in wanted.items())


def _choices(wish: Value | list[Value]) -> set[str]:
    return {plain(value) for value in (wish if isinstance(wish, list) else [wish])}


def crossed(block: Mapping[str, Value | list[Value]]) -> Iterable[dict[str, Value]]:
    """Yield every combination of the values listed in a block, the last key fastest.

    Examples
    --------
    >>> list(crossed({"tau": [0.3, 0.5], "method": "C1"}))
    [{'tau': 0.3, 'method': 'C1'}, {'tau': 0.5, 'method': 'C1'}]
    """
    settings: list[dict[str, Value]] = [{}]
    for key, values in block.items():
        choices = values if isinstance(values, list) else [values]
        settings = [{**setting, key: value} for setting in settings for value in choices]
    return settings
