"""Table B.2 of the paper on data integration again: how often its intervals cover, by the power of the step.

The target has 20,000 standard normal records, three sources 60,000 each with another median; every chain starts at 0.
The text says "between 8 and 20" chains: 10 at the target is clear from the coverage without help, 20 at the sources
fits best within that range. Steps are those of (3.6), variances the printed ``sum w_k v_k``, quantiles normal.
"""

import math
from typing import NamedTuple

import numpy as np

from sottovoce.inference.common.measured import SiteEstimate
from sottovoce.inference.integration.weighted import paper
from sottovoce_papers.simulation.integration.paper_chains import PaperSite, Replicated, replicate

POWERS = (0.65, 0.70, 0.75)
SHIFTS = tuple(math.exp(power) for power in (-5, -4.5, -4, -3.5, -2, -1.5, -1, -0.5, 0))
"""As printed: e^-3 and e^-2.5, where coverage is lowest, are missing."""
METHODS = {"ADP(1)": "adaptive", "ADP(cons)": "conservative-paper", "ADP(decay)": "decay"}
"""The paper's names and ours."""
SOURCES, LEVEL = 3, 0.95


class Cell(NamedTuple):
    """One column of the table: the power of the step, the shift of the sources' medians, and the sites' sizes."""

    power: float
    shift: float
    target: tuple[int, int] = (20_000, 10)  # records and chains
    source: tuple[int, int] = (60_000, 20)

    @property
    def records(self) -> int:
        """Return the number of records of all sites."""
        return self.target[0] + SOURCES * self.source[0]


def coverage(
    cell: Cell,
    replications: int,
    seed: int,
    *,
    variance: str = "printed",
    quantile: str = "z",
    threads: int = 2,
) -> dict[str, float]:
    """Return the part of the intervals that cover the target's median, by the paper's name of the method.

    Parameters
    ----------
    cell
        What is simulated.
    replications
        How many times.
    seed
        Where all words come from; no two cells share any.
    variance
        "printed" or "theorem" (`inference.integration.weighted`).
    quantile
        "z", as in the paper, or "t".
    threads
        How many blocks of replications run at once.

    Examples
    --------
    >>> found = coverage(Cell(0.7, 1.0, (400, 4), (1200, 4)), 5, seed=1)
    >>> list(found), all(0 <= part <= 1 for part in found.values())
    (['ADP(1)', 'ADP(cons)', 'ADP(decay)'], True)
    """
    power, shift = cell.power, cell.shift
    first, second = np.random.SeedSequence([seed, _key(power), _key(shift)]).spawn(2)
    target = replicate(PaperSite(*cell.target, power=power), replications, first, threads)
    helpers = replicate(PaperSite(*cell.source, shift=shift, power=power), SOURCES * replications, second, threads)
    targets, sources = _measured(target, cell.target[1]), _measured(helpers, cell.source[1])
    covered = dict.fromkeys(METHODS, 0)
    for r, own in enumerate(targets):
        others = sources[SOURCES * r : SOURCES * (r + 1)]
        for name, method in METHODS.items():
            found = paper(method, own, others, LEVEL, records=cell.records, variance=variance, quantile=quantile)
            covered[name] += found.low <= 0.0 <= found.high
    return {name: count / replications for name, count in covered.items()}


def _key(number: float) -> int:
    """Return a number as an integer that a seed can be made of."""
    return round(1e6 * number)


def _measured(runs: Replicated, chains: int) -> list[SiteEstimate]:
    """Return every replication as an estimate with its error."""
    return [
        SiteEstimate(estimate, error, chains - 1)
        for estimate, error in zip(runs.estimates.tolist(), np.sqrt(runs.variances).tolist(), strict=True)
    ]
