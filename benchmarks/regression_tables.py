"""The default regression on real tables, called as their users would, against exact fits: what comes at real size.

A cell is a table, a level and a budget. Each replication asks the table's own rows, where only privacy is random, and
people drawn from them with replacement, a population of which the exact fit is the truth. What is found is appended to
a file, a line of JSON a fit; a further run fills in what is missing, so that slices of minutes add up.
"""

import json
import tempfile
import time
import warnings
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import sottovoce as sv
from benchmarks.regression_tables_data import NAMES, Table, read_table, reason
from benchmarks.regression_tables_exact import errors, exact, hessian, open_covariance, oracle_covariance
from sottovoce.core.arrays import Floats
from sottovoce.core.errors import Infeasible
from sottovoce.server.regression.design import Design, choose
from sottovoce.server.regression.result import RegressionResult

BUDGETS = (1.0, 2.0, 4.0, 8.0)
HOW = ("own", "drawn")  # the rows of the table themselves, or people drawn from them with replacement
OUTPUT = Path("benchmarks/results/regression-tables.jsonl")


class Cell(NamedTuple):
    """A table, a level and a budget; written flights:0.75:2."""

    table: str
    tau: float
    epsilon: float

    def __str__(self) -> str:
        return f"{self.table}:{self.tau:g}:{self.epsilon:g}"


class Task(NamedTuple):
    """A fit to do, or with ``replicate`` -1 what the cell's table says in the open."""

    cell: Cell
    how: str
    replicate: int

    @property
    def key(self) -> str:
        return f"{self.cell} {self.how} {self.replicate}"


def all_cells() -> list[Cell]:
    """Return the cells of the tables that can be read, and say which cannot."""
    found = []
    for name in NAMES:
        if why := reason(name):
            print(f"{name} is left out: {why}.")
            continue
        found += [Cell(name, tau, epsilon) for tau in read_table(name).taus for epsilon in BUDGETS]
    return found


def chosen(patterns: Sequence[str]) -> list[Cell]:
    """Return the cells that begin with one of the patterns, flights or flights:0.75; without any, all."""
    cells = all_cells()
    return [c for c in cells if not patterns or any(f"{c}:".startswith(f"{pattern}:") for pattern in patterns)]


def fit(table: Table, tau: Any, epsilon: float, seed: int, frame: Any = None) -> tuple[RegressionResult, Design]:
    """Call the regression as a user would: a data frame with complete rows, or a file where people have several."""
    given: dict[str, Any] = {"bounds": dict(table.bounds), "levels": dict(table.levels), "clip": True}
    given["two_valued"] = list(table.two_valued)
    given |= {**table.guesses, "randomness": sv.sim.dice(seed)}
    if table.person is None:
        rows = table.complete if frame is None else frame
        m = sv.PrivateQuantileRegressor(tau, epsilon, **given).fit(rows[table.features], rows[table.response])
        return m.result_, m.design_
    from sottovoce.api.regression.file import regression_study

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{table.name}.parquet"
        (table.frame if frame is None else frame)[[table.person, table.response, *table.features]].to_parquet(path)
        study = regression_study(
            path, table.response, table.features, person=table.person, missing="drop", tau=tau, epsilon=epsilon, **given
        )
        return study.run(), study.design


def drawn(table: Table, seed: int) -> Any:
    """Draw as many people as there are, with replacement; each brings all their rows."""
    generator, frame = sv.sim.dice(seed).generator(), table.complete
    if table.person is None:
        return frame.iloc[generator.integers(0, len(frame), len(frame))]
    people = frame.groupby(table.person).indices
    held: list[npt.NDArray[np.int64]] = list(people.values())
    which = generator.integers(0, len(held), len(held))
    rows = np.concatenate([held[person] for person in which])
    return frame.iloc[rows].assign(
        **{table.person: np.repeat(np.arange(len(which)), [len(held[person]) for person in which])}
    )


def seed_of(task: Task) -> int:
    """Return the seed of a task, its own."""
    return zlib.crc32(task.key.encode())


