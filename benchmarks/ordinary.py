"""Ordinary data through the public call, without any option: coverage and length of the default and the certified set.

``python -m benchmarks ordinary --runs 200 --records 50000`` prints one line a population and level.
"""

import argparse
import os
from collections.abc import Iterator
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


def tasks(arguments: argparse.Namespace) -> Iterator[Task]:
    """Return what is to be run."""
    for unseen, group in ((False, KNOWN), (True, UNSEEN)):
        if arguments.part in ("all", "unseen" if unseen else "known"):
            for index, population in enumerate(group):
                if arguments.only in population.name:
                    for tau in population.levels:
                        yield index, unseen, tau, arguments.records, arguments.epsilon, arguments.method, arguments.runs


def main() -> None:
    """Print coverage for every population."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--method", default="staged")
    parser.add_argument("--part", choices=("all", "known", "unseen"), default="all")
    parser.add_argument("--only", default="")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    print(f"{arguments.method}, {arguments.records:,} records at two sites, epsilon {arguments.epsilon:g}")
    print(
        f"{'population':<36} {'tau':>5} {'covered':>8} {'certified':>9} {'median length':>13} {'open':>6} {'rounds':>6}"
    )
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        for name, tau, held, certified, length, unknown, rounds in pool.map(one, tasks(arguments)):
            print(
                f"{name:<36} {tau:>5g} {held:>8.3f} {certified:>9.2f} {length:>13.5g} {unknown:>6.3f} {rounds:>6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
