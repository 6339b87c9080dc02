"""Intervals through a collector beside the library's own on the same populations, with the same people and budget.

Through the service .7 to 1.1 of those needed in a round come, and five in a hundred answer a round too late; what was
answered enters the estimate. In the library all answer as they are asked. Coverage is that of nominal .95.
"""

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import sottovoce as sv
from benchmarks.certified import spread
from benchmarks.collector_people import Clock, Draws, begun, gather
from benchmarks.ordinary_cells import KNOWN, UNSEEN
from sottovoce.core.errors import BadInput
from sottovoce.sim import dice

PEOPLE, ROWS_ASKED, LATE, LEVEL = 5000, 6000, 0.05, 0.95
POPULATIONS = {
    "reported ages": (0.5, (0.25, 0.75), [0, 130]),
    "incomes": (0.5, (0.5, 0.9), [0, 1_000_000]),
    "70 % zeros": (0.75, (0.5, 0.75), [0, 10_000]),
    "two kinds of sessions": (0.5, (0.3, 0.5), [0, 1000]),
}
METHODS = ("staged", "certified", "sequence", "levels")
FEATURES = {"age": [18, 90]}
ROWS = {"response": "wait", "tau": 0.5, "epsilon": 4.0, "features": FEATURES}
TRUTH = {"intercept": 5 + 6 * math.log(2), "age": 0.2}


class Interval(NamedTuple):
    """Whether an interval, or all that hold jointly, covered; its length, and how many reports it took."""

    covered: bool
    length: float
    reports: int
    away: float = 0.0


def _held(ends: list[Any], truths: list[float], bounds: Sequence[float], reports: int, away: float = 0.0) -> Interval:
    """Judge intervals that hold jointly; an open end counts as the bound."""
    whole = [
        (bounds[0] if low is None else max(low, bounds[0]), bounds[1] if high is None else min(high, bounds[1]))
        for low, high in ends
    ]
    covered = all(low <= truth <= high for (low, high), truth in zip(whole, truths, strict=True))
    return Interval(covered, float(np.mean([high - low for low, high in whole])), reports, away)


def quantile_runs(task: tuple[str, str, int, int]) -> list[tuple[Interval, Interval]]:
    """Run a cell so many times through the service and through the library."""
    name, method, runs, seed = task
    population = next(each for each in KNOWN + UNSEEN if each.name == name)
    tau, taus, bounds = POPULATIONS[name]
    levels = list(taus) if method == "levels" else [tau]
    truths = [population.quantile(each) for each in levels]
    terms: dict[str, Any] = {"tau": levels if method == "levels" else tau, "epsilon": 1.0, "bounds": bounds}
    terms["method"] = "staged" if method == "levels" else method
    given = {"name": "coverage", "people": PEOPLE, "quantile": terms, "rounds": {"grace": 0, "deadline": 100}}
    found = []
    for run in range(runs):
        source, clock = dice(seed + run), Clock()
        generator = source.generator()
        with begun(given, seed + run, clock) as (studies, one):
            told = gather(studies, one, clock, partial(population.sample, generator), generator, LATE)
            said = one.estimate(0)
        ends = [each["interval"] for each in said["levels"]]
        ours = _held(ends, truths, bounds, said["reports"], told["away"] / told["asked"])
        values = population.sample(generator, PEOPLE)
        options: dict[str, Any] = {"bounds": bounds, "randomness": source}
        if method == "levels":
            several = sv.federated_quantiles({"people": values}, levels, 1.0, method="staged", **options)
            ends, reports = list(several.intervals), sum(each.reports for each in several.results)
        else:
            result = sv.federated_quantile({"people": values}, tau, 1.0, method=method, **options)
            ends, reports = [result.interval], result.reports
        found.append((ours, _held(ends, truths, bounds, reports)))
    return found


def rows_of(generator: Draws, n: int) -> Any:
    """Draw rows, the response first: whole ages, and waits that grow with them, with an exponential rest."""
    age = generator.integers(18, 91, n).astype(float)
    return np.column_stack((5 + 0.2 * age + generator.exponential(6, n), age))


