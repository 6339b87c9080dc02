r"""The state of an averaged recursion when few coordinates move a step, with its self-normaliser, exactly.

With ``point`` the distance from the truth, ``moved = sum_i (i - 1) Delta_i`` over the moves ``Delta_i``, the sum of the
first l points is ``S_l = l point_l - moved_l``, so nothing happens to a coordinate that does not move. Summation by
parts does the same for the sums over l of the self-normaliser (16):

    sum_l S_l S_l' = Q2 point point' - Q1 (point moved' + moved point') + Q0 moved moved' + cross + cross',
    sum_l l S_l    = Q2 point - Q1 moved + ramp,             Qk = sum_{l <= n} l^k,

where a move ``Delta`` of one coordinate at step m + 1 adds ``Delta m (m - 1) / 2 [(m + 1) / 3 point - moved]``, taken
half-way through the move, to that coordinate's row of ``cross``, and ``Delta (m - 1) m (m + 1) / 6`` to ``ramp``.
A move costs O(d) instead of O(d^2), and one without the self-normaliser O(1).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sottovoce.core.arrays import Floats, Words
from sottovoce.core.kernels import njit
from sottovoce_papers.simulation.regression.cell import REACH

Order = npt.NDArray[np.int64]
EXPONENT = 0.65
OFFSET = 300.0
SPAN = 32  # steps over which the power is interpolated,
EXACT = 4096  # after this many; relative error below 2e-6


class Walk(NamedTuple):
    """What one replication carries; arrays that the kernels overwrite."""

    point: Floats
    moved: Floats
    ramp: Floats
    cross: Floats
    bounds: Floats
    words: Words
    order: Order


def begin(beta: Floats, start: Floats, words: Words) -> Walk:
    """Return the state before the first report."""
    d = len(beta)
    bounds = np.array([-REACH - beta, REACH - beta])
    return Walk(start - beta, np.zeros(d), np.zeros(d), np.zeros((d, d)), bounds, words, np.arange(d))


@njit(cache=True, inline="always")
def segment(i: int) -> tuple[int, int, float, float]:
    """Return where the piece of the power that holds step i + 1 ends and starts, its first value and its slope."""
    if i < EXACT:
        return i + 1, i + 1, float(i + 1) ** EXPONENT, 0.0
    first = i - i % SPAN
    base = float(first) ** EXPONENT
    return first + SPAN, first, base, (float(first + SPAN) ** EXPONENT - base) / SPAN


@njit(cache=True, inline="always")
def extent(point: Floats) -> float:
    """Return how far a fit can lie from the truth within the box of covariates."""
    total = 0.0
    for k in range(point.shape[0]):
        total += abs(point[k])
    return total


def average(walk: Walk, n: int) -> Floats:
    """Return the average of the first n points, less the truth."""
    return walk.point - walk.moved / n


def normaliser(walk: Walk, n: int) -> Floats:
    """Return the self-normaliser (16) after n steps."""
    zeroth, first, second = float(n), n * (n + 1) / 2, n * (n + 1) * (2 * n + 1) / 6
    centre = average(walk, n)
    # Taken about the average: the same sums with ``point - average`` in place of ``point``.
    point, lean = walk.point, second * walk.point - first * walk.moved + walk.ramp
    mixed = np.outer(point, walk.moved)
    total = second * np.outer(point, point) - first * (mixed + mixed.T) + zeroth * np.outer(walk.moved, walk.moved)
    total += walk.cross + walk.cross.T
    pull = np.outer(lean, centre)
    return np.asarray((total - pull - pull.T + second * np.outer(centre, centre)) / float(n) ** 2)
