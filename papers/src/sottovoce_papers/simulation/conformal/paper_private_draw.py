"""One private calibration on given scores: the paper's algorithm as printed, and the sparse vector.

The paper lets the grid of B bins end at the largest calibration score, which is not private; where no part of the
miscoverage set aside is feasible it has no rule, and that largest score is returned. Ours ends at a maximum that must
be public, and has one bin more, without an end.
"""

import math
from functools import lru_cache

import numpy as np

from sottovoce.core.arrays import Floats, Ints
from sottovoce.protocol.selection import selection
from sottovoce.server.conformal.coverage.equal import PrivatePair, paper_private
from sottovoce_papers.simulation.conformal.repeat import Setting, weighted_ranks
from sottovoce_papers.simulation.conformal.selections import draw_cells
from sottovoce_papers.simulation.families import Generator

ALPHA, BINS = 0.1, 100


def paper_threshold(scores: Floats, epsilon: float, generator: Generator) -> float:
    """Return the threshold of FedCP2-QQ from scores (sites, scores).

    >>> from sottovoce.sim import dice
    >>> scores = np.linspace(0.0, 1.0, 1000).reshape(5, 200)
    >>> paper_threshold(scores, 1.0, dice(1).generator())
    1.0
    """
    sites, size = scores.shape
    pair, top = _asked(sites, size, epsilon), float(scores.max())
    if pair is None or top <= 0:
        return top
    edges = np.linspace(0.0, top, BINS + 1)[1:]
    edges[-1] = top  # rounding must not leave the largest score outside
    named = draw_cells(selection("paper", size, pair.order, BINS, epsilon), _counts(scores, edges)[:, :-1], generator)
    return float(np.sort(edges[named])[pair.rank - 1])


def default_threshold(scores: Floats, epsilon: float, maximum: float, generator: Generator) -> float:
    """Return the threshold of the sparse vector over a grid that ends at a public maximum; it may be infinite.

    >>> from sottovoce.sim import dice
    >>> scores = dice(1).generator().random((5, 200))
    >>> 0.8 < default_threshold(scores, 5.0, 1.0, dice(2).generator()) < 1.0
    True
    """
    sites, size = scores.shape
    choice = _setting(sites, size, epsilon).plan.choice
    edges = np.linspace(0.0, maximum, BINS + 1)[1:]
    mechanism = selection("sparse-vector", size, choice.orders[0][0], BINS + 1, epsilon)
    named = draw_cells(mechanism, _counts(scores, edges), generator)
    values = np.append(edges, math.inf)[named][None]
    return float(weighted_ranks(values, np.full(sites, choice.votes[0]), np.array([choice.rank]))[0])


def _counts(scores: Floats, edges: Floats) -> Ints:
    """Return how many scores of each site lie in each bin (e, e'], the last without an end; the first has all below."""
    cells = np.searchsorted(edges, scores, side="left")
    return np.stack([np.bincount(row, minlength=len(edges) + 1) for row in cells]).astype(np.int64)


@lru_cache(maxsize=32)
def _asked(sites: int, size: int, epsilon: float) -> PrivatePair | None:
    return paper_private(sites, size, ALPHA, epsilon, BINS)


@lru_cache(maxsize=32)
def _setting(sites: int, size: int, epsilon: float) -> Setting:
    return Setting((size,) * sites, (epsilon,) * sites, "sparse-vector", BINS, ALPHA)