def regression_runs(task: tuple[int, int]) -> list[tuple[list[Any], list[Any]]]:
    """Run a regression so many times through the service and the library; return the coefficients' intervals."""
    runs, seed = task
    given = {"name": "coverage", "people": ROWS_ASKED, "regression": ROWS, "rounds": {"grace": 0, "deadline": 100}}
    found = []
    for run in range(runs):
        source, clock = dice(seed + run), Clock()
        generator = source.generator()
        with begun(given, seed + run, clock) as (studies, one):
            gather(studies, one, clock, partial(rows_of, generator), generator, LATE)
            level = one.estimate(0)["levels"][0]
        ours = [each["interval"] for each in level["coefficients"] or ()]
        rows = rows_of(generator, ROWS_ASKED)
        ends = np.array(list(FEATURES.values()), dtype=float)
        fit = sv.PrivateQuantileRegressor(tau=0.5, epsilon=4.0, bounds=ends, randomness=source)
        try:
            table = fit.fit(rows[:, 1:], rows[:, 0]).result_.tables(LEVEL)[0]
            theirs = [row.interval for row in table.values()]
        except BadInput:
            theirs = []
        found.append((ours, theirs))
    return found


def error(share: float, runs: int) -> float:
    """Return the binomial error of a share."""
    return math.sqrt(max(share * (1 - share), 1 / runs) / runs)


def line(name: str, ours: list[Interval], theirs: list[Interval]) -> str:
    """Return a row of the table: coverage of both, and the median length over the library's."""
    cells = []
    for found in (ours, theirs):
        share = float(np.mean([each.covered for each in found]))
        cells.append(f"{share:.3f} +- {error(share, len(found)):.3f}")
    lengths = [float(np.median([each.length for each in found])) for found in (ours, theirs)]
    reports = [float(np.mean([each.reports for each in found])) for found in (ours, theirs)]
    ratio = lengths[0] / lengths[1] if lengths[1] else math.nan
    used = f"{reports[0]:.0f} / {reports[1]:.0f}"
    return f"{name:36}{cells[0]:>18}{cells[1]:>18}{ratio:>8.2f}{used:>16}"


def split(runs: int, jobs: int) -> list[tuple[int, int]]:
    """Return how many runs each process does, and where it begins to count."""
    edges = np.linspace(0, runs, jobs + 1).astype(int).tolist()
    return [(stop - start, start) for start, stop in pairwise(edges)]


def quantiles(runs: int, jobs: int, methods: tuple[str, ...] = METHODS) -> None:
    """Print a row for each method and population."""
    tasks = [(name, method) for method in methods for name in POPULATIONS]
    parts = [
        (name, method, many, 10_000 * k + first)
        for k, (name, method) in enumerate(tasks)
        for many, first in split(runs, jobs)
    ]
    done = spread(quantile_runs, parts, jobs)
    for name, method in tasks:
        rows = [row for part, found in zip(parts, done, strict=True) if part[:2] == (name, method) for row in found]
        print(line(f"{method}, {name}", [row[0] for row in rows], [row[1] for row in rows]), flush=True)


def regression(runs: int, jobs: int) -> None:
    """Print a row for each coefficient, over the runs in which both sides tell an interval."""
    done = spread(regression_runs, [(many, 500_000 + first) for many, first in split(runs, jobs)], jobs)
    rows = [row for part in done for row in part]
    whole = [row for row in rows if all(len(side) == len(TRUTH) and None not in side for side in row)]
    for k, (name, truth) in enumerate(TRUTH.items()):
        sides: list[list[Interval]] = [[], []]
        for row in whole:
            for side, found in zip(row, sides, strict=True):
                low, high = side[k]
                found.append(Interval(low <= truth <= high, high - low, ROWS_ASKED))
        print(line(f"regression, {name} ({len(whole)} of {len(rows)})", *sides), flush=True)


def run(runs: int, jobs: int) -> None:
    """Print coverage through the service and of the library, the median length over the library's, and reports used."""
    print(f"\n{'':36}{'service':>18}{'library':>18}{'length':>8}{'reports':>16}")
    quantiles(runs, jobs)
    regression(runs, jobs)
