"""The cells on which the staged design is judged: families, levels, rates and sizes."""

from collections.abc import Iterator

from sottovoce.server.quantile.feasibility import PAIRS
from sottovoce_papers.simulation.experiment import StagedCell
from sottovoce_papers.simulation.populations import Population, blend, homogeneous, population

SITES = 10
BANDS = ((0.0, 0.006), (0.006, 0.02), (0.02, 0.04), (0.04, 0.15))  # stages in the first three, pairs in the last

# the constants of the method were chosen on these ...
TUNED: dict[str, Population] = {
    "normal": population("normal"),
    "exponential x30": population("exponential").moved(0, 30),
    "uniform": population("uniform"),
    "lognormal $": population("lognormal", 0.8).moved(0, 48_000),
    "t3 at 1e6": population("student", 3.0).moved(1e6),
    "cauchy": population("cauchy").moved(3, 2),
    "lomax 1.2": population("lomax", 1.2),
    "chi2 of one x1e5": population("gamma", 0.5).moved(0, 2e5),
    "two exponentials": blend([population("exponential"), population("exponential").moved(0, 20)], [0.5, 0.5]),
}
# ... and not on these; the Laplace law and the skewed mixture were looked at on the way, the other eight never
UNSEEN: dict[str, Population] = {
    "gumbel 1e-6": population("gumbel").moved(0, 1e-6),
    "logistic at -2e4": population("logistic").moved(-2e4, 100),
    "laplace": population("laplace").moved(7, 5),
    "weibull .8": population("weibull", 0.8),
    "weibull 5": population("weibull", 5.0).moved(1e4, 3),
    "rayleigh": population("rayleigh").moved(0, 3),
    "t5 at 1e8": population("student", 5.0).moved(1e8, 1),
    "gamma 4 x1e-3": population("gamma", 4.0).moved(0, 1e-3),
    "lomax 3": population("lomax", 3.0).moved(0, 900),
    "skewed mixture": blend([population("normal"), population("normal").moved(2.5, 2)], [0.7, 0.3]),
}
VALLEYS: dict[str, tuple[Population, float]] = {
    "N(-2,1) | N(2,1)": (blend([population("normal").moved(-2), population("normal").moved(2)], [0.5, 0.5]), 0.5),
    "N(0,1) | N(5,1)": (blend([population("normal"), population("normal").moved(5)], [0.6, 0.4]), 0.6),
    "logistic | laplace": (
        blend([population("logistic").moved(-5, 1), population("laplace").moved(6, 1.5)], [0.45, 0.55]),
        0.45,
    ),
    "three modes": (
        blend(
            [population("normal").moved(-4), population("normal").moved(0, 0.7), population("normal").moved(6, 2)],
            [0.4, 0.35, 0.25],
        ),
        0.4,
    ),
}

# the density has a kink just where the second mode begins: the default covers .54 to .90 here
KINKED: dict[str, tuple[Population, float]] = {
    "gamma | gamma": (blend([population("gamma", 3.0), population("gamma", 3.0).moved(8, 1.0)], [0.4, 0.6]), 0.4),
}


def staged_cells(families: dict[str, Population]) -> Iterator[StagedCell]:
    """Yield every cell that passes the gate."""
    for name, distribution in families.items():
        for tau in (0.1, 0.3, 0.5, 0.75, 0.9):
            for rate in (0.25, 0.9):
                for records in (20_000, 100_000, 1_000_000):
                    cell = StagedCell(
                        f"{name}, {tau}, r={rate}, N={records:,}",
                        homogeneous(distribution, SITES),
                        tau,
                        (rate,) * SITES,
                        (records // SITES,) * SITES,
                    )
                    if cell.support <= PAIRS.at(tau).refuse:
                        yield cell


def valley_cells(valleys: dict[str, tuple[Population, float]] = VALLEYS) -> Iterator[StagedCell]:
    """Yield cells whose quantile lies between two modes."""
    for name, (distribution, tau) in valleys.items():
        for rate in (0.25, 0.9):
            for records in (100_000, 1_000_000):
                yield StagedCell(
                    f"{name}, {tau}, r={rate}, N={records:,}",
                    homogeneous(distribution, SITES),
                    tau,
                    (rate,) * SITES,
                    (records // SITES,) * SITES,
                )
