"""Ordinary data through the public call, without any option: coverage, length, and how often the default certifies."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

import sottovoce as sv
from benchmarks.ordinary_cells import KNOWN, UNSEEN, OrdinaryPopulation
from sottovoce.sim.randomness import dice

Task = tuple[int, bool, float, int, float, str, int]


def one(task: Task) -> tuple[str, float, float, float, float, float, float]:
    """Run one population: coverage, part that was certified, median length, open ends, mean rounds."""
    index, unseen, tau, records, epsilon, method, runs = task
    population: OrdinaryPopulation = (UNSEEN if unseen else KNOWN)[index]
    truth, held, certified, unknown, rounds = population.quantile(tau), 0, 0, 0, 0
    lengths = np.empty(runs)
    draws = dice(900 + index).split(runs)
    for i, own in enumerate(draws):
        generator = dice(hash((index, unseen, round(1000 * tau), records, i)) % 2**32).generator()
        values = population.sample(generator, records)
        sites = {"one": values[: records // 2], "two": values[records // 2 :]}
        result = sv.federated_quantile(sites, tau, epsilon, method=method, randomness=own)
        low, high = result.interval
        held += low <= truth <= high
        certified += result.method == "certified"
        unknown += not np.isfinite(high - low)
        lengths[i] = high - low
        rounds += result.rounds
    return population.name, tau, held / runs, certified / runs, float(np.median(lengths)), unknown / runs, rounds / runs


def run(runs: int, jobs: int, sizes: Sequence[int] = (50_000, 3_000), method: str = "staged", only: str = "") -> None:
    """Print coverage for every population, those by which the default was tuned first."""
    for records in sizes:
        print(f"{method}, {records:,} records at two sites, epsilon 2, {runs} runs")
        print(f"{'population':<36} {'tau':>5} {'covered':>8} {'certified':>9} {'median':>11} {'open':>6} {'rounds':>6}")
        tasks = [
            (index, unseen, tau, records, 2.0, method, runs)
            for unseen, group in ((False, KNOWN), (True, UNSEEN))
            for index, population in enumerate(group)
            for tau in population.levels
            if only in population.name
        ]
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            for name, tau, held, certified, length, unknown, rounds in pool.map(one, tasks):
                told = f"{held:>8.3f} {certified:>9.2f} {length:>11.5g} {unknown:>6.3f} {rounds:>6.1f}"
                print(f"{name:<36} {tau:>5g} {told}", flush=True)
