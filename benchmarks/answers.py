"""Rounded records, unequal sites, several levels and differences, through the public calls."""

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import sottovoce as sv
from sottovoce_papers.simulation.populations import population

SALARY = population("lognormal", 0.8).moved(0, 48_000)


def rounded(seed: int) -> bool:
    """Salaries to the thousand, ten sites of 10,000; is the atom covered?"""
    draw = sv.sim.dice(seed).generator()
    tau, epsilon = ((0.5, 1.0), (0.8, 3.0), (0.3, 3.0))[seed % 3]
    sites = [np.round(SALARY.sample(draw, 10_000), -3) for _ in range(10)]
    atom = round(float(SALARY.quantile(tau)), -3)
    result = sv.federated_quantile(sites, tau, epsilon, resolution=1000, randomness=sv.sim.dice(seed + 10**7))
    return result.interval.low <= atom <= result.interval.high


def unequal(seed: int) -> bool:
    """Sites of 500 to 50,000 records with budgets that fall with size, shifted laws, pooled or equal shares."""
    draw = sv.sim.dice(seed).generator()
    sizes = np.geomspace(500, 50_000, 10).astype(int)
    shifts = np.linspace(-0.5, 0.5, 10)
    distribution = population("logistic")
    sites = {
        f"s{k}": distribution.sample(draw, int(n)) + shift
        for k, (n, shift) in enumerate(zip(sizes, shifts, strict=True))
    }
    epsilons = {f"s{k}": float(e) for k, e in enumerate(np.linspace(4, 1, 10))}
    pooled = seed % 2 == 0
    weights = sizes / sizes.sum() if pooled else np.full(10, 0.1)
    low, high = -5.0, 5.0
    for _ in range(60):
        middle = (low + high) / 2
        below = float(np.sum(weights * distribution.cdf(middle - shifts)))
        low, high = (middle, high) if below < 0.5 else (low, middle)
    shares = "pooled" if pooled else "equal"
    result = sv.federated_quantile(sites, 0.5, epsilons, shares=shares, randomness=sv.sim.dice(seed + 10**7))
    return result.interval.low <= low <= result.interval.high


def levels(seed: int) -> bool:
    """Three quartiles of gamma records from one report each: are all covered?"""
    distribution = population("gamma", 2.0)
    sites = [distribution.sample(die.generator(), 12_000) for die in sv.sim.dice(seed).split(10)]
    result = sv.federated_quantiles(sites, [0.25, 0.5, 0.75], 1.1, randomness=sv.sim.dice(seed + 10**7))
    truths = distribution.quantile(np.array([0.25, 0.5, 0.75]))
    return all(low <= truth <= high for (low, high), truth in zip(result.intervals, truths, strict=True))


def difference(seed: int) -> bool:
    """Two groups of different shape with the same median: is zero covered?"""
    draw = sv.sim.dice(seed).generator()
    one, two = population("lognormal", 0.8), population("gamma", 2.0)
    scale = float(one.quantile(0.5)) / float(two.quantile(0.5))
    first = [one.sample(draw, 10_000) for _ in range(5)]
    second = [two.sample(draw, 10_000) * scale for _ in range(5)]
    found = sv.quantile_difference(first, second, 0.5, 1.0, randomness=sv.sim.dice(seed + 10**7))
    return found.interval.low <= 0 <= found.interval.high


def run(replications: int, jobs: int) -> None:
    print(f"\nThrough the public calls, 95 % ({replications} replications)")
    cases: tuple[tuple[str, Callable[[int], bool]], ...] = (
        ("rounded to thousands, resolution given: atom covered", rounded),
        ("sites of 500 to 50,000 records, pooled and equal", unequal),
        ("three levels from one report each, jointly", levels),
        ("difference of two groups with one median", difference),
    )
    with ProcessPoolExecutor(jobs) as pool:
        for i, (title, case) in enumerate(cases):
            covered = np.mean(list(pool.map(case, range(1000 * i, 1000 * i + replications), chunksize=8)))
            print(f"   {title:<60} {covered:.3f}")
