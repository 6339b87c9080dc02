"""Values beyond limits of measurement: how often intervals hold, beside half a limit instead, or leaving them out."""

import math
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, stats

import sottovoce as sv
from benchmarks.conformal_tables import seed_of, show
from sottovoce.core.arrays import Floats
from sottovoce.core.errors import Infeasible
from sottovoce.sim import dice
from sottovoce_papers.simulation.families import Generator

TAUS = (0.25, 0.5, 0.9)
SIZES = ((2_000, 2.0), (10_000, 1.0))
WAYS = ("symbols", "sequence", "half the limit", "left out")


class Lab(NamedTuple):
    """A laboratory: its part of all records, the law of what it measures, and its limits."""

    part: float
    law: Any
    low: float = -math.inf
    high: float = math.inf


class LimitedCase(NamedTuple):
    """Laboratories that measure one thing, what is declared of their limits, and how a value is written."""

    labs: tuple[Lab, ...]
    declared: str
    write: Callable[[float], float] = float


def log_normal(centre: float) -> Any:
    """Return a lognormal law with a standard deviation of the logarithm of 1."""
    return stats.lognorm(1.0, scale=math.exp(centre))


HEAVY = stats.nbinom(2, 0.2)
CASES = {
    "lognormal, 30 % below <5": LimitedCase((Lab(0.4, log_normal(2.134), 5.0), Lab(0.6, log_normal(2.134), 5.0)), "<5"),
    "two laboratories, <5 and <10": LimitedCase(
        (Lab(0.4, log_normal(2.5), 5.0), Lab(0.6, log_normal(2.5), 10.0)), "<5,<10"
    ),
    "counts, <5": LimitedCase((Lab(0.5, HEAVY, 5.0), Lab(0.5, HEAVY, 5.0)), "<5", int),
    "lognormal, 70 % below <0.02": LimitedCase((Lab(0.5, log_normal(-4.436), 0.02),) * 2, "<0.02"),
    "hours until failure, >200": LimitedCase((Lab(0.5, stats.expon(scale=150), high=200.0),) * 2, ">200"),
    "viral load, <50 and >1000000": LimitedCase(
        (Lab(0.5, stats.lognorm(2.5, scale=2_000), 50.0, 1e6),) * 2, "<50,>1000000", round
    ),
    "logarithms, <-2": LimitedCase((Lab(0.5, stats.norm(-1, 1.2), -2.0),) * 2, "<-2"),
}
KNOWN = "lognormal, 30 % below <5"  # the case by which the number for a symbol was chosen


def truth(case: LimitedCase, tau: float) -> float:
    """Return the quantile of what was there, measured or not."""

    def over(x: float) -> float:
        return sum(lab.part * float(lab.law.cdf(x)) for lab in case.labs) - tau

    if case.write is int:
        return float(next(x for x in range(1_000_000) if over(x) >= 0))
    return float(case.write(float(optimize.brentq(over, -100, 1e9, xtol=1e-12))))


def drawn(case: LimitedCase, records: int, generator: Generator) -> list[Floats]:
    """Draw what was there, at each laboratory."""
    sizes = [round(lab.part * records) for lab in case.labs]
    return [
        np.asarray(lab.law.rvs(size, random_state=generator), float) for lab, size in zip(case.labs, sizes, strict=True)
    ]


def written(case: LimitedCase, columns: Sequence[Floats]) -> list[list[Any]]:
    """Write columns as their laboratories would."""
    return [
        [
            f"<{lab.low:.15g}" if x < lab.low else f">{lab.high:.15g}" if x > lab.high else case.write(x)
            for x in column.tolist()
        ]
        for lab, column in zip(case.labs, columns, strict=True)
    ]


