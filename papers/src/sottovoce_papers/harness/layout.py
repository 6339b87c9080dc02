"""How an item's numbers are laid out, for the terminal and for the report: by place, method and quantity."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from sottovoce_papers.harness.cell import Row
from sottovoce_papers.harness.compare import ALONE, Number, place
from sottovoce_papers.harness.digits import Digits, digits_of, written
from sottovoce_papers.harness.item import Item
from sottovoce_papers.harness.measure import Measure
from sottovoce_papers.harness.study import Outcome
from sottovoce_papers.harness.words import mark

DEFAULT, PRINT, OURS = "default", "print", "ours"
Name = TypeVar("Name", str, tuple[str, ...])
Spot = tuple[str, ...]


class Entry(NamedTuple):
    """One quantity at one place: the printed number, if there is one, and what was found under each reading."""

    number: Number | None
    found: dict[str, Measure]


class Shown(NamedTuple):
    """What a table says of an entry under one reading: ours, its text, the difference in standard errors, a mark."""

    measure: Measure | None
    text: str
    difference: float | None
    mark: str


@dataclass(frozen=True)
class Layout:
    """An item's table.

    ``fixed`` are keys with one value all over, ``keys`` the others; ``entries`` are by place, column and quantity.
    """

    item: Item
    fixed: dict[str, str]
    keys: list[str]
    places: list[Spot]
    columns: list[str]
    quantities: list[str]
    printed: set[str]
    readings: list[str]
    entries: dict[tuple[Spot, str, str], Entry]
    digits: dict[str, Digits | None]

    def label(self, name: str) -> str:
        """Return the heading of a quantity, a key or a reading."""
        return self.item.labels.get(name, name)

    def reading(self, name: str) -> str:
        """Return the heading of ours under a reading."""
        return OURS if len(self.readings) == 1 else self.label(name)

    def entry(self, spot: Spot, column: str, quantity: str) -> Entry:
        """Return what is known at one place."""
        return self.entries.get((spot, column, quantity), Entry(None, {}))

    def shown(self, entry: Entry, quantity: str, reading: str) -> Shown:
        """Return what is said of an entry under a reading; rows that name no reading stand under the judged one."""
        judged = reading == self.readings[0]
        measure = entry.found.get(reading, entry.found.get(ALONE) if judged else None)
        text = "" if measure is None else written(measure, self.digits[quantity])
        difference = entry.number.differences.get(reading) if entry.number else None
        return Shown(measure, text, difference, mark(entry.number) if judged else "")


def lay(outcome: Outcome) -> Layout:
    """Lay out an item: places in the order of the print, then in that of the rows."""
    item, rows, numbers = outcome.item, outcome.rows, outcome.numbers
    keys = _keys(item, numbers)
    entries: dict[tuple[Spot, str, str], Entry] = {}
    found: dict[tuple[Spot, str, str], dict[str, Measure]] = {}
    for row in rows:
        spot, column = place(row.where, keys), place(row.where, [item.columns])[0]
        for quantity, measure in row.measures.items():
            known = found.setdefault((spot, column, quantity), {})
            known.setdefault(str(row.where.get("reading", ALONE)), measure)
    for number in numbers:
        where = (place(number.where, keys), place(number.where, [item.columns])[0], number.quantity)
        entries[where] = Entry(number, number.found or found.get(where, {}))
    for where, known in found.items():
        entries.setdefault(where, Entry(None, known))
    quantities = _once([*item.quantities, *(number.quantity for number in numbers)])
    entries = {where: entry for where, entry in entries.items() if where[2] in quantities}
    spots = _once(where[0] for where in entries)
    varying = [i for i in range(len(keys)) if len({spot[i] for spot in spots}) > 1]
    short = {spot: tuple(spot[i] for i in varying) for spot in spots}
    columns = _once(where[1] for where in entries)
    return Layout(
        item,
        {key: spots[0][i] for i, key in enumerate(keys) if i not in varying and spots and spots[0][i]},
        [keys[i] for i in varying],
        list(short.values()),
        sorted(columns, key=lambda column: column == DEFAULT),
        quantities,
        {number.quantity for number in numbers},
        _readings(item, rows),
        {(short[spot], column, quantity): entry for (spot, column, quantity), entry in entries.items()},
        {name: _digits([entry for where, entry in entries.items() if where[2] == name]) for name in quantities},
    )


def _digits(entries: list[Entry]) -> Digits | None:
    """Return how ours is written in the column of a quantity."""
    texts = [entry.number.text for entry in entries if entry.number]
    return digits_of(texts, [measure for entry in entries for measure in entry.found.values()])


def _keys(item: Item, numbers: list[Number]) -> list[str]:
    """Return what tells places apart: the item's own keys, and what else the print names."""
    others = (key for number in numbers for key in number.where)
    return [key for key in _once([*item.rows, *others]) if key not in (item.columns, "reading")]


def _readings(item: Item, rows: list[Row]) -> list[str]:
    """Return the readings that were run, the judged one first."""
    there = {str(row.where["reading"]) for row in rows if "reading" in row.where}
    ordered = [name for name in _once([item.judged, *item.readings, *sorted(there)]) if name in there]
    return ordered or [ALONE]


def _once(names: Iterable[Name]) -> list[Name]:
    return list(dict.fromkeys(names))
