"""Recipe of Table B.1 of the paper on data integration: the biases of its nine levels, as the simulations use them."""

import math
from pathlib import Path

from sottovoce_papers.harness.cell import Row, Setting
from sottovoce_papers.harness.measure import exact
from sottovoce_papers.simulation.integration.shifts import patterns

VERSION = 1


def run(setting: Setting, replications: int, seed: int, data: Path | None) -> list[Row]:
    """Return each source's bias times the root of the target's number of records."""
    del replications, seed, data
    n = int(setting["n0"])
    return [
        Row(
            {"level": point.where["level"], "source": k},
            {"bias_times_root_n": exact(shift * math.sqrt(n)), "bias": exact(shift)},
        )
        for point in patterns("levels", 3, n)
        for k, shift in enumerate(point.shifts, start=1)
    ]


def cost(setting: Setting, replications: int) -> float:
    """Return next to nothing."""
    del setting, replications
    return 0.01
