"""How an item's numbers are laid out: a line a place and method, the print beside ours, the default last."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from sottovoce_papers.harness.cell import Row
from sottovoce_papers.harness.compare import ALONE, Number, place
from sottovoce_papers.harness.digits import Digits, digits_of
from sottovoce_papers.harness.item import Item
from sottovoce_papers.harness.measure import Measure
from sottovoce_papers.harness.study import Outcome

DEFAULT = "default"
Name = TypeVar("Name", str, tuple[str, ...])


class Entry(NamedTuple):
    """One quantity at one place: the printed number, if there is one, and what was found under each reading."""

    number: Number | None
    found: dict[str, Measure]


@dataclass(frozen=True)
class Layout:
    """An item's table.

    ``fixed`` are keys with one value all over, ``keys`` the others; ``entries`` are by place, column and quantity.
    """

    item: Item
    fixed: dict[str, str]
    keys: list[str]
    places: list[tuple[str, ...]]
    columns: list[str]
    quantities: list[str]
    printed: set[str]
    readings: list[str]
    entries: dict[tuple[tuple[str, ...], str, str], Entry]

    def label(self, name: str) -> str:
        """Return the heading of a quantity, a key or a reading."""
        return self.item.labels.get(name, name)

    def entry(self, spot: tuple[str, ...], column: str, quantity: str) -> Entry:
        """Return what is known at one place."""
        return self.entries.get((spot, column, quantity), Entry(None, {}))

    def digits(self, quantity: str) -> Digits | None:
        """Return how ours is written."""
        known = [entry for (_, _, name), entry in self.entries.items() if name == quantity]
        texts = [entry.number.text for entry in known if entry.number]
        return digits_of(texts, [measure for entry in known for measure in entry.found.values()])

    def found(self, entry: Entry, reading: str) -> Measure | None:
        """Return what was found under a reading; rows that name no reading stand under the judged one."""
        return entry.found.get(reading, entry.found.get(ALONE) if reading == self.readings[0] else None)


def lay(outcome: Outcome) -> Layout:
    """Lay out an item: places in the order of the print, then in that of the rows."""
    item, rows, numbers = outcome.item, outcome.rows, outcome.numbers
    keys = _keys(item, numbers)
    entries: dict[tuple[tuple[str, ...], str, str], Entry] = {}
    found: dict[tuple[tuple[str, ...], str, str], dict[str, Measure]] = {}
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
    )


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
