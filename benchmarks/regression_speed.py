"""The paper's regression recursion, fused and seeded: nanoseconds an update on one core, and ratios within one run."""

import math
import time

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce_papers.simulation.regression.cell import Cell
from sottovoce_papers.simulation.regression.paper import replicate

UPDATES = 5_000_000
CELLS = (
    ("p = 2, CQ(2,1), epsilon 2", Cell(0.5, 2, 2.0, 2, 1), 45.0),
    ("p = 8, CQ(3,1), epsilon 2", Cell(0.75, 8, 2.0, 3, 1), 70.0),
    ("p = 2, CQ(4,3), epsilon 4", Cell(0.5, 2, 4.0, 4, 3), math.inf),
    ("p = 8, CQ(3,5), epsilon 8", Cell(0.75, 8, 8.0, 3, 5), math.inf),
    ("p = 8, no privacy", Cell(0.75, 8, math.inf), math.inf),
)


def nanoseconds(cell: Cell, normaliser: bool, updates: int = UPDATES, repeats: int = 3) -> float:
    """Return the CPU time of one update, the best of a few runs on one thread."""
    replicate(cell, (100,), 1, normaliser=normaliser, threads=1)  # compiled
    best = math.inf
    for _ in range(repeats):
        start = time.process_time()
        replicate(cell, (updates,), 1, normaliser=normaliser, threads=1)
        best = min(best, time.process_time() - start)
    return best / updates * 1e9


def floor(updates: int = UPDATES) -> float:
    """Return the CPU time of one of numpy's uniform numbers, as the unit of the ratios."""
    generator = np.random.default_rng(1)  # noqa: TID251 - a clock, not a result
    numbers: Floats = np.empty(updates)
    start = time.process_time()
    generator.random(out=numbers)
    return (time.process_time() - start) / updates * 1e9


def run() -> None:
    unit = min(floor() for _ in range(3))
    print("\nThe paper's regression recursion, fused and seeded, one core")
    print(f"   {'':28}{'ns':>6}{'with self-normaliser':>23}{'limit':>8}{'/ numpy uniform':>18}")
    for name, cell, limit in CELLS:
        bare, full = nanoseconds(cell, False), nanoseconds(cell, True)
        allowed = "" if math.isinf(limit) else f"{limit:.0f}"
        print(f"   {name:28}{bare:6.1f}{full:23.1f}{allowed:>8}{full / unit:18.1f}")


if __name__ == "__main__":
    run()
