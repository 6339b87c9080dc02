"""What a study leaves behind beside its report: one CSV file per item, and on demand ours beside the print."""

import csv
from collections.abc import Sequence
from pathlib import Path

from sottovoce.core.errors import BadInput
from sottovoce_papers.harness.cell import Row, plain
from sottovoce_papers.harness.item import Item
from sottovoce_papers.harness.measure import Measure
from sottovoce_papers.harness.study import Outcome


def make(folder: Path) -> None:
    """Make the folder of a study before anything is run.

    Raises
    ------
    BadInput
        If it cannot be made, or is a file.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise BadInput(f"the folder {folder} cannot be made ({reason}); give another by --out.") from None


def write(outcomes: Sequence[Outcome], folder: Path) -> list[Path]:
    """Write every item's numbers to ``folder/paper/item.csv``."""
    return [
        _recorded(outcome, folder / outcome.item.paper / f"{outcome.item.name}.csv")
        for outcome in outcomes
        if not outcome.skipped
    ]


def record_all(outcomes: Sequence[Outcome]) -> list[Path]:
    """Write every item's numbers beside its print."""
    return [_recorded(outcome, outcome.item.ours_file) for outcome in outcomes if not outcome.skipped]


def named(paths: Sequence[Path], folder: Path) -> list[str]:
    """Say what was written where: each file of a few, the folder of many."""
    tables = [path for path in paths if path.suffix == ".csv"]
    few = len(tables) <= 3
    said = [f"Numbers:  {path}" for path in tables] if few else [f"Numbers:  {len(tables)} files, in {folder}"]
    return said + [f"Report:   {path}" for path in paths if path.suffix == ".html"]


def _recorded(outcome: Outcome, path: Path) -> Path:
    try:
        return record(outcome.item, outcome.rows, path)
    except OSError as error:
        raise BadInput(
            f"{path} cannot be written ({error.strerror or error}); make room, or change its folder."
        ) from None


def record(item: Item, rows: Sequence[Row], path: Path | None = None) -> Path:
    """Write an item's numbers, one line each with its error and its replications; curves are left out."""
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
