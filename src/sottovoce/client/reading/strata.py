"""Strata: records of one site, one public group and nearly one public weight, each of which answers as a site does.

A group is a label of every row, a weight says how much a row counts. Both are public. Up to `EXACT` different weights
make a stratum each. More are rounded to a grid of powers of `STEP`, up or down so that they are right on average: a
weight that lies a third of the way between two of the grid goes up in every third row, by a public sequence (multiples
of the golden ratio) that knows nothing of the records. It is dealt in the order of the weights, and among equal ones in
an order of rows without regularity, so that rows that come back with a period share no error. A weight is then off by
some percent in every row, and by nothing on average, whatever the record; the effective number of records falls by 1 %
at most.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.client.reading.labels import Labels
from sottovoce.core.arrays import Bools, Floats, Ints
from sottovoce.core.checks import bad_row, sentence
from sottovoce.core.roster import Strata
from sottovoce.core.shown import quoted

EXACT = 12  # different weights
STEP, MOST = 1.25, 60  # ratio of neighbours of the grid, and how many there are at most
GOLDEN = 0.6180339887498949
POSITIVE = "leave the row out, or give it a positive weight"


class Division(NamedTuple):
    """What divides rows beside their site: a group each, a weight each, and what the groups are told apart by."""

    groups: Labels | None = None
    weights: Floats | None = None
    by: str = ""

    @property
    def divides(self) -> bool:
        """Tell whether there is anything beside the sites."""
        return self.groups is not None or self.weights is not None

    @property
    def placed(self) -> Bools | bool:
        """Return which rows have a group and a weight."""
        found: Bools | bool = True
        if self.groups is not None:
            found = self.groups.codes >= 0
        if self.weights is not None:
            found = found & ~np.isnan(self.weights)
        return found


class Divided(NamedTuple):
    """Of each row the number of its stratum, what the strata are called, and what they are."""

    codes: Ints
    names: list[str]
    strata: Strata


def check_weights(weights: Floats, where: str) -> None:
    """Refuse weights that do not count, unquoted; missing ones are for the caller."""
    wrong = ~np.isnan(weights) & ~((weights > 0) & np.isfinite(weights))
    if wrong.any():
        raise bad_row(where, int(wrong.argmax()), "a weight that is not positive and finite", POSITIVE)
    present = weights[~np.isnan(weights)]
    if len(present) and present.max() > 1e9 * present.min():
        raise sentence(where, "holds weights that differ by more than a factor of a thousand million: check them")


def divide(sites: Labels, division: Division, rows: Ints) -> Divided:
    """Divide some rows into strata, those of a site side by side."""
    parts, labels = [sites.codes[rows]], [list(sites.labels)]
    if division.groups is not None:
        parts.append(division.groups.codes[rows])
        labels.append([str(label) for label in division.groups.labels])
    weights = np.ones(1)
    if division.weights is not None:
        weights, codes = rounded(division.weights[rows])
        parts.append(codes)
        labels.append([f"weight {weight:.4g}" for weight in weights])
    found, codes = np.unique(np.column_stack(parts), axis=0, return_inverse=True)
    names = [tuple(str(label[code]) for label, code in zip(labels, row, strict=True)) for row in found.tolist()]
    grouped = division.groups is not None
    strata = Strata(
        tuple(name[0] for name in names),
        tuple(name[1] for name in names) if grouped else (),
        tuple(float(weights[row[-1]]) for row in found.tolist()) if division.weights is not None else (),
        division.by,
    )
    texts = [", ".join(name) for name in names]
    if len(set(texts)) < len(texts):
        texts = [", ".join(map(quoted, name)) for name in names]
    return Divided(np.asarray(codes.ravel(), dtype=np.int64), texts, strata)


def rounded(weights: Floats) -> tuple[Floats, Ints]:
    """Return the weights of the strata, and of each row which of them it has.

    >>> values, codes = rounded(np.array([2.0, 1.0, 2.0]))
    >>> values, codes
    (array([1., 2.]), array([1, 0, 1]))
    """
    values, codes = np.unique(weights, return_inverse=True)
    if len(values) <= EXACT:
        return values, np.asarray(codes.ravel(), dtype=np.int64)
    least, most = float(values[0]), float(values[-1])
    steps = min(max(int(np.ceil(np.log(most / least) / np.log(STEP))), 1), MOST)
    grid = np.geomspace(least, most, steps + 1)
    grid[0], grid[-1] = least, most
    below = np.clip(np.searchsorted(grid, weights, side="right") - 1, 0, steps - 1)
    part = (weights - grid[below]) / (grid[below + 1] - grid[below])
    turn = np.empty(len(weights))
    turn[np.lexsort((_scattered(len(weights)), weights))] = (np.arange(len(weights)) + 0.5) * GOLDEN % 1.0
    return grid, np.asarray(below + (turn < part), dtype=np.int64)


def _scattered(rows: int) -> npt.NDArray[np.uint64]:
    """Return a number for each row by which rows have an order without regularity (SplitMix64, Steele et al. 2014)."""
    found = np.arange(1, rows + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        found = (found ^ (found >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(found ^ (found >> np.uint64(31)))
