"""What others could do in the same runs: locally private Hoeffding sets, inverted on a grid of points.

Waudby-Smith, Wu and Ramdas (2023, arXiv:2202.08728) give intervals for the mean of a bounded variable under randomised
response: from n reports with rate R, the mean of (bit - (1 - R) / 2) / R plus or minus sqrt(log(1 / a) / (2 n)) / R,
with error a at each end. The bits "at most x" have the mean F(x), so that the records, divided evenly over the points
of a grid between public bounds, give a set for a quantile: above the last point where F < tau is shown, up to the first
where F >= tau is. Three ways to spend alpha on G points:

* union: an interval with two ends at every point, a = alpha / (2 G);
* one end: a point left of the quantile can only be wrong upwards and the others only downwards, so a = alpha / G;
* in order: walk from the left while F < tau is shown, and stop at the first point where it is not, then from the right
  alike. As F is monotone, the walk from the left can pass the quantile only at the first point not left of it, the
  other one only at the last point left of it: two errors, whatever G is, so a = alpha / 2.

The last way may also be repeated: a part of the records and of alpha for each stage, whose grid divides what the stage
before has left. That is not in their paper; it is here so that wide bounds do not decide the comparison. Their numbers
of points (and stages) are chosen cell by cell after the fact, to their advantage.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

import sottovoce as sv
from benchmarks.certified_populations import CASES, RATES, SIZES, Case
from sottovoce.core.arrays import Floats
from sottovoce_papers.simulation.families import Generator

ALPHA = 0.05
POINTS = (3, 5, 8, 12, 20, 32, 50, 80, 128, 200, 320, 500)
STAGES = (2, 3, 4, 6, 8)
FEW = 50  # points of a stage, where there are several
WAYS = ("union", "one end", "in order")

Function = Callable[[npt.ArrayLike], Floats]


def simulate(
    cdf: Function,
    tau: float,
    records: int,
    rate: float,
    bounds: tuple[float, float],
    rng: Generator,
    points: int = 32,
    stages: int = 1,
) -> tuple[float, float]:
    """Return one set (low, high] for a quantile."""
    low, high = simulate_many(cdf, tau, records, rate, bounds, rng, 1, points, stages)
    return float(low[0]), float(high[0])


def simulate_many(
    cdf: Function,
    tau: float,
    records: int,
    rate: float,
    bounds: tuple[float, float],
    rng: Generator,
    times: int,
    points: int,
    stages: int,
    way: str = "in order",
) -> tuple[Floats, Floats]:
    """Return the ends of many sets (low, high], each from records of its own."""
    low, high = (np.full(times, end, dtype=np.float64) for end in bounds)
    each = records // (stages * points)
    errors = {"union": 2 * points, "one end": points, "in order": 2}[way] * stages
    radius = math.sqrt(math.log(errors / ALPHA) / (2 * each)) / rate
    for _ in range(stages):
        grid = low[:, None] + (high - low)[:, None] * np.arange(1, points + 1) / (points + 1)
        ones = rng.binomial(each, (1 - rate) / 2 + rate * cdf(grid))
        means = (ones / each - (1 - rate) / 2) / rate
        less, more = means + radius < tau, means - radius >= tau
        if way == "in order":
            less = np.logical_and.accumulate(less, axis=1)
            more = np.logical_and.accumulate(more[:, ::-1], axis=1)[:, ::-1]
        left = np.max(np.where(less, grid, low[:, None]), axis=1)
        right = np.min(np.where(more, grid, high[:, None]), axis=1)
        fits = left < right  # where the ends contradict each other, nothing is learnt
        low, high = np.where(fits, left, low), np.where(fits, right, high)
    return low, high


class Figures(NamedTuple):
    """The number of points and stages that were best, the coverage and the mean length in units of the oracle."""

    points: int
    stages: int
    coverage: float
    length: float


def cell(case: Case, records: int, rate: float, way: str, points: int, stages: int, replications: int) -> Figures:
    rng = sv.sim.dice(points + 1000 * stages).generator()
    low, high = simulate_many(case.cdf, case.tau, records, rate, case.bounds, rng, replications, points, stages, way)
    covered = float(np.mean(case.covers(low, high)))
    return Figures(points, stages, covered, float(np.mean(high - low)) / case.unit(records, rate))


def best(case: Case, records: int, rate: float, way: str, stages: tuple[int, ...], replications: int) -> Figures:
    """Return the figures at the number of points and stages with the least mean length."""
    numbers = [(g, m) for m in stages for g in POINTS if m == 1 or g <= FEW]
    tried = [cell(case, records, rate, way, g, m, replications) for g, m in numbers]
    return min(tried, key=lambda figures: figures.length)


def table(replications: int) -> Iterator[tuple[Case, int, float, list[Figures]]]:
    """Yield a row for each population, size and rate: three ways on one grid, then in stages."""
    for case in CASES:
        for records in SIZES:
            for rate in RATES:
                row = [best(case, records, rate, way, (1,), replications) for way in WAYS]
                yield case, records, rate, [*row, best(case, records, rate, "in order", STAGES, replications)]


def run(replications: int) -> None:
    print(f"\nHoeffding sets under randomised response on a grid, level .95 ({replications} replications)")
    print("Mean length over the oracle's (* in units of the data), coverage, points x stages that were best for them")
    print(f"{'population':>18} {'tau':>4} {'N':>8} {'rate':>5} " + " ".join(f"{w:>21}" for w in (*WAYS, "in stages")))
    for case, records, rate, row in table(replications):
        mark = "*" if case.density is None else " "
        shown = " ".join(f"{f.length:>8.4g}{mark} {f.coverage:.3f} {f'{f.points}x{f.stages}':>5}" for f in row)
        print(f"{case.name:>18} {case.tau:>4} {records:>8,} {rate:>5} {shown}")
