"""What was found, as a CSV file beside the print: one line a number, with its error, seedless and machineless."""

import csv
from collections.abc import Sequence
from pathlib import Path

from sottovoce.reproduce.cell import Row, plain
from sottovoce.reproduce.item import Item


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
                writer.writerow([*places, quantity, f"{measure.value:.6g}", f"{measure.error:.2g}", measure.n])
    return target


def _keys(item: Item, rows: Sequence[Row]) -> list[str]:
    """Return the columns that say where a number stands: those of the table first."""
    first = [*item.rows, item.columns, "reading"]
    seen = {key: None for row in rows for key in row.where}
    return [key for key in first if key in seen] + [key for key in seen if key not in first]
