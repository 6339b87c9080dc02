"""How often the default method's intervals hold the truth of the paper's design, and how often it gives one."""

import math
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import Infeasible
from sottovoce.server.regression.dithered.fit import DitheredFit
from sottovoce_papers.simulation.regression.default import Setting, replicate

LEVEL = 0.95


class Answers(NamedTuple):
    """One row a replication; what has no ends, or was refused, is NaN.

    ``low`` and ``high`` are ends of the intervals of the coefficients and of their sum over sqrt(d), less the truth;
    ``statistic`` is the truth's place relative to the ellipsoid's edge, which is 1.
    """

    low: Floats  # (replications, d + 1)
    high: Floats
    statistic: Floats
    volume: Floats
    errors: Floats


def answers(setting: Setting, n: int, replications: int, seed: int) -> Answers:
    """Run the default method many times, seeded, on one thread.

    Examples
    --------
    >>> from sottovoce_papers.simulation.regression.designs import paper
    >>> few = answers(Setting(paper(1), 0.5, 2.0, "cq:2,1"), 100, 2, seed=1)
    >>> few.low.shape, bool(np.isnan(few.low).all())
    ((2, 3), True)
    """
    beta = setting.design.beta
    contrasts = np.concatenate([np.eye(len(beta)), np.full((1, len(beta)), 1 / math.sqrt(len(beta)))])

    def keep(fit: DitheredFit) -> tuple[Floats, float, float, float]:
        ends = np.array([_interval(fit, contrast) for contrast in contrasts]) - (contrasts @ beta)[:, None]
        statistic, volume = _ellipsoid(fit, beta)
        return ends, statistic, volume, float(np.linalg.norm(fit.point[0] - beta))

    kept = [run[0] for run in replicate(setting, [n], keep, replications, seed, threads=1)]
    ends, statistics, volumes, errors = (np.array(part) for part in zip(*kept, strict=True))
    return Answers(ends[:, :, 0], ends[:, :, 1], statistics, volumes, errors)


def _interval(fit: DitheredFit, contrast: Floats) -> tuple[float, float]:
    low, high = fit.interval(0, contrast, LEVEL)
    return (low, high) if math.isfinite(low) else (math.nan, math.nan)


def _ellipsoid(fit: DitheredFit, beta: Floats) -> tuple[float, float]:
    try:
        found = fit.ellipsoid(0, LEVEL)
    except Infeasible:
        return math.nan, math.nan
    return found.statistic(beta) / found.radius2, found.volume
