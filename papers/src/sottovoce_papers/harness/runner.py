"""Cells run on a few processes: the longest first, finished ones kept, the same numbers whatever the number of jobs."""

import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from sottovoce import __version__
from sottovoce_papers import recipes
from sottovoce_papers.harness import cache
from sottovoce_papers.harness.cell import Cell, Row
from sottovoce_papers.harness.item import Item

Scale = Literal["small", "full"]


class Plan(NamedTuple):
    """The cells of some items, each once, and a guess of the seconds each takes."""

    cells: dict[str, Cell]
    costs: dict[str, float]
    of_item: dict[tuple[str, str], list[str]]


def plan(asked: Sequence[Item], *, scale: Scale = "full", replications: int | None = None, seed: int = 1) -> Plan:
    """Return what is to be run; ``scale`` small is a tenth of the replications, ``replications`` the same for all."""
    cells, costs, of_item = {}, {}, {}
    for item in asked:
        keys = []
        for recipe, setting, full in item.settings():
            cell = Cell(recipe, dict(setting), times(full, scale, replications), seed, version_of(recipe))
            keys.append(cell.key)
            if cell.key not in cells:
                cells[cell.key] = cell
                costs[cell.key] = recipes.cost(recipe, setting, cell.replications)
        of_item[item.paper, item.name] = keys
    return Plan(cells, costs, of_item)


def times(full: int, scale: Scale, replications: int | None) -> int:
    """Return how often a cell is run; what is computed and not simulated (0) stays so.

    Examples
    --------
    >>> times(1000, "small", None), times(20, "small", None), times(0, "small", 50), times(1000, "full", 50)
    (100, 2, 0, 50)
    """
    if full == 0:
        return 0
    if replications is not None:
        return replications
    return full if scale == "full" else math.ceil(full / 10)


def version_of(recipe: str) -> str:
    """Return the version of the package and of a recipe."""
    return f"{__version__}/{recipes.find(recipe).VERSION}"


def run_cells(
    cells: Iterable[Cell],
    folder: Path,
    data: Path | None,
    *,
    jobs: int = 1,
    costs: dict[str, float] | None = None,
    progress: Callable[[Cell, float], None] | None = None,
) -> dict[str, list[Row]]:
    """Run the cells that are not kept yet; return the rows of all.

    Parameters
    ----------
    cells
        What is to be run.
    folder
        Where finished cells are kept.
    data
        The folder of real data sets, or None.
    jobs
        How many processes.
    costs
        About how long each takes, to start the longest first.
    progress
        Called with every cell, finished now or before, and the seconds it took.
    """
    found: dict[str, list[Row]] = {}
    left = []
    for cell in cells:
        before = cache.load(folder, cell)
        if before is None:
            left.append(cell)
            continue
        found[cell.key] = before.rows
        if progress is not None:
            progress(cell, before.seconds)
    left.sort(key=lambda cell: -(costs or {}).get(cell.key, 1.0))
    for cell, rows, seconds in _finished(left, data, jobs):
        cache.save(folder, cell, rows, seconds)
        found[cell.key] = rows
        if progress is not None:
            progress(cell, seconds)
    return found


def _finished(cells: list[Cell], data: Path | None, jobs: int) -> Iterable[tuple[Cell, list[Row], float]]:
    if jobs == 1 or len(cells) < 2:
        for cell in cells:
            yield _timed(cell, data)
        return
    from joblib import Parallel, delayed

    # One thread a process: the recipes are written for one core, and so is their memory.
    with_one_thread = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    os.environ.update(dict.fromkeys(with_one_thread, "1"))
    try:
        pool = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1, pre_dispatch=2 * jobs)
        yield from pool(delayed(_timed)(cell, data) for cell in cells)
    finally:
        for name, value in with_one_thread.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _timed(cell: Cell, data: Path | None) -> tuple[Cell, list[Row], float]:
    begun = time.perf_counter()
    rows = recipes.run(cell, data)
    return cell, rows, time.perf_counter() - begun
