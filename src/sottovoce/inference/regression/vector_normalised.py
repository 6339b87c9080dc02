r"""Self-normalised inference for a vector trajectory, from O(d^2) numbers (Theorem 3; Shao 2010, Lee et al. 2022).

doi:10.1111/j.1467-9868.2009.00737.x and arXiv:2106.03156.

With running averages `mean_l` of the points, `V = n^-2 sum_l l^2 (mean_l - mean_n)(mean_l - mean_n)'`. Since `l
(mean_l - reference)` is the running sum `S_l` of distances from the reference, `n^2 V = A - b m' - m b' + c m m'` with
`A = sum S_l S_l'`, `b = sum l S_l`, `c = n (n+1) (2n+1) / 6` and `m = S_n / n`. The published form has the origin for
a reference, and loses every digit when the coefficients are far from it. Here the reference moves to the present
average whenever the number of points is a power of two, an exact change of the same sums: `A` then is `n^2 V` itself,
and until the next move it exceeds it by a small factor only, wherever the points lie and wherever they started.

Critical values. The statistic `n (mean - truth)' V^-1 (mean - truth)` tends to `Q = W' (int B B')^-1 W` for a normal
vector `W` and a bridge `B` in `d` dimensions. One dimension is the square of the scalar statistic and, like two, exact
to 1e-9; 3 to 20 dimensions rest on a simulated table (`TABLE`) whose relative standard error at 95 % is 5e-5 at most.
The paper prints quantiles of 200,000 simulated paths, which differ from these by 0.1 to 0.5 %: their Monte-Carlo noise.

Two dimensions. With `S(a) = sqrt(a / sinh a)` and `r = sqrt(q)`, elliptic coordinates turn the average of `exp(-q/2
(int B_1^2 - (int B_1 B_2)^2 / int B_2^2))` into products of one-dimensional integrals:

    P(Q > q) = (2/pi) [ int_0^inf S(r cosh x) / cosh^2 x dx  int_0^(pi/2) S(r cos y) dy
                      + int_0^inf S(r cosh x) dx  int_0^(pi/2) (1 - S(r cos y)) / cos^2 y dy ].

More. The density of `sqrt(Q)` at `r` is proportional to `r^(d-1) S(r) sqrt(E_r M_11) exp(s(r))`, where `E_r M_11 =
sum_k 1/((pi k)^2 + r^2) = (r coth r - 1) / (2 r^2)` and `s` is smooth and bounded: its Chebyshev coefficients in
`r / (r + SCALE)` are all that had to be simulated (scripts/make_ellipsoid_table.py has the derivation). A density is
positive, so critical values rise strictly with the level, and p-values and critical values agree at every level.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial.chebyshev import chebval
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike

from sottovoce.core.arrays import Floats
from sottovoce.core.errors import BadInput
from sottovoce.core.kernels import njit
from sottovoce.inference.common.roots import root
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
from sottovoce.inference.self_normalised.pivots import root_sinhc

LARGEST = 20  # dimensions of the table
TABLE = "ellipsoid.csv"  # a line for each dimension from 3 on: relative error at 95 %, then the coefficients of `s`

Smooth = tuple[float, ...]

# The density at FURTHEST is below 1e-12 of its peak in every dimension up to 20; beyond, the smooth part is held.
SCALE, FURTHEST = 10.0, 150.0
PANEL, PANELS, NODES = 40.0, 8, 64


def ellipsoid_value(level: float, d: int) -> float:
    """Find c such that W' (int B B')^-1 W stays below c with probability `level`.

    >>> round(ellipsoid_value(0.95, 1), 4) == round(critical_value(0.95) ** 2, 4)
    True
    >>> round(ellipsoid_value(0.95, 2), 4)
    103.4168
    >>> round(ellipsoid_value(0.95, 9))
    867
    """
    if not 0.0 < level < 1.0:
        raise BadInput(f"level is {level}, but a confidence level lies strictly between 0 and 1.")
    return _value(float(level), known(d))


def ellipsoid_p_value(statistic: float, d: int) -> float:
    """Return the chance that W' (int B B')^-1 W exceeds the statistic.

    >>> round(ellipsoid_p_value(103.4168, 2), 6)
    0.05
    >>> ellipsoid_p_value(0.0, 7)
    1.0
    """
    if not statistic >= 0.0:
        raise BadInput(f"statistic is {statistic}, but a quadratic form is a number that is not negative.")
    r, d = math.sqrt(statistic), known(d)
    if d == 1:
        return scalar_p_value(r)
    if r < 1e-9:
        return 1.0
    # The distribution has exponential tails: beyond 1500 they are below 1e-250.
    if r > 1500.0:
        return 0.0
    chance = plane_tail(r) if d == 2 else body_and_tail(r, d, coefficients()[d])[1]
    return min(max(chance, 0.0), 1.0)


def known(d: int) -> int:
    """Return the dimension, or refuse one that has no table."""
    if isinstance(d, bool) or d != int(d) or not 1 <= d <= LARGEST:
        raise BadInput(
            f"a self-normalised ellipsoid has 1 to {LARGEST} dimensions, not {d}: ask for fewer contrasts at a time."
        )
    return int(d)


@lru_cache(maxsize=1)
def coefficients() -> dict[int, Smooth]:
    """Return the Chebyshev coefficients of the density's smooth part by dimension, from the table."""
    from importlib.resources import files

    lines = (files(__package__) / TABLE).read_text(encoding="ascii").splitlines()[1:]
    rows = [line.split(",") for line in lines]
    return {int(row[0]): tuple(float(text) for text in row[2:]) for row in rows}


