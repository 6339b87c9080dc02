"""Write the paper's 56 cells for `recursion.cu`: the designs of `simulation.regression.cell`, as numbers."""

import sys
from pathlib import Path

from sottovoce_papers.simulation.regression.cell import BUDGETS, printed

ORDER = [(tau, p, epsilon) for tau in (0.5, 0.75) for p in (1, 2, 5, 8) for epsilon in (*BUDGETS, float("inf"))]


def line(tau: float, p: int, epsilon: float) -> str:
    """Return one cell: sizes, level, step, chances of the truth, decoded values, coefficients."""
    cell = printed(tau, p, epsilon)
    law = cell.law()
    faces = list(law.face) if law.q else [0.0, 0.0]
    numbers = [law.tau, law.scale, *law.truth, *faces, *law.within.ravel(), *law.alone, *cell.beta]
    return " ".join([str(p + 1), str(law.q), str(law.s), *(f"{float(value)!r}" for value in numbers)])


def main() -> None:
    """Write the file named by the first argument."""
    Path(sys.argv[1]).write_text("\n".join([str(len(ORDER)), *(line(*cell) for cell in ORDER)]) + "\n")


if __name__ == "__main__":
    main()
