"""The paper's recursion through the public call, search included: fresh N(0,1) records, K = 10, n = 10,000."""

import math
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import sottovoce as sv
from sottovoce.channels.binary import epsilon_of_rate
from sottovoce.inference.asymptotic import standard_error
from sottovoce.sim.populations import homogeneous, population

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


def run(replications: int, jobs: int) -> None:
    law = homogeneous(population("normal"), SITES)
    oracle = float(
        standard_error(
            law.probabilities(0.0),
            law.densities(0.0),
            np.full(SITES, RATE),
            np.full(SITES, 1 / SITES),
            np.full(SITES, RECORDS),
        )
    )
    print(f"\nThrough sv.federated_quantile, N(0,1), K=10, n=10,000, rate .25 ({replications} replications)")
    print(f"{'method':>16} {'schedule':>9} {'coverage':>9} {'error':>6} {'length':>7} {'infinite':>9}")
    with ProcessPoolExecutor(jobs) as pool:
        for i, (method, schedule) in enumerate(CASES):
            tasks = [(method, schedule, 10_000 * (i + 1) + j) for j in range(replications)]
            points, lows, highs = np.array(list(pool.map(once, tasks, chunksize=8))).T
            coverage = np.mean((lows <= 0) & (highs >= 0))
            error = np.mean(np.abs(points)) / (oracle * math.sqrt(2 / math.pi))
            length = np.median(highs - lows) / (2 * 1.959964 * oracle)
            infinite = np.mean(~np.isfinite(highs - lows))
            row = f"{method:>16} {schedule:>9} {coverage:>9.3f}"
            print(f"{row} {error:>6.3f} {length:>7.3f} {infinite:>9.3f}")
