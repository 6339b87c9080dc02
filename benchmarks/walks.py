"""The paper's recursion through the public call, search included: fresh N(0,1) records, K = 10, n = 10,000."""

import math
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np

import sottovoce as sv
from sottovoce.inference.quantile.asymptotic import standard_error
from sottovoce.protocol.randomised_response import epsilon_of_rate
from sottovoce_papers.simulation.populations import homogeneous, population

SITES, RECORDS, RATE, TAU = 10, 10_000, 0.25, 0.5
CASES = (
    ("regression", "every:1"),
    ("regression", "every:5"),
    ("regression", "log"),
    ("self-normalised", "every:1"),
    ("staged", "every:1"),
)


def once(task: tuple[str, str, int]) -> tuple[float, float, float]:
    method, schedule, seed = task
    dice = sv.sim.dice(seed)
    sites = homogeneous(population("normal"), SITES).sample(dice.generator(), RECORDS)
    result = sv.federated_quantile(
        sites, TAU, epsilon_of_rate(RATE), method=method, schedule=schedule, randomness=sv.sim.dice(seed + 10**6)
    )
    return result.estimate, *result.interval


class Figures(NamedTuple):
    """Coverage, error and length relative to the oracle, and the part of infinite intervals."""

    coverage: float
    error: float
    length: float
    infinite: float


def oracle() -> float:
    distribution, each = homogeneous(population("normal"), SITES), np.ones(SITES)
    return float(
        standard_error(
            distribution.probabilities(0.0), distribution.densities(0.0), RATE * each, each / SITES, RECORDS * each
        )
    )


def figures(method: str, schedule: str, replications: int, seed: int, jobs: int) -> Figures:
    tasks = [(method, schedule, seed + j) for j in range(replications)]
    with ProcessPoolExecutor(jobs) as pool:
        points, lows, highs = np.array(list(pool.map(once, tasks, chunksize=8))).T
    bound = oracle()
    return Figures(
        float(np.mean((lows <= 0) & (highs >= 0))),
        float(np.mean(np.abs(points))) / (bound * math.sqrt(2 / math.pi)),
        float(np.median(highs - lows)) / (2 * 1.959964 * bound),
        float(np.mean(~np.isfinite(highs - lows))),
    )


def run(replications: int, jobs: int) -> None:
    print(f"\nThrough sv.federated_quantile, N(0,1), K=10, n=10,000, rate .25 ({replications} replications)")
    print(f"{'method':>16} {'schedule':>9} {'coverage':>9} {'error':>6} {'length':>7} {'infinite':>9}")
    for i, (method, schedule) in enumerate(CASES):
        coverage, error, length, infinite = figures(method, schedule, replications, 10_000 * (i + 1), jobs)
        print(f"{method:>16} {schedule:>9} {coverage:>9.3f} {error:>6.3f} {length:>7.3f} {infinite:>9.3f}")
