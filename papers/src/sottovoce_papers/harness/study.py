"""A study: items chosen, cells run or taken from what is kept, and each item's rows beside its print."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from sottovoce_papers.harness import runner
from sottovoce_papers.harness.cell import Cell, Row
from sottovoce_papers.harness.compare import Number, compared
from sottovoce_papers.harness.item import Item


@dataclass(frozen=True)
class Outcome:
    """An item with what was found; ``skipped`` says why it could not be run (then there are no rows)."""

    item: Item
    rows: list[Row]
    numbers: list[Number]
    replications: int
    skipped: str = ""


def missing_data(item: Item, data: Path | None) -> str:
    """Say which data set an item needs that is not there; empty if it has all."""
    absent = [name for name in item.data if data is None or not (data / name).is_dir()]
    if not absent:
        return ""
    return f"needs the data set {' and '.join(absent)}: name its folder by --data or SOTTOVOCE_DATA"


def reproduce(
    asked: Sequence[Item],
    folder: Path,
    data: Path | None = None,
    *,
    scale: runner.Scale = "full",
    replications: int | None = None,
    seed: int = 1,
    jobs: int = 1,
    begun: Callable[[runner.Plan], None] | None = None,
    progress: Callable[[Cell, float], None] | None = None,
) -> list[Outcome]:
    """Run some items and compare them with the print.

    Parameters
    ----------
    asked
        Tables and figures.
    folder
        Where finished cells are kept.
    data
        The folder of real data sets; items that need one which is not there are skipped, and say so.
    scale, replications
        How many replications: the paper's own number, a tenth, or a number for all.
    seed
        The seed of the study; every cell's own follows from it and from what the cell is.
    jobs
        How many processes; the numbers do not depend on it.
    begun
        Called once with the plan, before anything is run.
    progress
        Called with every finished cell and its seconds.
    """
    reasons = [missing_data(item, data) for item in asked]
    runnable = [item for item, reason in zip(asked, reasons, strict=True) if not reason]
    planned = runner.plan(runnable, scale=scale, replications=replications, seed=seed)
    if begun is not None:
        begun(planned)
    found = runner.run_cells(planned.cells.values(), folder, data, jobs=jobs, costs=planned.costs, progress=progress)
    outcomes = []
    for item, reason in zip(asked, reasons, strict=True):
        if reason:
            outcomes.append(Outcome(item, [], [], 0, reason))
            continue
        keys = planned.of_item[item.paper, item.name]
        rows = derived(item, [row for key in keys for row in found[key]])
        often = max((planned.cells[key].replications for key in keys), default=0)
        outcomes.append(Outcome(item, rows, compared(item, rows), often))
    return outcomes


def derived(item: Item, rows: list[Row]) -> list[Row]:
    """Return the rows of the item's table: those of its cells, or what a function of its own makes of them."""
    if not item.derive:
        return rows
    module, _, function = item.derive.partition(":")
    made: list[Row] = getattr(import_module(f"sottovoce_papers.recipes.{module}"), function)(rows)
    return made
