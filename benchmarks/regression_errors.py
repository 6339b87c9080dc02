"""Mean error of the default against the paper's schedule and channels, on the paper's grid, with wrong guesses."""

import math
from collections.abc import Sequence

from benchmarks.regression_cells import run_cell
from sottovoce_papers.simulation.regression.cell import printed
from sottovoce_papers.simulation.regression.default import Setting
from sottovoce_papers.simulation.regression.designs import paper
from sottovoce_papers.simulation.regression.paper import replicate

TAUS, DIMENSIONS, BUDGETS = (0.5, 0.75), (1, 2, 5, 8), (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, math.inf)
PEOPLE = (1000, 3000, 10_000, 30_000, 100_000)
GUESSES = ((1.0, 1.0), (2.0, 1.0), (0.5, 1.0), (1.0, 2.0), (1.0, 0.5))  # density and size, in units of the right ones


def compare(
    tau: float, p: int, epsilon: float, people: Sequence[int], replications: int, guesses: Sequence[tuple[float, float]]
) -> list[float]:
    """Print paper's error / ours at each number of people; return the ratios."""
    paths = replicate(printed(tau, p, epsilon), tuple(people), 1000, seed=71, normaliser=False)
    theirs = paths.errors.mean(axis=0)
    found: list[float] = []
    for density, size in guesses:
        setting = Setting(paper(p), tau, epsilon, "auto", density, size)
        rows = run_cell(setting, people, replications, seed=72)
        ratios = [float(their) / row.error for their, row in zip(theirs, rows, strict=True)]
        found += ratios
        print(
            f"   ({tau:g}, {p}, {epsilon:g}) density x{density:g} size x{size:g}: paper "
            + " ".join(f"{their:.4f}" for their in theirs)
            + "  paper/ours "
            + " ".join(f"{ratio:.2f}" for ratio in ratios),
            flush=True,
        )
    return found


def run(replications: int = 150, people: Sequence[int] = PEOPLE) -> None:
    print("\nMean error of the paper's schedule over ours (1.00: alike), people", *people)
    ratios: list[float] = []
    for tau in TAUS:
        for p in DIMENSIONS:
            for epsilon in BUDGETS:
                ratios += compare(tau, p, epsilon, people, replications, GUESSES)
    print(f"   smallest {min(ratios):.3f}")
