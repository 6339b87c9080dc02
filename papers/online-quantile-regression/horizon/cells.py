"""Write the paper's 56 cells for `recursion.cu`: the designs of `simulation.regression.cell`, as numbers."""

import sys
from pathlib import Path

from sottovoce_papers.simulation.regression.cell import BUDGETS, printed

ORDER = [(tau, p, epsilon) for tau in (0.5, 0.75) for p in (1, 2, 5, 8) for epsilon in (*BUDGETS, float("inf"))]


def line(tau: float, p: int, epsilon: float) -> str:
    """Return one cell: sizes, level, step, chances of the truth, decoded values, coefficients."""
    cell = printed(tau, p, epsilon)
    given = cell.kernel_input()
    faces = list(given.face) if given.q else [0.0, 0.0]
    numbers = [
        given.tau,
        given.scale,
        *given.truth,
        *faces,
        *given.within.ravel(),
        *given.alone,
        *cell.beta,
    ]
    return " ".join([str(p + 1), str(given.q), str(given.s), *(f"{float(value)!r}" for value in numbers)])


def main() -> None:
    """Write the file named by the first argument."""
    Path(sys.argv[1]).write_text("\n".join([str(len(ORDER)), *(line(*cell) for cell in ORDER)]) + "\n")


if __name__ == "__main__":
    main()
