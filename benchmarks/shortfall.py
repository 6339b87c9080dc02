"""Value at risk and expected shortfall through the public call: coverage and lengths on losses of many kinds.

The parts and points of the design were chosen on the first five kinds of losses; other seeds, and the other kinds,
test them.
Lengths are over the shortfall: how far the upper end lies above it, and the lower end below, in the mean.
"""

import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
from scipy import stats

import sottovoce as sv
from benchmarks.ordinary_cells import OrdinaryPopulation, atom, counted, of, plain, rounded
from sottovoce.sim.randomness import dice

LOGNORMAL, GAMMA, AMOUNTS = stats.lognorm(1.0), stats.gamma(2), stats.gamma(2, scale=500)
LOSSES: tuple[tuple[OrdinaryPopulation, float], ...] = (
    (of("lognormal", (), plain(1, LOGNORMAL)), 50.0),
    (of("lognormal, near bound", (), plain(1, LOGNORMAL)), 20.0),
    (of("gamma", (), plain(1, GAMMA)), 20.0),
    (of("Pareto 2.5", (), plain(1, stats.lomax(2.5))), 50.0),
    (of("60 % zeros", (), atom(0.6, 0.0), plain(0.4, LOGNORMAL)), 50.0),
    (of("Weibull .7", (), plain(1, stats.weibull_min(0.7))), 20.0),
    (of("Pareto 1.2, cut at the bound", (), plain(1, stats.lomax(1.2))), 20.0),
    (of("claims, 70 % none", (), atom(0.7, 0.0), counted(stats.poisson(3), 0.3)), 30.0),
    (of("visits, negative binomial", (), counted(stats.nbinom(1, 1 / 9))), 120.0),
    (of("amounts, 60 % to a hundred", (), rounded(0.6, AMOUNTS, 100), plain(0.4, AMOUNTS)), 10_000.0),
    (of("two modes", (), plain(0.92, stats.gamma(4)), plain(0.08, stats.norm(30, 2))), 60.0),
    (of("gap at .95", (), plain(0.95, stats.uniform()), plain(0.05, stats.uniform(9, 1))), 10.0),
)  # fmt: skip
CELLS = (
    (10_000, 4.0, 0.9), (100_000, 1.0, 0.9), (100_000, 2.0, 0.95), (100_000, 4.0, 0.99),
    (1_000_000, 1.0, 0.95), (1_000_000, 2.0, 0.99),
)  # fmt: skip
GRID = 40_001
LARGE = 4  # times fewer runs where a million are asked
Task = tuple[int, int, str, int, int]


class Scored(NamedTuple):
    """What the runs of a cell came to."""

    shortfall: float
    below: float
    above: float
    up: float
    down: float
    rmse: float
    covered: float
    length: float
    runs: int


def truth_of(population: OrdinaryPopulation, far: float, mass: float) -> float:
    """Return the expected shortfall of a population limited to [0, far]."""
    x = np.linspace(0.0, far, GRID)
    middles = (x[1:] + x[:-1]) / 2
    survival = np.array([1 - population.below(float(value)) for value in middles])
    return float(np.minimum(survival / mass, 1.0).sum() * (x[1] - x[0]))


def one(task: Task) -> Scored | None:
    """Run one cell; None where it is refused."""
    warnings.simplefilter("ignore")
    index, cell, method, runs, seed = task
    (population, far), (records, epsilon, tau) = LOSSES[index], CELLS[cell]
    shortfall, quantile = truth_of(population, far, 1 - tau), min(population.quantile(tau), far)
    runs = max(runs // LARGE, 1) if records >= 1_000_000 else runs
    found = []
    for i, own in enumerate(dice(seed + 100 * index + cell).split(runs)):
        values = np.clip(population.sample(dice(seed + 10_000 * index + 1_000 * cell + i).generator(), records), 0, far)
        try:
            made = sv.expected_shortfall([values], tau, epsilon, bounds=(0, far), method=method, randomness=own)
        except sv.Infeasible:
            return None
        found.append((*made.interval, made.estimate, *made.value_at_risk.interval))
    low, high, estimate, first, last = np.array(found).T
    off = 1e-4 * shortfall  # of the quadrature
    return Scored(
        shortfall,
        float(np.mean(low > shortfall + off)),
        float(np.mean(high < shortfall - off)),
        float(np.mean(high - shortfall)) / shortfall,
        float(np.mean(shortfall - low)) / shortfall,
        float(np.sqrt(np.mean((estimate - shortfall) ** 2))) / shortfall,
        float(np.mean((first <= quantile + 1e-9) & (quantile - 1e-9 <= last))),
        float(np.mean(last - first)) / shortfall,
        runs,
    )


def run(
    runs: int, jobs: int, methods: Sequence[str] = ("certified", "staged"), kinds: Sequence[int] = range(len(LOSSES)),
    seed: int = 71_000,
) -> None:  # fmt: skip
    """Print a line a cell, and what all cells came to."""
    for method in methods:
        tasks = [(index, cell, method, runs, seed) for index in kinds for cell in range(len(CELLS))]
        print(f"{method}, {runs} runs a cell; a quarter of them where a million are asked; lengths over the shortfall")
        every = []
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            for (index, cell, *_), scored in zip(tasks, pool.map(one, tasks), strict=True):
                records, epsilon, tau = CELLS[cell]
                name = f"  {LOSSES[index][0].name:<30} {records:>9,} {epsilon:g} {tau:<5g}"
                if scored is None:
                    print(f"{name} refused", flush=True)
                    continue
                every.append(scored)
                told = f"missed {scored.below:.3f} {scored.above:.3f}  up {scored.up:.3f} down {scored.down:.3f}"
                told += f"  error {scored.rmse:.3f}  quantile {scored.covered:.3f} {scored.length:.3f}"
                print(f"{name} {scored.shortfall:>9.4g}  {told}", flush=True)
        weights = [scored.runs for scored in every]
        pooled = {name: np.average([getattr(each, name) for each in every], weights=weights) for name in Scored._fields}
        print(
            f"  all {sum(weights):,} runs: shortfall missed {pooled['below']:.4f} and {pooled['above']:.4f}, "
            f"quantile covered {pooled['covered']:.4f}, least {min(each.covered for each in every):.3f}"
        )
