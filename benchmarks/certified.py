"""Certified intervals and confidence sequences: coverage, lengths over the oracle's, rounds; eight populations.

Records are fresh each time, so that a tally is one binomial draw, as in `sottovoce_papers.simulation.experiment`.
"""

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.cells import TUNED, UNSEEN
from benchmarks.certified_populations import CASES, RATES, SIZES, Case
from sottovoce.core.arrays import Floats, Ints
from sottovoce.server.quantile.asking import Ask, SiteProfile
from sottovoce.server.quantile.certified.protocol import CertifiedStudy, certified_protocol
from sottovoce.server.quantile.certified.sequence import Sequel, sequence_protocol
from sottovoce.server.quantile.solutions import CertifiedSolution, SequenceSolution, staged_solution
from sottovoce.server.quantile.staged import StagedStudy, staged_protocol
from sottovoce.sim.randomness import dice
from sottovoce_papers.simulation.families import Generator as Draws

Cdf = Callable[[npt.ArrayLike], Floats]
BANDS = (0.0, 0.02, 0.04, 0.08, 0.15)
LIMITS = (2.8, 3.2, 4.0, 8.0)  # of the mean length over the oracle's
PARTS = (0.03, 0.1, 0.3, 1.0)  # of the records, at which a sequence is looked at
PHASES = 4001  # quantiles of a population, for a phase question


class SmoothCell(NamedTuple):
    """A smooth family, a level, a response rate and a number of records."""

    name: str
    tau: float
    rate: float
    records: int
    cdf: Cdf
    truth: float
    density: float

    @property
    def error(self) -> float:
        """Return the error of the distribution function from all records."""
        s = (1 - self.rate) / 2 + self.rate * self.tau
        return math.sqrt(s * (1 - s) / self.records) / self.rate

    @property
    def ratio(self) -> float:
        """Return s / t0, the noise over the tail."""
        return self.error / min(self.tau, 1 - self.tau)

    def length(self, low: float, high: float, part: float = 1.0) -> float:
        """Return a length over the oracle's, who has a part of the records."""
        return (high - low) * self.density * math.sqrt(part) / (2 * 1.959964 * self.error)


def smooth_cells() -> Iterator[SmoothCell]:
    """Yield cells up to s / t0 = .15."""
    for name, family in (TUNED | UNSEEN).items():
        for tau in (0.1, 0.5, 0.8):
            truth = float(family.quantile(tau))
            for rate in (0.25, 0.5, 0.9):
                for records in (2_000, 5_000, 10_000, 20_000, 100_000, 1_000_000):
                    cell = SmoothCell(name, tau, rate, records, family.cdf, truth, float(family.density(truth)))
                    if cell.ratio <= BANDS[-1]:
                        yield cell


def answered(
    conversation: Generator[Ask, Ints, Any], cdf: Cdf, rate: float, generator: Draws, phases: Floats
) -> tuple[Any, int]:
    """Answer a conversation; return its end and the number of rounds."""
    ask, rounds = next(conversation), 0
    while True:
        rounds += 1
        above = 1 - cdf(ask.points)
        if ask.periods is not None:
            turns = (phases[:, None] - ask.points) / ask.periods
            above = np.mean(turns - np.floor(turns) >= 0.5, axis=0)
        ones = generator.binomial(ask.counts, rate * np.asarray(above) + (1 - rate) / 2)
        try:
            ask = conversation.send(ones)
        except StopIteration as stop:
            return stop.value, rounds


def study_of(
    tau: float, rate: float, records: int, coin: int, alpha: float = 0.05, bounds: tuple[float, float] | None = None
) -> CertifiedStudy:
    """Return a study of one site."""
    crowd = SiteProfile(np.ones(1), np.full(1, rate), np.array([records]))
    return CertifiedStudy(tau, crowd, alpha, coin.to_bytes(8, "big"), bounds)


class Found(NamedTuple):
    """What replications of a cell say: coverage, mean and median length, open ends, largest number of rounds."""

    ratio: float
    coverage: float
    mean: float
    median: float
    unknown: float
    rounds: int


def certified_cell(task: tuple[int, int, float, bool]) -> Found:
    """Replicate a certified cell; an open end counts as the bound, or is left out of the mean without bounds."""
    index, runs, alpha, bounded = task
    cell = list(smooth_cells())[index]
    generator = dice(7000 + index).generator()
    reach = 60 * 0.4 / cell.density
    bounds = (cell.truth - reach, cell.truth + 1.7 * reach) if bounded else None
    rows = []
    for i in range(runs):
        study = study_of(cell.tau, cell.rate, cell.records, i, alpha, bounds)
        left, rounds = answered(certified_protocol(study), cell.cdf, cell.rate, generator, np.empty(0))
        low, high = CertifiedSolution(left).interval(1 - alpha)
        rows.append(
            (
                low < cell.truth <= high,
                cell.length(low, high),
                bounds is not None and not (low > bounds[0] and high < bounds[1]),
                rounds,
            )
        )
    held, lengths, at_bound, rounds_of = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    finite = np.isfinite(lengths)
    return Found(
        cell.ratio,
        float(held.mean()),
        float(lengths[finite].mean()),
        float(np.median(lengths)),
        float(np.mean(~finite | (at_bound > 0))),
        int(rounds_of.max()),
    )


