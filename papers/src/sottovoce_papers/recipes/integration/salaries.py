"""Recipe of Table 1 of the paper on data integration: one region's salaries, over many throws of the dice.

``reading`` says how logarithms were taken and where chains started ("thousands", "dollars", "near"). The default takes
no logarithm and searches its start; most people round salaries to thousands, hence its resolution.
"""

import math
from pathlib import Path

import numpy as np

from sottovoce.api.integration import integrated_quantile
from sottovoce.core.arrays import Floats
from sottovoce.sim.randomness import SeededSource, dice
from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import Measure, mean, share
from sottovoce_papers.simulation.integration.gov_census import read_regions
from sottovoce_papers.simulation.integration.salary_table import NAMES, RATES, TARGET, Answers, chains_of_salaries

VERSION = 1
STEP = 1_000.0


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Run one level and setting of the rates: the paper's methods under one reading, or the default."""
    regions = {name: values for name, values in read_regions(data).items() if name in NAMES}
    tau, rates = float(setting["tau"]), RATES[str(setting["rate"])]
    throws = dice(seed).split(replications)
    truth = float(np.quantile(regions[TARGET], tau, method="inverted_cdf"))
    if setting.get("method") == "default":
        return [Row({}, measures(*by_default(regions, tau, rates, throws), truth))]
    found = chains_of_salaries(regions, tau, rates, str(setting["reading"]), [each.generator() for each in throws])
    return [Row({"method": method}, measures(said, said, truth)) for method, said in found.items()]


def by_default(
    regions: dict[str, Floats], tau: float, rates: tuple[float, ...], throws: list[SeededSource]
) -> tuple[Answers, Answers]:
    """Ask the regions by the default; return what it says before its ends are rounded to thousands, and after."""
    budgets = {
        name: math.inf if rate == 1 else math.log((1 + rate) / (1 - rate))
        for name, rate in zip(NAMES, rates, strict=True)
    }
    before, after = [], []
    for each in throws:
        found = integrated_quantile(TARGET, regions, tau, budgets, resolution=STEP, randomness=each)
        before.append((found.combination.estimate, found.combination.low, found.combination.high))
        after.append((found.estimate, *found.interval))
    return Answers(*np.array(before, dtype=np.float64).T), Answers(*np.array(after, dtype=np.float64).T)


def measures(said: Answers, given: Answers, truth: float) -> dict[str, Measure]:
    """Measure estimate, length, and how far and how often the quantile of the target's own records is met."""
    return {
        "estimate": mean(said.estimates),
        "interval_length": mean(said.high - said.low),
        "error": mean(np.abs(said.estimates - truth)),
        "coverage": share((given.low <= truth) & (given.high >= truth)),
    }


def cost(setting: Setting, replications: int) -> float:
    """Guess the seconds."""
    return 0.5 + replications * (0.04 if setting.get("method") == "default" else 0.006)
