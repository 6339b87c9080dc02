"""Recipe of Table 3 of the federated paper: salaries of seven regions, over many throws of the dice.

The three smallest regions are merged and all are drawn to 53,960 records, anew in every replication. ``reading`` says
of what logarithms are taken, "thousands" or "dollars"; the default takes none, and asks the records as they are.
"""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sottovoce.api.quantile.federated import federated_quantile
from sottovoce.core.arrays import Floats
from sottovoce.sim.randomness import SeededSource, dice
from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import Measure, exact, mean, share
from sottovoce_papers.simulation.integration.gov_census import equal_quantile, merged, oversampled, read_regions
from sottovoce_papers.simulation.methods import SelfNormalised

VERSION = 1
RECORDS, STEP = 53_960, 1_000.0
SCHEDULES = {"C1": "every:1", "C5": "every:5", "Log": "log"}
UNITS = {"thousands": 1_000.0, "dollars": 1.0}


class Said(NamedTuple):
    """Estimate and interval in dollars; ``given`` is the interval after its ends are rounded."""

    estimate: float
    low: float
    high: float
    given: tuple[float, float]


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Run one level, setting of the rates and method."""
    regions, tau = merged(read_regions(data)), float(setting["tau"])
    method, reading = str(setting["method"]), str(setting.get("reading", ""))
    if method == "Empirical":
        everybody = np.concatenate(list(regions.values()))
        return [Row({}, {"estimate": exact(float(np.quantile(everybody, tau, method="inverted_cdf")))})]
    rates, throws = rates_of(str(setting["rate"]), len(regions)), dice(seed).split(replications)
    if method == "default":
        said = [by_default(regions, tau, rates, each) for each in throws]
    else:
        said = [walked(regions, tau, rates, SCHEDULES[method], UNITS[reading], each) for each in throws]
    return [Row({}, measures(said, equal_quantile(regions, tau)))]


def rates_of(name: str, sites: int) -> tuple[float, ...]:
    """Return the rate of each site.

    >>> rates_of("hetero", 3), rates_of("0.9", 2)
    ((0.6, 0.75, 0.9), (0.9, 0.9))
    """
    if name == "hetero":
        return tuple(float(rate) for rate in np.round(np.linspace(0.6, 0.9, sites), 12))
    return (float(name),) * sites


def walked(
    regions: dict[str, Floats], tau: float, rates: tuple[float, ...], schedule: str, unit: float, throw: SeededSource
) -> Said:
    """Return estimate and ends in dollars by the paper's walk over logarithms, from a standard normal start."""
    generator = throw.generator()
    sample = [np.log(oversampled(records, RECORDS, generator) / unit) for records in regions.values()]
    method = SelfNormalised(tau, rates, schedule=schedule, own=False)
    found = method(sample, int(generator.integers(2**62)), 0.95)
    point, low, high = (unit * math.exp(end) for end in (found.point, found.low, found.high))
    return Said(point, low, high, (low, high))


def by_default(regions: dict[str, Floats], tau: float, rates: tuple[float, ...], throw: SeededSource) -> Said:
    """Return estimate and ends by the default, every region counting the same; most people round to thousands."""
    budgets = {
        name: math.inf if rate == 1 else math.log((1 + rate) / (1 - rate))
        for name, rate in zip(regions, rates, strict=True)
    }
    found = federated_quantile(regions, tau, budgets, shares="equal", resolution=STEP, randomness=throw)
    low, high = found.solution.interval(0.95)
    return Said(found.solution.point, low, high, (float(found.interval.low), float(found.interval.high)))


def measures(said: list[Said], truth: float) -> dict[str, Measure]:
    """Measure estimate, length, and how far and how often the quantile with equal shares is met."""
    estimates = np.array([each.estimate for each in said])
    return {
        "estimate": mean(estimates),
        "interval_length": mean([each.high - each.low for each in said]),
        "error": mean(np.abs(estimates - truth)),
        "coverage": share([each.given[0] <= truth <= each.given[1] for each in said]),
    }


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds."""
    return 0.5 + replications * {"Empirical": 0.0, "default": 0.035}.get(str(setting["method"]), 0.022)
