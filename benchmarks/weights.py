"""Weighted quantiles of a survey through the public call: coverage and lengths, weights few and many, tied to values.

The truth is that of the population that the weights stand for: every record counts by its weight, whatever was drawn.
Lengths are over those of the same records without weights.
"""

import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

import sottovoce as sv
from sottovoce.sim.randomness import dice

KINDS = ("five weights", "many weights", "many, far apart", "counts, many weights")
SPREADS = {"five weights": 0.0, "many weights": 0.3, "many, far apart": 0.7, "counts, many weights": 0.4}
CELLS = ((20_000, 1.0, 0.5), (20_000, 2.0, 0.9), (60_000, 1.0, 0.9), (4_000, 4.0, 0.5))
METHODS = ("staged", "certified")
TRUTH = 4_000_000  # records from which a truth is taken
Task = tuple[str, int, str, int, int]


class WeightScores(NamedTuple):
    """Coverage, part that was certified, median length over that without weights, and coverage without weights."""

    covered: float
    certified: float
    longer: float
    unweighted: float


def drawn(kind: str, n: int, seed: int) -> tuple[Any, Any]:
    """Return values and weights: whoever counts for more has larger values."""
    source = dice(seed).generator()
    if kind == "five weights":
        weights = np.array([0.5, 0.8, 1.0, 1.5, 3.0])[source.integers(0, 5, n)]
    else:
        weights = np.exp(SPREADS[kind] * source.normal(size=n))
    if kind.startswith("counts"):
        return source.poisson(4 + 2 * np.log(weights) ** 2 + weights), weights
    return source.gamma(2.0, 10.0, n) + 6 * np.log(weights), weights


def truth_of(kind: str, tau: float) -> float:
    """Return the weighted quantile of a very large sample."""
    values, weights = drawn(kind, TRUTH, 1)
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(below, tau * below[-1])])


def one(task: Task) -> WeightScores:
    """Run one cell."""
    warnings.simplefilter("ignore")
    kind, cell, method, runs, seed = task
    n, epsilon, tau = CELLS[cell]
    truth, rows = truth_of(kind, tau), []
    for i, own in enumerate(dice(seed).split(runs)):
        values, weights = drawn(kind, n, seed + 31 * (i + 1))
        half = n // 3
        sites = {"one": values[:half], "two": values[half:]}
        given = {"one": weights[:half], "two": weights[half:]}
        found = sv.federated_quantile(sites, tau, epsilon, weights=given, method=method, randomness=own)
        plain = sv.federated_quantile(sites, tau, epsilon, method=method, randomness=own)
        (low, high), (first, last) = found.interval, plain.interval
        length = (high - low) / (last - first) if last > first else np.nan
        rows.append((low <= truth <= high, found.method == "certified", length, first <= truth <= last))
    held, certified, longer, unweighted = zip(*rows, strict=True)
    return WeightScores(
        float(np.mean(held)), float(np.mean(certified)), float(np.nanmedian(longer)), float(np.mean(unweighted))
    )


def _name(task: Task) -> str:
    kind, cell, method, *_ = task
    n, epsilon, tau = CELLS[cell]
    return f"{kind}, {n:,} records, epsilon {epsilon:g}, tau {tau:g}, {method}"


def run(runs: int, jobs: int, only: Sequence[str] = ()) -> None:
    """Print coverage and lengths of cells with some words in their names."""
    print(f"{runs} runs; 'unweighted' is how often the interval of the unweighted records holds the weighted quantile")
    print(f"{'cell':<64} {'covered':>8} {'certified':>10} {'longer':>7} {'unweighted':>11}")
    tasks = [
        (kind, cell, method, runs, 8_300 + 10 * at + cell)
        for at, kind in enumerate(KINDS)
        for cell in range(len(CELLS))
        for method in METHODS
    ]
    tasks = [task for task in tasks if all(word in _name(task) for word in only)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for task, found in zip(tasks, pool.map(one, tasks), strict=True):
            told = f"{found.covered:>8.3f} {found.certified:>10.2f} {found.longer:>7.2f} {found.unweighted:>11.3f}"
            print(f"{_name(task):<64} {told}", flush=True)
