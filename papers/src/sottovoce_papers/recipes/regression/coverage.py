"""Coverage of the paper's intervals by simulation, person by person, as far as a CPU goes (Tables 7 and 16 to 20)."""

from pathlib import Path

from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.recipes.regression.coverage_rows import at, cell_of, rows_of
from sottovoce_papers.simulation.regression.inferred import simulate

VERSION = 1


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Simulate all methods in a cell (tau, p, epsilon) with n people."""
    del data
    n = int(setting["n"])
    return rows_of(simulate(cell_of(setting), n, replications, seed), f"simulated at {at(n)}")


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds: five methods, each asking everybody once."""
    cell = cell_of(setting)
    spoken = cell.s if cell.private else cell.p + 1
    return 1.0 + replications * 5 * float(setting["n"]) * (15e-9 + 15e-9 * spoken)
