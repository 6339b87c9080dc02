"""Pearson's chi-square, to tell whether a fast path draws from the distribution of the path that ships."""

import numpy as np

from sottovoce.core.arrays import Floats, Ints

LEAST = 8.0  # expected in a group of cells: rare cells are taken together


def against_distribution(found: Ints, distribution: Floats) -> tuple[float, int]:
    """Return the statistic of counts against a distribution, and its degrees of freedom.

    >>> against_distribution(np.array([60, 40]), np.array([0.5, 0.5]))
    (4.0, 1)
    """
    expected, seen = _grouped(distribution * found.sum(), found)
    return float(((seen - expected) ** 2 / expected).sum()), len(seen) - 1


def against_each_other(one: Ints, two: Ints) -> tuple[float, int]:
    """Return the statistic of two samples' counts, and its degrees of freedom.

    >>> against_each_other(np.array([60, 40, 0]), np.array([40, 60, 0]))
    (8.0, 1)
    """
    total = one.sum() + two.sum()
    expected, first, second = _grouped((one + two) * float(min(one.sum(), two.sum())) / total, one, two)
    held = expected > 0
    share = np.sqrt(two.sum() / one.sum())
    apart = (first * share - second / share) ** 2 / np.where(held, first + second, 1.0)
    return float(apart[held].sum()), int(held.sum()) - 1


def _grouped(expected: Floats, *found: Ints) -> list[Floats]:
    """Take rare cells together, the rarest first."""
    order = np.argsort(expected, kind="stable")
    groups, held = np.zeros(len(order), dtype=np.int64), 0.0
    for place, cell in enumerate(order):
        groups[place:] = groups[place - 1] + 1 if place and held >= LEAST else groups[place]
        held = (0.0 if place and held >= LEAST else held) + float(expected[cell])
    if held < LEAST and groups[-1] > 0:  # what is left over is no group of its own
        groups[groups == groups[-1]] -= 1
    return [np.asarray(np.bincount(groups, weights=counts[order]), np.float64) for counts in (expected, *found)]
