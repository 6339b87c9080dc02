"""Which slopes to ask together when some matter more: fixed subsets with chosen inclusion probabilities.

Systematic sampling with unequal probabilities (Madow 1949): lay the inclusion probabilities end to end on a line, and
take the slopes that a comb with teeth one apart touches. As the comb moves through [0, 1), at most p + 1 subsets occur.
"""

import itertools

import numpy as np

from sottovoce.core.arrays import Floats


def inclusions(importance: Floats, size: int) -> Floats:
    """Return inclusion probabilities proportional to ``importance`` that add up to ``size``, none above one.

    Examples
    --------
    >>> inclusions(np.array([6.0, 1.0, 1.0]), 2).tolist()
    [1.0, 0.5, 0.5]
    """
    found = np.zeros(len(importance))
    sure = np.zeros(len(importance), dtype=bool)
    while True:
        rest = importance * ~sure
        found = np.where(sure, 1.0, rest * (size - sure.sum()) / max(rest.sum(), 1e-300))
        over = (found > 1 - 1e-12) & ~sure
        if not over.any():
            return found
        sure |= over


def systematic(probabilities: Floats) -> list[tuple[tuple[int, ...], float]]:
    """Return subsets of the slopes 1..p and how often each is asked, with these inclusion probabilities.

    Examples
    --------
    >>> systematic(np.array([1.0, 0.5, 0.5]))
    [((1, 2), 0.5), ((1, 3), 0.5)]
    """
    ends = np.concatenate([[0.0], np.cumsum(probabilities)])
    size = round(float(ends[-1]))
    cuts = np.unique(np.round(np.append(ends % 1.0, [0.0, 1.0]), 12))
    found = []
    for left, right in itertools.pairwise(cuts):
        teeth = (left + right) / 2 + np.arange(size)
        hit = np.searchsorted(ends, teeth, side="right")
        found.append((tuple(sorted({int(j) for j in hit})), float(right - left)))
    return [(subset, share) for subset, share in found if len(subset) == size and share > 1e-9]
