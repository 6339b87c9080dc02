"""The paper's weighted estimators of many replications at once, equal to `paper_weights` one by one."""

import math
from typing import NamedTuple

import numpy as np

from sottovoce.core.arrays import Floats
from sottovoce.inference.common.normal import two_sided
from sottovoce_papers.simulation.integration.paper_chains import Replicated

METHODS = ("ADP(1)", "ADP(decay)", "ADP(cons)", "IVW")
CAUTION = 1.96


class Weighed(NamedTuple):
    """One number a replication: estimate, and half the interval by the printed variance and by Theorem 4.2's."""

    estimates: Floats
    printed: Floats
    theorem: Floats


def penalty(method: str, records: int) -> float:
    """Return the paper's lambda.

    >>> penalty("ADP(cons)", 200_000), penalty("IVW", 200_000), round(penalty("ADP(decay)", 200_000), 4)
    (1.0, 0.0, 0.1365)
    """
    return {"IVW": 0.0, "ADP(decay)": 5 * math.log(records) / math.sqrt(records)}.get(method, 1.0)


def weigh(method: str, target: Replicated, sources: list[Replicated], records: int, level: float = 0.95) -> Weighed:
    """Combine a target and its sources, replication by replication.

    Parameters
    ----------
    method
        One of ``METHODS``.
    target
        The site whose quantile is wanted.
    sources
        Sites that may help, each with as many replications.
    records
        Number of records of all sites together.
    level
        The confidence level; quantiles are normal, as in the paper.

    Examples
    --------
    >>> target = Replicated(np.array([0.0]), np.array([1.0]))
    >>> found = weigh("IVW", target, [Replicated(np.array([1.0]), np.array([0.25]))], 40_000)
    >>> round(float(found.estimates[0]), 3), round(float(found.printed[0] / found.theorem[0]), 3)
    (0.8, 1.414)
    """
    estimates = np.stack([target.estimates, *(site.estimates for site in sources)], axis=1)
    variances = np.stack([target.variances, *(site.variances for site in sources)], axis=1)
    shifts = np.abs(estimates - estimates[:, :1])
    if method == "ADP(cons)":
        shifts[:, 1:] += CAUTION * np.sqrt(variances[:, :1] + variances[:, 1:])
    weights = 1 / (variances + penalty(method, records) * shifts**2)
    weights /= weights.sum(axis=1, keepdims=True)
    z = two_sided(level)
    return Weighed(
        np.sum(weights * estimates, axis=1),
        z * np.sqrt(np.sum(weights * variances, axis=1)),
        z * np.sqrt(np.sum(weights**2 * variances, axis=1)),
    )
