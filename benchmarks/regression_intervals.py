"""Coverage and length of the default regression's intervals in many cells: a table, and a JSON file to go on from.

A run asks everybody of the largest number of people; estimates on the way count for the smaller ones. What a cell and a
part of its replications came to is kept in the file, so that a run that is broken off goes on where it was.
"""

import json
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from benchmarks.regression_interval_cells import CELLS, IntervalCell
from sottovoce.client.regression.rows import Rows
from sottovoce.core.arrays import Floats
from sottovoce.core.errors import Infeasible
from sottovoce.local.regression.dithered import DitheredRun
from sottovoce.server.regression.dithered.fit import DETERMINED, DitheredFit
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.regression.default import sandwich

T = TypeVar("T")
LEVEL, Z = 0.95, 1.959964
PEOPLE = (30_000, 100_000, 300_000)
PART = 8  # replications that are kept together
LONGEST = 540.0  # seconds after which no part is begun any more


class Task(NamedTuple):
    """A part of a cell's replications."""

    cell: IntervalCell
    people: tuple[int, ...]
    first: int
    runs: int
    seed: int

    @property
    def key(self) -> str:
        """Return the name of the part in the file."""
        return f"{self.cell.name}|{','.join(map(str, self.people))}|{self.seed}|{self.first}+{self.runs}"


@lru_cache(maxsize=64)
def oracle(cell: IntervalCell) -> Floats:
    """Return the standard errors of one person's worth, the slope known."""
    return np.asarray(np.sqrt(np.diag(sandwich(cell.setting))))


def replicate(task: Task) -> list[list[list[float]]]:
    """Return, for each replication and number of people, what `_kept` keeps of it."""
    setting, found = task.cell.setting, []
    study = setting.study()
    for die in dice(task.seed).split(task.first + task.runs)[task.first :]:
        run, generator, rows = DitheredRun(study), die.generator(), []
        for n in task.people:
            features, response = setting.design.sample(generator, n - run.people, setting.tau)
            run.ask(Rows(np.ascontiguousarray(features), response), die, shuffle=False)
            rows.append(_kept(run.estimate(), setting.design.beta))
        found.append(rows)
    return found


def _kept(fit: DitheredFit, beta: Floats) -> list[float]:
    """Return the error of the point, whether the ellipsoid covers, and of each coefficient interval and doubt."""
    kept = [
        float(np.linalg.norm(fit.point[0] - beta)),
        _or_nothing(lambda: float(fit.ellipsoid(0, LEVEL).contains(beta))),
    ]
    for axis in np.eye(len(beta)):
        low, high = fit.interval(0, axis, LEVEL)
        kept += [low, high, fit.doubt(0, axis) if fit.determined(0, axis) else max(fit.doubt(0, axis), 1.0)]
        kept.append(fit.needed(0, axis))
    return kept


def _or_nothing(what: Callable[[], T], nothing: Any = np.nan) -> T | Any:
    """Return what is told, or nothing where it is refused."""
    try:
        return what()
    except Infeasible:
        return nothing


class Row(NamedTuple):
    """A cell at one number of people."""

    cell: str
    people: int
    runs: int
    fse: float  # the largest oracle standard error x density
    given: float  # part of the coefficients that are determined
    covered: float  # of those
    intervals: int
    coverage: float  # of all intervals that are given
    length: float  # median over the oracle's, of those that are determined
    decile: float  # its ninth decile
    longest: float  # median over the oracle's, of the others
    refused: float  # part of the coefficients whose interval has no ends
    doubt: float
    needed: float  # ninth over first decile of the people said to be needed, where they are
    error: float
    ellipsoid: float


