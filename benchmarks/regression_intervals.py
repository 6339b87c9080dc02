"""Coverage and length of the default regression's intervals: the named cells, then designs it was not tuned on."""

from benchmarks.regression_cells import line, run_cell
from sottovoce_papers.simulation.regression.catalogue import HELD_OUT, TUNING, design
from sottovoce_papers.simulation.regression.default import Setting
from sottovoce_papers.simulation.regression.designs import paper

PEOPLE = 1_000_000
NAMED = ((0.75, 2, 2.0), (0.5, 5, 4.0), (0.75, 8, 2.0))
LEVELS = ((0.75, 2.0), (0.9, 4.0), (0.1, 4.0), (0.5, 2.0), (0.25, 4.0))


def run(replications: int = 200, people: int = PEOPLE) -> None:
    print("\nIntervals of the default, level .95; length relative to the oracle's with the same channel")
    for tau, p, epsilon in NAMED:
        for row in run_cell(Setting(paper(p), tau, epsilon), [people], replications, seed=501):
            print("  ", line(f"paper ({tau:g}, {p}, {epsilon:g})", row), flush=True)
    for title, names in (("Designs looked at while tuning", TUNING[4:]), ("Held-out designs", HELD_OUT)):
        print("  ", title)
        for name in names:
            for tau, epsilon in LEVELS:
                for row in run_cell(
                    Setting(design(name), tau, epsilon), [people], max(replications // 3, 40), seed=601
                ):
                    print("  ", line(f"{name} ({tau:g}, {epsilon:g})", row), flush=True)