def reference(cell: Cell) -> dict[str, Any]:
    """Return the exact fit, its standard errors, and those of the private channel at its best."""
    table = read_table(cell.table)
    x, y, weights = table.design()
    beta, to_raw = exact(x, y, weights, cell.tau), table.columns.to_raw
    slope = hessian(x, y, weights, beta, cell.tau)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            channel = fit(table, cell.tau, cell.epsilon, seed=1)[1].channels[0]
        except Infeasible:  # refused before anybody was asked: the channel that would have been taken
            channel = choose(cell.tau, x.shape[1] - 1, cell.epsilon).channel
    return {
        "names": ["intercept", *table.columns.names],
        "people": round(float(weights.sum())),
        "letters": channel.letters,
        "exact": (to_raw @ beta).tolist(),
        "open": errors(open_covariance(x, weights, slope, cell.tau), to_raw).tolist(),
        "oracle": errors(oracle_covariance(x, weights, slope, channel), to_raw).tolist(),
    }


def measured(result: RegressionResult, level: int = 0) -> dict[str, Any]:
    """Return coefficients, intervals and refusals of a level of a fit."""
    try:
        ends, reasons = result.intervals(level, 0.95)
    except Infeasible as refusal:
        ends, reasons = np.full((len(result.names), 2), np.nan), {"all": str(refusal)}
    ends = np.where(np.isfinite(ends), ends, np.nan)  # an interval without ends is none
    determined = getattr(result, "determined", None)
    return {
        "coef": result.raw[level].tolist(),
        "low": ends[:, 0].tolist(),
        "high": ends[:, 1].tolist(),
        "determined": None if determined is None else np.asarray(determined)[level].tolist(),
        "reasons": reasons,
    }


def do(task: Task) -> dict[str, Any]:
    """Do a task and return its line."""
    began = time.perf_counter()
    if task.replicate < 0:
        return {"key": task.key, "cell": str(task.cell), **reference(task.cell)}
    table, seed = read_table(task.cell.table), seed_of(task)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        frame = drawn(table, seed + 1) if task.how == "drawn" else None
        began = time.perf_counter()
        try:
            found = measured(fit(table, task.cell.tau, task.cell.epsilon, seed, frame)[0])
        except Infeasible as refusal:
            found = {"refused": str(refusal)}
    seconds, said = time.perf_counter() - began, sorted({str(each.message) for each in heard})
    whose = {"key": task.key, "cell": str(task.cell), "how": task.how, "replicate": task.replicate}
    return {**whose, "seconds": round(seconds, 3), **found, "warnings": said}


def tasks(cells: Sequence[Cell], replications: int) -> Iterator[Task]:
    """Return what is to be done: first the open fits, then a round of all cells after the other."""
    yield from (Task(cell, "open", -1) for cell in cells)
    for replicate in range(replications):
        yield from (Task(cell, how, replicate) for cell in cells for how in HOW)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return what earlier runs found, each line once; a last one that broke off is left out."""
    lines: dict[str, dict[str, Any]] = {}
    for text in path.read_text().splitlines() if path.exists() else ():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        lines[line["key"]] = line
    return list(lines.values())


def run(
    cells: Sequence[str] = (), replications: int = 20, jobs: int = 1, output: Path = OUTPUT, minutes: float = 1e9
) -> None:
    """Measure what is missing of the cells, for so many minutes at most, and print what is there."""
    from benchmarks.regression_tables_page import show

    until, wanted = time.monotonic() + 60 * minutes, chosen(cells)
    done = {line["key"] for line in read_lines(output)}
    missing = [task for task in tasks(wanted, replications) if task.key not in done]
    output.parent.mkdir(parents=True, exist_ok=True)
    warm()
    with output.open("a") as file, ProcessPoolExecutor(jobs, get_context("fork")) as pool:
        if file.tell() and not output.read_text().endswith("\n"):
            file.write("\n")
        for part in _slices(missing, 8 * jobs):
            if time.monotonic() > until:
                break
            for future in as_completed([pool.submit(do, task) for task in part]):
                file.write(json.dumps(future.result()) + "\n")
                file.flush()
    lines = read_lines(output)
    left = len(missing) - sum(line["key"] in {task.key for task in missing} for line in lines)
    print(f"{len(lines):,} lines in {output}; {left:,} fits are left of {replications} replications")
    show([line for line in lines if line["cell"] in set(map(str, wanted))])


def warm() -> None:
    """Compile the loops once, before processes are forked."""
    draw = sv.sim.dice(1).generator()
    z: Floats = draw.uniform(-1, 1, (3000, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        m = sv.PrivateQuantileRegressor(0.5, 4.0, randomness=sv.sim.dice(1)).fit(z, z[:, 0] + draw.normal(size=3000))
        measured(m.result_)


def _slices(items: Sequence[Task], size: int) -> Iterator[Sequence[Task]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