def sequence_cell(task: tuple[int, int]) -> tuple[float, float, list[float]]:
    """Replicate a sequence: runs that ever missed, and the mean length at some times over the oracle's of that time."""
    index, runs = task
    cell = list(smooth_cells())[index]
    generator, missed, lengths = dice(8000 + index).generator(), 0, []
    for i in range(runs):
        study = study_of(cell.tau, cell.rate, cell.records, i)
        left, _ = answered(sequence_protocol(study), cell.cdf, cell.rate, generator, np.empty(0))
        rows = SequenceSolution(left).trajectory(0.95)
        missed += any(not row.low < cell.truth <= row.high for row in rows)
        looks = [min(rows, key=lambda row: abs(math.log(row.reports / (part * cell.records)))) for part in PARTS]
        lengths.append([cell.length(row.low, row.high, row.reports / cell.records) for row in looks])
    middle = np.array(lengths)
    return (
        cell.ratio,
        missed / runs,
        [float(np.mean(col[np.isfinite(col)])) if np.any(np.isfinite(col)) else math.inf for col in middle.T],
    )


def misses_of_a_sequence(task: tuple[int, int, float, int, int]) -> tuple[str, int, float, int]:
    """Count the runs of a sequence that ever missed, in one of the eight populations."""
    index, records, rate, runs, seed = task
    case = CASES[index]
    generator, missed = dice(seed).generator(), 0
    for i in range(runs):
        left, _ = answered(
            sequence_protocol(study_of(case.tau, rate, records, i)), case.cdf, rate, generator, np.empty(0)
        )
        missed += any(not row.low < case.truth <= row.high for row in SequenceSolution(left).trajectory(0.95))
    return f"{case.name}, {case.tau}", records, rate, missed


METHODS = ("default", "certified", "sequence")


def case_runs(task: tuple[int, int, float, int]) -> dict[str, list[tuple[float, float]]]:
    """Return the intervals of the three methods in one of the eight populations."""
    index, records, rate, runs = task
    case = CASES[index]
    generator, phases = dice(600 + index).generator(), case.quantile((np.arange(PHASES) + 0.5) / PHASES)
    found: dict[str, list[tuple[float, float]]] = {method: [] for method in METHODS}
    for i in range(runs):
        study = study_of(case.tau, rate, records, i, bounds=case.bounds)
        staged = StagedStudy(case.tau, study.crowd, case.bounds, None, 0.05, study.coin, phases=True)
        for method, talk in zip(
            METHODS, (staged_protocol(staged), certified_protocol(study), sequence_protocol(study)), strict=True
        ):
            left, _ = answered(talk, case.cdf, rate, generator, phases)
            solution = SequenceSolution(left) if isinstance(left, Sequel) else staged_solution(left)
            low, high = solution.interval(0.95)
            found[method].append((max(low, case.bounds[0]), min(high, case.bounds[1])))
    return found


def spread(work: Callable[[Any], Any], tasks: Sequence[Any], jobs: int) -> list[Any]:
    """Do the work in several processes."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return list(pool.map(work, tasks))


def run(replications: int, jobs: int, step: int = 1) -> None:
    """Print lengths by band, at three levels and with bounds, then sequences, then the eight populations."""
    count = len(list(smooth_cells()))
    chosen = range(0, count, step)
    for alpha, bounded in ((0.05, True), (0.05, False), (0.1, False), (0.2, False)):
        print(
            f"certified, level {1 - alpha:g}, {'public bounds' if bounded else 'no bounds'}, {replications} runs a cell"
        )
        found = spread(certified_cell, [(index, replications, alpha, bounded) for index in chosen], jobs)
        by_band([(item.ratio, item) for item in found])
    print("sequence, level .95, no bounds: missed at any time, mean length over the oracle's of that time")
    rows = spread(sequence_cell, [(index, max(replications // 2, 20)) for index in chosen], jobs)
    for low, high in pairwise(BANDS):
        band = [row for row in rows if low < row[0] <= high]
        if band:
            lengths = [
                float(np.mean([row[2][i] for row in band if math.isfinite(row[2][i])])) for i in range(len(PARTS))
            ]
            print(
                f"  s/t0 {low:g} to {high:g}: {len(band)} cells, missed {np.mean([row[1] for row in band]):.4f}, "
                + ", ".join(f"{part:.0%} {length:.2f}" for part, length in zip(PARTS, lengths, strict=True))
            )
    eight(replications, jobs)


def by_band(found: list[tuple[float, Found]]) -> None:
    """Print what cells say, by band of s / t0."""
    for low, high, limit in zip(BANDS[:-1], BANDS[1:], LIMITS, strict=True):
        band = [item for ratio, item in found if low < ratio <= high]
        if not band:
            continue
        means = [item.mean for item in band]
        print(
            f"  s/t0 {low:g}-{high:g}: {len(band)} cells, coverage {np.mean([item.coverage for item in band]):.4f} "
            f"(least {min(item.coverage for item in band):.3f}), length {np.mean(means):.2f} ({min(means):.2f} "
            f"to {max(means):.2f}, limit {limit:g}), median {np.mean([item.median for item in band]):.2f}, "
            f"open {np.mean([item.unknown for item in band]):.4f}, rounds up to {max(item.rounds for item in band)}",
            flush=True,
        )


def eight(replications: int, jobs: int) -> None:
    """Print coverage and mean length of the three methods in eight populations."""
    cells = [(index, records, rate) for index in range(len(CASES)) for records in SIZES for rate in RATES]
    tasks = [(*cell, replications) for cell in cells]
    for (index, records, rate, _), found in zip(tasks, spread(case_runs, tasks, jobs), strict=True):
        case: Case = CASES[index]
        unit = case.unit(records, rate)
        told = []
        for method in METHODS:
            low, high = np.array(found[method]).T
            told.append(f"{method} {np.mean(case.covers(low, high)):.3f} {np.mean((high - low) / unit):.3g}")
        print(f"{case.name}, {case.tau}, {records:,}, rate {rate}: " + "; ".join(told), flush=True)