def asked(case: LimitedCase, columns: list[Floats], way: str, tau: float, epsilon: float, own: Any) -> Any:
    """Ask for a quantile: of symbols, of numbers in their place, or of what was measured."""
    if way in ("symbols", "sequence"):
        method = "staged" if way == "symbols" else "sequence"
        cells = written(case, columns)
        return sv.federated_quantile(cells, tau, epsilon, method=method, censored=case.declared, randomness=own)
    changed = []
    for lab, column in zip(case.labs, columns, strict=True):
        if way == "left out":
            changed.append(column[(column >= lab.low) & (column <= lab.high)])
        else:
            half = np.where(column < lab.low, lab.low - abs(lab.low) / 2, column)
            changed.append(np.minimum(half, lab.high))
    return sv.federated_quantile(changed, tau, epsilon, randomness=own)


def one(task: tuple[str, str, float, int, float, int]) -> tuple[float, float, float, float]:
    """Run one cell: coverage, how often the answer is a symbol alone, touches one, and the median length otherwise."""
    name, way, tau, records, epsilon, runs = task
    warnings.simplefilter("ignore", UserWarning)
    case, held, alone, touching, lengths = CASES[name], 0, 0, 0, []
    true = truth(case, tau)
    for turn, own in enumerate(dice(seed_of(name, way, tau, records)).split(runs)):
        generator = dice(seed_of(name, tau, records, turn)).generator()
        found = asked(case, drawn(case, records, generator), way, tau, epsilon, own)
        low, high = found.interval
        held += low <= true <= high
        censored = found.plan.roster.unit.censored
        sides = [] if censored is None else [censored.side(low), censored.side(high)]
        alone += len(sides) == 2 and sides[0] == sides[1] != 0
        touching += any(sides)
        if not any(sides):
            lengths.append(high - low)
    median = float(np.median(lengths)) if lengths else math.nan
    return held / runs, alone / runs, touching / runs, median


def tried(task: tuple[str, str, float, int, float, int]) -> tuple[float, float, float, float]:
    """Run one cell, if it has records enough."""
    try:
        return one(task)
    except Infeasible:
        return (math.nan,) * 4


def run(runs: int = 60, jobs: int = 1) -> None:
    """Print coverage by case, level and way, and over all cells."""
    for records, epsilon in SIZES:
        cells = [(name, tau) for name in CASES for tau in TAUS]
        tasks = [(name, way, tau, records, epsilon, runs) for name, tau in cells for way in WAYS]
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            found = dict(zip(tasks, pool.map(tried, tasks), strict=True))
        rows = []
        for name, tau in cells:
            told = [found[name, way, tau, records, epsilon, runs] for way in WAYS]
            held, alone, touching, length = told[0]
            rows.append(
                (
                    name,
                    f"{tau:g}",
                    f"{truth(CASES[name], tau):.4g}{' (beyond)' * is_beyond(name, tau)}",
                    f"{held:.3f}",
                    f"{alone:.2f}, {touching:.2f}",
                    f"{length:.3g}",
                    *(f"{each[0]:.3f}" for each in told[1:]),
                )
            )
        title = (
            f"{records:,} records, epsilon {epsilon:g}, {runs} runs: part of 95 % intervals that hold the quantile of "
        )
        title += "what was there"
        heads = ("case", "tau", "true", "symbols", "symbol alone, touched", "length else", *WAYS[1:])
        show(title, heads, rows)
        summed = []
        for word, where in (("within the limits", False), ("beyond them", True)):
            own = [cell for cell in cells if is_beyond(*cell) == where]
            for way in WAYS:
                parts = np.array([found[name, way, tau, records, epsilon, runs][0] for name, tau in own])
                parts = parts[~np.isnan(parts)]
                summed.append((word, way, f"{len(parts)}", f"{parts.mean():.3f}", f"{parts.min():.3f}"))
        show(f"All cells, {runs * len(cells):,} runs a way", ("quantile", "way", "cells", "mean", "least"), summed)


def is_beyond(name: str, tau: float) -> bool:
    """Tell whether a quantile lies beyond a limit."""
    case = CASES[name]
    true = truth(case, tau)
    return true < max(lab.low for lab in case.labs) or true > min(lab.high for lab in case.labs)
