"""Ours beside the print: the difference in standard errors, and whether that is what chance and rounding allow.

The print has an error of its own: that of its replications (the same spread as ours, by its own number of runs) and
that of rounding, ``10^-digits / sqrt(12)``. A number agrees when it differs by at most three standard errors or 5 per
cent of the print, whichever is larger.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sottovoce_papers.harness.cell import Row, Value, matches, plain
from sottovoce_papers.harness.item import Item
from sottovoce_papers.harness.measure import Measure

ERRORS, PART = 3.0, 0.05
ALONE = "ours"


@dataclass(frozen=True)
class Number:
    """A printed number, what was found under each reading, and what is known of it.

    ``agrees`` is None where the judged reading was not run; ``why`` explains a number that does not come out.
    """

    where: dict[str, Value]
    quantity: str
    text: str
    printed: float
    found: dict[str, Measure]
    differences: dict[str, float]
    comparable: bool
    agrees: bool | None
    why: str


class Index:
    """Rows by where they stand: an index for each set of keys by which the print names its places."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows
        self._by_keys: dict[tuple[str, ...], dict[tuple[str, ...], list[Row]]] = {}

    def at(self, where: Mapping[str, Value]) -> list[Row]:
        """Return the rows that have all the values of a place, in their order."""
        keys = tuple(where)
        if keys not in self._by_keys:
            known = self._by_keys[keys] = {}
            for row in self._rows:
                if row.where.keys() >= where.keys():
                    known.setdefault(place(row.where, keys), []).append(row)
        return self._by_keys[keys].get(place(where, keys), [])


def compared(item: Item, rows: Sequence[Row]) -> list[Number]:
    """Hold every printed number of an item against the rows that were found."""
    index = Index(rows)
    return [_number(item, line, index) for line in item.printed()]


def _number(item: Item, line: dict[str, str], index: Index) -> Number:
    where: dict[str, Value] = {
        key: text for key, text in line.items() if key not in ("quantity", "value", "error", "note")
    }
    quantity, text = line["quantity"], line["value"]
    printed = float(text)
    found: dict[str, Measure] = {}
    for row in index.at(where):
        if quantity in row.measures:
            found.setdefault(str(row.where.get("reading", ALONE)), row.measures[quantity])
    differences = {
        reading: (measure.value - printed) / total_error(item, line, measure) for reading, measure in found.items()
    }
    known = [note for note in item.explained if matches({**where, "quantity": quantity}, note.where)]
    judged = item.judged or ALONE
    agrees = None
    if judged in found:
        off = abs(found[judged].value - printed)
        agrees = off <= max(ERRORS * total_error(item, line, found[judged]), PART * abs(printed))
    return Number(
        where,
        quantity,
        text,
        printed,
        found,
        differences,
        all(note.comparable for note in known),
        agrees,
        " ".join(note.why for note in known),
    )


def total_error(item: Item, line: dict[str, str], measure: Measure) -> float:
    """Return the standard error of the difference between ours and one printed number."""
    value = float(line["value"])
    if "error" in line:
        theirs = float(line["error"])
    elif measure.n > 0 and item.printed_replications > 0:
        theirs = measure.error * math.sqrt(measure.n / item.printed_replications)
    else:
        theirs = item.printed_error * abs(value)
    return max(math.sqrt(measure.error**2 + theirs**2 + rounding(line["value"]) ** 2 / 12), 1e-300)


def rounding(text: str) -> float:
    """Return the unit of the last printed digit.

    Examples
    --------
    >>> rounding("0.0184"), rounding("1.63e-3"), rounding("33367")
    (0.0001, 1e-05, 1.0)
    """
    digits, _, power = text.lower().partition("e")
    decimals = len(digits.partition(".")[2])
    return float(f"1e{int(power or 0) - decimals}")


@dataclass(frozen=True)
class Tally:
    """How an item's printed numbers came out."""

    printed: int
    comparable: int
    agreeing: int
    explained: int
    unexplained: int
    missing: int

    @property
    def share(self) -> float:
        """Return the part of the comparable numbers that agree (NaN where there is none)."""
        return self.agreeing / self.comparable if self.comparable else math.nan


def tally(numbers: Sequence[Number]) -> Tally:
    """Count comparable numbers that agree, numbers that are explained instead, and numbers that are neither."""
    comparable = [number for number in numbers if number.comparable and number.agrees is not None]
    agreeing = sum(number.agrees is True for number in comparable)
    others = [number for number in numbers if not number.comparable]
    off = [number for number in comparable if not number.agrees]
    return Tally(
        len(numbers),
        len(comparable),
        agreeing,
        len(others) + sum(bool(number.why) for number in off),
        sum(not number.why for number in off),
        sum(number.comparable and number.agrees is None for number in numbers),
    )


def place(where: Mapping[str, Value], keys: Sequence[str]) -> tuple[str, ...]:
    """Return where in a table a row stands."""
    return tuple(plain(where[key]) if key in where else "" for key in keys)
