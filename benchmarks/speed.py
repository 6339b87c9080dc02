"""Times as ratios within one run, and the rates that the ratios stand for."""

import os
import resource
import subprocess
import sys
import time

import numpy as np

import sottovoce as sv
from sottovoce.server.quantile.recursion.walk import WalkState
from sottovoce_papers.simulation.fast import Cell, replicate
from sottovoce_papers.simulation.populations import homogeneous, population

RECORDS = 1_000_000


def timed(work: object, repeats: int = 3) -> float:
    assert callable(work)
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def _rounds(_study: object, state: WalkState) -> int:
    return state.round


def run() -> None:
    generator = sv.sim.dice(1).generator()
    sites = [generator.standard_normal(RECORDS) for _ in range(10)]
    sv.federated_quantile([site[:20_000] for site in sites], 0.5, 1.0)  # compiled
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    whole = timed(lambda: sv.federated_quantile(sites, 0.9, 1.0))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    entropy = timed(lambda: [os.urandom(8 << 20) for _ in range(10)])  # noqa: TID251 - the floor itself
    pooled = np.concatenate(sites)
    plain = timed(lambda: np.partition(pooled, 9_000_000))
    walk = timed(lambda: sv.federated_quantile(sites, 0.9, 1.0, method="regression"), 1)
    print("\nSpeed, 10 sites of a million records, operating-system entropy")
    print(f"   staged, whole call        {10 / whole:6.1f} million reports/s")
    print(f"   memory beyond the data    {after - before:6,} KiB")
    print(f"   regression, whole call    {10 / walk:6.1f} million reports/s")
    print(f"   staged / entropy alone    {whole / entropy:6.2f}   (8 bytes a report)")
    print(f"   staged / numpy.partition  {whole / plain:6.2f}   (the plain quantile of the pooled data)")
    cell = Cell(homogeneous(population("normal"), 10), 0.5, (0.25,) * 10, 10_000)
    replicate(cell, _rounds, 2, 1)
    cost = timed(lambda: replicate(cell, _rounds, 1000, 1), 1)
    print(f"   1,000 replications of one table cell (K=10, 10,000 steps): {cost:.1f} s")
    bare = timed(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))
    helped = timed(
        lambda: subprocess.run([sys.executable, "-m", "sottovoce", "--help"], check=True, capture_output=True)
    )
    print(f"   sottovoce --help          {helped:6.2f} s, {helped / bare:.1f} times an empty interpreter")
