"""How time grows with records and with sites: ratios within one run, the calls in turn, the best of each."""

import time
from collections.abc import Sequence

import numpy as np

import sottovoce as sv
from sottovoce.core.arrays import Floats

LARGEST = 100_000_000
SITES, EACH = 10_000, 100
MOST_RECORDS, MOST_SITES = 12.0, 4.0  # the ratios aimed at


def in_turn(studies: Sequence[Sequence[Floats]], repeats: int) -> list[float]:
    """Return the best time of each study, reading and planning included."""
    best = [float("inf")] * len(studies)
    for _ in range(repeats):
        for place, sites in enumerate(studies):
            start = time.perf_counter()
            sv.federated_quantile(sites, 0.9, 1.0)
            best[place] = min(best[place], time.perf_counter() - start)
    return best


def run() -> None:
    values = sv.sim.dice(1).generator().standard_normal(LARGEST)
    million = values[: SITES * EACH]
    many = [site.copy() for site in np.split(million, SITES)]
    in_turn([[million[:20_000]], many, [values[: 1 << 21]]], 1)  # compiled
    one, split = in_turn([[million], many], 9)
    less, more = in_turn([[values[: LARGEST // 10]], [values]], 3)
    print("\nScale, whole calls, operating-system entropy, epsilon 1")
    print(f"   one site of a million records       {one:6.3f} s")
    print(
        f"   10,000 sites of a hundred           {split:6.3f} s, {split / one:5.2f} times that (at most {MOST_SITES:g})"
    )
    print(f"   one site of ten million records     {less:6.2f} s")
    print(
        f"   one site of a hundred million       {more:6.2f} s, {more / less:.2f} times that (at most {MOST_RECORDS:g})"
    )
