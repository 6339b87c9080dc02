"""The paper's recursion simulated: mean error at its horizons, with the step as printed or divided by a normaliser."""

from pathlib import Path

from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import mean
from sottovoce_papers.simulation.regression.cell import printed
from sottovoce_papers.simulation.regression.paper import replicate

VERSION = 1
HORIZONS = tuple(m * 10**k for k in range(3, 9) for m in (1, 3))
"""Where the paper looks."""

KEPT = 1_000_000  # from which horizon on every run's error is kept, for the slope of Table 3


def looks(until: float) -> list[int]:
    """Return the paper's horizons up to one.

    >>> looks(1e4)
    [1000, 3000, 10000]
    """
    return [n for n in HORIZONS if n <= until]


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Run the recursion with Table 2's channel (epsilon "inf": without privacy) to ``until`` reports."""
    del data
    tau, p, epsilon = float(setting["tau"]), int(setting["p"]), float(setting["epsilon"])
    cell = printed(tau, p, epsilon, normalised=setting["step"] == "normalised")
    horizons = looks(float(setting["until"]))
    errors = replicate(cell, horizons, replications, seed, normaliser=False, threads=1).errors
    method = "CQ" if cell.private else "nonprivate"
    return [
        Row(
            {"method": method, "n": n, "reading": f"{setting['step']} step"},
            {"error": mean(errors[:, at])},
            {"errors": errors[:, at].tolist()} if n >= KEPT else {},
        )
        for at, n in enumerate(horizons)
    ]


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds: some 15 ns an update, more for a block of several coordinates."""
    cell = printed(float(setting["tau"]), int(setting["p"]), float(setting["epsilon"]))
    each = 15e-9 if cell.private and cell.s == 1 else 15e-9 + 6e-9 * (cell.s if cell.private else cell.p + 1)
    return each * float(setting["until"]) * replications
