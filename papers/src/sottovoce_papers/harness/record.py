"""What was found, as a CSV file beside the print: one line a number, with its error and its replications."""

import csv
from collections.abc import Sequence
from pathlib import Path

from sottovoce_papers.harness.cell import Row, plain
from sottovoce_papers.harness.item import Item
from sottovoce_papers.harness.measure import Measure


def record(item: Item, rows: Sequence[Row], path: Path | None = None) -> Path:
    """Write an item's numbers; curves are left out."""
    target = item.ours_file if path is None else path
    keys = _keys(item, rows)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w", newline="", encoding="utf-8") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow([*keys, "quantity", "value", "error", "replications"])
        for row in rows:
            places = [plain(row.where[key]) if key in row.where else "" for key in keys]
            for quantity, measure in row.measures.items():
                writer.writerow([*places, quantity, f"{measure.value:.6g}", f"{measure.error:.3g}", measure.n])
    return target


def recorded(item: Item) -> list[Row]:
    """Return the rows that were recorded of an item, without curves; none if there is no record."""
    if not item.ours_file.exists():
        return []
    rows: dict[tuple[tuple[str, str], ...], Row] = {}
    with item.ours_file.open(newline="", encoding="utf-8") as lines:
        for line in csv.DictReader(lines):
            quantity = line.pop("quantity")
            measure = Measure(float(line.pop("value")), float(line.pop("error")), int(line.pop("replications")))
            where = {key: text for key, text in line.items() if text}
            rows.setdefault(tuple(where.items()), Row(dict(where), {}, {})).measures[quantity] = measure
    return list(rows.values())


def _keys(item: Item, rows: Sequence[Row]) -> list[str]:
    """Return the columns that say where a number stands: those of the table first."""
    first = [*item.rows, item.columns, "reading"]
    seen = {key: None for row in rows for key in row.where}
    return [key for key in first if key in seen] + [key for key in seen if key not in first]
