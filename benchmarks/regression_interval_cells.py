"""The cells in which a regression's intervals are judged: designs that constants were set on, and others."""

from typing import NamedTuple

from sottovoce_papers.simulation.populations import population
from sottovoce_papers.simulation.regression.catalogue import design as named
from sottovoce_papers.simulation.regression.covariates import Covariates, Margin
from sottovoce_papers.simulation.regression.default import Setting
from sottovoce_papers.simulation.regression.designs import Design

BELL, SKEW = Margin("beta", (12, 12)), Margin("beta", (2, 4))

_ADDED = [
    Design("refused-gumbel", Covariates((SKEW, SKEW), 0.5), (0.8, -0.5, 0.3), population("gumbel").moved(0.0, 0.7)),
    Design(
        "narrow4-gumbel",
        Covariates((BELL,) * 4, 0.2),
        (0.3, 0.5, -0.5, 0.4, -0.4),
        population("gumbel").moved(0.0, 0.5),
    ),
    Design(
        "rare-logistic",
        Covariates((Margin("uniform"), Margin("sign", (0.03,)))),
        (0.2, 0.5, -0.4),
        population("logistic").moved(0.0, 0.5),
    ),
    # not known when the method was made
    Design(
        "mixed-gamma",
        Covariates((Margin("uniform"), Margin("sign", (0.6,)), Margin("sign", (0.25,)), Margin("beta", (3, 5))), 0.25),
        (0.4, 0.5, -0.3, 0.4, -0.6),
        population("gamma", 2.0).moved(0.0, 0.5),
        tilt=0.25,
    ),
    Design(
        "opposed-normal",
        Covariates((Margin("beta", (4, 4)),) * 3, -0.3),
        (-0.4, 0.8, 0.6, 0.4),
        population("normal").moved(0.0, 0.8),
        tilt=-0.3,
    ),
    Design(
        "twin-student",
        Covariates((Margin("uniform"),) * 2, 0.8),
        (0.1, 0.7, -0.5),
        population("student", 4.0).moved(0.0, 0.5),
    ),
]
ADDED = {one.name: one for one in _ADDED}


class IntervalCell(NamedTuple):
    """A design, a level and a budget."""

    design: str
    tau: float
    epsilon: float

    @property
    def name(self) -> str:
        """Return the name of the cell."""
        return f"{self.design},{self.tau:g},{self.epsilon:g}"

    @property
    def setting(self) -> Setting:
        """Return what is run: all guesses are public ones, the same for every design."""
        return Setting(ADDED[self.design] if self.design in ADDED else named(self.design), self.tau, self.epsilon)


CELLS = tuple(
    IntervalCell(*parts)
    for parts in (
        ("refused-gumbel", 0.75, 2),
        ("paper-2", 0.75, 2),
        ("paper-8", 0.75, 2),
        ("narrow-logistic", 0.5, 2),
        ("heteroscedastic-t3", 0.75, 2),
        ("tilted-lognormal", 0.9, 4),
        ("heteroscedastic-t3", 0.1, 4),
        ("skewed-exponential", 0.9, 2),
        ("two-hills", 0.75, 2),
        ("chain-cauchy", 0.5, 4),
        ("narrow4-gumbel", 0.25, 4),
        ("many-correlated", 0.5, 4),
        ("refused-gumbel", 0.75, 1),
        ("paper-2", 0.75, 1),
        ("refused-gumbel", 0.75, 8),
        ("paper-2", 0.1, 4),
        ("binary-laplace", 0.25, 2),
        ("rare-logistic", 0.5, 4),
        ("many-correlated", 0.5, 2),
        ("paper-8", 0.75, 1),
        ("paper-8", 0.75, 4),
        ("paper-5", 0.5, 4),
        ("ends-normal", 0.5, 2),
        ("correlated-gumbel", 0.9, 4),
        ("mixed-gamma", 0.5, 2),
        ("mixed-gamma", 0.9, 4),
        ("opposed-normal", 0.25, 2),
        ("twin-student", 0.5, 2),
        ("twin-student", 0.8, 4),
    )
)
"""The cells of the measured table; the last ones, from paper-5 on, were no part of it when constants were set."""
