r"""Self-normalised inference for a vector trajectory, from O(d^2) numbers (Theorem 3; Shao 2010, Lee et al. 2022).

doi:10.1111/j.1467-9868.2009.00737.x and arXiv:2106.03156.

With running averages `mean_l` of the points, `V = n^-2 sum_l l^2 (mean_l - mean_n)(mean_l - mean_n)'`. Since `l
(mean_l - reference)` is the running sum `S_l` of distances from the reference, `n^2 V = A - b m' - m b' + c m m'` with
`A = sum S_l S_l'`, `b = sum l S_l`, `c = n (n+1) (2n+1) / 6` and `m = S_n / n`. The published form has the origin for
a reference, and loses every digit when the coefficients are far from it. Here the reference moves to the present
average whenever the number of points is a power of two, an exact change of the same sums: `A` then is `n^2 V` itself,
and until the next move it exceeds it by a small factor only, wherever the points lie and wherever they started.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.inference.regression.ellipsoid_values import ellipsoid_value
from sottovoce.inference.regression.region import (
    Contrast,
    Ellipsoid,
    contrast_matrix,
    nonsingular,
    variance_along,
    vector,
)
from sottovoce.inference.self_normalised.critical_values import critical_value
from sottovoce.inference.self_normalised.critical_values import p_value as scalar_p_value


class VectorMemory(NamedTuple):
    """What is remembered of a trajectory: the number of points, and arrays that `add` changes in place.

    Only the lower triangle of `outer` is kept.
    """

    n: int
    reference: Floats
    total: Floats
    first: Floats
    outer: Floats


def init(d: int) -> VectorMemory:
    """Return the memory before the first point."""
    if d < 1:
        raise BadInput(f"a trajectory needs at least one coefficient, not {d}.")
    return VectorMemory(0, np.zeros(d), np.zeros(d), np.zeros(d), np.zeros((d, d)))


@njit(cache=True, inline="always")
def add(point: Floats, n: int, reference: Floats, total: Floats, first: Floats, outer: Floats) -> None:
    """Take in the n-th point, in place; the caller moves the reference where `n` is a power of two, as `add_all`."""
    for j in range(point.size):
        total[j] += point[j] - reference[j]
        first[j] += n * total[j]
        for k in range(j + 1):
            outer[j, k] += total[j] * total[k]


@njit(cache=True)
def recentre(n: int, reference: Floats, total: Floats, first: Floats, outer: Floats) -> None:
    """Move the reference to the present average, in place."""
    squares = n * (n + 1.0) * (2.0 * n + 1.0) / 6.0
    for j in range(total.size):
        # The move as it is carried out: what rounding leaves of it stays in the sums.
        move_j = (reference[j] + total[j] / n) - reference[j]
        for k in range(j + 1):
            move_k = (reference[k] + total[k] / n) - reference[k]
            outer[j, k] += move_j * (squares * move_k - first[k]) - first[j] * move_k
    for j in range(total.size):
        move = (reference[j] + total[j] / n) - reference[j]
        reference[j] += total[j] / n
        first[j] -= squares * move
        total[j] -= n * move


@njit(cache=True)
def add_all(points: Floats, n: int, reference: Floats, total: Floats, first: Floats, outer: Floats) -> int:
    """Take in the rows of `points` after `n` others, in place, and return how many there are now."""
    done = 0
    while done < len(points):
        power = 1
        while power <= n:
            power *= 2
        # No call but that of `add` stands in the inner loop: another would cost it more than the sums themselves.
        stop = min(len(points), done + power - n)
        for row in range(done, stop):
            n += 1
            add(points[row], n, reference, total, first, outer)
        done = stop
        if n == power:
            recentre(n, reference, total, first, outer)
    return n


def look(memory: VectorMemory, point: ArrayLike) -> VectorMemory:
    """Return the memory with one more point in it; the old one is left alone.

    >>> memory = init(2)
    >>> for point in ([1.0, 0.0], [3.0, 4.0]):
    ...     memory = look(memory, point)
    >>> mean(memory).tolist(), covariance(memory).tolist()
    ([2.0, 2.0], [[0.25, 0.5], [0.5, 1.0]])
    """
    after = VectorMemory(memory.n + 1, *(part.copy() for part in memory[1:]))
    add_all(vector(point, memory.reference.size, "point")[None], memory.n, *after[1:])
    return after


def mean(memory: VectorMemory) -> Floats:
    """Return the average of the points, the estimate."""
    average: Floats = memory.reference + memory.total / max(memory.n, 1)
    return average


def covariance(memory: VectorMemory) -> Floats:
    """Return V, the self-normaliser (16)."""
    n = float(max(memory.n, 1))
    lower = np.tril(memory.outer)
    m = memory.total / n
    squares = n * (n + 1.0) * (2.0 * n + 1.0) / 6.0
    centred = lower + np.tril(lower, -1).T - np.outer(memory.first, m) - np.outer(m, memory.first)
    normaliser: Floats = (centred + squares * np.outer(m, m)) / n**2
    return normaliser


def interval(memory: VectorMemory, contrast: Contrast, level: float) -> tuple[float, float]:
    """Return the ends of the confidence interval of a contrast (18).

    >>> memory = init(2)
    >>> for point in ([1.0, 0.0], [3.0, 4.0], [2.0, 1.0], [2.0, 2.0]):
    ...     memory = look(memory, point)
    >>> low, high = interval(memory, [1.0, 0.0], 0.9)
    >>> round(low, 3), round(high, 3)
    (1.335, 2.665)
    """
    middle, error = _scaled(memory, contrast)
    half = critical_value(level) * error
    return middle - half, middle + half


def p_value(memory: VectorMemory, contrast: Contrast, value: float) -> float:
    """Return the two-sided p-value of a value of the contrast."""
    middle, error = _scaled(memory, contrast)
    return scalar_p_value((value - middle) / error)


def ellipsoid(memory: VectorMemory, level: float, contrasts: ArrayLike | None = None) -> Ellipsoid:
    """Return the confidence ellipsoid of all coefficients, or of several contrasts (19).

    ``contrasts`` has one contrast per row.

    >>> memory = init(2)
    >>> for point in ([1.0, 0.0], [3.0, 4.0], [2.0, 1.0], [2.0, 2.5]):
    ...     memory = look(memory, point)
    >>> ellipsoid(memory, 0.95).contains([2.0, 2.0])
    True
    """
    rows = contrast_matrix(contrasts, memory.reference.size)
    shape = nonsingular(rows @ covariance(memory) @ rows.T, len(rows), "the self-normaliser")
    return Ellipsoid(rows @ mean(memory), shape / memory.n, ellipsoid_value(level, len(rows)))


def _scaled(memory: VectorMemory, contrast: Contrast) -> tuple[float, float]:
    """Return the estimate of a contrast and the self-normaliser's scale of it."""
    a = vector(contrast, memory.reference.size, "contrast")
    return float(a @ mean(memory)), math.sqrt(variance_along(a, covariance(memory)) / memory.n)