def summed(cell: IntervalCell, people: int, kept: Floats) -> Row:
    """Sum up the replications of a cell at one number of people."""
    design, tau = cell.setting.design, cell.tau
    beta, errors = design.beta, oracle(cell) / np.sqrt(people)
    low, high, doubt, needed = (kept[:, 2 + part :: 4] for part in range(4))
    inside, lengths, sure = (low <= beta) & (beta <= high), (high - low) / (2 * Z * errors), doubt <= DETERMINED
    wanted = needed[~sure]
    return Row(
        cell.name,
        people,
        len(kept),
        float(errors.max() * design.density(tau)),
        float(sure.mean()),
        _of(np.mean, inside[sure]),
        int(sure.sum()),
        _of(np.mean, inside[np.isfinite(low)]),
        _of(np.median, lengths[sure]),
        _of(lambda part: np.quantile(part, 0.9), lengths[sure]),
        _of(np.median, lengths[~sure & np.isfinite(low)]),
        float(np.isinf(low).mean()),
        float(np.median(doubt)),
        _of(lambda part: np.quantile(part, 0.9) / np.quantile(part, 0.1), wanted),
        float(kept[:, 0].mean()),
        _of(np.nanmean, kept[:, 1][~np.isnan(kept[:, 1])]),
    )


def _of(what: Any, values: Any) -> float:
    return float(what(values)) if values.size else float("nan")


HEAD = (
    "| design, tau, eps | n | R | f se | determined | coverage (intervals) | of all | median length (90 %) | "
    "of the others | refused | doubt | N 90/10 | error | ellipsoid |"
)


def line(row: Row) -> str:
    """Write a row of the table."""
    return (
        f"| {row.cell} | {row.people:,} | {row.runs} | {row.fse:.3f} | {row.given:.2f} | {row.covered:.3f} "
        f"({row.intervals}) | {row.coverage:.3f} | {row.length:.2f} ({row.decile:.2f}) | {row.longest:.2f} | "
        f"{row.refused:.2f} | {row.doubt:.2f} | {row.needed:.1f} | {row.error:.4f} | {row.ellipsoid:.3f} |"
    )


def chosen(names: Sequence[str]) -> list[IntervalCell]:
    """Return the cells of these names, or of these designs; of none: all."""
    return [cell for cell in CELLS if not names or cell.name in names or cell.design in names]


def table(found: dict[str, Any], tasks: Iterable[Task]) -> list[Row]:
    """Sum up what is known of the tasks."""
    cells: dict[IntervalCell, list[Any]] = {}
    sizes: tuple[int, ...] = ()
    for task in tasks:
        cells.setdefault(task.cell, []).extend(found.get(task.key, []))
        sizes = task.people
    return [
        summed(cell, people, np.array([run[at] for run in runs]))
        for cell, runs in cells.items()
        if runs
        for at, people in enumerate(sizes)
    ]


def run(
    replications: int = 200,
    jobs: int = 1,
    seed: int = 501,
    names: Sequence[str] = (),
    out: Path | None = None,
    people: Sequence[int] = PEOPLE,
    seconds: float = LONGEST,
) -> None:
    """Run the cells that the file does not know yet, as far as the time allows, and print the table of all."""
    tasks = [
        Task(cell, tuple(people), first, min(PART, replications - first), seed)
        for first in range(0, replications, PART)
        for cell in chosen(names)
    ]
    found: dict[str, Any] = json.loads(out.read_text()) if out is not None and out.exists() else {}
    missing, begun = [task for task in tasks if task.key not in found], time.monotonic()
    with ProcessPoolExecutor(jobs) as pool:
        waiting: set[tuple[Future[Any], Task]] = set()
        while missing or waiting:
            while missing and len(waiting) < jobs and time.monotonic() < begun + seconds:
                task = missing.pop(0)
                future = pool.submit(replicate, task)
                waiting.add((future, task))
            if not waiting:
                break
            done = next(as_completed([future for future, _ in waiting]))
            for future, task in [each for each in waiting if each[0] is done]:
                found[task.key] = future.result()
                waiting.discard((future, task))
                if out is not None:
                    _write(out, found)
    rows = table(found, tasks)
    print(f"\nIntervals of the default, level .95, seed {seed}; {len(missing)} of {len(tasks)} parts are still to come")
    print(HEAD)
    print("|" + "---|" * HEAD.count(" |"))
    for row in rows:
        print(line(row), flush=True)
    if out is not None:
        _write(out.with_suffix(".rows.json"), [row._asdict() for row in rows])


def _write(path: Path, value: Any) -> None:
    """Write a file whole or not at all."""
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(value))
    beside.replace(path)