@lru_cache(maxsize=256)
def _value(level: float, d: int) -> float:
    if d == 1:
        return critical_value(level) ** 2
    return radius(level, d, None if d == 2 else coefficients()[d]) ** 2


def plane_tail(r: float) -> float:
    """Return P(sqrt(Q) > r) in two dimensions."""
    # Both integrands are even and analytic: the midpoint rule converges geometrically, in steps that shrink with r.
    step = min(0.25, 0.9 / math.sqrt(r))
    cosh = np.cosh(np.arange(0.5 * step, min(math.acosh(max(1500.0 / r, 1.0)) + 1.0, 45.0), step))
    outer = root_sinhc(r * cosh) * step
    count = 32 + int(r)
    cos = np.cos((np.arange(count) + 0.5) * math.pi / (2.0 * count))
    inner = root_sinhc(r * cos) * math.pi / (2.0 * count)
    a = r * cos
    # 1 - S(a) = a^2 / 12 - a^4 / 160 + 61 a^6 / 120960 for small a.
    gap = np.where(a < 0.03, a**2 * (1.0 / 12.0 - a**2 / 160.0), 1.0 - root_sinhc(a)) / cos**2
    lost = float(np.sum(gap)) * math.pi / (2.0 * count)
    return 2.0 / math.pi * (float(np.sum(outer / cosh**2)) * float(np.sum(inner)) + float(np.sum(outer)) * lost)


def mean_square(r: Floats) -> Floats:
    """Return sum_k 1 / ((pi k)^2 + r^2)."""
    far = np.maximum(r, 0.1)
    squares: Floats = np.where(
        r < 0.1, 1.0 / 6.0 - r**2 / 90.0 + r**4 / 945.0, (far / np.tanh(far) - 1.0) / (2.0 * far**2)
    )
    return squares


def density(r: Floats, d: int, smooth: Smooth) -> Floats:
    """Return the density of sqrt(Q) up to a factor, which keeps it near one at its peak."""
    place = np.minimum(r, FURTHEST)
    share = place / (place + SCALE) * (FURTHEST + SCALE) / FURTHEST
    # r^(d-1) S(r), with the exponential decay of S beside the power so that neither runs away.
    peak = 2.0 * d
    power = (d - 1) * np.log(r / peak) + (peak - r) / 2.0
    slow = 0.5 * np.log(2.0 * r / -np.expm1(-2.0 * r) * mean_square(r))
    heights: Floats = np.exp(power + slow + chebval(2.0 * share - 1.0, smooth))
    return heights


def mass(low: float, high: float, d: int, smooth: Smooth) -> float:
    """Integrate the density between two radii."""
    panels = max(1, math.ceil((high - low) / PANEL))
    x, weights = nodes()
    width = (high - low) / panels
    r = low + width * (np.arange(panels)[:, None] + (x + 1.0) / 2.0)
    return float(np.sum(density(r, d, smooth) * weights)) * width / 2.0


@lru_cache(maxsize=1)
def nodes() -> tuple[Floats, Floats]:
    """Return the places and weights of a panel's quadrature on (-1, 1)."""
    x, weights = leggauss(NODES)
    return x, weights


def body_and_tail(r: float, d: int, smooth: Smooth) -> tuple[float, float]:
    """Return P(sqrt(Q) <= r) and P(sqrt(Q) > r)."""
    below, above = mass(0.0, r, d, smooth), mass(r, r + PANELS * PANEL, d, smooth)
    return below / (below + above), above / (below + above)


def radius(level: float, d: int, smooth: Smooth | None = None) -> float:
    """Return the radius that sqrt(Q) stays below with probability `level`; no table is needed in two dimensions."""

    def both(r: float) -> tuple[float, float]:
        if smooth is not None:
            return body_and_tail(r, d, smooth)
        chance = plane_tail(r)
        return 1.0 - chance, chance

    def excess(log_r: float) -> float:
        body, tail = both(math.exp(log_r))
        # Logarithms of whichever side is small: that one is nearly straight.
        if level > 0.5:
            return math.log(max(tail, 1e-300)) - math.log1p(-level)
        return math.log(level) - math.log(max(body, 1e-300))

    low, high = math.log(2.0 * d), math.log(2.0 * d) + 0.2
    while excess(high) > 0.0:
        low, high = high, high + 0.2
    while excess(low) < 0.0:
        low, high = low - 0.2, low
    return math.exp(root(excess, (low, high), 1e-12))


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
