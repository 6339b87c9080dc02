r"""The exact tail of `|B(1)| / sqrt(int {B(r) - g(r) B(1)}^2 dr)` for a schedule's own `g` (Corollary 3.1).

Write `B(r) - g(r) Z = b(r) + h(r) Z` with `Z = B(1)` independent of the bridge `b`, and `h(r) = r - g(r)`. Then `E
exp(t {Z^2 - v^2 int (b + h Z)^2}) = sqrt(a / sinh a) / sqrt(1 - 2 t + k(a))`, with `a = v sqrt(2 t)` and `k(a) = a^2
<h, (1 + a^2 K)^-1 h>`, `K` the covariance of the bridge. For piecewise linear `h` this is a finite sum: `k(a) = int
int h'(x) h'(y) a cosh(a min) cosh(a (1 - max)) / sinh(a)`, which rises from 0 to `nu - 1`.

The quadratic form has a single positive eigenvalue, so the transform has a single branch point `t0` to the right of
zero, and folding the contour around the cut gives an integral of a *positive* function. With `t = t0 cosh(x)^2`,
`tail = (2/pi) int_0^inf sqrt(a / sinh a) tanh(x) / sqrt(2 t - 1 - k(a)) dx`: no oscillation, no eigenvalues, no grid
in time.
"""

import math

import numpy as np
from numpy.typing import NDArray

from sottovoce.inference.common.roots import root
from sottovoce.inference.self_normalised.clock import Clock
from sottovoce.inference.self_normalised.pivots import root_sinhc


def scheduled_square_tail(v: float, dial: Clock) -> float:
    """Return P(|B(1)| > v sqrt(int {B - g B(1)}^2)); good to about 1e-10, relative, for the pieces of the clock."""
    start = branch_point(v, dial)
    step = min(0.25, 0.9 / math.sqrt(v))
    last = math.acosh(max(1500.0 / (v * math.sqrt(2.0 * start)), 1.0)) + 1.0
    x = np.arange(0.5 * step, min(last, 45.0), step)
    t = start * np.cosh(x) ** 2
    a = v * np.sqrt(2.0 * t)
    # Taken from the branch point, where the root vanishes, so that nothing is lost next to it.
    below = 2.0 * start * np.sinh(x) ** 2 - (bend(a, dial) - bend(np.array([v * math.sqrt(2.0 * start)]), dial))
    return float(np.sum(2.0 / math.pi * step * root_sinhc(a) * np.tanh(x) / np.sqrt(below)))


def branch_point(v: float, dial: Clock) -> float:
    """Return the root t of 1 - 2 t + k(v sqrt(2 t)): it lies in [1/2, nu/2]."""

    def excess(t: float) -> float:
        return 1.0 - 2.0 * t + float(bend(np.array([v * math.sqrt(2.0 * t)]), dial)[0])

    noise, rounds = np.array(dial.noise), np.array(dial.rounds)
    nu = float(np.sum(np.diff(rounds) ** 2 / np.diff(noise)))
    return root(excess, (0.49, 0.51 * nu + 0.01), 1e-14)


def bend(a: NDArray[np.float64], dial: Clock) -> NDArray[np.float64]:
    """Return k(a): what leaving the straight line adds to the quadratic form."""
    if len(dial.noise) == 2:
        return np.zeros_like(a)
    left, right = np.array(dial.noise[:-1])[:, None], np.array(dial.noise[1:])[:, None]
    width = right - left
    slope = 1.0 - np.diff(dial.rounds)[:, None] / width
    full = -np.expm1(-2.0 * a)

    def green(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        product: NDArray[np.float64] = np.exp(-a * (y - x)) * np.expm1(-2.0 * a * x) * np.expm1(-2.0 * a * (1.0 - y))
        return product / (2.0 * a * full)

    within = slope**2 * (width - green(left, left) + 2.0 * green(left, right) - green(right, right))
    rise = -slope * np.expm1(-a * width) / (2.0 * a)
    ahead = rise * (1.0 + np.exp(-a * (left + right)))
    behind = rise * (1.0 + np.exp(-a * (2.0 - left - right)))
    fade = np.exp(-a * width)
    carried, across = np.zeros_like(a), np.zeros_like(a)
    for piece in range(width.size):
        across += carried * behind[piece]
        carried = carried * fade[piece] + ahead[piece]
    total: NDArray[np.float64] = within.sum(0) + 4.0 * a / full * across
    return total
