"""The paper's experiments on one split of the records: who trains, who calibrates, who tests, and what comes out.

FedCP-Avg takes at each site the quantile of level ceil((n + 1)(1 - alpha)) / n. The text means the score of that order.
The results that the authors released fit the next one better, which is what a quantile of that level gives when it
takes the upper of two neighbours: position (n - 1) times the level falls just above the order. Both are here.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce_papers.simulation.conformal.baselines import averaged, centralised, split_order
from sottovoce_papers.simulation.conformal.real_scores import Scored
from sottovoce_papers.simulation.conformal.repeat import Setting, federated
from sottovoce_papers.simulation.families import Generator

ALPHA, TEST = 0.1, 0.2


class Split(NamedTuple):
    """Places of the records that train, calibrate and test."""

    train: Any
    calibration: Any
    test: Any


def deal(n: int, records: int, calibrated: int, generator: Generator) -> Split:
    """Deal some of n records: a fifth tests, half of the others trains, and of the rest as many calibrate as asked.

    Of the 1,994 communities two fifths are 797, and the paper calibrates with 800: then fewer train.

    >>> from sottovoce.sim import dice
    >>> [len(part) for part in deal(5000, 1994, 800, dice(1).generator())]
    [795, 800, 399]
    """
    order = generator.permutation(n)[:records]
    test = math.ceil(TEST * records)
    others = len(order) - test
    train = min(others // 2, others - calibrated)
    return Split(order[:train], order[train : train + calibrated], order[-test:])


def thresholds(scores: Floats) -> dict[str, float]:
    """Return each method's threshold from scores (sites, scores): the paper's, its rivals' and ours by default.

    >>> from sottovoce.sim import dice
    >>> found = thresholds(dice(1).generator().random((10, 100)))
    >>> list(found), found["FedCP-Avg"] < 1.0
    (['FedCP-QQ', 'central', 'FedCP-Avg', 'FedCP-Avg, released', 'default'], True)
    """
    sites, size = scores.shape
    one = scores[None]
    return {
        "FedCP-QQ": float(federated(_setting(sites, size, "paper"), one)[0]),
        "central": float(centralised(one, ALPHA)[0]),
        "FedCP-Avg": float(averaged(one, ALPHA)[0]),
        "FedCP-Avg, released": averaged_upper(scores),
        "default": float(federated(_setting(sites, size, "closest"), one)[0]),
    }


def averaged_upper(scores: Floats) -> float:
    """Return the average of the sites' quantiles as the authors' results suggest it.

    >>> averaged_upper(np.arange(1.0, 41.0)[None]), averaged_upper(np.arange(1.0, 11.0)[None])
    (38.0, 10.0)
    """
    n = scores.shape[1]
    level = split_order(n, ALPHA) / n
    return float(np.quantile(scores, min(level, 1.0), axis=1, method="higher").mean())


def measured(threshold: float, test: Scored) -> tuple[float, float]:
    """Return the part of the test records that are covered and the mean length of their intervals.

    >>> measured(0.5, Scored(np.array([0.4, 0.6]), np.array([1.0, -2.0])))
    (0.5, 1.0)
    """
    lengths = np.maximum(test.lengths + 2 * threshold, 0.0)
    return float(np.mean(test.scores <= threshold)), float(np.mean(lengths))


@lru_cache(maxsize=32)
def _setting(sites: int, size: int, rule: str) -> Setting:
    """Return a setting, whose plan is made once."""
    return Setting((size,) * sites, alpha=ALPHA, rule=rule)
