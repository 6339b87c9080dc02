"""The table of `regression_tables` in Markdown: ``python -m benchmarks.regression_tables_page RESULTS [PAGE]``.

With a page, the table is written into it, between the two comments that mark its place.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.regression_tables import read_lines
from sottovoce.core.arrays import Floats

Z = 1.959964
KNOWN = 5  # oracle standard errors that a coefficient is away from zero, to be one that should be told from zero
BEGIN, END = "<!-- tallies -->", "<!-- end -->"
HEADERS = (
    "table", "tau", "ε", "people", "p", "fits", "interval given", "holds the exact fit, people drawn", "own rows",
    "length / oracle", "told from 0, of those that could be", "error / oracle",
)  # fmt: skip


class Summary(NamedTuple):
    """A cell in figures."""

    cell: str
    people: int
    p: int
    fits: int
    given: float
    covered: tuple[int, int]  # people drawn anew: intervals that held the exact fit, of all
    own: tuple[int, int]
    length: float
    known: int
    told: float
    error: float


def sum_up(cell: str, lines: Sequence[dict[str, Any]]) -> Summary | None:
    """Return the figures of a cell, None where its open fit or its fits are missing."""
    reference = next((line for line in lines if "exact" in line), None)
    runs = {how: [line for line in lines if line.get("how") == how] for how in ("own", "drawn")}
    if reference is None or not runs["own"]:
        return None
    truth, oracle = np.array(reference["exact"]), np.array(reference["oracle"])
    own, drawn = _ends(runs["own"], len(truth)), _ends(runs["drawn"], len(truth))
    given = np.isfinite(own).all(axis=2)
    ratio = ((own[:, :, 1] - own[:, :, 0]) / (2 * Z * oracle))[given]
    known = np.abs(truth) > KNOWN * oracle
    told = ((own[:, :, 0] > 0) | (own[:, :, 1] < 0))[:, known]
    nothing = [float("nan")] * len(truth)  # where the fit was refused before anybody was asked
    far = np.abs(np.array([line.get("coef", nothing) for line in runs["own"]], dtype=float) - truth) / oracle
    return Summary(
        cell,
        reference["people"],
        len(truth) - 1,
        len(runs["own"]),
        float(given.mean()),
        _held(drawn, truth),
        _held(own, truth),
        float(np.median(ratio)) if len(ratio) else float("nan"),
        int(known.sum()),
        float(told.mean()) if known.any() else float("nan"),
        float(np.nanmedian(far)) if np.isfinite(far).any() else float("nan"),
    )


def _ends(runs: Sequence[dict[str, Any]], d: int) -> Floats:
    """Return the intervals of fits, (fits, d, 2); none where a fit was refused before anybody was asked."""
    nothing = [float("nan")] * d
    ends = [[line.get("low", nothing), line.get("high", nothing)] for line in runs]
    return np.array(ends, dtype=float).reshape(-1, 2, d).swapaxes(1, 2)


def _held(ends: Floats, truth: Floats) -> tuple[int, int]:
    there = ~np.isnan(ends).any(axis=2)
    inside = (ends[:, :, 0] <= truth) & (truth <= ends[:, :, 1])
    return int((inside & there).sum()), int(there.sum())


def summaries(lines: Iterable[dict[str, Any]]) -> list[Summary]:
    """Return the figures of all cells, in the order of the tables."""
    from benchmarks.regression_tables_data import NAMES

    cells: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        cells.setdefault(line["cell"], []).append(line)
    found = [made for cell, held in cells.items() if (made := sum_up(cell, held))]

    def place(row: Summary) -> tuple[int, float, float]:
        name, tau, epsilon = row.cell.split(":")
        return NAMES.index(name), float(tau), float(epsilon)

    return sorted(found, key=place)


def _part(held: tuple[int, int]) -> str:
    return f"{_share(held[0] / held[1])} ({held[1]:,})" if held[1] else "none given"


def _share(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}".removeprefix("0") if value < 1 else "1"


def row_of(row: Summary) -> tuple[str, ...]:
    """Return a row of the table as it is read."""
    name, tau, epsilon = row.cell.split(":")
    told = f"{_share(row.told)} of {row.known}" if row.known else "none could be"
    length = "" if np.isnan(row.length) else f"{row.length:.2f}"
    return (
        name, tau.removeprefix("0"), epsilon, f"{row.people:,}", str(row.p), str(row.fits), _share(row.given),
        _part(row.covered), _part(row.own), length, told, "" if np.isnan(row.error) else f"{row.error:.2f}",
    )  # fmt: skip


def markdown(lines: Iterable[dict[str, Any]]) -> str:
    """Return the table, and a line that pools it."""
    rows = summaries(lines)
    table = [HEADERS, ("---",) * len(HEADERS), *map(row_of, rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in table) + "\n\n" + pooled(rows)


def pooled(rows: Sequence[Summary]) -> str:
    """Say what all cells say together."""
    held, all_given = (sum(row.covered[at] for row in rows) for at in range(2))
    could = sum(row.known * row.fits for row in rows)
    told = sum(row.told * row.known * row.fits for row in rows if row.known)
    covered = (
        f"of {all_given:,} intervals from people drawn anew {held / all_given:.3f} held the exact fit"
        if all_given
        else "no interval was given"
    )
    found = f"of {could:,} coefficients that could be told from zero {told / could:.3f} were" if could else ""
    return f"All cells together: {'; '.join(filter(None, (covered, found)))}."


def show(lines: Iterable[dict[str, Any]]) -> None:
    """Print the table."""
    print(markdown(lines))


def into_page(page: Path, table: str) -> None:
    """Put the table between its marks."""
    text = page.read_text()
    head, rest = text.split(BEGIN)
    page.write_text(f"{head}{BEGIN}\n{table}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    made = markdown(read_lines(Path(sys.argv[1])))
    if len(sys.argv) > 2:
        into_page(Path(sys.argv[2]), made)
    else:
        print(made)
