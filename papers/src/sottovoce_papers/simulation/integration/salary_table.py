"""Table 1 of the paper on data integration: Rocky Mountain's salaries, helped by three larger regions.

The text takes logarithms and starts every chain at 0. Of dollars, chains that start at 0 do not arrive; of thousands of
dollars they arrive late, and that is what the printed numbers show. Lengths and estimates are in dollars again.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce_papers.simulation.families import Generator
from sottovoce_papers.simulation.integration.paper_chains import Replicated
from sottovoce_papers.simulation.integration.record_chains import Asking, alone, chain_averages
from sottovoce_papers.simulation.integration.weighing import weigh

TARGET, SOURCES = "Rocky Mountain", ("Southeast", "Far West", "Mideast")
NAMES = (TARGET, *SOURCES)
METHODS = ("ADP(1)", "ADP(decay)", "ADP(cons)", "IVW")
CHAINS = 10
STARTS = {"thousands": (1_000.0, 0.0), "dollars": (1.0, 0.0), "near": (1_000.0, math.log(30.0))}
"""The unit that is taken out before the logarithm, and the start on that scale, by the name of the reading."""
RATES = {"0.7": (0.7, 0.7, 0.7, 0.7), "hetero": (0.7, 0.8, 0.9, 1.0)}


class Answers(NamedTuple):
    """One number a replication, in dollars."""

    estimates: Floats
    low: Floats
    high: Floats


def chains_of_salaries(
    regions: Mapping[str, Floats], tau: float, rates: tuple[float, ...], reading: str, runs: list[Generator]
) -> dict[str, Answers]:
    """Ask the four regions once a run by the paper's chains; return what each of its methods says.

    Parameters
    ----------
    regions
        Salaries in dollars, by region.
    tau
        The level.
    rates
        Of truthful answers, target first.
    reading
        One of ``STARTS``.
    runs
        A generator a run.

    Examples
    --------
    >>> from sottovoce.sim.randomness import dice
    >>> regions = {name: np.linspace(2e4, 8e4, 2_000) for name in NAMES}
    >>> found = chains_of_salaries(regions, 0.5, RATES["0.7"], "near", [dice(1).generator()])
    >>> list(found), bool(abs(found["Target"].estimates[0] - 50_000) < 5_000)
    (['ADP(1)', 'ADP(decay)', 'ADP(cons)', 'IVW', 'Target'], True)
    """
    unit, start = STARTS[reading]
    logs = [np.log(regions[name] / unit) for name in NAMES]
    askings = [Asking(tau, rate, start) for rate in rates]
    averages = np.empty((len(NAMES), len(runs), CHAINS))
    single = np.empty((len(runs), 2))
    for i, generator in enumerate(runs):
        for k, (records, asking) in enumerate(zip(logs, askings, strict=True)):
            averages[k, i] = chain_averages(records, CHAINS, asking, generator)
        single[i] = alone(logs[0], askings[0], generator)
    target, *sources = (Replicated(site.mean(1), site.var(1, ddof=1) / CHAINS) for site in averages)
    everybody = sum(len(site) for site in logs)
    found = {}
    for method in METHODS:
        said = weigh(method, target, sources, everybody)
        found[method] = _dollars(said.estimates, said.printed, unit)
    found["Target"] = _dollars(single[:, 0], single[:, 1], unit)
    return found


def _dollars(estimates: Floats, halves: Floats, unit: float) -> Answers:
    """Undo the logarithm."""
    return Answers(unit * np.exp(estimates), unit * np.exp(estimates - halves), unit * np.exp(estimates + halves))
