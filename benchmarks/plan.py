"""Planned over obtained widths: a grid of methods, levels, budgets, sizes, sites alike and unlike, and families.

The prediction was tuned on the first families and is verified on the others. A cell's width is planned from the true
density at its quantile, and again from the true standard deviation as of normal values, which is what a planner guesses
who knows no shape.
"""

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np

from benchmarks.plan_cells import METHODS, TUNED, VERIFIED, PlanCell, PlannedFamily, obtained
from sottovoce.core.errors import Infeasible, SearchFailed
from sottovoce.planner.guess import PublicGuess
from sottovoce.server.quantile.expected import expected_reach, is_far
from sottovoce.sim.randomness import dice

NEAR = 0.15  # of the median width obtained, that the plan may miss
TAUS, EPSILONS, SIZES = (0.1, 0.5, 0.9, 0.99), (0.5, 1.0, 2.0, 4.0), (5_000, 50_000, 500_000)


class Judged(NamedTuple):
    """A cell: planned widths by density and by standard deviation, the median obtained, and how often it was open."""

    cell: str
    family: str
    method: str
    tau: float
    by_density: float
    by_sd: float
    median: float
    quartiles: tuple[float, float]
    step: float

    @property
    def ratio(self) -> float:
        """Return planned over obtained; not a number where either is open."""
        known = math.isfinite(self.by_density) and math.isfinite(self.median) and self.median > 0
        return self.by_density / self.median if known else math.nan

    @property
    def near(self) -> bool:
        """Tell whether the plan is near: within 15 %, or within one step of records that have one."""
        if math.isinf(self.by_density) or math.isinf(self.median):
            return self.by_density == self.median
        return abs(self.by_density - self.median) <= max(NEAR * self.median, self.step)


def cells(families: Sequence[PlannedFamily]) -> Iterator[PlanCell]:
    """Yield half of the grid, every second cell of each line in turn; half of the certified ones have bounds."""
    place = 0
    for at, family in enumerate(families):
        for method in METHODS:
            for i, tau in enumerate(TAUS):
                for j, epsilon in enumerate(EPSILONS):
                    for k, records in enumerate(SIZES):
                        if (at + i + j + k) % 2 == 0:
                            place += 1
                            bounded = method != "staged" and place % 4 >= 2
                            yield PlanCell(family, method, tau, epsilon, records, place % 2 == 1, bounded)


def judge(task: tuple[int, int, int]) -> Judged | None:
    """Run a cell some times; None where the plan refuses it."""
    group, index, runs = task
    cell = list(cells((TUNED, VERIFIED)[group]))[index]
    try:
        plan = cell.plan()
    except Infeasible:
        return None
    generator, widths = dice(60_000 + 10_000 * group + index).generator(), []
    for run in range(runs):
        try:
            low, high = obtained(cell, plan, generator, 1_000 * index + run).interval
        except SearchFailed:
            low, high = -math.inf, math.inf
        if cell.bounded:
            low, high = max(low, cell.bounds[0]), min(high, cell.bounds[1])
        widths.append(high - low if high - low < 30 * cell.family.sd else math.inf)  # that far is open
    reach = expected_reach(plan, cell.method, 0.95)
    ends = (plan.tau, *reach)
    density, sd = (PublicGuess(kind, size) for kind, size in (("density", cell.density), ("sd", cell.family.sd)))
    lower, median, upper = np.quantile(widths, [0.25, 0.5, 0.75], method="nearest")
    if not cell.bounded and is_far(plan, cell.method, *reach):
        ends = (plan.tau, 0.0, 1.0)
    planned, by_sd = (_in_values(guess, ends, cell) for guess in (density, sd))
    facts = (cell.name, cell.family.name, cell.method, cell.tau)
    return Judged(*facts, planned, by_sd, float(median), (float(lower), float(upper)), cell.family.step)


def _in_values(guess: PublicGuess, ends: tuple[float, float, float], cell: PlanCell) -> float:
    """Return a planned width; an end that is open within bounds is the bound."""
    width = guess.told(*ends).value
    return min(width, cell.bounds[1] - cell.bounds[0]) if cell.bounded else width


def judged(group: int, runs: int, jobs: int, part: int = 0, parts: int = 1) -> list[Judged]:
    """Judge the cells of the families that were tuned on (0) or not (1), or a part of them."""
    tasks = [(group, index, runs) for index in range(part, len(list(cells((TUNED, VERIFIED)[group]))), parts)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        return [each for each in pool.map(judge, tasks, chunksize=4) if each is not None]


def report(title: str, found: Sequence[Judged]) -> None:
    """Print how often the plan was near, and every cell where it was not."""
    print(f"\n{title}: {len(found)} cells, {sum(each.near for each in found) / len(found):.0%} near")
    print(
        f"{'method':>10} {'tau':>5} {'cells':>6} {'near':>6} {'open':>5} {'median':>7} {'least':>6} {'most':>6}   by sd"
    )
    for method in METHODS:
        for tau in TAUS:
            own = [each for each in found if (each.method, each.tau) == (method, tau)]
            ratios = [each.ratio for each in own if math.isfinite(each.ratio)]
            if not ratios:
                continue
            wrong = [each.by_sd / each.median for each in own if math.isfinite(each.ratio)]
            lost = sum(not math.isfinite(each.ratio) for each in own)
            told = f"{np.median(ratios):>7.2f} {min(ratios):>6.2f} {max(ratios):>6.2f}"
            near = sum(each.near for each in own) / len(own)
            print(
                f"{method:>10} {tau:>5g} {len(own):>6} {near:>6.0%} {lost:>5} {told}   "
                f"{min(wrong):.2f} to {max(wrong):.2f}"
            )
    print("   not near: planned over obtained, and the middle half of the runs over their median")
    for each in sorted((each for each in found if not each.near), key=lambda each: (each.method, each.cell)):
        spread = [end / each.median if 0 < each.median < math.inf else math.nan for end in each.quartiles]
        told = f"{each.ratio:.2f}" if math.isfinite(each.ratio) else f"planned {each.by_density:.3g}, {each.median:.3g}"
        print(f"   {each.cell:<66} {told:>6}   ({spread[0]:.2f} to {spread[1]:.2f})")


def run(runs: int, jobs: int) -> None:
    """Print the report for both groups of families."""
    report("Families by which the prediction was tuned", judged(0, runs, jobs))
    report("Families by which it was not", judged(1, runs, jobs))
