"""The figures a target helped by sources must reach, on a few families; minutes, so `slow`.

Coverage is compared with its floor by a binomial test, and with the target's own, on the same replications, by a
McNemar-like bound: false alarm 1e-6 over all cases together. Means and medians are compared with the figure itself.
"""

import math

import numpy as np
import pytest
from benchmarks.integration_cells import Case, cases, fill_pools
from scipy.special import bdtr

from sottovoce.inference.common.normal import two_sided
from sottovoce_papers.simulation.integration.grid import Score

FAMILIES = ["normal", "gamma(2)", "gumbel"]
TARGETS, SOURCES = 1200, 400
FALSE_ALARM = 1e-6


def plausible(found: Score, floor: float, tried: int) -> bool:
    """Tell whether a case's count of covering runs could come from a coverage of at least ``floor``."""
    covered = round(found.valid * found.replications)
    return float(bdtr(covered, found.replications, floor)) > FALSE_ALARM / tried


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["tau .25, 20,000", "tau .5, 20,000"])
def test_help_keeps_its_promises(setting: str) -> None:
    pools = fill_pools(FAMILIES, setting, TARGETS, SOURCES, seed=77)
    scored: list[tuple[Case, Score]] = list(cases(FAMILIES, setting, pools, bounded=True))
    tried = len(scored)
    assert tried > 1000
    assert [case for case, found in scored if found.target >= 0.945 and not plausible(found, 0.94, tried)] == []
    # at most one run in ten changes sides, so the difference of two coverages has this error or less
    slack = two_sided(1 - FALSE_ALARM / tried) * math.sqrt(0.1 / TARGETS)
    assert min(found.valid - found.target for _, found in scored) > -0.012 - slack
    assert max(found.length for _, found in scored) <= 1.035
    agreed = [found for case, found in scored if case.shift == 0]
    assert max(found.length for found in agreed) <= 0.96
    assert np.median([found.error for found in agreed]) <= 0.70
    assert max(found.error for _, found in scored) <= 1.20
    bounded = [found for _, found in scored if not math.isnan(found.bounded)]
    assert min(found.bounded for found in bounded) > 0.93 - two_sided(1 - FALSE_ALARM) * math.sqrt(0.93 * 0.07 / 400)
    assert max(found.bounded_length for found in bounded) <= 0.90
